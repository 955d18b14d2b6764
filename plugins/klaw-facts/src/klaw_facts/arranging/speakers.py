"""Prefer the messages of the person whom a question names.

"What does Ada collect?" is answered by Ada more often than by those who talk with her, but their messages contain her
name and rank high. So if a question names one of the speakers, the messages of the others count as ranked lower.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from klaw_facts.arranging.replies import message_place
from klaw_tools import ContextItem

# The best messages keep their ranks, because a small budget holds only these.
_BEST = 6
_FACTOR = 2
# Pairs of a name and a word of a question.
_NAMES_KEPT = 4096
_MAX_SPEAKER_CHARACTERS = 43  # with the colon and the space
_WORD = re.compile(r"[^\W\d_]+")
_CHINESE = re.compile(r"[一-鿿]")
_RUSSIAN_STEM = re.compile(r"([а-яё]{2,}?)[аяйь]?")
_RUSSIAN_ENDING = re.compile("(?:[аяыиеуюь]|[оеё][йм])?")
_SENTENCE_START = re.compile(r"(?:^|[.!?…:\n])[\s\"'“”«(-]*$")
_POSSESSIVE = re.compile(r"['’]s\b")
_BEFORE_MONTH = re.compile(
    r"(?:\b(?:in|on|by|since|until|till|before|after|during|of|from|last|next|this|early|mid|late|every|each)|\d(?:st|nd|rd|th)?)[\s-]+$",
    re.IGNORECASE,
)
_AFTER_MONTH = re.compile(r"[\s,]+\d")
# Characters before a word that decide whether it begins a sentence or is a month. More would take time that is
# quadratic in the length of the message.
_MAX_BEFORE_CHARACTERS = 40
# First names that are more often another word where they have no capital letter.
_ORDINARY_NAMES = """
will may mark bill grace hope faith joy rose art frank pat rob sue dawn april june august summer autumn sky chase
drew guy jack jay max miles penny pearl ruby ray rich sandy violet iris ivy lily daisy heather olive ginger hazel
melody harmony charity patience christian dean duke earl king major page piper hunter mason carter cook baker
smith young brown white black green long short stone hill gene don dot bob nick skip chip clay cliff dale dusty
forest glen grant lance lee misty norm peg reed rusty scarlet star sunny trip wade ward wren angel
"""
_ORDINARY = frozenset(_ORDINARY_NAMES.split())
_MONTHS = frozenset({"may", "april", "june", "august"})
_ORDINARY_RUSSIAN = ("вера", "надежда", "любовь", "роман", "лев", "слава", "роза", "рада")
_ROLES = frozenset({"user", "assistant", "system", "tool"})


def prefer_named_speaker(items: Sequence[ContextItem], message: str) -> list[ContextItem]:
    """Return the items, with the messages of the only speaker that the message names moved up.

    A message of another speaker counts as ranked twice as low, after the best messages. Only moves messages; all other
    items keep their places.
    """
    speakers = {index: name for index, item in enumerate(items) if (name := _speaker(item))}
    names = set(speakers.values())
    if len(names) < 2:  # noqa: PLR2004  # nobody to prefer
        return list(items)
    words = _possible_names(message)
    named = [name for name in names if _is_named(name, words)]
    if len(named) != 1:
        return list(items)
    found = [(index, speaker) for index, speaker in speakers.items() if _is_one_message(items[index])]
    places = [index for index, _ in found]
    ranks = {
        index: rank if rank <= _BEST or speaker == named[0] else rank * _FACTOR
        for rank, (index, speaker) in enumerate(found, 1)
    }
    ordered = list(items)
    for place, index in zip(places, sorted(places, key=lambda index: ranks[index]), strict=True):
        ordered[place] = items[index]
    return ordered


def _speaker(item: ContextItem) -> str:
    """Return the casefolded name at the beginning of a text; empty if there is none, or a role."""
    # A regular expression takes three times as long.
    text = item.text
    end = text.find(": ", 0, _MAX_SPEAKER_CHARACTERS)
    if end < 0:
        return ""
    name = text[:end].casefold()
    return name if name not in _ROLES and not ("\n" in name or ":" in name) else ""


def _is_one_message(item: ContextItem) -> bool:
    place = message_place(item)
    return place is not None and place[1] == place[2]


def _possible_names(message: str) -> list[str]:
    """Return the casefolded words of a message, without those that are ordinary words where they stand.

    "Will" and "Вера" are names if they have a capital letter that is not that of a sentence, or a possessive ending.
    """
    is_shouted = message.isupper()
    found = []
    for match in _WORD.finditer(message):
        word = match[0].casefold()
        if _is_ordinary(word):
            start, end = match.span()
            before = max(0, start - _MAX_BEFORE_CHARACTERS), start
            is_capital = match[0][0].isupper() and not is_shouted and not _SENTENCE_START.search(message, *before)
            is_month = word in _MONTHS and (_BEFORE_MONTH.search(message, *before) or _AFTER_MONTH.match(message, end))
            if is_month or not (is_capital or _POSSESSIVE.match(message, end)):
                continue
        found.append(word)
    return found


def _is_ordinary(word: str) -> bool:
    return word in _ORDINARY if word.isascii() else any(_is_same_name(name, word) for name in _ORDINARY_RUSSIAN)


def _is_named(speaker: str, words: Sequence[str]) -> bool:
    return any(_is_same_name(name, word) for name in _names(speaker) for word in words)


def _names(speaker: str) -> Iterator[str]:
    return (name for name in _WORD.findall(speaker) if len(name) > 1)


@lru_cache(_NAMES_KEPT)
def _is_same_name(name: str, word: str) -> bool:
    """Return whether a word is a name, or a Russian form of it, or Chinese text that contains it."""
    if _CHINESE.search(name):
        return name in word
    stem = _RUSSIAN_STEM.fullmatch(name)
    if stem is None:
        return name == word
    return word.startswith(stem[1]) and _RUSSIAN_ENDING.fullmatch(word, len(stem[1])) is not None
