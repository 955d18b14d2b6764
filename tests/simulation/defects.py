"""More defects to put into the product, beside those of ``tests/crash/bugs.py``: each was one, or is like one.

A simulation that cannot find them is worthless.
"""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import apsw
import company
from attrs import evolve

from klaw_conversations.archive import Conversations
from klaw_conversations.row_sync import RowSync
from klaw_core import StoreError, StoreLockedError, holds
from klaw_core.config import agents
from klaw_core.embedding.query_vectors import QueryVectors
from klaw_core.files import atomic
from klaw_core.files.held import FileLock
from klaw_core.holds import Hold
from klaw_facts import Facts, succession
from klaw_facts import index as fact_index
from klaw_facts.extracting import begins, extraction
from klaw_facts.forgetting import Dropping
from klaw_facts.index import FactIndex, FactSource
from klaw_facts.keeper import FactKeeper
from klaw_facts.secret_gate import SecretGate
from klaw_fts5.index import Fts5Index
from klaw_journals import jsonl
from klaw_memories import saved, saved_extension
from klaw_redaction import Redactor
from klaw_serve import run, running
from klaw_store_postgres import journals
from klaw_store_postgres.connections import Connections as PostgresConnections
from klaw_store_sqlitevec import connections, errors, store, transaction
from klaw_store_sqlitevec.connections import Connections
from klaw_store_sqlitevec.conversations import SqliteMessages
from klaw_tools import frames
from klaw_watch.loop import Loop
from klaw_watch.watcher import Watcher

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
def no_lock_between_threads() -> None:
    """Two threads of a process write at once."""
    begin = Connections.__init__

    class Open:
        def hold(self, _on_wait: Any = None) -> Any:
            return nullcontext()

    def begin_without(self: Connections, *arguments: Any, **named: Any) -> None:
        begin(self, *arguments, **named)
        self._writing = Open()  # type: ignore[assignment]

    Connections.__init__ = begin_without  # type: ignore[method-assign]


@_defect
def watch_misses_changes() -> None:
    """Changes of files are reported, and nothing is done."""
    Loop._handle_changes = lambda self: self.events.wait()  # type: ignore[method-assign,return-value,assignment]
    company.PATIENCE = 20  # brief: nothing will be done, and that is what is to be noticed


@_defect
def served_before_it_is_done() -> None:
    """The server answers that something was forgotten, and would forget it later."""
    serve = run.serve

    def serve_lazily(memory: Any, *arguments: Any, **named: Any) -> None:
        type(memory).forget = lambda _self, _path: None
        serve(memory, *arguments, **named)

    run.serve = serve_lazily


@_defect
def watched_before_it_is_flushed() -> None:
    """The watcher alone leaves its commits to the system to write, so that a power cut takes what was found."""
    begin, prepared = Watcher._begin, Connections._open

    def relaxed(self: Connections) -> apsw.Connection:
        connection = prepared(self)
        connection.pragma("synchronous", "normal")
        return connection

    def begin_relaxed(self: Watcher) -> None:
        Connections._open = relaxed  # type: ignore[method-assign]
        begin(self)

    Watcher._begin = begin_relaxed  # type: ignore[method-assign]


@_defect
def server_believes_a_killed_one() -> None:
    """A server takes the address that a killed one has left for that of one that runs, and does not start."""
    lock = run.only_server

    @contextmanager
    def only_server(data_dir: Path) -> Iterator[None]:
        if running.read_rendezvous(data_dir) is not None:
            raise StoreLockedError(f"a server for {data_dir} is running", hint="stop it first")
        with lock(data_dir):
            yield

    run.only_server = only_server


@_defect
def server_leaves_its_address() -> None:
    """A server that was told to end leaves the file by which others find it."""
    running._is_held_here = lambda _data_dir: False


@_defect
def lock_held_after_an_interrupt() -> None:
    """An error or an interrupt in a block leaves its lock on a file."""
    leave = Hold.__exit__

    def leave_unless_it_failed(self: Hold[Any], *error: Any) -> None:
        if isinstance(self, FileLock) and error[0] is not None:
            self.noted_in.remove(self)  # or the end of the operation would give it back
        else:
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
def served_before_it_is_flushed() -> None:
    """The server alone leaves its appends to the system to write."""
    serve = run.serve

    def serve_unflushed(memory: Any, *arguments: Any, **named: Any) -> None:
        journal_not_flushed()
        serve(memory, *arguments, **named)

    run.serve = serve_unflushed


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
    begin = begins.begin_of
    begins.begin_of = lambda text, stated, when, _said_at: begin(text, stated, when, datetime.now(UTC))


