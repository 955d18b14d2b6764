"""Verify claims against the journal, without a model. Verification can only lower the grade of a claim.

A quote must be in the journal. A claim must not contain a number, name, negation or quantifier that its quote lacks.
If it does, the quote itself becomes the fact.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from difflib import SequenceMatcher
from functools import cache

from attrs import frozen

from klaw_facts.extracting.candidates import Candidate, SourceMessage
from klaw_facts.extracting.sentences import sentences
from klaw_facts.values import Quote, Verification
from klaw_words.lazy_patterns import lazy_pattern

#: Characters. Longer text is code or pasted text, not a statement.
MAX_QUOTE_CHARACTERS = 1_000
_MAX_EDIT_SHARE = 0.1
_MAX_FUZZY_CHARACTERS = 400
_NUMBER = lazy_pattern(r"\d+(?:[.,:/-]\d+)*")
_NAME = lazy_pattern(r"[\w’']*[A-ZА-ЯЁ][\w’']*")
_WORD = lazy_pattern(r"[\w’']+")
_NEGATION = lazy_pattern(
    r"\b(?:not|no|never|none|nobody|nothing|without|cannot|\w+n['’]t|нет|не|никогда|никто|ничего|без)\b|不|没|無|无|别",
    re.IGNORECASE,
)
_HEDGE = lazy_pattern(
    r"\b(?:maybe|perhaps|might|may|could|would|probably|possibly|almost|nearly|about|around|if|unless|think|thinking|guess|hope|want"
    r"|wish|plan\w*|consider\w*|может|возможно|наверное|почти|около|если|бы|думаю|хочу|надеюсь|планиру\w+)\b"
    r"|也许|可能|大概|差不多|如果|想要?|希望|打算",
    re.IGNORECASE,
)
_COUNTED = lazy_pattern(
    r"\b(?:zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\w+teen|twenty|thirty|forty|fifty|sixty|seventy|eighty"
    r"|ninety|hundred|thousand|million|billion|half|twice|once|first|second|third|fourth|fifth|dozen"
    r"|один|одна|одну|два|две|три|четыре|пять|шесть|семь|восемь|девять|десять|\w+надцать|двадцать|тридцать|сорок|сто|тысяч\w*)\b"
    r"|[零一二两三四五六七八九十百千万亿]",
    re.IGNORECASE,
)
_DATED = lazy_pattern(
    r"\b(?:today|tonight|yesterday|tomorrow|last|next|this|ago|since|until|before|after|week|month|year|day|morning|evening|night"
    r"|(?:mon|tues|wednes|thurs|fri|satur|sun)day|january|february|march|april|may|june|july|august|september|october|november"
    r"|december|сегодня|вчера|завтра|прошл\w+|следующ\w+|назад|недел\w+|месяц\w*|год\w*|январ\w+|феврал\w+|март\w*|апрел\w+"
    r"|ма[йяе]|июн\w+|июл\w+|август\w*|сентябр\w+|октябр\w+|ноябр\w+|декабр\w+|понедельник\w*|вторник\w*|сред[ау]|четверг\w*"
    r"|пятниц\w+|суббот\w+|воскресень\w+)\b",
    re.IGNORECASE,
)
_QUESTION = lazy_pattern(r"[?？][\"'”’»)\]]*\s*$")
#: Chinese characters without content.
_GRAMMAR = frozenset("的了是在和与有我他她它你们这那也就都很把被对从到于以为之其用户")
_QUANTIFIER = lazy_pattern(
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
    """The result for a candidate: the place of its quote, the accepted text, and the grade."""

    quote: Quote
    text: str
    grade: Verification
    reason: str = ""


def verify(candidate: Candidate, window: Sequence[SourceMessage]) -> Verified | None:
    """Verify a candidate; return None if its quote is not in the messages, or is a question or pasted text.

    A quote is extended to whole sentences, because the omitted words might include "not".
    """
    for message in (candidate.message, *(other for other in window if other is not candidate.message)):
        place = align(candidate.quote, message.content)
        if place is not None:
            break
    else:
        return None
    place = _whole_sentences(message.content, *place)
    said = message.content[slice(*place)]
    if _QUESTION.search(said) or len(said) > MAX_QUOTE_CHARACTERS:
        return None
    quote = message.quote(*place)
    claim = " ".join(candidate.text.split())
    if claim == " ".join(said.split()):
        return Verified(quote, said, "quote")
    problem = "too long" if len(claim) > MAX_QUOTE_CHARACTERS else contradiction(claim, said, message.speaker)
    return Verified(quote, said, "quote", problem) if problem else Verified(quote, claim, "paraphrase")


def align(quote: str, content: str) -> tuple[int, int] | None:
    """Find a quote in a message: equal except for case, spaces and punctuation, or within 10 % edit distance."""
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
    return _nearest(key, folded, places) if len(key) <= _MAX_FUZZY_CHARACTERS else None


def contradiction(claim: str, said: str, speaker: str) -> str:
    """Return the first part of a claim that its quote does not support, described; empty if there is none."""
    source = f"{speaker} {said}"
    for what, words in (
        ("number", lambda text: {*_NUMBER.findall(text), *_words_of(_COUNTED, text)}),
        ("date", lambda text: _words_of(_DATED, text)),
        ("quantifier", lambda text: _words_of(_QUANTIFIER, text)),
    ):
        if added := words(claim) - words(source):
            return f"a {what} that was not said: {min(added)}"
    if names := _new_names(claim, source):
        return f"a name that was not said: {min(names)}"
    if bool(_NEGATION.search(claim)) != bool(_NEGATION.search(said)):
        return "a negation that was not said"
    if _HEDGE.search(said) and not _HEDGE.search(claim):
        return "more certain than what was said"
    if _scripts(claim) - _scripts(source):
        return "another script than what was said"
    return _too_far(claim, source)


def lost_details(said: str, shorter: str) -> set[str]:
    """Return the numbers, names and dates of a text that its shorter form lacks, in lower case."""
    names = {name.casefold() for name in _NAME.findall(said)} - _STOP
    kept = {form for word in _WORD.findall(shorter) for form in (word.casefold(), _stem(word))}
    lost = {name for name in names if not kept & {name, _stem(name)}}
    for words in (_NUMBER.findall, lambda text: _words_of(_COUNTED, text), lambda text: _words_of(_DATED, text)):
        lost |= {*words(said)} - {*words(shorter)}
    return lost


def _new_names(claim: str, source: str) -> set[str]:
    known = {form for word in _WORD.findall(source) for form in (word.casefold(), _stem(word))}
    names = {name for name in _NAME.findall(claim) if not known & {name.casefold(), _stem(name)}}
    return {name for name in names if name.casefold() not in _STOP}


def _too_far(claim: str, source: str) -> str:
    """Return why a claim is empty or too far from its source: half of its words, or one Chinese character, are new."""
    if "CJK" in _scripts(claim):
        added = _characters(claim) - _characters(source)
        return f"a character that was not said: {min(added)}" if added else ""
    known = {form for word in _WORD.findall(source) for form in (word.casefold(), _stem(word))}
    content = [word for word in _WORD.findall(claim) if word.casefold() not in _STOP]
    if not content:
        return "no word that says anything"
    shared = sum(bool(known & {word.casefold(), _stem(word)}) for word in content)
    return "less than half of its words occur in the quote" if shared * 2 < len(content) else ""


def _folded(text: str) -> tuple[str, list[int]]:
    """Return a folded text for comparing quotes, and the original index of each of its characters."""
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
    """Return the range within 10 % edit distance of the key; None if there is none."""
    matcher = SequenceMatcher(None, folded, key, autojunk=False)
    block = matcher.find_longest_match(0, len(folded), 0, len(key))
    if block.size < len(key) // 3:
        return None
    start = max(block.a - block.b, 0)
    end = min(start + len(key), len(folded))
    if SequenceMatcher(None, folded[start:end], key, autojunk=False).ratio() < 1 - _MAX_EDIT_SHARE:
        return None
    while start > 0 and folded[start - 1].isalnum() and folded[start].isalnum():
        start -= 1
    while end < len(folded) and folded[end].isalnum() and folded[end - 1].isalnum():
        end += 1
    return places[start], places[end - 1] + 1


def _stem(word: str) -> str:
    """Remove the ending of a possessive or a plural."""
    return re.sub(r"(?:'s|’s|s|ing|ed)$", "", word.casefold())


@cache
def _script_of(character: str) -> str:
    return unicodedata.name(character, "").partition(" ")[0]


def _scripts(text: str) -> set[str]:
    return {_script_of(character) for character in text if character.isalpha()}


def _characters(text: str) -> set[str]:
    return {character for character in text if _script_of(character) == "CJK"} - _GRAMMAR


def _words_of(pattern: re.Pattern[str], text: str) -> set[str]:
    return {word.casefold() for word in pattern.findall(text)}


def _whole_sentences(content: str, start: int, end: int) -> tuple[int, int]:
    """Extend a range to whole sentences."""
    touched = [item for item in sentences(content) if item.start < end and start < item.end]
    return (touched[0].start, touched[-1].end) if touched else (start, end)
