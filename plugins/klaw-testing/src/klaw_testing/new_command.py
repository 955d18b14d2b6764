"""``klaw plugins new``: write a small plugin, with the test of its contract."""

from __future__ import annotations

import re
from importlib.util import find_spec
from keyword import iskeyword
from typing import TYPE_CHECKING

import click

from klaw_core.cli.kit import Settings, common_options, pass_settings
from klaw_testing.skeleton import kinds, next_commands, skeleton

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_NAME = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*")


def _checked(_context: click.Context, _parameter: click.Parameter, name: str) -> str:
    if not _NAME.fullmatch(name):
        raise click.BadParameter("use lower-case letters, digits and single hyphens, such as klaw-lines")
    module = name.replace("-", "_")
    if name == "klaw" or iskeyword(module) or find_spec(module) is not None:
        why = "a word of Python" if iskeyword(module) else "the name of an installed package"
        raise click.BadParameter(f"{module} is {why}; choose another name, such as klaw-lines")
    return name


@click.command("new", short_help="Create a small plugin to start from.")
@click.argument("name", callback=_checked)
@click.option(
    "--kind",
    required=True,
    type=click.Choice(kinds()),
    help="The kind of component that it provides.",
)
@common_options
@pass_settings
def command(settings: Settings, *, name: str, kind: str) -> None:
    """Write a small plugin that works, with the test of its contract, into the new directory NAME.

    NAME is the name of the distribution, such as klaw-lines. The name of the component is the same without `klaw-`.
    """
    from pathlib import Path

    from klaw_core.cli.kit import data, print_json

    directory = Path(name)
    files = skeleton(name, kind)
    _write(directory, files)
    commands = next_commands(directory)
    if settings.json:
        print_json({"directory": directory, "files": list(files), "next": commands})
        return
    for each in files:
        data().line(str(directory / each))
    for each in commands:
        data().line(f"next: {each}")


def _write(directory: Path, files: Mapping[str, str]) -> None:
    """Write files into a new directory. Raise ConfigError if it exists or cannot be made."""
    from klaw_core import ConfigError

    try:
        directory.mkdir()
        for name, text in files.items():
            (directory / name).write_text(text, "utf-8")
    except FileExistsError as error:
        raise ConfigError([f"the directory {directory} already exists"], hint="choose another name") from error
    except OSError as error:
        reason = error.strerror or str(error)
        raise ConfigError([f"{directory} cannot be written: {reason}"], hint="cd to another directory") from error
