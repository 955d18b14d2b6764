"""Shell completion of names and paths from the data directory."""

from __future__ import annotations

from contextlib import suppress

import click

from klaw_core.cli.settings import Settings

_MAX_PATHS = 200


def document_paths(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the paths of indexed documents that start with the typed text."""
    from klaw_core.errors import KlawError

    settings = context.find_object(Settings) or Settings()
    with suppress(KlawError), settings.open_memory() as memory:
        names = memory.collections()
        pages = (memory.documents(collection=name, prefix=incomplete, limit=_MAX_PATHS) for name in names)
        return [record.path for page in pages for record in page]
    return []
