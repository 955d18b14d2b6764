"""Find the name of an indexed directory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from klaw_core.memory import Memory


def workspace_of(memory: Memory, directory: str) -> str:
    """Return the name of the workspace that contains a directory, or the directory itself if there is none."""
    root = Path(directory).expanduser().resolve()
    known = ((source.origin, source.root) for source in memory.sources())
    return next(
        (name for name, place in known if place is not None and root.is_relative_to(place.resolve())), directory
    )
