"""Where documents come from."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from klaw_core.values.documents import Document, Entry
    from klaw_core.values.runs import SkippedEntry


class Source(Protocol):
    """A place documents come from: a directory, a mailbox, an export."""

    @property
    def origin(self) -> str:
        """Return the name that owns this source's documents; what is no longer scanned is removed."""

    def scan(self) -> Iterable[Entry | SkippedEntry]:
        """Yield what is there now, without reading it. Raise WorkspaceError if the place itself is gone."""

    def read(self, entry: Entry, /) -> Document | SkippedEntry:
        """Read one entry. What cannot be read is SkippedEntry with the reason.

        With ``keep=True`` what was indexed of it stays (a server that does not answer), with ``keep=False`` it goes
        (a file that is empty now).
        """
