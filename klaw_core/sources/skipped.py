"""``skipped.json`` in the data directory: the files that the last index run of each workspace skipped, and why.

``klaw status`` shows them without reading the notes. Every run writes the file; it may be deleted at any time.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from attrs import frozen

from klaw_core.errors import KlawError
from klaw_core.files.atomic import locked, read_regular, write_atomically
from klaw_core.values.runs import SkippedEntry


@frozen
class SkippedFiles:
    """The list of skipped files. It is optional: an unreadable file counts as empty, and write errors are ignored."""

    file: Path

    def all(self) -> dict[str, tuple[SkippedEntry, ...]]:
        """Return the skipped files by origin."""
        try:
            entries = json.loads(read_regular(self.file))
            return {name: tuple(_parse(item) for item in items) for name, items in entries.items()}
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return {}

    def replace(self, origin: str, skipped: Sequence[SkippedEntry]) -> None:
        """Record the files that a run over a whole source has skipped."""
        self._change(origin, tuple(skipped))

    def update(self, origin: str, paths: Sequence[str], skipped: Sequence[SkippedEntry]) -> None:
        """Record which of the documents ``paths`` a run has skipped; entries of other documents stay."""
        kept = (item for item in self.all().get(origin, ()) if item.path not in paths)
        self._change(origin, (*kept, *skipped))

    def forget(self, target: str, paths: Sequence[str]) -> None:
        """Drop the entries of a forgotten source (``notes/``), or of forgotten documents."""
        if target.endswith("/"):
            self.replace(target.rstrip("/"), ())
            return
        for path in paths:
            self.update(path.partition("/")[0], [path], ())

    def _change(self, origin: str, skipped: tuple[SkippedEntry, ...]) -> None:
        if self.all().get(origin, ()) == skipped:
            return
        with suppress(KlawError), locked(self.file.parent):
            self._write({**self.all(), origin: skipped})

    def _write(self, skipped: Mapping[str, tuple[SkippedEntry, ...]]) -> None:
        entries = {
            name: [{"path": item.path, "reason": item.reason, "keep": item.keep} for item in items]
            for name, items in sorted(skipped.items())
            if items
        }
        text = json.dumps(entries, indent=1, ensure_ascii=False) + "\n"
        write_atomically(self.file, text.encode("utf-8", "backslashreplace").decode())


def _parse(item: Mapping[str, object]) -> SkippedEntry:
    return SkippedEntry(str(item["path"]), str(item["reason"]), keep=bool(item["keep"]))
