"""``skipped.json`` in the data directory: the files that the last index run of each workspace skipped, and why.

``klaw status`` shows them, and the origins whose last run has not finished: the key "". It may always be deleted.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

from attrs import asdict, frozen

from klaw_core.errors import KlawError
from klaw_core.files.atomic import locked, read_regular, write_atomically
from klaw_core.files.layout import DataDirectory
from klaw_core.values.runs import SkippedEntry

#: The key of the origins whose last run has not finished, and the reason of each.
UNFINISHED, _REASON = "", "the last index run has not finished; if none is running: `klaw index`"

Entries: TypeAlias = tuple[SkippedEntry, ...]


@frozen
class SkippedFiles:
    """The list of skipped files. It is optional: an unreadable file counts as empty, and write errors are ignored."""

    data_dir: Path

    @property
    def file(self) -> Path:
        """The file of this data directory."""
        return DataDirectory(self.data_dir).skipped

    def all(self) -> dict[str, Entries]:
        """Return the skipped files by origin."""
        try:
            entries = json.loads(read_regular(self.file))
            return {name: tuple(_parse(item) for item in items) for name, items in entries.items()}
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return {}

    def replace(self, origin: str, skipped: Sequence[SkippedEntry]) -> None:
        """Record that a run over a whole source has finished, and the files that it has skipped."""
        self._change(origin, lambda _: tuple(skipped))
        self.note_run(origin, finished=True)

    def update(self, origin: str, paths: Sequence[str], skipped: Sequence[SkippedEntry]) -> None:
        """Record which of the documents ``paths`` a run has skipped; entries of other documents stay."""
        self._change(origin, lambda known: (*(item for item in known if item.path not in paths), *skipped))

    def note_run(self, origin: str, *, finished: bool) -> None:
        """Record that a run over a whole source has begun, or has finished."""
        self.update(UNFINISHED, [origin], () if finished else [SkippedEntry(origin, _REASON, keep=True)])

    def forget(self, target: str, paths: Sequence[str]) -> None:
        """Drop the entries of a forgotten source (``notes/``), or of forgotten documents."""
        if target.endswith("/"):
            self.replace(target.rstrip("/"), ())
            return
        for path in paths:
            self.update(path.partition("/")[0], [path], ())

    def _change(self, origin: str, change: Callable[[Entries], Entries]) -> None:
        if change(known := self.all().get(origin, ())) == known:
            return
        with suppress(KlawError), locked(self.data_dir):
            skipped = self.all()
            skipped[origin] = change(skipped.get(origin, ()))
            entries = {name: list(map(asdict, items)) for name, items in sorted(skipped.items()) if items}
            write_atomically(self.file, json.dumps(entries, indent=1) + "\n", flush=False)  # a run writes it twice


def _parse(item: Mapping[str, object]) -> SkippedEntry:
    return SkippedEntry(str(item["path"]), str(item["reason"]), keep=bool(item["keep"]))
