"""More defects to put into the product, beside those of ``tests/crash/bugs.py``: each was one, or is like one.

A simulation that cannot find them is worthless.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import apsw

from klaw_conversations.archive import Conversations
from klaw_conversations.row_sync import RowSync
from klaw_core.files import atomic
from klaw_core.files.held import FileLock
from klaw_core.holds import Hold
from klaw_facts import Facts
from klaw_facts.extracting import extraction
from klaw_facts.forgetting import Dropping
from klaw_facts.keeper import FactKeeper
from klaw_fts5.index import Fts5Index
from klaw_journals import jsonl
from klaw_memories import saved
from klaw_redaction import Redactor
from klaw_store_sqlitevec.connections import Connections

#: By name.
MORE: dict[str, Callable[[], None]] = {}


def _defect(function: Callable[[], None]) -> Callable[[], None]:
    MORE[function.__name__.replace("_", "-")] = function
    return function


@_defect
def transaction_open_after_an_interrupt() -> None:
    """An error or an interrupt in a transaction leaves it open."""

    @contextmanager
    def left_open(self: Connections) -> Iterator[apsw.Connection]:
        connection = self.open_writer()
        connection.execute("BEGIN IMMEDIATE")
        yield connection
        connection.execute("COMMIT")

    Connections._transaction = left_open


@_defect
def lock_held_after_an_interrupt() -> None:
    """An error or an interrupt in a block leaves its lock on a file."""
    leave = Hold.__exit__

    def leave_unless_it_failed(self: Hold[Any], *error: Any) -> None:
        if not (isinstance(self, FileLock) and error[0] is not None):
            leave(self, *error)

    Hold.__exit__ = leave_unless_it_failed


@_defect
def torn_line_after_a_full_disk() -> None:
    """What a full disk cut stays at the end of a journal, and the next line continues it."""

    def write(descriptor: int, data: bytes) -> None:
        atomic.write_all(descriptor, data)
        os.fdatasync(descriptor)

    jsonl._write_all_or_nothing = write


@_defect
def journal_not_flushed() -> None:
    """An append is left to the system to write. (The recorder would note a flush that does nothing as one.)"""

    class Unflushed:
        def __getattr__(self, name: str) -> Any:
            return (lambda _descriptor: None) if name == "fdatasync" else getattr(os, name)

    jsonl.os = Unflushed()


@_defect
def purge_by_files_alone() -> None:
    """A purge that is repeated after a crash forgets the documents of files that are still there, which are none."""
    Conversations._indexed = lambda _self, _chat: ()


@_defect
def run_waits_for_its_own_lock() -> None:
    """A rebuild removes facts from the index that it has locked."""
    drop = Facts.drop_missing

    def drop_from_index(self: Facts, **options: Any) -> None:
        make = Dropping.__init__

        def with_index(dropping: Any, journal: Any, pointers: Any, _index: Any, *rest: Any) -> None:
            make(dropping, journal, pointers, self.index, *rest)

        Dropping.__init__ = with_index
        try:
            drop(self, **options)
        finally:
            Dropping.__init__ = make

    Facts.drop_missing = drop_from_index


@_defect
def rows_of_forgotten_messages() -> None:
    """A forgotten message leaves its file, and its row stays."""
    RowSync.mirror_again = lambda self, *_: self.sync()


@_defect
def words_of_forgotten_texts() -> None:
    """The index of words keeps what was removed."""
    Fts5Index.remove = lambda *_: None


@_defect
def forgotten_facts_in_the_journal() -> None:
    """A forgotten fact leaves the index only."""
    FactKeeper.forget = lambda _self, names, _suppress: list(names)


@_defect
def secrets_in_the_index() -> None:
    """What is indexed is not redacted."""
    Redactor.text = lambda _self, text: text


@_defect
def true_since_it_was_read() -> None:
    """A fact is true since it was extracted, and not since it was said."""
    begin = extraction.begin_of
    extraction.begin_of = lambda text, stated, when, _said_at: begin(text, stated, when, datetime.now(UTC))


@_defect
def one_id_for_two_texts() -> None:
    """The ids of saved texts differ by a hash of two digits."""
    whole = saved.text_hash
    saved.text_hash = lambda text: whole(text)[:2] * 32
