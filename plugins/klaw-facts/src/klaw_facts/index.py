"""The collection ``facts``: a document per fact, derived from the journal, and searches in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote as quoted
from urllib.parse import unquote

from attrs import define, field, frozen

from klaw_core import (
    Condition,
    Divisible,
    Document,
    Entry,
    Filters,
    Forgetful,
    ForgetReport,
    Forgettable,
    Host,
    MetadataValue,
    SearchResults,
    SkippedEntry,
    Source,
    format_ts,
)
from klaw_facts.fold import State
from klaw_facts.journal import FactsJournal
from klaw_facts.values import Fact

#: The origin, the collection, and the first part of every path.
FACTS = "facts"
_UNKNOWN = datetime(1970, 1, 1, tzinfo=UTC)
_ALWAYS, _ALWAYS_BARE, _NEVER = "always", "bare", "never"
_OWN_KEYS = frozenset(
    [
        "bare",
        "fact",
        "show",
        "subject",
        "category",
        "slot",
        "value",
        "valid_from",
        "valid_to",
        "recorded_at",
        "pinned",
        "tags",
        "verified",
        "made_by",
        "chats",
        "said",
    ]
)


def path_of(fact_id: str) -> str:
    """Return the path of a fact's document."""
    return f"{FACTS}/{quoted(fact_id, safe='-._~@+')}"


def id_of(path: str) -> str:
    """Return the id of the fact at a path."""
    return unquote(path.removeprefix(f"{FACTS}/"))


def as_document(fact: Fact) -> Document:
    """Return the document of a fact: its subject and text, with metadata for filters."""
    heading = tuple(part for part in (fact.slot, fact.category if fact.slot else None) if part)
    text = fact.text if fact.subject in {"user", ""} else f"{fact.subject}: {fact.text}"
    moment = fact.said_at or fact.recorded_at or _UNKNOWN
    source = fact.source or fact.made_by
    return Document(
        path_of(fact.id), text, source, FACTS, moment, format="fact", heading=heading, metadata=metadata_of(fact)
    )


def metadata_of(fact: Fact) -> Mapping[str, MetadataValue]:
    """Return the metadata for filters: the fact's own metadata, overridden by its fields."""
    given: dict[str, MetadataValue | None] = {
        **{key: value for key, value in fact.metadata.items() if key not in _OWN_KEYS},
        "fact": fact.id,
        "show": show_key(fact),
        "subject": fact.subject,
        "category": fact.category,
        "slot": fact.slot,
        "value": fact.value,
        "valid_from": _stamp(fact.valid_from),
        "valid_to": _stamp(fact.valid_to),
        "recorded_at": _stamp(fact.recorded_at),
        "pinned": fact.is_pinned or None,
        "tags": fact.tags or None,
        "verified": fact.verified,
        "made_by": fact.made_by,
        "bare": fact.is_bare_quotation or None,
        "chats": tuple(dict.fromkeys(quote.chat for quote in fact.quotes)) or None,
    }
    return {key: value for key, value in given.items() if value is not None}


def show_key(fact: Fact) -> str:
    """Return the filter key for searches in the present: the id if it depends on the time, else ``never`` or always.

    ``always``, but ``bare`` for a sentence that rules extracted, which contexts do not search for.
    """
    if fact.retracted_at is not None or fact.is_archived:
        return _NEVER
    if fact.valid_from is not None or fact.valid_to is not None:
        return fact.id
    return _ALWAYS_BARE if fact.is_bare_quotation else _ALWAYS


def _stamp(moment: datetime | None) -> str | None:
    return None if moment is None else format_ts(moment)


