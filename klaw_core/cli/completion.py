"""Shell completion of names and paths from the data directory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from klaw_core.cli.settings import Settings

if TYPE_CHECKING:
    from klaw_core.builtin.workspace import Workspace

_MAX_PATHS = 200


def workspace_names(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the names of workspaces that start with the typed text."""
    return [item.origin for item in _workspaces(context) if item.origin.startswith(incomplete)]


def forgotten_notes(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the paths of forgotten notes that start with the typed text."""
    paths = (f"{item.origin}/{_literal(pattern)}" for item in _workspaces(context) for pattern in item.exclude)
    return [path for path in paths if path.startswith(incomplete)]


def document_paths(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the paths of indexed documents that start with the typed text."""
    from klaw_core.errors import KlawError

    with suppress(KlawError), _settings(context).open_memory() as memory:
        names = memory.collections()
        pages = (memory.documents(collection=name, prefix=incomplete, limit=_MAX_PATHS) for name in names)
        return [record.path for page in pages for record in page]
    return []


def _literal(pattern: str) -> str:
    """Undo ``glob.escape``."""
    return pattern.replace("[*]", "*").replace("[?]", "?").replace("[[]", "[")


def _workspaces(context: click.Context) -> Iterator[Workspace]:
    from klaw_core.errors import KlawError
    from klaw_core.extensions.workspaces import workspaces_in

    with suppress(KlawError):  # completion must not print errors
        yield from workspaces_in(_settings(context).load_config().data_dir).all().values()


def _settings(context: click.Context) -> Settings:
    return context.find_object(Settings) or Settings()
