"""The classes of writers are written in one place: every option, schema and type has those of ``TRUST_CLASSES``."""

import ast
from datetime import UTC, datetime
from pathlib import Path
from typing import get_args

import click
import pytest

from klaw_core import Message, RecordError
from klaw_core.cli.program import cli
from klaw_core.values.metadata import TRUST_CLASSES
from klaw_journals.trust import Trust

ROOT = Path(__file__).parents[2]
#: Where the classes are written out: the one source, and a type, which cannot be computed.
WRITTEN = {"klaw_core/values/metadata.py", "plugins/klaw-journals/src/klaw_journals/trust.py"}


def listed(tree):
    """Yield the strings that each list, tuple, set, call or subscript of a program has next to each other."""
    for node in ast.walk(tree):
        parts = getattr(node, "elts", None) or getattr(node, "args", ())
        if isinstance(parts, list):
            yield {each.value for each in parts if isinstance(each, ast.Constant)}


def test_no_other_program_lists_them():
    files = [path for place in ("klaw_core", "plugins") for path in (ROOT / place).rglob("*.py")]
    sources = {str(path.relative_to(ROOT)): path for path in files if "tests" not in path.parts}
    found = {
        name
        for name, path in sources.items()
        if any(set(TRUST_CLASSES) <= strings for strings in listed(ast.parse(path.read_text("utf-8"))))
    }
    assert found == WRITTEN


def test_the_type_has_them():
    assert get_args(Trust) == TRUST_CLASSES


def options(command, words=()):
    for parameter in command.params:
        if parameter.name == "trust":
            yield " ".join(words), parameter
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            yield from options(command.get_command(context, name), (*words, name))


def test_every_option_takes_and_explains_them():
    found = dict(options(cli))
    assert {"index", "context", "import"} <= found.keys()
    for name, option in found.items():
        assert tuple(option.type.choices) == TRUST_CLASSES, name
        assert [each for each in TRUST_CLASSES if each not in option.help] == [], name


def test_the_error_for_an_unknown_class_of_a_message_lists_them():
    with pytest.raises(RecordError, match="unknown trust") as caught:
        Message("user", "hello", datetime.now(UTC), trust="nobody")
    assert str(caught.value).endswith(f"known: {', '.join(TRUST_CLASSES)}")