@define(eq=False)
class FactIndex:
    """Searches the facts that are true at a moment. The filter is applied inside the retrievers."""

    host: Host
    journal: FactsJournal
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    def search(
        self,
        query: str,
        limit: int = 10,
        *,
        as_of: datetime | None = None,
        known_at: datetime | None = None,
        conditions: Sequence[Condition] = (),
        words_only: bool = False,
        bare: bool = True,
    ) -> tuple[list[tuple[Fact, float]], tuple[str, ...]]:
        """Return facts with their scores, best first, and notices. Raise QueryError.

        Without ``bare``, sentences that rules took are not among them.
        """
        state = self.journal.state(known_at)
        shown = self._shown(state, as_of, known_at, bare=bare)
        found = self._found(state, query, limit, [*shown, *conditions], words_only=words_only)
        moment = as_of or self.now()
        ranked: list[tuple[Fact, float]] = []
        for result in found:
            fact = state.facts.get(id_of(result.path))
            # An index that is older than the journal may return facts that have ended in the meantime.
            if fact is not None and fact.is_visible_at(moment):
                ranked.append((fact, result.score))
        return ranked, found.notices

    def _shown(
        self, state: State, as_of: datetime | None, known_at: datetime | None, *, bare: bool
    ) -> Sequence[Condition]:
        """Return the conditions that facts are shown for a moment: as few as possible, since each costs time."""
        now = as_of or self.now()
        every = state.visible(now).values()
        visible = [fact for fact in every if bare or not fact.is_bare_quotation]
        if as_of is not None or known_at is not None:
            return (Condition("fact", "in", tuple(fact.id for fact in visible)),)
        always = (_ALWAYS, _ALWAYS_BARE) if bare else (_ALWAYS,)
        shown = Condition("show", "in", (*always, *(fact.id for fact in visible if show_key(fact) == fact.id)))
        # Rows of sentences that were indexed before ``_ALWAYS_BARE`` existed have ``_ALWAYS``.
        return (shown,) if len(visible) == len(every) else (shown, Condition("bare", "!=", True))

    def _found(
        self, state: State, query: str, limit: int, conditions: Sequence[Condition], *, words_only: bool
    ) -> SearchResults:
        if not state.facts or limit < 1:
            return SearchResults()
        mode: Literal["fts", "hybrid"] = "fts" if words_only else "hybrid"
        return self.host.search(query, limit, mode=mode, filters=Filters(metadata=tuple(conditions)), collection=FACTS)

    def put(self, ids: Iterable[str]) -> tuple[str, ...]:
        """Index the present versions of facts; return notices. Raise StoreError."""
        known = self.journal.state().facts
        documents = [as_document(known[name]) for name in dict.fromkeys(ids) if name in known]
        return self.host.index_documents(documents, FACTS).notices if documents else ()

    def remove(self, ids: Iterable[str]) -> None:
        """Remove facts from the collection. Raise StoreError."""
        if paths := [path_of(name) for name in ids]:
            self.host.remove_documents(paths, FACTS)


@frozen(eq=False)
class FactSource(Source, Forgettable, Forgetful, Divisible):
    """The facts of the journal as documents. ``catch_up`` extracts facts from new messages."""

    journal: FactsJournal
    location: Path
    catch_up: Callable[[], Sequence[SkippedEntry]]
    forget_facts: Callable[[Sequence[str]], None]
    _found: dict[str, Fact] = field(factory=dict, init=False, repr=False)
    _forgotten: set[str] = field(factory=set, init=False, repr=False)

    origin = FACTS
    collection = FACTS
    forgets_missing = True

    def prepare(self, _store: object, /) -> Sequence[SkippedEntry]:
        """Complete forgetting that a crash interrupted, and extract facts from new messages."""
        self.journal.records.finish()
        return self.catch_up()

    def scan(self) -> Iterable[Entry | SkippedEntry]:
        """Return every fact, and each broken part of the journal."""
        facts = self.journal.state().facts
        self._found.clear()
        self._found.update({path_of(name): fact for name, fact in facts.items()})
        entries = [Entry(path, len(fact.text)) for path, fact in self._found.items()]
        return [*entries, *(SkippedEntry(FACTS, str(bad), keep=True) for bad in self.journal.broken())]

    def read(self, entry: Entry, /) -> Document | SkippedEntry:
        """Return the document of one fact."""
        fact = self._found.get(entry.path)
        return as_document(fact) if fact else SkippedEntry(entry.path, "was forgotten", keep=False)

    def forget(self, paths: Sequence[str], /) -> None:
        """Forget facts: delete their bytes in the journal, and prevent extracting them again."""
        self.forget_facts([id_of(path) for path in paths])
        self._forgotten.update(paths)

    def part(self, target: str, /) -> str | None:
        """Return the text of an undone fact, which is not a document but still in the journal."""
        line = self._undone(target)
        return None if line is None else str(line["text"])

    def forget_part(self, target: str, /) -> ForgetReport | None:
        """Forget an undone fact. Raise StoreError."""
        line = self._undone(target)
        if line is None:
            return None
        self.forget_facts([line["id"]])
        return ForgetReport((target,), 0)

    def _undone(self, target: str) -> Mapping[str, Any] | None:
        name = id_of(target)
        if not target.startswith(f"{FACTS}/") or name in self.journal.state().facts:
            return None
        lines = self.journal.operations()
        return next((line for line in lines if line["op"] == "assert" and line["id"] == name), None)

    def forgotten(self, paths: Sequence[str], /) -> Sequence[str]:
        """Return the facts that are no longer in the journal.

        While a part of the journal is broken, it may be any fact, except those that this object has forgotten.
        """
        broken = self.journal.broken()
        known = self.journal.state().facts
        return [path for path in paths if id_of(path) not in known and (path in self._forgotten or not broken)]

    def watch_paths(self) -> Sequence[Path]:
        """Return the file of the journal."""
        return (self.location,)
