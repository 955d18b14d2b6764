"""What a text says between quotation marks of any language."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

# The marks that open a quotation, and those that end it. Some languages use the same mark, or the marks of another
# language the other way round: „…“, ”…”, »…«, ›…‹.
_CLOSING: Mapping[str, str] = {
    '"': '"”“＂',
    "＂": '＂"”',
    "“": '”"“',
    "„": '“”"',
    "‟": '”"',
    "”": '”"',
    "〝": "〞〟",
    "«": "»",
    "»": "«»",
    "‹": "›",
    "›": "‹›",
    "「": "」",
    "『": "』",
    "｢": "｣",
    "'": "'’",
    "‘": "’'",
    "‚": "‘’'",
    "‛": "’'",
}
# An apostrophe has the same marks. One that opens a quotation stands before a word, and one that ends it behind one.
_APOSTROPHES = "'’‘"
_SHORTENED = re.compile(r"(?:\d0s|\d\d|tis|twas|til|cause|em|n|bout|round)\b", re.IGNORECASE)
_MARKS = re.compile(f"[{''.join(dict.fromkeys((*_CLOSING, *''.join(_CLOSING.values()), *_APOSTROPHES)))}]")
# Scripts without spaces between words: Thai, Lao, Burmese, Khmer, Japanese and Chinese.
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")

_FEW_WORDS = 3  # a quotation of so few words is a name or a title
_FEW_CHARACTERS = 23
_CHARACTERS_OF_A_WORD = 2  # in a script without spaces


def quotations(text: str, /) -> Iterator[str]:
    """Yield what stands between quotation marks, without the marks; also what is quoted inside of a quotation."""
    ends: defaultdict[str, list[int]] = defaultdict(list)
    for mark in _MARKS.finditer(text):
        if _ends(text, mark.start()):
            ends[mark[0]].append(mark.start())
    place = 0
    while (found := _MARKS.search(text, place)) is not None:
        place = found.end()
        if not _opens(text, found.start()):
            continue
        later = (_first(ends[mark], place) for mark in _CLOSING[found[0]] if mark in ends)
        end = min((end for end in later if end is not None), default=None)
        if end is not None:
            yield text[place:end]
            yield from quotations(text[place:end])
            place = end + 1


def _first(places: Sequence[int], least: int) -> int | None:
    index = bisect_left(places, least)
    return places[index] if index < len(places) else None


def is_short(quotation: str, /) -> bool:
    """Return whether a quotation has at most three words and 23 characters, or 7 in a script without spaces."""
    words = [word for word in _UNSPACED.sub(" ", quotation).split() if re.search(r"\w", word)]
    unspaced = len(_UNSPACED.findall(quotation)) // _CHARACTERS_OF_A_WORD
    return len(words) + unspaced <= _FEW_WORDS and len(quotation.strip()) <= _FEW_CHARACTERS


def with_one_mark(text: str, /) -> str:
    """Return a text with one form of all quotation marks and apostrophes, for comparison."""
    return _MARKS.sub("'", text)


def _opens(text: str, place: int) -> bool:
    mark, before, after = text[place], text[max(place - 1, 0) : place], text[place + 1 : place + 2]
    if mark not in _CLOSING:
        return False
    if mark in "'‘‛”":  # also an apostrophe, or the end of a quotation that began with another mark
        is_word_before = before.isalnum() and not _UNSPACED.match(before)
        return bool(after.strip()) and not is_word_before and not _SHORTENED.match(text, place + 1)
    return not (mark == '"' and before.isdigit())  # such as of inches


def _ends(text: str, place: int) -> bool:
    if text[place] not in _APOSTROPHES:
        return True
    before, after = text[max(place - 1, 0) : place], text[place + 1 : place + 2]
    return bool(before.strip()) and (not after.isalnum() or bool(_UNSPACED.match(after)))