@_defect
def one_id_for_two_texts() -> None:
    """The ids of saved texts differ by a hash of two digits."""
    whole = saved.text_hash
    saved.text_hash = lambda text: whole(text)[:2] * 32


@_defect
def minutes_in_postgresql() -> None:
    """PostgreSQL keeps of a moment only the minute, so that the exports of both stores differ."""
    encode = journals.encode

    def encode_minute(record: Any) -> str:
        at = record.get("created_at")
        return encode({**record, "created_at": f"{at[:16]}:00.000Z"} if isinstance(at, str) else record)

    journals.encode = encode_minute


@_defect
def acknowledged_without_commit() -> None:
    """PostgreSQL's store takes a commit for done whose connection was lost."""
    commit = PostgresConnections._commit

    def unseen(self: PostgresConnections, connection: Any, **named: Any) -> None:
        with suppress(StoreError):
            commit(self, connection, **named)

    PostgresConnections._commit = unseen  # type: ignore[method-assign]


#: Those that only a life in PostgreSQL shows.
OF_TWINS = "minutes-in-postgresql", "acknowledged-without-commit"
#: More, which few days show, if there are faults, threads, and who stays beside others.
PROVED = (
    "acknowledge-before-commit",
    "commits-not-flushed",
    "forget-without-journal",
    "forget-without-purge",
    "journal-not-flushed",
    "missing-transaction",
    "swap-in-pieces",
    "no-lock-between-threads",
    "served-before-it-is-done",
    "server-leaves-its-address",
    "watch-misses-changes",
    "served-before-it-is-flushed",
    "watched-before-it-is-flushed",
    "server-believes-a-killed-one",
)

#: Defects that Klaw has had, which people had found from outside: each as today's code would have it, or the nearest
#: one that breaks the same promise. By the name that they had then.
PAST: dict[str, Callable[[], None]] = {}
#: Those of them that do harm without an interrupt, a crash, a power cut or a full disk.
NO_FAULTS: set[str] = set()


def _past(name: str, *, needs_faults: bool = False) -> Callable[[Callable[[], None]], Callable[[], None]]:
    def note(function: Callable[[], None]) -> Callable[[], None]:
        PAST[name] = function
        NO_FAULTS.update([] if needs_faults else [name])
        return function

    return note


_past("C1", needs_faults=True)(transaction_open_after_an_interrupt)
_past("N1", needs_faults=True)(lock_held_after_an_interrupt)


def _everywhere(name: str, real: object, other: object) -> None:
    """Replace a function in each module that has imported it."""
    for module in list(sys.modules.values()):
        if getattr(module, name, None) is real:
            setattr(module, name, other)


@_past("C2", needs_faults=True)
def answer_of_a_question_that_was_interrupted() -> None:
    """The thread that embeds questions ends with a KeyError after an interrupt."""

    class Strict(dict[Any, Any]):
        def pop(self, key: Any, *_default: Any) -> Any:
            return super().pop(key)

    make = QueryVectors.__init__

    def with_strict(self: QueryVectors, *limits: Any) -> None:
        make(self, *limits)
        self._waiting = Strict()

    QueryVectors.__init__ = with_strict


@_past("N2", needs_faults=True)
def old_snapshot_in_the_pool() -> None:
    """A connection returns to the pool with a cursor of a kept exception, and so with an old snapshot."""

    def is_at_rest(connection: apsw.Connection) -> bool:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        return True

    connections._is_at_rest = is_at_rest
    reading = Connections.reader

    @contextmanager
    def reader(self: Connections) -> Iterator[apsw.Connection]:
        with reading(self) as connection:
            rows = connection.execute("SELECT name FROM sqlite_schema")  # as a comprehension's frame kept it
            for _ in rows:
                break
            yield connection
            list(rows)

    Connections.reader = reader


@_past("N3", needs_faults=True)
def thread_lock_held_after_an_interrupt() -> None:
    """An interrupt leaves a lock of this process held, for which all other threads wait."""
    leave = holds._LockHold.__exit__

    def leave_unless_interrupted(self: Any, *error: Any) -> None:
        if error[:1] == (KeyboardInterrupt,):
            self.noted_in.remove(self)
        else:
            leave(self, *error)

    holds._LockHold.__exit__ = leave_unless_interrupted


@_past("N4", needs_faults=True)
def holds_of_generators_after_an_interrupt() -> None:
    """What an interrupt has prevented from ending is held as long as somebody keeps the exception."""
    holds._end_all = lambda _left: None


