"""Every defect can be put into today's product: what it replaces is there, under the name that it has there."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

_HERE = Path(__file__).parent
_PUT_IN = """
import sys, traceback
sys.path[:0] = sys.argv[1:]
import simulator
for name, put_in in simulator._DEFECTS.items():
    try:
        put_in()
    except Exception as error:
        print(f"{name}: {error!r}")
"""
_REPLACED = """
import sys
sys.path[:0] = sys.argv[2:]
import defects
for line in sys.argv[1].splitlines():
    of, _, name = line.rpartition(".")
    if of.partition(".")[0] in vars(defects) and not hasattr(eval(of, vars(defects)), name):
        print(line)
"""


def _said(program: str, *arguments: str) -> str:
    """Return what a program says in a process of its own, as nothing takes a defect out again."""
    paths = [str(_HERE), str(_HERE.parent / "crash")]
    command = [sys.executable, "-c", program, *arguments, *paths]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def _replaced() -> Iterator[str]:
    """Yield each attribute that a defect sets."""
    for each in ast.walk(ast.parse((_HERE / "defects.py").read_text("utf-8"))):
        if not isinstance(each, ast.Assign | ast.AugAssign):
            continue
        for target in each.targets if isinstance(each, ast.Assign) else [each.target]:
            for one in target.elts if isinstance(target, ast.Tuple) else [target]:
                if isinstance(one, ast.Attribute):
                    yield ast.unparse(one)


def test_every_defect_can_be_put_in():
    assert _said(_PUT_IN) == ""


def test_what_a_defect_replaces_is_there():
    replaced = sorted({*_replaced()})
    assert "Connections._transaction" in replaced
    assert _said(_REPLACED, "\n".join(replaced)) == ""
