"""The extension ``presence``: an answer says what its directories are, which files are gone, and what is not read.

What is not read are files of other types, and those that an index run has not reached.

It is built for every search, so it imports little: the list of workspaces is read as JSON. Only if nothing fits, the
names of the files of the workspaces are looked at.
"""

from __future__ import annotations

import json
from collections.abc import Container, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, TypeAlias

from attrs import define, evolve, field

from klaw_core import (
    AttachedExtension,
    ComponentContext,
    Host,
    KlawError,
    ListeningExtension,
    Metadata,
    SearchEvent,
    SearchResult,
    read_regular,
)
from klaw_core.values.collections import MEMORY

if TYPE_CHECKING:
    from klaw_core import Event
    from klaw_notes.workspace_options import WorkspaceOptions

_GUESSED = "windows-1252"  # as in klaw_notes.workspace
_FILE_NAME = "workspaces.json"  # as in klaw_notes.workspace_list, whose import is slow
_SKIPPED = "skipped.json"  # as in klaw_core.files.layout; the key "" has what no run has finished
# The files of a workspace whose names are looked at, and the characters of a word that a name is found by.
_MAX_LOOKED_AT, _MIN_WORD = 2_000, 3

# Workspaces by name: the directory, and the descriptions of directories by their paths below it.
Listed: TypeAlias = Mapping[str, tuple[Path, Mapping[str, str]]]


@define(eq=False, repr=False)
class PresenceExtension(AttachedExtension, ListeningExtension):
    """Adds notices to answers."""

    context: ComponentContext
    _host: Host | None = field(default=None, init=False)

    name = "presence"

    def attach(self, host: Host, /) -> None:
        """Store the host."""
        self._host = host

    def on(self, event: Event, /) -> None:
        """Add what the answer of a search lacks to its notices."""
        if not isinstance(event, SearchEvent):
            return
        listed = self._listed(event.collections)
        configured = self._configured() if MEMORY in event.collections else {}
        roots = {name: root for name, (root, _) in listed.items()}
        roots |= {name: options.root for name, options in configured.items()}
        if any(described for _, described in listed.values()):
            event.results = evolve(event.results, results=tuple(_described(result, listed) for result in event.results))
        results = event.results
        event.notices.extend(self._unfinished(roots))
        event.notices.extend(_gone(list(dict.fromkeys(result.path for result in results)), roots))
        event.notices.extend(_guessed({result.path: result.metadata for result in results}))
        if roots and (not results or results.nothing_fits):
            event.notices.extend(self._unread(event.query, roots, configured))

    def _listed(self, collections: Sequence[str]) -> Listed:
        """Return the workspaces in some collections, by name; none if the list cannot be read."""
        with suppress(OSError, ValueError, TypeError, AttributeError, KeyError, RecursionError):
            listed = json.loads(read_regular(self.context.data_dir / _FILE_NAME))
            wanted = (
                (name, entry) for name, entry in listed.items() if entry.get("collection", "memory") in collections
            )
            return {name: (Path(entry["path"]), dict(entry.get("descriptions", {}))) for name, entry in wanted}
        return {}

    def _unfinished(self, names: Container[str]) -> Iterator[str]:
        """Yield a notice on each workspace of which an index run, now or earlier, has written a part only."""
        with suppress(OSError, ValueError, TypeError, AttributeError, KeyError, RecursionError):
            noted = json.loads(read_regular(self.context.data_dir / _SKIPPED)).get("", ())
            yield from [f"{each['path']}: {each['reason']}" for each in noted if each["path"] in names]

    def _configured(self) -> Mapping[str, WorkspaceOptions]:
        """Return the workspaces of the configuration, by name; they are in the default collection."""
        if self._host is None or not self._host.config.sources:
            return {}
        from klaw_notes.workspace_options import configured_workspaces

        return {options.origin: options for options in configured_workspaces(self._host.config)}

    def _unread(
        self, question: str, names: Mapping[str, Path], configured: Mapping[str, WorkspaceOptions]
    ) -> Iterator[str]:
        """Yield a notice if files that are not read may contain the answer: their names have words of the question."""
        from klaw_notes.converting import Converters
        from klaw_notes.plugin import build_workspace
        from klaw_notes.workspace_list import Workspaces

        asked = _words(question)
        found: list[tuple[int, str]] = []
        with suppress(KlawError):
            file = self.context.data_dir / _FILE_NAME
            known = Workspaces(file, frozenset(), Converters.of(self.context)).all()
            of_configuration = {name: build_workspace(options, self.context) for name, options in configured.items()}
            for name, workspace in (*known.items(), *of_configuration.items()):
                if asked and name in names:
                    paths = workspace.unread_paths(_MAX_LOOKED_AT)
                    shared = ((len(asked & _words(PurePosixPath(path).stem)), path) for path in paths)
                    found += [(-count, path) for count, path in shared if count]
        if found:
            more = f" and {len(found) - 1} more" if len(found) > 1 else ""
            _, best = min(found)
            yield f"{best}{more}: not read, though the name has words of the question; what is not read: klaw status"


def _words(text: str) -> AbstractSet[str]:
    """Return the terms of a text that a file can be named after: no function words, and none of one or two letters."""
    from klaw_words.tokenizer import FUNCTION_TERMS, tokenizer
    from klaw_words.treatment import index_text

    terms = set(tokenizer()(index_text(text.replace("_", " ")).encode())) - FUNCTION_TERMS
    return {term for each in terms if len(term := each.decode("utf-8", "replace")) >= _MIN_WORD}


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
