"""What the last run over each directory of notes left out, and why: ``skipped.json`` in the data directory.

``klaw status`` shows it, which reads no note itself. The file is written by each run and may be deleted at any time.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from attrs import frozen

from klaw_core.errors import KlawError
from klaw_core.files.atomic import locked, write_atomically
from klaw_core.values.runs import SkippedEntry


@frozen
class SkippedFiles:
    """The list in a file. It is a convenience: what is not readable counts as empty, what cannot be kept is dropped."""

    file: Path

    def all(self) -> dict[str, tuple[SkippedEntry, ...]]:
        """Return what was left out, by origin."""
        try:
            entries = json.loads(self.file.read_text("utf-8"))
            return {name: tuple(_parse(item) for item in items) for name, items in entries.items()}
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return {}

    def replace(self, origin: str, skipped: Sequence[SkippedEntry]) -> None:
        """Note what a run over a whole source has left out."""
        self._change(origin, tuple(skipped))

    def update(self, origin: str, paths: Sequence[str], skipped: Sequence[SkippedEntry]) -> None:
        """Note what a run over single documents has left out; what is known of others stays."""
        kept = (item for item in self.all().get(origin, ()) if item.path not in paths)
        self._change(origin, (*kept, *skipped))

    def forget(self, target: str, paths: Sequence[str]) -> None:
        """Drop what was forgotten: a whole source (``notes/``), or documents."""
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
