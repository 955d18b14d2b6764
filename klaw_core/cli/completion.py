"""What a shell can complete besides names of commands and options: what is remembered in this data directory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from klaw_core.cli.settings import Settings

if TYPE_CHECKING:
    from klaw_core.builtin.workspace import Workspace


def workspace_names(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the names of workspaces that begin as typed."""
    return [item.origin for item in _workspaces(context) if item.origin.startswith(incomplete)]


def forgotten_notes(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the paths that can be restored and begin as typed."""
    paths = (f"{item.origin}/{_literal(pattern)}" for item in _workspaces(context) for pattern in item.exclude)
    return [path for path in paths if path.startswith(incomplete)]


def _literal(pattern: str) -> str:
    """Return the name that ``glob.escape`` made a pattern of."""
    return pattern.replace("[*]", "*").replace("[?]", "?").replace("[[]", "[")


def _workspaces(context: click.Context) -> Iterator[Workspace]:
    from klaw_core.errors import KlawError
    from klaw_core.extensions.workspaces import workspaces_in

    settings = context.find_object(Settings) or Settings()
    with suppress(KlawError):  # a shell that completes a word hears of no error
        yield from workspaces_in(settings.load_config().data_dir).all().values()
