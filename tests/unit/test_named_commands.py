"""A command that a message names can be typed: what it names is quoted for a shell."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
#: The begin of a command, up to a value in it.
COMMAND = re.compile(r"(?:^|`)klaw [a-z][^`]*$")
#: Values that need no quotes, and why.
PLAIN = {
    "{key}": "a key of the configuration",
    "{_PLACE}": "a key of the configuration",
    "{fact.id}": "made by Klaw",
    "{fact.category}": "one of the categories",
    "{question.text}": "in double quotes, of the demo",
    "{self._options.schema}": "no command: the name of a lock",
    "{error}": "no command: what went wrong with `klaw mcp`",
}


def unquoted(tree):
    """Yield each value in a command of an f-string that is not quoted, with the names that are assigned from quote."""
    quoted = {
        target.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and "quote(" in ast.unparse(node.value)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(tree):
        said = ""
        for part in node.values if isinstance(node, ast.JoinedStr) else ():
            if isinstance(part, ast.Constant):
                said += part.value
                continue
            value = ast.unparse(part.value)
            if COMMAND.search(said) and "quote(" not in value and value not in quoted:
                yield node.lineno, f"{{{value}}}"
            said += "X"


def test_each_value_in_a_command_that_is_named_is_quoted():
    files = [*(ROOT / "klaw_core").rglob("*.py"), *(ROOT / "plugins").glob("*/src/**/*.py")]
    found = {
        (path.relative_to(ROOT).as_posix(), line, value)
        for path in files
        for line, value in unquoted(ast.parse(path.read_text("utf-8")))
    }
    assert {each for each in found if each[2] not in PLAIN} == set()
    assert PLAIN.keys() - {value for *_, value in found} == set(), "not needed any more"


def test_a_value_without_quotes_is_found():
    source = """
word = quote(name)
hint = f"`klaw forget {name}/` removes it"
fine = f"`klaw forget {word}/`, or `klaw forget {quote(path)}`, of {name}"
"""
    assert list(unquoted(ast.parse(source))) == [(3, "{name}")]
