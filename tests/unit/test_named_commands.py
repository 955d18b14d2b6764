"""A command that a message names can be typed: what it names is quoted for a shell."""

import ast
import re
from pathlib import Path

import click

from klaw_core.cli.program import cli

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


#: Texts that look like commands, or are more than their group has, and why.
NO_COMMANDS = {
    "klaw schema X": "the name of a lock",
    "klaw sync DIR": "a group that takes places, as `klaw sync run` does",
}
_WORD = re.compile(r"--?[\w-]+(?==|$)")


def texts(tree):
    """Yield the line and text of each string that is no docstring, with X for each value of an f-string."""
    inner = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
    inner |= {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = (part.value if isinstance(part, ast.Constant) else "X" for part in node.values)
            yield node.lineno, "".join(map(str, parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inner:
            yield node.lineno, node.value


def commands_in(text):
    """Yield the commands of Klaw in a text: between backticks, or the whole text, or after a colon at its end."""
    yield from re.findall(r"`(klaw [a-z][^`]*)`", text)
    bare = re.fullmatch(r"(?:[^`]*: |)(klaw [a-z]+(?: [^`;,:]*)?)(?:[;,:][^`]*)?", text)
    if bare and "`" not in text:
        yield bare[1]


def problem(words, root):
    """Return what is wrong with a command: no such command, or no such option."""
    command, at = root, 0
    while isinstance(command, click.Group) and at < len(words) and not words[at].startswith("-"):
        found = command.get_command(click.Context(command), words[at])
        if found is None:
            return "" if words[at] in {"X", "COMMAND"} else f"no command {words[at]}"
        command, at = found, at + 1
    known = {name for each in (command, root) for item in each.params for name in (*item.opts, *item.secondary_opts)}
    given = {found[0] for word in words[at:] if (found := _WORD.match(word))}
    return ", ".join(sorted(given - known - {"--help", "-h"}))


def wrong_in(text):
    """Yield each command in a text that does not exist as it is written, with the problem."""
    for said in commands_in(text):
        words = [word.strip("'\"()[].,") for word in said.split()[1:]]
        if found := problem([word for word in words if word], cli):
            yield said, found


def test_each_command_that_is_named_exists_with_its_options():
    files = [*(ROOT / "klaw_core").rglob("*.py"), *(ROOT / "plugins").glob("*/src/**/*.py")]
    every = [(path, *each) for path in files for each in texts(ast.parse(path.read_text("utf-8")))]
    wrong = {
        said: f"{path.relative_to(ROOT).as_posix()}:{line}: {found}"
        for path, line, text in every
        for said, found in wrong_in(text)
    }
    assert {said: where for said, where in wrong.items() if said not in NO_COMMANDS} == {}
    assert NO_COMMANDS.keys() - wrong.keys() == set(), "not needed any more"
    assert sum(len(list(commands_in(text))) for *_, text in every) > 200


def test_each_command_in_a_hint_that_was_printed_exists_with_its_options():
    """Hints whose commands are put together when they are shown, as the golden outputs have them."""
    hints = [
        hint
        for path in (ROOT / "tests" / "golden" / "expected").rglob("*.txt")
        for hint in re.findall(r"^! .* \u2192 (.+)$|^  \u2192 (.+)$", path.read_text("utf-8"), re.MULTILINE)
    ]
    said = {part for found in hints for part in found if part}
    assert len([part for part in said if [*commands_in(part)]]) > 25
    wrong = {command: found for part in said for command, found in wrong_in(part)}
    assert {command: found for command, found in wrong.items() if command not in NO_COMMANDS} == {}


def test_a_command_that_does_not_exist_is_found():
    tree = ast.parse(
        'hint = f"`klaw serach {quote(word)}` finds it"; other = "klaw index --colour DIR"; fine = "klaw index DIR"'
    )
    said = [command for _, text in texts(tree) for command in commands_in(text)]
    assert sorted(filter(None, (problem(each.split()[1:], cli) for each in said))) == ["--colour", "no command serach"]
