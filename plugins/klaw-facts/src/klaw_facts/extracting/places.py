"""Known places: cities, regions and countries in English, Russian and Chinese, from `places.txt`.

A capital does not make a place: people move to Linux, and live in Hope.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache

from klaw_words.lazy_patterns import lazy_pattern

#: Letters of Latin names without a decomposition.
_LETTERS = str.maketrans("łŁøØıđĐß’", "lLoOidDs'")
_CHINESE = lazy_pattern(r"[一-鿿]")
_RUSSIAN = lazy_pattern(r"[а-яё]", re.IGNORECASE)
# Endings of cases: "в Москве", "в Нижнем Новгороде", "в Набережных Челнах".
_ENDING = lazy_pattern(r"(?:ом|ем|ой|ий|ый|ая|ую|ое|ее|ые|ие|ах|ях|ых|их|ям|ам|[аеёиоуыэюяьй]+)$")
#: The state after a city of the United States.
_STATE = lazy_pattern(r"[A-Z]{2}|D\.?C\.?")
_PART = lazy_pattern(r"[一-鿿]{0,4}[市省区县州镇]|[市省]?[一-鿿]{1,3}[区县市镇]")
_LONGEST = 6


def is_place(text: str) -> bool:
    """Return whether a text is the name of a known place, or of a part of one: "Hull", 上海浦东区."""
    if _CHINESE.search(text):
        return _is_in_china(text)
    first, *rest = (part.strip() for part in text.split(","))
    if not rest:
        return _key(text) in _known()
    # A village is known by what it is in.
    *between, last = rest
    is_in_known = _key(last) in _known() or (_STATE.fullmatch(last) is not None and _key(first) in _known())
    return is_in_known and len(between) <= 1


def _is_in_china(text: str) -> bool:
    """Return whether a Chinese text begins with a known place, and only other places and parts of it follow."""
    for length in range(min(len(text), _LONGEST), 1, -1):
        if text[:length] in _known():
            rest = text[length:]
            return not rest or _PART.fullmatch(rest) is not None or _is_in_china(rest.lstrip("市省"))
    return False


def _key(name: str) -> str:
    """Return what the forms of a name have in common: no accents; in Russian no endings of cases."""
    if name.isascii():  # as most are
        return name
    if _RUSSIAN.search(name):
        return " ".join(_ENDING.sub("", part) for part in re.split(r"[ -]", name.casefold()))
    folded = unicodedata.normalize("NFD", name.translate(_LETTERS))
    return "".join(character for character in folded if not unicodedata.combining(character))


@cache
def _known() -> frozenset[str]:
    from importlib.resources import files  # as slow to import as everything else here

    text = (files(__package__) / "places.txt").read_text("utf-8")
    names = " ".join(line for line in text.split("\n") if not line.startswith("#")).split(",")
    return frozenset(_key(name.strip()) for name in names)
