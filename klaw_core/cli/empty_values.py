"""Refuse an empty value of an option, which a shell makes of a variable that is not set."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import click


class MayBeEmpty(click.types.StringParamType):
    """The type of an option for which the empty text means something, such as no tags."""


def refuse_empty(group: click.Group, words: Sequence[str]) -> None:
    """Raise UsageError for an option of a command line of ``group`` that has an empty value.

    Most commands would treat it as absent: ``klaw serve token --agent "$NAME"`` would print the owner's token.
    """
    own = words[: words.index("--") if "--" in words else None]
    options = {name: option for option in _options(group, own) for name in (*option.opts, *option.secondary_opts)}
    for word, following in zip(own, [*own[1:], "-"], strict=False):
        name, equals, value = word.partition("=") if word.startswith("--") else (f"-{word[1:][-1:]}", "", "")
        option = options.get(name) if word.startswith("-") else None
        takes_none = option is None or option.is_flag or option.count or isinstance(option.type, MayBeEmpty)
        if not takes_none and not (value if equals else following):
            raise click.UsageError(f"the value of {name} is empty; give one, or leave {name} out")


def _options(group: click.Group, words: Sequence[str]) -> Iterator[click.Option]:
    """Yield the options of a group, and of the commands below it that a command line names."""
    context = click.Context(group, resilient_parsing=True)
    commands: list[click.Command] = [group]
    for word in words:
        get_command = getattr(commands[-1], "get_command", None)  # not every command with others is a group
        nested = get_command(context, word) if get_command and word else None
        commands += [nested] if nested else []
    yield from (each for command in commands for each in command.params if isinstance(each, click.Option))
