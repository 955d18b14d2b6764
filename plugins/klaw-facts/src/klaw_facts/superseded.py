"""Marks on texts that state a value which a later fact has replaced: "I live in Lyon" in an old note or message.

The mark names the value that is true now, so that both stand side by side; or it says that the value is so no more. A
sentence is marked if it contains the old value and says what the fact says: the words of the fact, or the slot by its
patterns. A sentence about the past, or one that also has the new value, is not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from attrs import evolve, frozen

from klaw_facts.extracting.begins import endings_of
from klaw_facts.extracting.sentences import sentences
from klaw_facts.extracting.slots import slot_of
from klaw_facts.fold import State
from klaw_facts.stale import content_words
from klaw_facts.validity import told
from klaw_facts.values import Fact, normalised
from klaw_tools import ContextItem
from klaw_tools.frames import one_line

# The past, in which an old value is right.
_PAST = re.compile(
    r"\b(?:was|were|used to|lived|worked|until|formerly|former|previously|before|no longer)\b"
    r"|\b(?:any ?(?:more|longer)|once|left|do(?:es)?(?:n['’]?t| not))\b"
    r"|\bmoved from\b|\bex-\w|\b(?:раньше|прежде|когда-то|жил[аи]?|был[аои]?|работал[аи]?|до того|больше не)\b"
    r"|\b(?:уехал[аи]?|бывш\w+)\b|曾|以前|之前|原来|不再|离开",
    re.IGNORECASE,
)
_SPEAKER = re.compile(r"^[^:\n]{1,80}: ")  # before the first sentence of a message in a chunk
_MAX_ENDED = 500
_SENTENCES_KEPT = 2048


@frozen(eq=False)
class Replaced:
    """A value that was replaced: the words of its statement, and what is true now, or says that it is so no more."""

    fact: Fact
    value: str
    words: frozenset[str]
    new: Fact


def replaced_values(state: State) -> tuple[Replaced, ...]:
    """Return the values of slots that a visible fact has replaced or denied, the latest first."""
    found = []
    current = {_key(fact) for fact in state.facts.values() if fact.valid_to is None and not fact.is_hidden}
    for fact in state.facts.values():
        new = state.facts.get(fact.ended_by or "")
        last = new and _last(state, new)
        if last is None or fact.is_hidden or last.is_hidden or not (fact.slot and fact.value):
            continue
        is_other = normalised(fact.value) != normalised(last.value) if last.value else endings_of(last)
        if is_other and _key(fact) not in current:
            found.append(Replaced(fact, fact.value.casefold(), content_words(fact.text), last))
    return tuple(reversed(found[-_MAX_ENDED:]))


def _key(fact: Fact) -> tuple[str, str | None, str]:
    return fact.who, fact.slot, normalised(fact.value or "")


def _last(state: State, fact: Fact) -> Fact:
    seen = {fact.id}
    while fact.ended_by in state.facts and fact.ended_by not in seen:
        fact = state.facts[fact.ended_by]
        seen.add(fact.id)
    return fact


def mark_superseded(items: Sequence[ContextItem], values: Iterable[Replaced], chat: str | None) -> list[ContextItem]:
    """Return the items, with a note on each that states a replaced value. Facts say themselves what they replaced."""
    known = tuple(values)
    if not known:
        return list(items)
    marked = []
    for item in items:
        text = item.text.casefold()
        near = () if item.source.startswith(("facts/", "digests/")) else [each for each in known if each.value in text]
        hit = next((each for each in near if _is_about(each, item, chat) and _states(item.text, each)), None)
        marked.append(item if hit is None else evolve(item, note=item.note + _note(hit)))
    return marked


def _is_about(value: Replaced, item: ContextItem, chat: str | None) -> bool:
    """Return whether an item may speak of the person of a fact: what is said in a chat is about those of the chat."""
    place = item.source.split("/")
    if place[0] != "conversations" or not value.fact.quotes:
        return True
    return any(quote.chat in {place[1], chat} for quote in value.fact.quotes)


def _states(text: str, value: Replaced) -> bool:
    """Return whether a sentence of the text states the value as if it were true now."""
    return any(
        value.value in sentence.casefold()
        and not (value.new.value and value.new.value.casefold() in sentence.casefold())
        and not _PAST.search(sentence)
        and (
            value.words <= content_words(sentence)
            or _slot(sentence) == (value.fact.slot, normalised(value.fact.value or ""))
        )
        for sentence in _sentences(text)
    )


@lru_cache(_SENTENCES_KEPT)
def _sentences(text: str) -> tuple[str, ...]:
    return tuple(sentence.text for sentence in sentences(text))


@lru_cache(_SENTENCES_KEPT)
def _slot(sentence: str) -> tuple[str, str] | None:
    found = slot_of(_SPEAKER.sub("", sentence))
    return None if found is None else (found[0], normalised(found[1]))


def _note(value: Replaced) -> str:
    since = told(value.new.valid_from, value.new.precision) if value.new.valid_from else ""
    when = f" since {since}" if since else ""
    slot = one_line(value.fact.slot or "")
    now = f"{slot} is {one_line(value.new.value)}" if value.new.value else f"{slot} is this no more"
    return f" (outdated: {now}{when})"
