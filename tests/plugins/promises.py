"""Promises of the pages, and the tests of each: ``@pytest.mark.promise("D7")``.

A sentence of a page that promises something ends with ``<!-- promise: D7 -->``, which nobody sees. A test of the same
id fails if the promise is broken, and a mutant with the id (``tests/mutants``) is the proof of it.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

#: The pages, and the letter with which the ids of each begin.
PAGES = {
    "docs/explanation/durability.md": "D",
    "docs/reference/tools.md": "T",
    "docs/how-to/share-between-agents.md": "A",
    ".github/SECURITY.md": "S",
    "docs/how-to/sync.md": "Y",
}
#: Where tests are.
PLACES = ("tests/**/test_*.py", "plugins/*/tests/**/test_*.py")
_MARK = re.compile(r" ?<!-- promise: ([A-Z]\d+(?:, [A-Z]\d+)*) -->")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "promise(*ids): fails if a promise of the documentation is broken")


def ids_in(text: str) -> list[str]:
    """Return the ids of promises in a text, in order."""
    return [name for found in _MARK.findall(text) for name in found.split(", ")]


def without_ids(text: str) -> str:
    """Return a text without its ids."""
    return _MARK.sub("", text)


def marked_tests(root: Path) -> dict[str, set[str]]:
    """Return the tests of each id, as nodes of pytest without parameters. The sources are parsed, nothing is run."""
    found: dict[str, set[str]] = {}
    for place in PLACES:
        for path in sorted(root.glob(place)):
            text = path.read_text("utf-8")
            if "mark.promise" in text:
                for name, node in _marked(ast.parse(text)):
                    found.setdefault(name, set()).add(f"{path.relative_to(root).as_posix()}::{node}")
    return found


def _marked(scope: ast.AST, outer: str = "") -> list[tuple[str, str]]:
    """Return the ids of the tests of a module or class, each with the test's name."""
    found = []
    for node in ast.iter_child_nodes(scope):
        if isinstance(node, ast.ClassDef):
            found += _marked(node, f"{outer}{node.name}::")
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            for decorator in node.decorator_list:
                if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "pytest.mark.promise":
                    found += [(str(ast.literal_eval(each)), f"{outer}{node.name}") for each in decorator.args]
    return found
