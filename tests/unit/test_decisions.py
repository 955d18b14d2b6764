"""The pages of decisions name what exists, or say that it is history; the list has all pages and missing numbers."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest
from features import absent

ROOT = Path(__file__).parents[2]
DECISIONS = ROOT / "docs" / "decisions"
PAGES = sorted(DECISIONS.glob("[0-9]*.md"))
HISTORY = "This page is history."
_NAME = re.compile(r"`([^`\n]+)`([^`\n]{0,20})")
_PATH = re.compile(r"[\w./-]+/[\w.-]+\.py")
#: Names of classes as Klaw gives them; others are of libraries.
_CLASS = re.compile(
    r"[A-Z][a-z]\w*(?:Extension|Store|Source|Chunker|Embedder|Reranker|Contract|Options|Journals?|Event)"
)
_MODULE = re.compile(r"klaw_\w+(?:\.\w+)+")


@cache
def files() -> frozenset[str]:
    places = ("klaw_core", "klaw_redaction", "plugins", "tests", "benchmarks", "docs")
    found = [path for place in places for path in (ROOT / place).rglob("*.py")]
    return frozenset(path.relative_to(ROOT).as_posix() for path in [*found, *ROOT.glob("*.py")])


@cache
def words() -> frozenset[str]:
    """Return the names of classes, functions, attributes and modules, and the words of the JavaScript."""
    found = {
        word for path in ROOT.glob("plugins/*/src/**/*.js") for word in re.findall(r"\w+", path.read_text("utf-8"))
    }
    for name in files():
        if name.startswith("tests/unit/test_decisions"):
            continue
        found.update(Path(name).with_suffix("").parts)
        for node in ast.walk(ast.parse((ROOT / name).read_text("utf-8"))):
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                found.add(node.name)
            elif isinstance(node, ast.Name):
                found.add(node.id)
            elif isinstance(node, ast.Attribute):
                found.add(node.attr)
    return frozenset(found)


def missing(text: str) -> list[str]:
    """Return the paths, classes and modules of Klaw that a page names and the checkout lacks."""
    found = []
    for name, after in _NAME.findall(text):
        if "since removed" in after:
            continue
        if _PATH.fullmatch(name):
            if not any(file == name or file.endswith(f"/{name}") for file in files()):
                found.append(name)
        elif (_CLASS.fullmatch(name) or _MODULE.fullmatch(name)) and not words().issuperset(name.split(".")):
            found.append(name)
    return found


@pytest.mark.skipif(bool(absent()), reason="a page may name what is in a plugin that is not in this checkout")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_a_decision_names_exists_or_is_said_to_be_gone(page):
    text = page.read_text("utf-8")
    assert HISTORY in text or missing(text) == []


def test_names_of_what_does_not_exist_are_found():
    text = "`klaw_core/windows.py`, `TabledExtension`, `klaw_core.nowhere.at_all`; `GoneStore` (since removed)"
    assert missing(text) == ["klaw_core/windows.py", "TabledExtension", "klaw_core.nowhere.at_all"]


def test_the_list_has_every_page_with_its_title_and_every_number_without_a_page():
    readme = (DECISIONS / "README.md").read_text("utf-8")
    lines = [f"- [{page.read_text('utf-8').splitlines()[0].removeprefix('# ')}]({page.name})" for page in PAGES]
    assert [line for line in readme.splitlines() if line.startswith("- [0")] == lines
    numbers = {int(page.name[:4]) for page in PAGES}
    said = readme[readme.index("No page has the numbers") :].split(":")[0]
    assert {int(number) for number in re.findall(r"\d{4}", said)} == set(range(1, max(numbers))) - numbers
