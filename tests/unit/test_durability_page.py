"""Every promise of the page on durability names a test that exists, and the table of operations is complete."""

import ast
import re
from pathlib import Path

import pytest
from checkout import is_here

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/explanation/durability.md").read_text("utf-8")
TEST = re.compile(r"`((?:tests|plugins)/[\w/-]+/test_\w+\.py)(?:::(\w+))?`")


def section(heading):
    found = re.search(rf"^## {heading}\n(.*?)(?=^## )", PAGE, re.MULTILINE | re.DOTALL)
    assert found is not None, heading
    return found[1]


def promises():
    """Yield every promise with its first words: rows of the table, bullets, and the sections that are one promise."""
    rows = [line for line in section("Guarantees").splitlines() if line.startswith("| `")]
    assert len(rows) >= 7
    bullets = re.split(r"(?m)^- ", section("How it works"))[1:]
    assert len(bullets) >= 13
    yield from rows
    yield from bullets
    yield section("Read-only places")
    yield section("A database that is moved while it is open")


@pytest.mark.parametrize("promise", [pytest.param(text, id=text.strip()[:30]) for text in promises()])
def test_a_promise_names_its_tests(promise):
    named = TEST.findall(promise)
    assert named
    for path, name in named:
        if not is_here(ROOT, path):
            pytest.skip(f"{path} is not in this checkout")
        defined = {
            node.name
            for node in ast.walk(ast.parse((ROOT / path).read_text("utf-8")))
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name.lower().startswith("test")
        }
        assert defined
        assert not name or name in defined
