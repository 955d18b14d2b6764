"""Find the name of an indexed directory, and explain it where it may surprise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from klaw_core.memory import Memory


def roots(memory: Memory) -> dict[str, Path | None]:
    """Return the directory of each source by its name; None for a source that is not a directory."""
    return {source.origin: None if source.root is None else source.root.resolve() for source in memory.sources()}


def workspace_of(memory: Memory, directory: str) -> str:
    """Return the name of the workspace that contains a directory, or the directory itself if there is none."""
    root = Path(directory).expanduser().resolve()
    known = roots(memory).items()
    return next((name for name, place in known if place is not None and root.is_relative_to(place)), directory)


def naming_notices(
    name: str, directory: str, before: Mapping[str, Path | None], now: Mapping[str, Path | None], *, chosen: bool
) -> Iterator[str]:
    """Yield a notice if a directory was indexed under another name than its own.

    Either it belongs to a larger workspace, or its name was taken when it was added. ``before`` and ``now`` are the
    :func:`roots` before and after the run; ``chosen``: the user chose the name.
    """
    here, root = Path(directory).expanduser().resolve(), now.get(name)
    if root is not None and here != root:
        yield f"{directory} belongs to the workspace {name} ({root}), which was indexed as a whole"
    elif root is not None and not chosen and name not in before and here.name not in {"", name}:
        owner = before.get(here.name)
        by = "" if owner is None else f" by {owner}"
        yield (
            f"the name {here.name} is already in use{by}, so this workspace is called {name}; choose another name: "
            f"klaw workspace rename {name} NAME (for the next directory: klaw index DIR --name NAME)"
        )
