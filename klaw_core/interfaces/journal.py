"""A journal of records: the truth of what an extension keeps, append-only until something is forgotten."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from klaw_core.values.journals import Replay


class RecordJournal(Protocol):
    """Records by id, in the order in which each id first came. Safe for several threads and processes at once.

    By default a journal is a JSON Lines file in the data directory. A store that several machines share can offer
    journals of its own.
    """

    @property
    def exists(self) -> bool:
        """Return whether anything was ever written."""

    @property
    def location(self) -> str:
        """Return where the records are, for people."""

    @property
    def version(self) -> Hashable:
        """Return what is equal as long as nobody writes to the journal, without reading its records."""

    def append(self, records: Sequence[Mapping[str, Any]], /) -> Hashable:
        """Keep records, each a JSON object with a string ``id``; they are durable when this returns.

        A record with a known id replaces that one, in its place. Return the version that this write left: while
        :attr:`version` equals it, nobody has written since. Raise RecordError, StoreError.
        """

    def add(
        self,
        records: Sequence[Mapping[str, Any]],
        /,
        is_same: Callable[[Mapping[str, Any], Mapping[str, Any]], bool] = ...,
    ) -> frozenset[str]:
        """Keep records as :meth:`append` does, but for those whose id another record has; return the ids of those.

        ``is_same`` (default: equality) tells whether a record that is held may be replaced by one of its id. What is
        held is looked at and written in one step: no other writer comes between. Raise RecordError, StoreError.
        """

    def replay(self) -> Replay:
        """Return what the journal holds. Nothing that it can contain raises."""

    def forget(self, ids: Sequence[str], /) -> int:
        """Forget records; return how many there were. Their bytes are gone when this returns.

        Raise StoreError: forgetting may have taken effect even so, with the bytes left to :meth:`finish`.
        """

    def finish(self) -> None:
        """Remove the bytes of what was forgotten just before a crash. Raise StoreError."""
