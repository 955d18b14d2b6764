"""No test depends on how busy the machine is: a limit only ends a hang, and nothing is awaited by sleeping.

A limit that is what a test is about stands on a line with the comment ``# brief: why``.
"""

import ast
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).parents[2]
#: A limit that only ends a hang; CI ends one after 20 minutes (``noxfile.py``).
HANGS_SECONDS = 300
#: A pause that is long enough to be there in the hope that something has happened meanwhile.
PAUSE_SECONDS = 0.25
#: Calls whose first argument is a limit in seconds, and the names of such arguments in every call.
WAITS = {"wait", "join", "result"}
LIMITS = {"timeout", "patience"}


def sources() -> list[Path]:
    """Return the tests, and what they are made of."""
    places = [ROOT / "tests", ROOT / "plugins" / "klaw-testing" / "src" / "klaw_testing", *ROOT.glob("plugins/*/tests")]
    return sorted(path for place in places for path in place.rglob("*.py"))


def brief_limits(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of each limit below :data:`HANGS_SECONDS`, and of each pause."""
    lines = text.splitlines()
    for node in ast.walk(ast.parse(text)):
        if any(_limits(node)) and "# brief: " not in "".join(lines[node.lineno - 1 : node.end_lineno]):
            yield node.lineno, lines[node.lineno - 1].strip()


def _limits(node: ast.AST) -> Iterator[bool]:
    if isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name == "sleep" and node.args:
            yield _seconds(node.args[0]) >= PAUSE_SECONDS
        if name in WAITS and len(node.args) == 1:
            yield PAUSE_SECONDS <= _seconds(node.args[0]) < HANGS_SECONDS
        for keyword in node.keywords:
            yield keyword.arg in LIMITS and 0 < _seconds(keyword.value) < HANGS_SECONDS
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        yield "monotonic()" in ast.unparse(node.left) and 0 < _seconds(node.right) < HANGS_SECONDS
    elif isinstance(node, ast.Compare):
        yield "monotonic()" in ast.unparse(node.left) and any(_seconds(value) > 0 for value in node.comparators)
    elif isinstance(node, ast.While):  # that it spins; reading until there is no more is another thing
        yield isinstance(node.test, ast.UnaryOp | ast.BoolOp) and all(isinstance(part, ast.Pass) for part in node.body)
    elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value:
        names = [node.target] if isinstance(node, ast.AnnAssign) else node.targets
        is_limit = "patience" in ast.unparse(names[0]).lower()
        yield is_limit and 0 < _seconds(node.value) < HANGS_SECONDS
    elif isinstance(node, ast.Constant) and isinstance(node.value, str) and "\nimport " in node.value:
        with suppress(SyntaxError):  # a program to run
            yield any(brief_limits(node.value))


def _seconds(node: ast.expr) -> float:
    """Return a number that stands in the source; 0 for anything else."""
    return float(node.value) if isinstance(node, ast.Constant) and isinstance(node.value, int | float) else 0.0


def test_no_test_waits_for_less_than_a_hang_or_by_sleeping():
    found = [
        f"{path.relative_to(ROOT)}:{line}: {text}"
        for path in sources()
        for line, text in brief_limits(path.read_text("utf-8"))
    ]
    assert found == []


def test_the_rule_sees_each_way_to_depend_on_an_idle_machine():
    seen = {
        "time.sleep(1)",
        "thread.join(10)",
        "event.wait(0.5)",
        "subprocess.run(command, timeout=60)",
        "end = time.monotonic() + 5",
        "assert time.monotonic() - begun < 5",
        "while not ready(): pass",
        "PATIENCE_SECONDS = 60",
        "program = '\\nimport time\\ntime.sleep(1)'",
    }
    unseen = {
        "time.sleep(0.01)",
        "thread.join()",
        "event.wait(300)",
        "while connection.recv(): pass",
        "patience: float = 300",
        "' '.join(words)",
        "event.wait(0.5)  # brief: it must not happen",
        "while not ready(): time.sleep(0.01)",
    }
    assert {text for text in seen | unseen if list(brief_limits(text))} == seen
