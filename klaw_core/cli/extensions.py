"""Commands of other distributions, from entry points of the group ``klaw.commands``.

    [project.entry-points."klaw.commands"]
    models = "klaw_models.command:command"

The value names a :class:`click.Command`, written with :mod:`klaw_core.cli.kit`. Entry points are looked up only for
names that are not Klaw's own commands, because reading the metadata of all installed packages is slow. For the same
reason the commands of a default distribution are Klaw's own, which :mod:`klaw_core.cli.program` names by their modules.

A command below an :class:`OpenGroup`, such as ``klaw plugins new``, is an entry point of ``klaw.commands.plugins``.
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


class OpenGroup(click.Group):
    """A command of Klaw with subcommands of its own, and others that distributions add to it."""

    def list_commands(self, context: click.Context) -> list[str]:
        """Return its own commands, then those that are installed."""
        return [*super().list_commands(context), *installed(f"{GROUP}.{self.name}")]

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        """Import and return a command, or None if there is no such command. Raise PluginError."""
        if (own := super().get_command(context, name)) or (
            context.resilient_parsing and name not in self.list_commands(context)
        ):
            return own
        return load_command(name, str(self.name))


def official(group: str = "") -> Mapping[str, tuple[str, str]]:
    """Return the commands of first-party distributions: for each its extra, and its line in ``klaw --help``.

    Those of an :class:`OpenGroup` if its name is given.
    """
    from klaw_core.plugins.catalogue import CATALOGUE

    listed = [
        (*name.rpartition(" ")[::2], row, line) for row in CATALOGUE for name, line in sorted(row.commands.items())
    ]
    return {name: (row.extras[0], line) for owner, name, row, line in listed if owner == group}


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


def load_command(name: str, group: str = "") -> click.Command | None:
    """Import the command ``name`` of another distribution, of an :class:`OpenGroup` if one is named.

    Return None if the name is unknown. Raise PluginNotFoundError if it is a first-party command that is not installed,
    PluginConflictError if several distributions provide it, PluginError if it cannot be imported.
    """
    points = list(_entry_points(f"{GROUP}.{group}" if group else GROUP).select(name=name))
    known = official(group)
    name = f"{group} {name}".lstrip()
    if not points:
        if extra := known.get(name.rpartition(" ")[2], ("",))[0]:
            from klaw_core.plugins.catalogue import install_command

            raise PluginNotFoundError(f"`klaw {name}` is not installed", hint=install_command([extra]))
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
