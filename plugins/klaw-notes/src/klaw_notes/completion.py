"""Shell completion of the names of workspaces and of forgotten notes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from klaw_core.cli.kit import Settings

if TYPE_CHECKING:
    from klaw_notes.workspace import Workspace


def workspace_names(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the names of workspaces that start with the typed text."""
    return [item.origin for item in _workspaces(context) if item.origin.startswith(incomplete)]


def forgotten_notes(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the paths of forgotten notes that start with the typed text."""
    paths = (f"{item.origin}/{_literal(pattern)}" for item in _workspaces(context) for pattern in item.exclude)
    return [path for path in paths if path.startswith(incomplete)]


def _literal(pattern: str) -> str:
    """Undo ``glob.escape``."""
    return pattern.replace("[*]", "*").replace("[?]", "?").replace("[[]", "[")


def _workspaces(context: click.Context) -> Iterator[Workspace]:
    from klaw_core import KlawError
    from klaw_notes.workspace_list import workspaces_in

    settings = context.find_object(Settings) or Settings()
    with suppress(KlawError):  # completion must not print errors
        yield from workspaces_in(settings.load_config().data_dir).all().values()
