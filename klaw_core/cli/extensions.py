"""Commands that other distributions bring, as entry points of the group ``klaw.commands``.

    [project.entry-points."klaw.commands"]
    models = "klaw_models.command:command"

The value names a :class:`click.Command`; :mod:`klaw_core.cli.kit` has what it is written with. Entry points are
looked up only for a name that is not one of Klaw's own: reading the metadata of every installed package
takes longer than ``klaw --help`` may.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from klaw_core.errors import PluginConflictError, PluginError, PluginNotFoundError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint, EntryPoints

GROUP = "klaw.commands"


def official() -> Mapping[str, tuple[str, str]]:
    """Return the commands of first-party distributions: the extra that brings each, and its line in ``klaw --help``."""
    from klaw_core.plugins.catalogue import first_party_commands

    return first_party_commands()


def load_command(name: str) -> click.Command | None:
    """Import the command that a distribution brings under ``name``; None if there is none and none is known.

    Raise PluginNotFoundError for one of Klaw's own that is not installed, PluginConflictError if two
    distributions bring it, PluginError if it cannot be imported.
    """
    points = list(_entry_points().select(name=name))
    if not points:
        if name in official():
            from klaw_core.plugins.catalogue import install_command

            raise PluginNotFoundError(f"`klaw {name}` is not installed", hint=install_command([official()[name][0]]))
        return None
    owners = sorted({_owner(point) for point in points})
    if len(owners) > 1:
        raise PluginConflictError(
            f"several packages provide `klaw {name}`: {', '.join(owners)}", hint=f"pip uninstall {owners[-1]}"
        )
    try:
        command = points[0].load()
    except Exception as error:
        from klaw_core.plugins.installing import reinstall_command

        raise PluginError(
            f"`klaw {name}` from the package {owners[0]} cannot be loaded: {type(error).__name__}: {error}",
            hint=reinstall_command(owners[0]),
        ) from error
    if not isinstance(command, click.Command):
        raise PluginError(
            f"`klaw {name}` from the package {owners[0]} is not a command: "
            f"expected a click.Command, got {type(command).__name__}"
        )
    return command


def installed() -> dict[str, str]:
    """Return the commands that distributions bring, each with its distribution's name."""
    return {point.name: _owner(point) for point in sorted(_entry_points(), key=lambda point: point.name)}


def _entry_points() -> EntryPoints:
    from importlib.metadata import entry_points

    return entry_points(group=GROUP)


def _owner(point: EntryPoint) -> str:
    return point.value if point.dist is None else point.dist.name
