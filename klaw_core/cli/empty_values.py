"""Refuse an empty value of an option, which a shell makes of a variable that is not set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click


class MayBeEmpty(click.types.StringParamType):
    """The type of an option for which the empty text means something, such as no tags."""


def refuse_empty(group: click.Group, words: Sequence[str]) -> None:
    """Raise UsageError for an option of a command line of ``group`` that has an empty value.

    Most commands would treat it as absent: ``klaw serve token --agent "$NAME"`` would print the owner's token.
    """
    command: click.Command | None = group
    rest = list(words)
    while command is not None:
        # Its own: that of a group reads no option behind a word. What else is wrong is reported later.
        context = click.Context(command, resilient_parsing=True)
        below = _below(command, context, rest)
        if below is None:
            given, rest, _ = command.make_parser(context).parse_args(rest)
            _check(command, given)
            below = _below(command, context, rest)
        command, rest = below, rest[1:]


def _below(command: click.Command, context: click.Context, words: Sequence[str]) -> click.Command | None:
    """Return the command that the first word names below another one."""
    find = getattr(command, "get_command", None)  # not every command with others is a group
    found: click.Command | None = find(context, words[0]) if find and words and words[0] else None
    return found


def _check(command: click.Command, given: Mapping[str, Any]) -> None:
    for option in (each for each in command.params if isinstance(each, click.Option)):
        value = given.get(str(option.name))
        values = value if isinstance(value, list | tuple) else [value]
        if "" in values and not isinstance(option.type, MayBeEmpty):
            name = option.opts[-1]
            raise click.UsageError(f"the value of {name} is empty; give one, or leave {name} out")
