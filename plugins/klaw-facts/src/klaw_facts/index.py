"""The collection ``facts``: a document per fact, derived from the journal, and searches in it.

Everything can search the collection, so it has only what may be shown: no retracted or archived facts, and a fact that
is not true at every time says so in its text. Searches for the present leave such facts out.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote, unquote

from attrs import define, evolve, field, frozen

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
    NotFoundError,
    SearchRequest,
    SearchResult,
    SearchResults,
    SkippedEntry,
    Source,
    operations,
    quoted,
)
from klaw_facts.fold import State
from klaw_facts.journal import FactsJournal
from klaw_facts.stale import content_words
from klaw_facts.validity import told, told_end
from klaw_facts.values import Fact, FactResults
from klaw_journals import format_ts

#: The origin, the collection, and the first part of every path.
FACTS = "facts"
_UNKNOWN = datetime(1970, 1, 1, tzinfo=UTC)
_ALWAYS, _ALWAYS_BARE = "always", "bare"
# In more than so many texts, or in filtered ones, the calibration lowers the odds of each by so much.
_FEW, _LOWERED = 28, 1.2
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
    return f"{FACTS}/{quote(fact_id, safe='-._~@+')}"


def id_of(path: str) -> str:
    """Return the id of the fact at a path."""
    return unquote(path.removeprefix(f"{FACTS}/"))


def as_document(fact: Fact) -> Document:
    """Return the document of a fact: its subject, its text and until when it was true, with metadata for filters."""
    project = str(fact.metadata.get("project", ""))
    heading = (*filter(None, [project]), *((_asked_by(fact.slot, fact.text), fact.category) if fact.slot else ()))
    text = fact.text if fact.subject in {"user", ""} else f"{fact.subject}: {fact.text}"
    return Document(
        path_of(fact.id),
        text + _bounds(fact),
        _source(fact),
        FACTS,
        _moment(fact),
        format="fact",
        heading=heading,
        metadata=metadata_of(fact),
        trust=fact.trust,
    )


# The words by which people ask for a slot. "I moved to Lyon" has none of "where do I live?".
_ASKED_BY: Mapping[str, Sequence[str]] = {
    "name": ("called", "зовут", "名字 叫什么"),
    "birthday": ("born, age, how old", "родился, возраст", "生日 出生 几岁"),
    "home": ("where I live, address, city", "где живу, адрес, город", "住在哪里 地址 家"),
    "employer": ("where I work, job, company", "где работаю, работа, компания", "在哪里工作 公司"),
    "job_title": ("job, role, what I do", "должность, кем работаю", "职位 做什么工作"),
    "partner": ("wife, husband, married to", "жена, муж", "妻子 丈夫"),
}


def _asked_by(slot: str, text: str) -> str:
    """Return the name of a slot and the words by which people ask for it, in the script of the text."""
    english, russian, chinese = _ASKED_BY.get(slot.partition(":")[0], ("", "", ""))
    words = russian if re.search("[а-яёА-ЯЁ]", text) else chinese if re.search("[一-鿿]", text) else english
    return f"{slot}: {words}" if words else slot


def _bounds(fact: Fact) -> str:
    """Return the end of a fact, or its beginning if that was in the future, in brackets; empty if it has neither."""
    recorded = fact.recorded_at
    later = fact.valid_from if fact.valid_from and recorded and fact.valid_from > recorded else None
    bounds = (("from", told(later, fact.precision)), ("until", told_end(fact)))
    shown = " ".join(f"{word} {moment}" for word, moment in bounds if moment)
    return f" [{shown}]" if shown else ""


def _source(fact: Fact) -> str:
    return fact.source or fact.made_by


def _moment(fact: Fact) -> datetime:
    return fact.said_at or fact.recorded_at or _UNKNOWN


def passes(fact: Fact, filters: Filters) -> bool:
    """Return whether a fact passes filters, as its document does. It belongs to the chats of its quotes."""
    if not filters:
        return True
    metadata, moment = metadata_of(fact), _moment(fact)
    return (
        filters.source in {None, _source(fact)}
        and path_of(fact.id).startswith(filters.path or "")
        and (filters.chat_id is None or any(quote.chat == filters.chat_id for quote in fact.quotes))
        and (filters.since is None or moment >= filters.since)
        and (filters.until is None or moment < filters.until)
        and all(condition.holds(metadata) for condition in filters.metadata)
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
    """Return the filter key for searches in the present: the id if it depends on the time, else ``always`` or ``bare``.

    ``bare`` is for a sentence that rules extracted, which contexts do not search for. Rows of retracted and archived
    facts that an older version indexed have ``never``.
    """
    if fact.valid_from is not None or fact.valid_to is not None:
        return fact.id
    return _ALWAYS_BARE if fact.is_bare_quotation else _ALWAYS


def _stamp(moment: datetime | None) -> str | None:
    return None if moment is None else format_ts(moment)


def _of_documents(filters: Filters, shown: Sequence[Condition]) -> Filters:
    """Return filters of facts as filters of their documents, which have their chats as metadata."""
    chat = () if filters.chat_id is None else (Condition("chats", "=", filters.chat_id),)
    return evolve(filters, chat_id=None, metadata=(*shown, *filters.metadata, *chat))


@operations
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
        filters: Filters = Filters(),  # noqa: B008  # frozen
        words_only: bool = False,
        bare: bool = True,
    ) -> FactResults:
        """Return facts, best first, and notices. Raise QueryError.

        Without ``bare``, sentences that rules took are not among them.
        """
        state = self.journal.state(known_at)
        if not state.facts or limit < 1:
            return FactResults()
        filters = evolve(filters, metadata=(*filters.metadata, *conditions))
        moment = as_of or self.now()
        shown = self._shown(state, as_of, known_at, bare=bare)
        mode: Literal["fts", "hybrid"] = "fts" if words_only else "hybrid"
        found = self.host.search(SearchRequest(query, limit, mode, _of_documents(filters, shown), FACTS))
        if len(state.facts) > _FEW or filters != Filters():
            found = _as_sentences(found)
        ranked: list[tuple[Fact, SearchResult | None]] = []
        for result in found:
            fact = state.facts.get(id_of(result.path))
            # An index that is older than the journal may return facts that have ended in the meantime.
            if fact is not None and fact.is_visible_at(moment):
                ranked.append((fact, result))
        if known_at is not None:
            ranked += [(fact, None) for fact in self._hidden_since(state, query, filters, moment)]
        facts, results = zip(*ranked[:limit], strict=True) if ranked else ((), ())
        return FactResults(facts, results, found.notices, found.hints)

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

    def _hidden_since(self, state: State, query: str, filters: Filters, moment: datetime) -> Sequence[Fact]:
        """Return the facts of an earlier state that were retracted or archived since, and so are not in the collection.

        They follow the indexed facts, by the number of words that they share with the query.
        """
        now, asked = self.journal.state().facts, content_words(query)
        hidden = [fact for fact in state.visible(moment).values() if fact.id in now and now[fact.id].is_hidden]
        shared = {fact.id: len(asked & content_words(f"{fact.subject} {fact.text}")) for fact in hidden}
        found = [fact for fact in hidden if shared[fact.id] and passes(fact, filters)]
        return sorted(found, key=lambda fact: (-shared[fact.id], fact.id))

    def current(self, found: Iterable[SearchResult]) -> tuple[SearchResult, ...]:
        """Return results as the journal has them now, for an index that is older, because it could not be written.

        Facts that are hidden or gone are left out; those that were changed have their present text and metadata. While
        a part of the journal is broken, an unknown fact may be in it, so it stays.
        """
        known, is_broken = self.journal.state().facts, bool(self.journal.broken())
        kept = []
        for result in found:
            if result.collection != FACTS:
                kept.append(result)
                continue
            fact = known.get(id_of(result.path))
            if fact is not None and not fact.is_hidden:
                kept.append(self._as_now(result, as_document(fact)))
            elif fact is None and is_broken:
                kept.append(result)
        return tuple(kept)

    def _as_now(self, result: SearchResult, document: Document) -> SearchResult:
        """Return a result with the text and metadata that its document has now."""
        text = self.host.config.conversations.redactor.text(document.text).strip()
        if (result.content.strip(), result.metadata) == (text, document.metadata):
            return result
        lines = text.count("\n") + 1
        return evolve(result, content=text, start_line=1, end_line=lines, metadata=document.metadata)

    def put(self, ids: Iterable[str]) -> tuple[str, ...]:
        """Index the present versions of facts, remove those that are hidden or gone; return notices. Raise StoreError.

        A fact that was changed in the meantime, by any process, is indexed again.
        """
        left = dict.fromkeys(ids)
        notices: tuple[str, ...] = ()
        failure: Exception | None = None
        while left:
            known = self.journal.state().facts
            shown = [known[name] for name in left if name in known and not known[name].is_hidden]
            failure = self.remove(left.keys() - {fact.id for fact in shown}) or failure
            if shown:
                notices = self.host.index_documents([as_document(fact) for fact in shown], FACTS).notices
            now = self.journal.state().facts
            left = {name: None for name in left if now.get(name) != known.get(name)}
        if failure is not None:
            raise failure
        return notices

    def remove(self, ids: Iterable[str]) -> Exception | None:
        """Remove facts from the collection; return what ``Host.emit`` does. Raise StoreError."""
        paths = [path_of(name) for name in ids]
        return self.host.remove_documents(paths, FACTS) if paths else None


@frozen(eq=False)
class FactSource(Source, Forgettable, Forgetful, Divisible):
    """The facts of the journal as documents. ``catch_up`` extracts facts from new messages."""

    journal: FactsJournal
    location: Path
    catch_up: Callable[[], Sequence[SkippedEntry]]
    forget_facts: Callable[[Sequence[str]], None]
    #: Returns what says of an id whether the fact was forgotten on any machine.
    was_forgotten: Callable[[], Callable[[str], bool]]
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
        """Return every fact that may be shown, and each broken part of the journal."""
        facts = self.journal.state().facts
        self._found.clear()
        self._found.update({path_of(name): fact for name, fact in facts.items() if not fact.is_hidden})
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
        """Return the text of a fact as the journal has it; that of an undone or hidden one with the reason.

        The index may be older. Raise NotFoundError for a fact that the journal no longer has, though its row may stay.
        """
        if not target.startswith(f"{FACTS}/"):
            return None
        fact = self.journal.state().facts.get(id_of(target))
        if fact is not None and not fact.is_hidden:
            return as_document(fact).text
        line = self._not_a_document(target)
        if line is None and not self.journal.broken():
            raise NotFoundError(f"there is no fact {quoted(id_of(target))}", hint="klaw facts list --all")
        if line is None:
            return None
        if fact is None:
            return f"{line['text']} [undone]"
        return f"{fact.text} [{'archived' if fact.retracted_at is None else 'retracted: it was never true'}]"

    def forget_part(self, target: str, /) -> ForgetReport | None:
        """Forget a fact that is undone or hidden. Raise StoreError."""
        line = self._not_a_document(target)
        if line is None:
            return None
        self.forget_facts([line["id"]])
        return ForgetReport((target,), 0)

    def _not_a_document(self, target: str) -> Mapping[str, Any] | None:
        name = id_of(target)
        fact = self.journal.state().facts.get(name)
        if not target.startswith(f"{FACTS}/") or (fact is not None and not fact.is_hidden):
            return None
        lines = self.journal.operations()
        return next((line for line in lines if line["op"] == "assert" and line["id"] == name), None)

    def forgotten(self, paths: Iterable[str], /) -> Sequence[str]:
        """Return the facts that are no longer in the journal, or hidden.

        While a part of the journal is broken, it may be any fact, except those that this object or another machine has
        forgotten.
        """
        was_forgotten = self.was_forgotten() if self.journal.broken() else lambda _name: True
        known = self.journal.state().facts

        def is_gone(path: str) -> bool:
            fact = known.get(id_of(path))
            return fact.is_hidden if fact is not None else path in self._forgotten or was_forgotten(id_of(path))

        return [path for path in paths if is_gone(path)]

    def watch_paths(self) -> Sequence[Path]:
        """Return the file of the journal."""
        return (self.location,)


def _as_sentences(found: SearchResults) -> SearchResults:
    """Return results with the relevance of facts, which are sentences.

    The calibration lowers the odds of every text of a larger or filtered collection, since a long text shares words
    with many questions (decision 0106).
    """
    results = tuple(evolve(result, relevance=_raised(result.relevance)) for result in found)
    left = found.hints if all(result.is_weak for result in results) else ()
    notices = tuple(notice for notice in found.notices if notice in left or notice not in found.hints)
    return evolve(found, results=results, notices=notices, hints=left)


def _raised(relevance: float | None) -> float | None:
    if relevance is None or not 0 < relevance < 1:
        return relevance
    return 1 / (1 + math.exp(-_LOWERED) * (1 - relevance) / relevance)
