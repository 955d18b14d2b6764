"""The extension ``facts``: the methods that the core calls, each of which delegates to another module.

Most modules are imported where they are used: an index run without facts needs few of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import define, field

from klaw_core import (
    AttachedExtension,
    CheckedExtension,
    Condition,
    Event,
    Finding,
    ForgetEvent,
    Host,
    KlawError,
    ListeningExtension,
    NotFoundError,
    QueryError,
    SkippedEntry,
    SourcedExtension,
    StatusExtension,
    Tool,
    ToolExtension,
    operations,
)
from klaw_facts.fold import State
from klaw_facts.index import FACTS, FactIndex, FactSource
from klaw_facts.journal import FactsJournal
from klaw_facts.options import KEEP, FactsOptions
from klaw_facts.records import check_operation, operation
from klaw_facts.secret_gate import SecretGate
from klaw_facts.values import Compaction, Fact, FactResults, make_id
from klaw_journals import (
    BadLine,
    Chat,
    CondensingExtension,
    FileJournals,
    ImportCounts,
    Record,
    RecordedExtension,
    Traces,
    format_ts,
    journals_of,
    make_private,
)
from klaw_redaction import Redactor
from klaw_tools import (
    ArrangingExtension,
    ContextExtension,
    ContextItem,
    ContextNotice,
    ContextQuestion,
    GatingExtension,
)

if TYPE_CHECKING:
    from klaw_conversations import Conversations
    from klaw_facts.compressing import Compression, CompressionReport
    from klaw_facts.extracting.extraction import Extraction, ExtractionReport
    from klaw_facts.keeper import FactKeeper
    from klaw_facts.people import People
    from klaw_facts.pointers import Pointers
    from klaw_facts.recall import Recall
    from klaw_facts.recalls import RecallCounts, Recalled
    from klaw_facts.runs import CompressionRun, Undone
    from klaw_facts.statistics import FactStatistics
    from klaw_facts.store import JournalFactStore

_CONVERSATIONS = "conversations"
_NEVER = datetime.min.replace(tzinfo=UTC)


@operations
@define(eq=False, slots=False)
class Facts(
    AttachedExtension,
    SourcedExtension,
    ToolExtension,
    CheckedExtension,
    RecordedExtension,
    ListeningExtension,
    ContextExtension,
    GatingExtension,
    ArrangingExtension,
    StatusExtension,
    CondensingExtension,
):
    """Facts with their validity and quotes. ``keeper`` writes facts; this class reads them and connects the parts."""

    options: FactsOptions
    data_dir: Path
    redactor: Redactor = field(factory=Redactor)
    origins: Sequence[str] = (FACTS,)
    record_kinds: Sequence[str] = ("fact",)
    #: What the index could not do at the last change; the next change, or `klaw index`, does it.
    notices: tuple[str, ...] = field(default=(), init=False)
    _behind: dict[str, None] = field(factory=dict, init=False)  # facts that the index is older than
    _host: Host | None = field(default=None, init=False)

    name = FACTS

    def attach(self, host: Host, /) -> None:
        """Store the host."""
        self._host = host

    @property
    def host(self) -> Host:
        """The memory that the facts belong to. Raise KlawError if there is none."""
        if self._host is None:
            raise KlawError("the extension facts is not attached to a memory")
        return self._host

    @property
    def journal(self) -> FactsJournal:
        """The journal: that of the store once attached, if it has its own; else the file, which exports read."""
        if self._host is None:
            file = FileJournals(self.data_dir).records(FACTS, check_operation)
            return FactsJournal(file, self.data_dir / FACTS, SecretGate(self.redactor))
        return self._attached_journal

    @cached_property
    def _attached_journal(self) -> FactsJournal:
        gate = SecretGate(self.host.config.conversations.redactor)
        journal = journals_of(self.host).records(FACTS, check_operation)
        return FactsJournal(journal, self.data_dir / FACTS, gate)

    @cached_property
    def keeper(self) -> FactKeeper:
        """The object that changes facts."""
        from klaw_facts.keeper import FactKeeper

        place = self.data_dir / FACTS
        return FactKeeper(self.journal, self.options, place, self._changed, only_unnamed=self._only_unnamed)

    @cached_property
    def people(self) -> People:
        """The people who said something."""
        from klaw_facts.people import People

        return People(self.journal, self.keeper, self.options, lambda: self._conversations, self._changed)

    @property
    def _conversations(self) -> Conversations:
        found: Conversations = self.host.extension("conversations").archive
        return found

    def _only_unnamed(self) -> str:
        from klaw_facts.people import only_unnamed

        return only_unnamed(self._conversations)

    @cached_property
    def extraction(self) -> Extraction:
        """The extraction from conversations."""
        from klaw_facts.extracting.extraction import Extraction
        from klaw_facts.keeper import own_key

        host = self.host
        given = (self._conversations, self.journal, self.options, self.keeper.key, lambda: host.language_model)
        return Extraction(
            *given,
            only_unnamed=self._only_unnamed,
            own_key=partial(own_key, self.data_dir / FACTS),
            is_arrived=lambda: Traces(self.data_dir).arrived(),
        )

    @cached_property
    def pointers(self) -> Pointers:
        """The reader of quoted places."""
        from klaw_facts.pointers import Pointers

        return Pointers(self._conversations)

    @cached_property
    def compression(self) -> Compression:
        """The compression: digests and the profile."""
        from klaw_facts.compressing import Compression

        given = (self._conversations, self.journal, self.options, self.extraction, self._changed)
        return Compression(*given, recalled=self.recalled)

    @cached_property
    def index(self) -> FactIndex:
        """The collection."""
        return FactIndex(self.host, self.journal)

    @cached_property
    def recall(self) -> Recall:
        """The items for contexts."""
        from klaw_facts.overlap import Overlap
        from klaw_facts.recall import Recall

        overlap = Overlap(lambda: self._conversations)
        return Recall(self.journal, self.index, self.options, self.compression.lines, overlap.without)

    @cached_property
    def store(self) -> JournalFactStore:
        """The facts as a ``FactStore``."""
        from klaw_facts.store import JournalFactStore

        return JournalFactStore(self.journal, self.index, self._changed, self.forget)

    def remember(self, text: str, **details: Any) -> Fact:
        """Store a fact; see :meth:`FactKeeper.remember`."""
        return self.keeper.remember(text, **details)

    def get(self, name: str, known_at: datetime | None = None) -> Fact:
        """Return a fact by its id or the beginning of it. Raise NotFoundError."""
        from klaw_facts.keeper import find_fact

        return find_fact(self.journal.state(known_at), name)

    def list(
        self,
        *,
        as_of: datetime | None = None,
        known_at: datetime | None = None,
        conditions: Sequence[Condition] = (),
        everything: bool = False,
    ) -> Sequence[Fact]:
        """Return the facts that are true at a moment (default: now), or every fact, ordered by when they were said.

        Raise QueryError for both, a moment and ``everything``.
        """
        from klaw_facts.index import metadata_of

        if everything and as_of is not None:
            raise QueryError("facts of every moment were asked for, and of one: leave out --all or --as-of")
        state = self.journal.state(known_at)
        shown = state.facts if everything else state.visible(as_of or datetime.now(UTC))
        found = [fact for fact in shown.values() if all(item.holds(metadata_of(fact)) for item in conditions)]
        return sorted(found, key=lambda fact: (fact.created_at or _NEVER, fact.id))

    def search(
        self,
        query: str,
        limit: int = 10,
        *,
        as_of: datetime | None = None,
        known_at: datetime | None = None,
        conditions: Sequence[Condition] = (),
    ) -> FactResults:
        """Return the facts that fit a question and are true at a moment, best first, with notices. Raise QueryError."""
        return self.index.search(query, limit, as_of=as_of, known_at=known_at, conditions=conditions)

    def history(self, name: str | None = None) -> Sequence[Fact]:
        """Return the facts of a slot, or of the slot of a fact, from the oldest value on. Raise NotFoundError.

        Without a name, those of every slot that has had more than one value.
        """
        from klaw_facts.history import values_over_time

        return values_over_time(self.journal.state(), name)

    def recalled(self) -> Mapping[str, Recalled]:
        """Return how often searches and contexts found each document, by its path, and when last."""
        counts: RecallCounts = self.host.extension("recalls")
        return counts.read()

    def extract(self, chat: str | None = None, limit: int | None = None, *, dry_run: bool = False) -> ExtractionReport:
        """Extract facts from new messages. Raise LanguageModelError if no model is configured."""
        before = self._shown()
        report = self.extraction.run(chat, limit, dry_run=dry_run)
        if not dry_run and self._shown() != before:
            self.host.index(FACTS)
        return report

    def _shown(self) -> set[str]:
        return {name for name, fact in self.journal.state().facts.items() if not fact.is_hidden}

    def import_facts(self, facts: Sequence[Fact], *, dry_run: bool = False) -> ImportCounts:
        """Add facts of another program, except known and forgotten ones. Raise StoreError."""
        from klaw_facts.importing import add_facts

        suppressed = self.journal.state().suppressed

        def is_forgotten(fact: Fact) -> bool:
            return bool(suppressed) and self.extraction.is_suppressed(suppressed, fact.subject, fact.text)

        counts, ids = add_facts(
            *(self.journal, self.options, facts, is_forgotten),
            now=datetime.now(UTC),
            dry_run=dry_run,
            only_unnamed=self._only_unnamed,
        )
        if not dry_run:
            self._changed(ids)
        return counts

    def stats(self) -> FactStatistics:
        """Return counts of facts and of extraction."""
        from klaw_facts.statistics import count

        waiting = self.extraction.waiting() if self.options.extractor != "none" else 0
        return count(self.journal.state(), datetime.now(UTC), waiting)

    def retry(self) -> ExtractionReport:
        """Read failed batches again: each watermark goes back to before the first failed batch of its chat."""
        failed = self.journal.state().failed()
        self.journal.forget([batch.id for batch in failed])
        chats = dict.fromkeys(batch.chat for batch in failed)
        later = [item for item in self.journal.state().batches.values() if item.chat in chats]
        moments = {batch.chat: batch.recorded_at for batch in reversed(failed)}
        again = [item.id for item in later if _is_after(item.recorded_at, moments[item.chat])]
        self.journal.forget(again)
        return self.extract()

    def compress(self, *, daily: bool = True, weekly: bool = True, dry_run: bool = False) -> CompressionReport:
        """Make digests of days, merge and archive facts, update the profile. Raise StoreError, LanguageModelError."""
        return self.compression.run(daily=daily, weekly=weekly, dry_run=dry_run)

    def condense(self, is_stopped: Callable[[], bool] = lambda: False, /) -> str:
        """Compress, and summarise long chats, as one run that :meth:`undo` reverses; return what was done.

        A chat is summarised if more than ``compact_above`` messages are not in its summary, unless a person or a
        program wrote the last summary. Nothing that a person wrote changes.
        """
        run = make_id("r", format_ts(datetime.now(UTC)))
        report = self.compression.run(run=run)
        done = [f"{report.days:,} new digests", f"{report.archived:,} facts archived"] if report.days else []
        chats = [] if is_stopped() else self._summarise_long_chats(run, is_stopped)
        done += [f"{report.merged:,} facts merged"] if report.merged else []
        done += ["profile changed"] if report.profile_changed else []
        done += [f"{len(chats):,} chats summarised"] if chats else []
        return report.problem or ", ".join(done) or "nothing new"

    def undo(self, batch: str) -> Undone:
        """Reverse everything that a batch, or a run of compression (``last``: the last one), did.

        What was reversed is not done again. Raise NotFoundError, StoreError.
        """
        from klaw_facts.runs import Undone, is_run, undo_run

        if not is_run(batch):
            return Undone(self.keeper.undo(batch))
        done = undo_run(self.journal, batch, self.keeper.undo, self._conversations)
        if done.summaries:
            with suppress(KlawError):  # the next index run does it
                self.host.index(_CONVERSATIONS)
        return done

    def runs(self) -> Sequence[CompressionRun]:
        """Return what each run of compression did, the oldest first."""
        from klaw_facts.runs import runs

        return runs(self.journal)

    def _summarise_long_chats(self, run: str, is_stopped: Callable[[], bool]) -> Sequence[str]:
        from klaw_facts.long_chats import long_chats

        done: list[str] = []
        for chat in long_chats(self._conversations, self.journal, self.options.compact_above):
            if is_stopped():
                break
            if self.compact(chat, min(KEEP, self.options.compact_above // 2)).to_summarize:
                made = self._conversations.summaries(Chat.parse(chat))[-1]
                told = {"by": "rules", "chat": chat, "at": format_ts(made.created_at), "batch": run}
                self.journal.append([operation("compact", datetime.now(UTC), **told)])
                done.append(chat)
        return done

    def compact(self, chat: str, keep: int = KEEP) -> Compaction:
        """Return a summary of a chat's older messages with a ledger, and which messages stay. Nothing is removed."""
        from klaw_facts.compaction import compact

        conversations, place = self._conversations, Chat.parse(chat)
        messages = [
            self.extraction.read_message(place, line.message)
            for line in conversations.read(place)
            if not isinstance(line, BadLine) and line.message.type is None
        ]
        if not messages:
            raise NotFoundError(f"the chat {chat!r} has no messages", hint="klaw list --chats")
        result = compact(chat, messages, keep, self.host.language_model)
        if result.summary and result.to_summarize:
            text = "\n".join([result.summary, "", "Word for word:", *(f"- {line}" for line in result.ledger)])
            first, last = result.to_summarize[0], result.to_summarize[-1]
            conversations.add_summary(place, text, from_message_id=first, to_message_id=last)
            with suppress(KlawError):  # the journal has it: the next index run makes it findable
                self.host.index(_CONVERSATIONS)
        return result

    def forget(self, names: Sequence[str]) -> None:
        """Remove facts for good, everywhere; they are not extracted again. Raise NotFoundError, StoreError."""
        ids = [self.get(name).id for name in names]
        failure = self.index.remove(ids)
        self._forget(ids)
        failure = self.index.remove(ids) or failure  # a run that read the journal before may have written them again
        if failure is not None:
            raise failure

    def _forget(self, ids: Sequence[str]) -> None:
        self._changed(self._erase(ids))

    def _erase(self, ids: Sequence[str]) -> Sequence[str]:
        """Remove facts from the journal; return the ids of all that this concerns."""
        extraction = self.extraction
        return self.keeper.forget(
            ids,
            lambda fact: [
                extraction.suppression(fact.subject, fact.text),
                *map(extraction.place_suppression, fact.quotes),
            ],
        )

    def _drop(self, ids: Sequence[str]) -> Sequence[str]:
        """Remove lines of facts from the journal, which others replace; return the ids of all that this concerns."""
        return self.keeper.forget(ids, lambda _fact: ())

    def _replace(self, ids: Sequence[str]) -> None:
        self._changed(self._drop(ids))

    def _changed(self, ids: Sequence[str]) -> None:
        """Index changed facts, and those of earlier changes that could not be indexed; ``notices`` say if it fails."""
        waiting = [*self._behind, *ids]
        try:
            self.index.put(waiting)
        except KlawError as error:  # the journal has it: searches ask it, and the next index run makes it findable
            self._behind.update(dict.fromkeys(waiting))
            self.notices = (f"stored, but not indexed yet; `klaw index` does that: {error}",)
        else:
            for name in waiting:
                self._behind.pop(name, None)
            self.notices = ()

    def sources(self) -> Sequence[FactSource]:
        """Return the facts as a source, once there are any or conversations are read for them."""
        reads = self.options.extractor != "none" and bool(self._conversations.journal.files().files)
        if not reads and not self.journal.records.exists:
            return ()
        was_forgotten = partial(Traces(self.data_dir).forgotten_records, FACTS)
        location = Path(self.journal.records.location)
        return (FactSource(self.journal, location, self._catch_up, self._forget, was_forgotten),)

    def _catch_up(self) -> Sequence[SkippedEntry]:
        """Drop quotes of removed messages, and extract facts from new ones; after a failure, the next run continues."""
        self.drop_missing(is_told=False)
        self._settle()
        if self.options.extractor == "none":
            return ()
        try:
            report = self.extraction.run()
        except KlawError as error:
            return (SkippedEntry(FACTS, f"nothing extracted: {error}", keep=True),)
        return (SkippedEntry(FACTS, f"not all extracted: {report.problem}", keep=True),) if report.problem else ()

    def _settle(self) -> None:
        """End values that became known apart, where the next ones begin."""
        from klaw_facts.settling import settled

        journal = self.journal
        with journal.turn():
            journal.append(settled(journal.state(), journal.operations(), self.options))

    def drop_missing(self, *, is_told: bool = True, removed: Iterable[str] = ()) -> None:
        """Forget facts that quote only removed messages; remove quotes of removed messages from the other facts.

        ``is_told``: a message was forgotten just now. Otherwise facts stay whose messages may be in damaged lines.
        ``removed`` are messages, as chat and id, that were removed although another message may have the id now.
        """
        from klaw_facts.forgetting import Dropping

        extraction = self.extraction
        Dropping(
            self.journal,
            self.pointers,
            self.index if is_told else None,
            self._forget if is_told else self._erase,
            self._replace if is_told else self._drop,
            extraction.read_in_chat,
            lambda name: extraction.suppression("", name),
            self._was_forgotten(),
        ).run(is_told=is_told, removed=frozenset(removed))

    def _was_forgotten(self) -> Callable[[str, str], bool] | None:
        """Return what says whether a message was forgotten; None if no other machine shares this memory."""
        from klaw_conversations.names import base_of

        traces = Traces(self.data_dir)
        if not traces.key:
            return None
        is_forgotten = traces.forgotten()
        return lambda chat, name: is_forgotten("conversations", chat, base_of(name))

    def on(self, event: Event, /) -> None:
        """Remove the facts and quotes of forgotten messages."""
        if isinstance(event, ForgetEvent) and self.journal.records.exists:
            from klaw_facts.forgetting import quoted_chats

            chats = {_CONVERSATIONS, *quoted_chats(self.journal.operations())}
            chats |= {chat for chat, _ in self.journal.state().digests}
            if chats & {path.partition("/")[0] for path in event.paths}:
                self.drop_missing(removed=event.paths)

    def tools(self) -> Sequence[Tool]:
        """Return the tools of models."""
        from klaw_facts.tools import make_tools

        return make_tools(self.keeper, self.search, lambda: self.notices)

    def offer(self, question: ContextQuestion, /) -> Iterable[ContextItem | ContextNotice]:
        """Offer facts, digests and the profile."""
        return self.recall.offer(question)

    def declines(self, question: ContextQuestion, /) -> str:
        """Return why a message needs nothing from memory."""
        return self.recall.declines(question)

    def arrange(self, question: ContextQuestion, items: Sequence[ContextItem], /) -> Iterable[ContextItem]:
        """Sort items by time, and mark outdated ones."""
        return self.recall.arrange(question, items)

    def check(self) -> Iterator[Finding]:
        """Look for invalid lines, and for quotes that their messages do not contain."""
        from klaw_facts.checking import find_problems

        return find_problems(self.journal, None if self._host is None else self.pointers)

    def fix(self, _findings: Sequence[Finding], /) -> None:
        """Make the file private, and complete an interrupted change."""
        make_private([Path(self.journal.records.location)])
        self.journal.records.finish()

    def records(self) -> Iterator[Record | SkippedEntry]:
        """Yield every operation."""
        journal = self.journal
        yield from (Record("fact", {"value": dict(record)}) for record in journal.operations())
        yield from (SkippedEntry(f"{bad.location}@{bad.position}", bad.reason, keep=True) for bad in journal.broken())

    def check_record(self, record: Record, /) -> None:
        """Raise RecordError unless this is an operation."""
        check_operation(record.value["value"])

    def add(self, records: Iterator[Record], /) -> ImportCounts:
        """Add operations, except those on known facts that the import does not contain; old lines do not change."""
        from klaw_facts.adding import add_operations

        counts = add_operations(self.journal, records)
        if counts.added:
            self._settle()
        return counts

    def status(self) -> dict[str, int | str]:
        """Return the numbers of current facts, of waiting and failed batches, and of rejected claims."""
        if not self.journal.records.exists:
            return {}
        state = self.journal.state()
        found: dict[str, int | str] = {
            "facts": len(state.visible(datetime.now(UTC))),
            "facts_in_review": len(self.keeper.review()),
            "facts_batches_failed": len(state.failed()),
            "facts_refused": sum(batch.refused for batch in state.batches.values()),
        }
        if self.options.extractor != "none":
            found["facts_messages_waiting"] = self.extraction.waiting()
        return found

    def state(self, known_at: datetime | None = None) -> State:
        """Return the state of all facts."""
        return self.journal.state(known_at)


def _is_after(moment: datetime | None, other: datetime | None) -> bool:
    return moment is not None and other is not None and moment >= other
