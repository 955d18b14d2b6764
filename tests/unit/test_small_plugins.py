"""The page that says how small a plugin is counts right."""

import ast
import io
import re
import tokenize
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "explanation" / "small-plugins.md"
SKELETONS = ROOT / "plugins" / "klaw-testing" / "src" / "klaw_testing" / "skeletons"
_LAYOUT = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE),
    *(tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER),
}
_DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def lines_of_code(text: str) -> int:
    """Return the number of lines without blank ones, comments and docstrings."""
    said: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, _DOCUMENTED) and ast.get_docstring(node) is not None:
            said.update(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    lines = {line for each in tokens if each.type not in _LAYOUT for line in range(each.start[0], each.end[0] + 1)}
    return len(lines - said)


def test_lines_of_code_are_counted_without_what_explains_them():
    assert lines_of_code('"""A\nmodule."""\n\n# why\nx = (\n    1,\n)  # one\n\n\ndef f():\n    """Say."""\n') == 4


def test_the_page_has_the_sizes_of_the_skeletons():
    said = re.findall(r"^\| ([\w-]+) \| (\d+) \| (\d+) \|", PAGE.read_text("utf-8"), re.MULTILINE)
    counted = [
        (
            path.stem.replace("_", "-"),
            *(str(lines_of_code(each.read_text("utf-8"))) for each in (path, SKELETONS / "tests" / path.name)),
        )
        for path in sorted(SKELETONS.glob("[a-z]*.py"))
    ]
    assert len(counted) > 8
    assert said == counted


def test_the_page_has_the_sizes_of_the_plugins():
    said = re.findall(r"^\| `(klaw-[\w-]+)` \| (\d+) \|", PAGE.read_text("utf-8"), re.MULTILINE)
    counted = [
        (
            name,
            str(sum(lines_of_code(file.read_text("utf-8")) for file in (ROOT / "plugins" / name).glob("src/**/*.py"))),
        )
        for name, _ in said
    ]
    assert len(said) > 3
    assert said == counted
