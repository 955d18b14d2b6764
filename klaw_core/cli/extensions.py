"""Commands of other distributions, from entry points of the group ``klaw.commands``.

    [project.entry-points."klaw.commands"]
    models = "klaw_models.command:command"

The value names a :class:`click.Command`, written with :mod:`klaw_core.cli.kit`. Entry points are looked up only for
names that are not Klaw's own commands, because reading the metadata of all installed packages is slow. For the same
reason the commands of a default distribution are Klaw's own, which :mod:`klaw_core.cli.program` names by their modules.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING

import click

from klaw_core.errors import PluginConflictError, PluginError, PluginNotFoundError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint, EntryPoints

GROUP = "klaw.commands"


def official() -> Mapping[str, tuple[str, str]]:
    """Return the commands of first-party distributions: for each its extra, and its line in ``klaw --help``."""
    from klaw_core.plugins.catalogue import first_party_commands

    return first_party_commands()


def load_own(name: str, module: str, *, missing_ok: bool = False) -> click.Command | None:
    """Import one of Klaw's own commands from a module of ``klaw_core.cli`` or, if it has a dot, of a distribution.

    Entry points are not read. Raise PluginNotFoundError if the distribution is not installed; with ``missing_ok``,
    return None.
    """
    package, dot, _ = module.partition(".")
    try:
        command = import_module(module if dot else f"klaw_core.cli.{module}").command
    except ModuleNotFoundError as error:
        if not dot or error.name != package:
            raise
        if missing_ok:
            return None
        from klaw_core.plugins.catalogue import CATALOGUE, install_command

        extras = next(row.extras for row in CATALOGUE if row.distribution == package.replace("_", "-"))
        raise PluginNotFoundError(f"`klaw {name}` is not installed", hint=install_command(extras[:1])) from error
    assert isinstance(command, click.Command)
    return command


def load_command(name: str) -> click.Command | None:
    """Import the command ``name`` of another distribution; return None if the name is unknown.

    Raise PluginNotFoundError if it is a first-party command that is not installed, PluginConflictError if several
    distributions provide it, PluginError if it cannot be imported.
    """
    points = list(_entry_points().select(name=name))
    if not points:
        if name in official():
            from klaw_core.plugins.catalogue import install_command

            raise PluginNotFoundError(f"`klaw {name}` is not installed", hint=install_command([official()[name][0]]))
        return None
    owners = sorted({_owner(point) for point in points})
    if len(owners) > 1:
        from klaw_core.plugins.installing import uninstall_command

        raise PluginConflictError(
            f"several packages provide `klaw {name}`: {', '.join(owners)}", hint=uninstall_command(owners[-1])
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


def installed(group: str = GROUP) -> dict[str, str]:
    """Return the name of the distribution of each installed command, or of what another group has, by name."""
    return {point.name: _owner(point) for point in sorted(_entry_points(group), key=lambda point: point.name)}


def _entry_points(group: str = GROUP) -> EntryPoints:
    from importlib.metadata import entry_points

    return entry_points(group=group)


def _owner(point: EntryPoint) -> str:
    return point.value if point.dist is None else point.dist.name
