"""Every check that a finding names in the sources is on the page of the checks."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "reference" / "doctor.md"


def named_checks():
    """Yield the checks that calls name by a literal."""
    for path in (*ROOT.glob("klaw_core/**/*.py"), *ROOT.glob("plugins/*/src/**/*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in {"Finding", "guarded"} and node.args:
                check = node.args[0]
                if isinstance(check, ast.Constant):
                    yield check.value


def test_every_check_is_on_the_page():
    rows = re.findall(r"^\| (`[^|]*) \|", PAGE.read_text("utf-8"), re.MULTILINE)
    listed = {name for row in rows for name in re.findall(r"`([a-z-]+)`", row)}
    named = {*named_checks()}
    assert len(named) > 30
    assert named - listed == set()
