"""Offer items to a context and sort them: pinned and found facts, digests of days, and facts that have ended.

Items are chosen by rank and shown by time, the latest first. A replaced value is on the line of its successor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from attrs import define, evolve, field, frozen

from klaw_core import Filters, KlawError, SearchResult, estimate_tokens
from klaw_facts.decay import freshness
from klaw_facts.fold import State
from klaw_facts.gate import declines
from klaw_facts.index import FactIndex, passes, path_of
from klaw_facts.journal import FactsJournal
from klaw_facts.options import FactsOptions
from klaw_facts.stale import content_words, mark_stale
from klaw_facts.superseded import Replaced, mark_superseded, replaced_values
from klaw_facts.validity import later_by, told_end, validity
from klaw_facts.values import Digest, Fact, FactResults
from klaw_journals.trust import AGENT, FOREIGN
from klaw_tools import ContextItem, ContextNotice, ContextQuestion
from klaw_tools.frames import item_text, one_line
from klaw_words.dates import When, resolve

HEADING = "Facts"
_DIGESTS = "What was said on a day"
_PROFILE = "Profile"
_PINNED, _FOUND, _ENDED, _DAYS = 8, 10, 9, 15
_MAX_DIGESTS = 7
_MAX_PINNED = 10
_PROFILE_SHARE = 10
_SHARED_WORDS = 2
_ELSEWHERE = 0.5  # the share that a fact counts if the message names the project of others


# A question with only these words asks about a whole day. For other questions, chunks are better than digests.
_OF_DAYS = content_words(
    "talk talked say said speak spoke discuss discussed happen happened tell told chat conversation new yesterday "
    "today last next week weekend day month morning evening january february march april may june july august "
    "september october november december monday tuesday wednesday thursday friday saturday sunday "
    "чём мы говорили обсуждали было произошло сказал сказала вчера сегодня прошлой неделе января февраля марта апреля "
    "мая июня июля августа сентября октября ноября декабря "
    "我们昨天今上周月日号说了什么聊发生的年讨论过谈"
)


@frozen(eq=False)
class _Changed:
    """A fact that rules extracted and that replaced another value, or was replaced later.

    ``words`` are the words of the fact and of what it replaced; ``topic`` are those of its slot's topic, as ``gate``
    in ``deadline:gate``. A slot without a topic describes the person.
    """

    fact: Fact
    words: frozenset[str]
    topic: frozenset[str]

    def fit(self, asked: frozenset[str]) -> int:
        """Return the number of words that it shares with a message, 0 if these are too few."""
        shared = len(self.words & asked)
        is_enough = self.topic <= asked or shared >= _SHARED_WORDS
        return shared if is_enough else 0


@frozen(eq=False)
class _Candidates:
    """The facts of a state that contexts may show; computed once for each state.

    ``stated``: facts of a person, an agent or a model. Of the facts that rules extracted, only the ``changed`` ones are
    offered, because a chunk contains the others. ``replaced`` are values that texts may still state.
    """

    pinned: tuple[Fact, ...]
    stated: Mapping[str, Fact]
    changed: tuple[_Changed, ...]
    replaced: tuple[Replaced, ...] = ()

    @classmethod
    def of(cls, state: State) -> _Candidates:
        """Return those of a state."""
        facts = state.facts.values()
        replaced: dict[str, frozenset[str]] = {}
        for fact in facts:
            if fact.ended_by:
                replaced[fact.ended_by] = replaced.get(fact.ended_by, frozenset()) | content_words(_words_of(fact))
        ruled = [fact for fact in facts if fact.made_by == "rules" and (fact.ended_by or fact.id in replaced)]
        return cls(
            tuple(fact for fact in facts if fact.is_pinned),
            {fact.id: fact for fact in facts if fact.made_by != "rules"},
            tuple(
                _Changed(
                    fact,
                    replaced.get(fact.id, frozenset()) | content_words(_words_of(fact)),
                    content_words((fact.slot or "").partition(":")[2]),
                )
                for fact in ruled
            ),
            replaced_values(state),
        )


@define(eq=False)
class Recall:
    """Offers facts for contexts, and edits the offered items. ``read_quote`` returns the text of a place, or None."""

    journal: FactsJournal
    index: FactIndex
    options: FactsOptions
    digest_lines: Callable[[Digest], Sequence[str]]
    without_overlap: Callable[[Sequence[ContextItem]], Sequence[ContextItem]] = lambda items: items
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    _kept: tuple[State, _Candidates] | None = field(default=None, init=False)

    def _candidates(self, state: State) -> _Candidates:
        if self._kept is None or self._kept[0] is not state:
            self._kept = (state, _Candidates.of(state))
        return self._kept[1]

    def declines(self, question: ContextQuestion) -> str:
        """Return why a message needs nothing from memory; empty if something should be looked up."""
        if self.options.gate == "never":
            return "the gate is closed"
        return declines(question.message) if self.options.gate == "rules" and question.message.strip() else ""

    def offer(self, question: ContextQuestion) -> Iterator[ContextItem | ContextNotice]:
        """Yield the profile, pinned facts, facts that fit the message, and digests of the days that it names.

        All of them pass the filters of the question.
        """
        known = self.journal.state(question.known_at)
        known = known if question.trust == FOREIGN else _without_foreign(known)
        state, left_out = _of_chat(known, question.chat)
        moment = question.as_of or self.now()
        if asked := content_words(question.message):
            fitting = [fact for fact in left_out if fact.is_visible_at(moment) and asked & content_words(fact.text)]
            if fitting:
                yield ContextNotice(f"facts of people who are not in {question.chat}, left out: {len(fitting):,}")
        yield from self._profile(state, question, moment)
        if not state.facts or self.declines(question):
            return
        yield from self._ended(state, question, moment)
        pinned = [fact for fact in self._candidates(state).pinned if _is_shown(fact, question, moment)][:_MAX_PINNED]
        for fact in pinned:
            yield self._item(state, fact, _PINNED, moment)
        if question.message.strip():
            found, notices = self._found(state, question, moment)
            yield from map(ContextNotice, notices)
            for fact in found:
                if fact not in pinned:
                    yield self._item(state, fact, _FOUND, moment)
            yield from self._days(state, question, moment)

    def arrange(self, question: ContextQuestion, items: Sequence[ContextItem]) -> Iterable[ContextItem]:
        """Return the items without later ones than asked for; outdated statements are marked if that is on.

        A message and a summary that covers it are never both among them.
        """
        until = min((moment for moment in (question.as_of, question.known_at) if moment is not None), default=None)
        kept = [item for item in items if until is None or item.created_at is None or item.created_at <= until]
        kept = list(self.without_overlap(kept))
        timed = [_by_time(item) if item.source.startswith("conversations/") else item for item in kept]
        if not self.options.arrange:
            return timed
        state = self.journal.state(question.known_at)
        marked = mark_stale(timed, question.message)
        return marked if question.as_of else mark_superseded(marked, self._candidates(state).replaced, question.chat)

    def _profile(self, state: State, question: ContextQuestion, moment: datetime) -> Iterator[ContextItem]:
        """Yield the lines of the profile that a tenth of the budget has room for: it is in every context.

        The profile may be older than a fact's end, retraction or archiving.
        """
        room = question.budget // _PROFILE_SHARE
        for name, line in state.profile:
            fact = state.facts.get(name)
            if fact is None or not _is_shown(fact, question, moment):
                continue
            room -= estimate_tokens([line])[0]
            if room < 0:
                return
            yield ContextItem(line, "stable", 1, _PROFILE, path_of(name), filtered=True, trust=fact.trust)

    def _found(self, state: State, question: ContextQuestion, moment: datetime) -> tuple[Sequence[Fact], Sequence[str]]:
        """Return the facts that fit a message, and notices: changed values from rules, then the results of a search."""
        candidates = self._candidates(state)
        asked = content_words(question.message)
        fits = [(item.fit(asked), item.fact) for item in candidates.changed if _is_shown(item.fact, question, moment)]
        changed = [fact for fit, fact in sorted(fits, key=lambda pair: -pair[0]) if fit and fact.is_trusted]
        searched, notices = self._searched(state, candidates, question, moment)
        return [*changed, *searched][: self.options.max_facts], notices

    def _searched(
        self, state: State, candidates: _Candidates, question: ContextQuestion, moment: datetime
    ) -> tuple[Sequence[Fact], Sequence[str]]:
        """Return the stated facts that fit, and what the search went without. Searches only if there are any.

        A fact fits if its relevance, which age lowers, is not weak and within the cut of the best one's.
        """
        if not any(fact.is_visible_at(moment) for fact in candidates.stated.values()):
            return (), ()
        notices: tuple[str, ...] = ()
        try:
            ranked = self._search(question, words_only=self.options.is_classic)
        except KlawError as error:
            if self.options.is_classic:
                raise
            notices = (f"facts were searched by words only: {error}",)
            ranked = self._search(question, words_only=True)
        near = _nearness(candidates.stated.values(), question.message)
        weight = 0.0 if question.as_of or resolve(question.message, moment) else self.options.decay_weight
        fits = [
            (fact, _fit(result) * near(fact) * (1 - weight + weight * freshness(fact, self.options, moment)))
            for fact, result in zip(ranked, ranked.results, strict=True)
            if not (result and result.is_weak)
            and (fact.is_trusted and fact.id in candidates.stated and fact.id in state.facts)
        ]
        fits.sort(key=lambda pair: -pair[1])
        least = self.options.cut * fits[0][1] if fits else 0.0
        return [fact for fact, fit in fits if fit >= least], (*notices, *ranked.failures)

    def _search(self, question: ContextQuestion, *, words_only: bool) -> FactResults:
        return self.index.search(
            question.message,
            self.options.max_facts * 2,
            as_of=question.as_of,
            known_at=question.known_at,
            filters=question.filters,
            words_only=words_only,
            bare=False,
        )

    def _item(self, state: State, fact: Fact, priority: int, moment: datetime) -> ContextItem:
        text, shown_at = line_of(fact, state, moment), _shown_at(fact)
        place = path_of(fact.id)
        item = ContextItem(text, "volatile", priority, HEADING, place, shown_at, newest_first=True, filtered=True)
        return item if fact.trust == "owner" else evolve(item, trust=fact.trust)

    def _ended(self, state: State, question: ContextQuestion, moment: datetime) -> Iterator[ContextItem]:
        """Yield facts that the model was given before and that have ended or were retracted."""
        for path in sorted(question.seen):
            fact = state.facts.get(path.removeprefix("facts/"))
            if fact is None or not passes(fact, question.filters):
                continue
            if fact.retracted_at is not None or not fact.is_valid_at(moment):
                text = f"no longer true: {fact.text}"
                item = ContextItem(text, "volatile", _ENDED, HEADING, "", _shown_at(fact), filtered=True)
                yield evolve(item, trust=fact.trust)

    def _days(self, state: State, question: ContextQuestion, moment: datetime) -> Iterator[ContextItem]:
        filters = question.filters
        if not state.digests or filters.source or filters.metadata or content_words(question.message) - _OF_DAYS:
            return
        when = resolve(question.message, moment)
        if when is None:
            return
        days = [
            digest
            for digest in state.digests.values()
            if _is_in(digest.day, when) and question.chat in {None, digest.chat} and _has_passed(digest, filters)
        ]
        for digest in sorted(days, key=lambda item: (item.day, item.chat))[:_MAX_DIGESTS]:
            if lines := self.digest_lines(digest):
                text = f"[{digest.day}, {one_line(digest.chat)}] " + "\n  ".join(lines)
                yield ContextItem(text, "volatile", _DAYS, _DIGESTS, _place(digest), filtered=True)


def _nearness(facts: Iterable[Fact], message: str) -> Callable[[Fact], float]:
    """Return how near a fact is to the projects that a message names: others count less; without one, all the same."""
    asked = content_words(message)
    projects = {str(fact.metadata.get("project", "")) for fact in facts} - {""}
    named = {project for project in projects if (words := content_words(project)) and words <= asked}
    if not named:
        return lambda _fact: 1.0
    return lambda fact: 1.0 if fact.metadata.get("project") in named else _ELSEWHERE


def _fit(result: SearchResult | None) -> float:
    """Return how well a fact fits: its relevance; the score where none is known, and 0 for a fact found otherwise."""
    if result is None:
        return 0.0
    return result.score if result.relevance is None else result.relevance


def _without_foreign(state: State) -> State:
    """Return a state without the facts of foreign writers."""
    if not any(fact.is_foreign for fact in state.facts.values()):
        return state
    own = state.copy()
    own.facts = {name: fact for name, fact in state.facts.items() if not fact.is_foreign}
    return own


def _of_chat(state: State, chat: str | None) -> tuple[State, list[Fact]]:
    """Return a state without the facts of people who are not in a chat, and these facts."""
    if chat is None:
        return state, []
    here = {fact.who for fact in state.facts.values() if any(quote.chat == chat for quote in fact.quotes)}
    here |= {person for name, person in state.people.items() if name.startswith(f"{chat}/")}
    others = [fact for fact in state.facts.values() if fact.person and fact.who not in here]
    if not others:
        return state, []
    own = state.copy()
    gone = {fact.id for fact in others}
    own.facts = {name: fact for name, fact in state.facts.items() if name not in gone}
    return own, others


def _is_shown(fact: Fact, question: ContextQuestion, moment: datetime) -> bool:
    return fact.is_visible_at(moment) and passes(fact, question.filters)


def _place(digest: Digest) -> str:
    return f"digests/{digest.chat}/{digest.day}"


def _has_passed(digest: Digest, filters: Filters) -> bool:
    """Return whether a digest passes filters, except those for sources and metadata, which it does not have."""
    begin = datetime.fromisoformat(digest.day).replace(tzinfo=UTC)
    return (
        _place(digest).startswith(filters.path or "")
        and filters.chat_id in {None, digest.chat}
        and (filters.since is None or begin >= filters.since)
        and (filters.until is None or begin < filters.until)
    )


def _words_of(fact: Fact) -> str:
    return f"{fact.text} {fact.slot or ''} {fact.value or ''}"


def line_of(fact: Fact, state: State, moment: datetime) -> str:
    """Return a fact as a line: since when it is true, who said it, what it replaced, its class, and its id."""
    label = validity(fact)
    who = "" if fact.subject in {"user", ""} else f"{one_line(fact.subject)}: "
    text = item_text(fact.text)
    earlier = [old for old in state.facts.values() if old.ended_by == fact.id and not old.is_hidden]
    was = "".join(
        f" (was {one_line(old.value or old.text)} until {told_end(old)})"
        for old in sorted(earlier, key=lambda old: old.id)
    )
    if fact.valid_to is not None and fact.valid_to <= moment:
        was += f" (no longer true since {told_end(fact)})"
    if fact.trust == AGENT:
        is_doubted = any(proposal.by_fact == fact.id for proposal in state.waiting())
        was += " (an agent's, in review)" if is_doubted else " (an agent's)"
    return f"[{label}] {who}{text}{was} · {fact.id}" if label else f"{who}{text}{was} · {fact.id}"


def _by_time(item: ContextItem) -> ContextItem:
    """Return a chunk of a conversation as one that is shown by its time: its day, and its line in it."""
    line = item.source.rpartition(":")[2].partition("-")[0]
    moment = item.created_at
    if moment is not None and line.isdigit():
        moment = later_by(moment, timedelta(microseconds=int(line)))
    # For each of fifty chunks `evolve` would take as long as the marks.
    given = (item.text, item.part, item.priority, item.heading, item.source, moment, True, item.label, item.note)
    return ContextItem(*given, share=item.share, filtered=item.filtered, trust=item.trust)


def _shown_at(fact: Fact) -> datetime | None:
    return fact.valid_from or fact.said_at or fact.recorded_at


def _is_in(day: str, when: When) -> bool:
    try:
        moment = datetime.fromisoformat(day).replace(tzinfo=UTC)
    except ValueError:
        return False
    return when.first <= moment.date() <= when.last