@_past("N5", needs_faults=True)
def deletions_not_flushed() -> None:
    """A rebuild's file is deleted and not flushed, so that a power cut brings forgotten text back."""
    store.sync_directory = lambda _directory: None


@_past("A1")
def agents_inherit_sources() -> None:
    """An agent's token opens the sources that the owner's configuration names."""
    agents.INHERITED |= {"sources"}


@_past("I1")
def names_of_files_with_several_lines() -> None:
    """A name of a file begins a line, and so a heading, of a context."""
    _everywhere("one_line", frames.one_line, lambda text: text)


@_past("I2")
def frames_that_texts_can_close() -> None:
    """A note closes the tag around what memory says."""
    _everywhere("framed", frames.framed, lambda tag, text: f"<{tag}>\n{text}\n</{tag}>")


@_past("F1")
def secrets_in_facts() -> None:
    """A secret becomes a fact through every door but extraction."""
    SecretGate.text = lambda _self, text: text.strip()
    SecretGate.has_secret = lambda _self, _value: False
    SecretGate.fact = lambda _self, fact: fact
    SecretGate.lines = lambda _self, records: list(records)
    SecretGate.read = lambda _self, records: records


@_past("F2")
def hidden_facts_in_the_collection() -> None:
    """Retracted and archived facts are in the collection that every search can name."""

    def put(self: FactIndex, ids: Any) -> tuple[str, ...]:
        known = self.journal.state().facts
        shown = [fact_index.as_document(known[name]) for name in ids if name in known]
        return self.host.index_documents(shown, fact_index.FACTS).notices if shown else ()

    def scan(self: FactSource) -> Any:
        facts = self.journal.state().facts
        self._found.clear()
        self._found.update({fact_index.path_of(name): fact for name, fact in facts.items()})
        return [fact_index.Entry(path, len(fact.text)) for path, fact in self._found.items()]

    FactIndex.put, FactSource.scan = put, scan
    FactIndex.current = lambda _self, found: tuple(found)
    FactSource.forgotten = lambda self, paths: [path for path in paths if path in self._forgotten]


@_past("F4")
def messages_with_a_used_id() -> None:
    """A message whose id another one of the chat has gets no row."""
    insert = SqliteMessages.insert
    SqliteMessages.insert = lambda self, rows: insert(self, [row for row in rows if "~" not in row.id])


@_past("R1")
def reindex_reads_the_damaged_file() -> None:
    """A reindex cannot repair a file that cannot be read, and names itself as the remedy."""

    def refuse(self: store.SqliteStore) -> Any:
        raise errors.damaged(str(self._path), "is not a valid SQLite database")

    store.SqliteStore.replace_damaged = refuse


@_past("D1")
def purge_leaves_bytes() -> None:
    """What a purge removes stays in the log."""
    connections._empty_log = lambda _connection: True


@_past("D3")
def ids_of_imports_not_checked() -> None:
    """An import takes any id, such as the path of a note."""
    _everywhere("_is_id", saved._is_id, lambda _name: True)


@_past("D6")
def one_id_for_two_different_texts() -> None:
    """Two texts whose hashes are equal have one id, and the second is lost."""
    saved_extension.SavedExtension._may_hold = lambda *_: True


@_past("D7")
def forgotten_vectors() -> None:
    """A forgotten text's vector stays, or comes back, in the cache of vectors."""
    transaction.SqliteTransaction.forget_vectors = lambda _self, _hashes: None


@_past("D12")
def edits_by_hand_are_not_seen() -> None:
    """A message that was changed by hand is found as it was."""
    sync = RowSync._sync_chat
    RowSync._sync_chat = lambda self, chat, files, **given: sync(self, chat, files, **{**given, "verified": False})


@_past("D16", needs_faults=True)
def full_disk_masked() -> None:
    """A full disk is reported as another error, whose hint does not help."""
    errors._full = lambda location: StoreError(f"{location}: FullError", hint="klaw doctor")


@_past("late news")
def order_of_arrival() -> None:
    """Values of a slot follow each other as they become known, not as they were said."""
    real = succession.turn_of

    def by_arrival(fact: Any, now: datetime) -> Any:
        return real(evolve(fact, said_at=fact.recorded_at or now), now)

    _everywhere("turn_of", real, by_arrival)


@_past("wrong date")
def news_of_the_day_it_was_read() -> None:
    """A fact is true since it was read, and not since it was said."""
    true_since_it_was_read()


@_past("crossed people")
def people_of_one_name() -> None:
    """Two people who have one name are one, and end each other's facts."""
    _everywhere("person_of", extraction.person_of, lambda _chat, _role, _meta: "someone")
