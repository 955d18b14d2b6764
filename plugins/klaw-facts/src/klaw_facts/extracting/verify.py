"""Verification without a model: a claim is checked against what was said, and can only lose.

A quote must stand in the journal. A claim must hold nothing that its quote does not: no number, name, negation or
quantifier. Where it does, the quote itself is the fact.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from difflib import SequenceMatcher
from functools import cache

from attrs import frozen

from klaw_facts.extracting.candidates import Candidate, SourceMessage
from klaw_facts.values import Quote, Verification

_MOST_EDITS = 0.1
_LONGEST_FUZZY = 400
_NUMBER = re.compile(r"\d+(?:[.,:/-]\d+)*")
_NAME = re.compile(r"\b[A-ZА-ЯЁ][\w’'-]+")
_WORD = re.compile(r"[\w’']+")
_NEGATION = re.compile(
    r"\b(?:not|no|never|none|nobody|nothing|without|cannot|\w+n['’]t|нет|не|никогда|никто|ничего|без)\b|不|没|無|无|别",
    re.IGNORECASE,
)
_QUANTIFIER = re.compile(
    r"\b(?:all|always|every|everyone|only|both|most|never|none|все|всегда|кажд\w+|только|оба)\b|都|总是|每|只|全部",
    re.IGNORECASE,
)
_STOP = frozenset(
    [
        "the",
        "a",
        "an",
        "of",
        "to",
        "in",
        "on",
        "at",
        "for",
        "and",
        "or",
        "but",
        "is",
        "are",
        "was",
        "were",
        "be",
        "been",
        "has",
        "have",
        "had",
        "that",
        "this",
        "it",
        "its",
        "their",
        "his",
        "her",
        "as",
        "by",
        "with",
        "from",
        "i",
        "me",
        "my",
        "mine",
        "we",
        "our",
        "us",
        "you",
        "your",
        "he",
        "she",
        "they",
        "user",
        "assistant",
        "said",
        "says",
        "и",
        "в",
        "на",
        "с",
        "по",
        "что",
        "это",
        "он",
        "она",
        "я",
        "мы",
    ]
)
_QUOTES = str.maketrans({"“": '"', "”": '"', "‘": "'", "’": "'", "«": '"', "»": '"', "–": "-", "—": "-", "…": "."})


@frozen
class Verified:
    """What is left of a candidate: the quote's place, the text that may be kept, and the grade."""

    quote: Quote
    text: str
    grade: Verification
    reason: str = ""


def verify(candidate: Candidate, window: Sequence[SourceMessage]) -> Verified | None:
    """Return what of a candidate is true to what was said; None if its quote was said by nobody in the window."""
    for message in (candidate.message, *(other for other in window if other is not candidate.message)):
        place = align(candidate.quote, message.content)
        if place is not None:
            break
    else:
        return None
    said = message.content[slice(*place)]
    quote = message.quote(*place)
    claim = " ".join(candidate.text.split())
    if claim == " ".join(said.split()):
        return Verified(quote, said, "quote")
    problem = contradiction(claim, said, message.speaker)
    return Verified(quote, said, "quote", problem) if problem else Verified(quote, claim, "paraphrase")


def align(quote: str, content: str) -> tuple[int, int] | None:
    """Return where a quote stands in a message: exactly, but for case, spaces and marks, or within a tenth of edits."""
    wanted = quote.strip()
    if not wanted:
        return None
    if (start := content.find(wanted)) >= 0:
        return start, start + len(wanted)
    folded, places = _folded(content)
    key, _ = _folded(wanted)
    key = key.strip(" .\"'")
    if not key:
        return None
    if (start := folded.find(key)) >= 0:
        return places[start], places[start + len(key) - 1] + 1
    return _nearest(key, folded, places) if len(key) <= _LONGEST_FUZZY else None


def contradiction(claim: str, said: str, speaker: str) -> str:  # noqa: PLR0911  # one return for each reason
    """Return what a claim says that its quote does not; empty if there is nothing."""
    source = f"{speaker} {said}"
    numbers = set(_NUMBER.findall(claim)) - set(_NUMBER.findall(source))
    if numbers:
        return f"a number that was not said: {min(numbers)}"
    known = {word.casefold() for word in _WORD.findall(source)}
    names = {name for name in _NAME.findall(claim) if _stem(name) not in known and name.casefold() not in known}
    names -= {word for word in [claim.split(maxsplit=1)[0].strip(".,")] if word.casefold() in _STOP}
    if names:
        return f"a name that was not said: {min(names)}"
    if bool(_NEGATION.search(claim)) != bool(_NEGATION.search(said)):
        return "a negation that was not said"
    if extra := {word.casefold() for word in _QUANTIFIER.findall(claim)} - {
        word.casefold() for word in _QUANTIFIER.findall(said)
    }:
        return f"a quantifier that was not said: {min(extra)}"
    if _scripts(claim) - _scripts(source):
        return "another script than what was said"
    content = [word.casefold() for word in _WORD.findall(claim) if word.casefold() not in _STOP]
    shared = sum(word in known or _stem(word) in {_stem(item) for item in known} for word in content)
    if content and shared * 2 < len(content) and not _is_ideographic(claim):
        return "less than half of its words were said"
    if _is_ideographic(claim) and not _shares_characters(claim, said):
        return "less than half of its characters were said"
    return ""


def _folded(text: str) -> tuple[str, list[int]]:
    """Return a text by which quotes are compared, and where each of its characters comes from."""
    folded: list[str] = []
    places: list[int] = []
    for index, character in enumerate(text):
        for piece in unicodedata.normalize("NFKC", character).translate(_QUOTES).casefold():
            if piece.isspace():
                if not folded or folded[-1] == " ":
                    continue
                piece = " "  # noqa: PLW2901  # every white space is one space
            folded.append(piece)
            places.append(index)
    return "".join(folded), places


def _nearest(key: str, folded: str, places: Sequence[int]) -> tuple[int, int] | None:
    """Return the place that is within a tenth of edits of the key, None if there is none."""
    matcher = SequenceMatcher(None, folded, key, autojunk=False)
    block = matcher.find_longest_match(0, len(folded), 0, len(key))
    if block.size < len(key) // 3:
        return None
    start = max(block.a - block.b, 0)
    end = min(start + len(key), len(folded))
    if SequenceMatcher(None, folded[start:end], key, autojunk=False).ratio() < 1 - _MOST_EDITS:
        return None
    while start > 0 and folded[start - 1].isalnum() and folded[start].isalnum():
        start -= 1
    while end < len(folded) and folded[end].isalnum() and folded[end - 1].isalnum():
        end += 1
    return places[start], places[end - 1] + 1


def _stem(word: str) -> str:
    """Return a word without the ending of a possessive or a plural."""
    return re.sub(r"(?:'s|’s|s|ing|ed)$", "", word.casefold())


@cache
def _script_of(character: str) -> str:
    return unicodedata.name(character, "").partition(" ")[0]


def _scripts(text: str) -> set[str]:
    return {_script_of(character) for character in text if character.isalpha()}


def _is_ideographic(text: str) -> bool:
    return "CJK" in _scripts(text)


def _shares_characters(claim: str, said: str) -> bool:
    letters = [character for character in claim if character.isalpha()]
    return sum(character in said for character in letters) * 2 >= len(letters)
