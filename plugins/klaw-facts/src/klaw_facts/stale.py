"""Marks on statements that another statement of the same context has overtaken: the same frame, another number.

Nothing is ended by this: it is a hint for the reader of one context, made of what that context could hold. A frame is
what a sentence says without its numbers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from attrs import evolve, frozen

from klaw_core import ContextItem
from klaw_facts.extracting.sentences import sentences

_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*\s*%?|\$\d[\d,.]*")
_WORD = re.compile(r"[^\W\d_]{3,}")
_CHANGE = re.compile(
    r"\b(?:now|instead|updated?|changed?|moved|extended|increased|decreased|improved|reduced|dropped|rescheduled|postponed|pushed|raised"
    r"|upgraded|revised|recently|latest|so far|just|currently|already|reached)\b|теперь|сейчас|перенес|измени|увелич|现在|改|更新|推迟",
    re.IGNORECASE,
)
_STOP = frozenset(
    [
        "the",
        "and",
        "for",
        "with",
        "that",
        "this",
        "have",
        "has",
        "had",
        "was",
        "were",
        "are",
        "from",
        "but",
        "not",
        "you",
        "your",
        "our",
        "can",
        "could",
        "would",
        "should",
        "will",
        "help",
        "need",
        "want",
        "what",
        "how",
        "when",
        "which",
        "about",
        "into",
        "some",
        "any",
        "been",
        "just",
        "like",
        "also",
        "make",
        "sure",
        "need",
        "using",
        "use",
    ]
)
_ALIKE = 0.5
_SHARED = 3
_MOST_SENTENCES = 400


@frozen
class _Statement:
    item: int
    words: frozenset[str]
    numbers: frozenset[str]
    is_change: bool


def mark_stale(items: Sequence[ContextItem]) -> list[ContextItem]:
    """Return the items, with a note on each that a later one of them seems to have overtaken."""
    dated = [index for index, item in enumerate(items) if item.newest_first and item.created_at is not None]
    statements = [statement for index in dated for statement in _statements(index, items[index].text)][:_MOST_SENTENCES]
    overtaken: dict[int, int] = {}
    for new in statements:
        if not new.is_change:
            continue
        for old in statements:
            if old.item != new.item and _is_later(items[new.item], items[old.item]) and _overtakes(new, old):
                overtaken.setdefault(old.item, new.item)
    return [_marked(item, items[overtaken[index]]) if index in overtaken else item for index, item in enumerate(items)]


def _overtakes(new: _Statement, old: _Statement) -> bool:
    """Whether two statements have one frame and different numbers."""
    if not new.numbers or not old.numbers or new.numbers <= old.numbers:
        return False
    shared = len(new.words & old.words)
    smaller = min(len(new.words), len(old.words))
    return shared >= _SHARED and shared >= _ALIKE * smaller


def _statements(index: int, text: str) -> list[_Statement]:
    found = []
    for sentence in sentences(text):
        numbers = frozenset(match[0].strip() for match in _NUMBER.finditer(sentence.text))
        words = frozenset(word.casefold() for word in _WORD.findall(sentence.text)) - _STOP
        if numbers and len(words) >= _SHARED:
            found.append(_Statement(index, words, numbers, _CHANGE.search(sentence.text) is not None))
    return found


def _is_later(new: ContextItem, old: ContextItem) -> bool:
    return new.created_at is not None and old.created_at is not None and new.created_at > old.created_at


def _marked(item: ContextItem, by: ContextItem) -> ContextItem:
    assert by.created_at is not None
    note = f" (perhaps outdated: see {by.created_at.date().isoformat()})"
    return item if item.text.endswith(note) else evolve(item, text=item.text + note)
