"""The extension ``presence``: an answer says what its directories are, which files are gone, and what is not read.

It is built for every search, so it imports little: the list of workspaces is read as JSON. Only if nothing fits, the
files of the workspaces are counted.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

from attrs import evolve, frozen

from klaw_core import ComponentContext, Event, KlawError, ListeningExtension, Metadata, SearchEvent, SearchResult

_GUESSED = "windows-1252"  # as in klaw_notes.workspace
_FILE_NAME = "workspaces.json"  # as in klaw_notes.workspace_list, whose import is slow
# The files of a workspace whose kinds are counted, and the kinds that are named.
_MAX_LOOKED_AT, _MAX_KINDS = 2_000, 4

# Workspaces by name: the directory, and the descriptions of directories by their paths below it.
Listed: TypeAlias = Mapping[str, tuple[Path, Mapping[str, str]]]


@frozen(eq=False)
class PresenceExtension(ListeningExtension):
    """Adds notices to answers."""

    context: ComponentContext

    name = "presence"

    def on(self, event: Event, /) -> None:
        """Add what the answer of a search lacks to its notices."""
        if not isinstance(event, SearchEvent):
            return
        listed = self._listed(event.collections)
        roots = {name: root for name, (root, _) in listed.items()}
        if any(described for _, described in listed.values()):
            event.results = evolve(event.results, results=tuple(_described(result, listed) for result in event.results))
        results = event.results
        event.notices.extend(_gone(list(dict.fromkeys(result.path for result in results)), roots))
        event.notices.extend(_guessed({result.path: result.metadata for result in results}))
        if roots and (not results or results.nothing_fits):
            event.notices.extend(self._unread(roots))

    def _listed(self, collections: Sequence[str]) -> Listed:
        """Return the workspaces in some collections, by name; none if the list cannot be read."""
        with suppress(OSError, ValueError, TypeError, AttributeError, KeyError, RecursionError):
            listed = json.loads((self.context.data_dir / _FILE_NAME).read_text("utf-8"))
            wanted = (
                (name, entry) for name, entry in listed.items() if entry.get("collection", "memory") in collections
            )
            return {name: (Path(entry["path"]), dict(entry.get("descriptions", {}))) for name, entry in wanted}
        return {}

    def _unread(self, names: Mapping[str, Path]) -> Iterator[str]:
        from klaw_notes.extension import WorkspacesExtension
        from klaw_notes.workspace_list import Workspaces

        with suppress(KlawError):
            extension = WorkspacesExtension(self.context)
            for name, workspace in Workspaces(extension.file, frozenset(), extension.converters).all().items():
                if name in names and (counts := workspace.unread(_MAX_LOOKED_AT)):
                    kinds = ", ".join(f"{count:,} {ending}" for ending, count in list(counts.items())[:_MAX_KINDS])
                    yield f"files in {name} that are not read: {kinds}{' …' if len(counts) > _MAX_KINDS else ''}"


def _described(result: SearchResult, listed: Listed) -> SearchResult:
    """Return a result with what its directories are, the outermost first."""
    name, _, relative = result.path.partition("/")
    described = listed[name][1] if name in listed else {}
    texts = [text for path, text in sorted(described.items()) if not path or relative.startswith(f"{path}/")]
    return evolve(result, about=" > ".join(texts)) if texts else result


def _guessed(found: Mapping[str, Metadata]) -> Iterator[str]:
    """Yield a notice if the encoding of any of the found notes is a guess."""
    guessed = [path for path, metadata in found.items() if metadata.get("encoding") == _GUESSED]
    if guessed:
        more = f" and {len(guessed) - 1} more" if len(guessed) > 1 else ""
        yield f"{guessed[0]}{more}: not UTF-8, so read as Windows-1252; to be sure, convert it with `iconv -t UTF-8`"


def _gone(paths: Sequence[str], roots: Mapping[str, Path]) -> Iterator[str]:
    """Yield a notice if any of the found notes has no file now."""
    gone = []
    for path in paths:
        name, _, relative = path.partition("/")
        with suppress(OSError, ValueError):  # the name is too long, or contains a NUL
            if name in roots and not (roots[name] / relative).exists():
                gone.append(path)
    if gone:
        more = f" and {len(gone) - 1} more" if len(gone) > 1 else ""
        yield f"{gone[0]}{more}: the file cannot be found; its text is that of the last index run: klaw index"
