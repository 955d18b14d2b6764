"""Known places: cities, regions and countries in English, Russian and Chinese, from `places.txt`.

A capital does not make a place: people move to Linux, and live in Hope.
"""

from __future__ import annotations

import re
from functools import cache

from klaw_facts.extracting.known import parts_of, without_accents
from klaw_facts.extracting.names import is_given
from klaw_words.lazy_patterns import lazy_pattern

_CHINESE = lazy_pattern(r"[一-鿿]")
_RUSSIAN = lazy_pattern(r"[а-яё]", re.IGNORECASE)
# Endings of cases: "в Москве", "в Нижнем Новгороде", "в Набережных Челнах".
_ENDING = lazy_pattern(r"(?:ом|ем|ой|ий|ый|ая|ую|ое|ее|ые|ие|ах|ях|ых|их|ям|ам|[аеёиоуыэюяьй]+)$")
#: The state after a city of the United States.
_STATE = lazy_pattern(r"[A-Z]{2}|D\.?C\.?")
_PART = lazy_pattern(r"[一-鿿]{0,4}[市省区县州镇]|[市省]?[一-鿿]{1,3}[区县市镇]")
_LONGEST = 6
# Regions whose names people have, too: "I live in Paris, Jordan." Each with its large cities.
_NAMED_LIKE_PEOPLE = {
    "Georgia": {"Atlanta", "Athens", "Augusta", "Batumi", "Columbus", "Kutaisi", "Macon", "Savannah", "Tbilisi"},
    "Israel": {"Ashdod", "Beersheba", "Haifa", "Jerusalem", "Netanya", "Tel Aviv"},
    "Jordan": {"Amman", "Aqaba", "Irbid", "Zarqa"},
    "Victoria": {"Ballarat", "Bendigo", "Geelong", "Melbourne"},
    "Virginia": {"Alexandria", "Arlington", "Chesapeake", "Newport News", "Norfolk", "Richmond", "Virginia Beach"},
}


def is_place(text: str) -> bool:
    """Return whether a text is the name of a known place, or of a part of one: "Hull", 上海浦东区."""
    if _CHINESE.search(text):
        return _is_in_china(text)
    first, *between = (part.strip() for part in text.split(","))
    if not between:
        return key_of(text) in _known()
    last = key_of(between.pop())
    if _STATE.fullmatch(last) is not None or last in _NAMED_LIKE_PEOPLE:
        is_within = key_of(first) in _NAMED_LIKE_PEOPLE.get(last, _known())
    elif last in _regions():
        is_within = True  # a village is known by what it is in
    else:  # a part of a city; but two cities are a correction, and "Lyon, Sydney" may speak to somebody
        is_within = last in _known() and not is_given(last) and key_of(first) not in _known()
    return is_within and len(between) <= 1


def _is_in_china(text: str) -> bool:
    """Return whether a Chinese text is a known place, perhaps after its province, or a part of one: 上海浦东区."""
    for length in range(min(len(text), _LONGEST), 1, -1):
        if text[:length] in _known():
            rest = text[length:]
            if not rest or _PART.fullmatch(rest) is not None:
                return True
            return text[:length] in _regions() and _is_in_china(rest.lstrip("省"))  # two cities are two homes
    return False


def key_of(name: str) -> str:
    """Return what the forms of a name have in common: no accents; in Russian no endings of cases."""
    if _RUSSIAN.search(name):
        return " ".join(_ENDING.sub("", part) for part in re.split(r"[ -]", name.casefold()))
    return without_accents(name)


@cache
def _known() -> frozenset[str]:
    return frozenset(key_of(name) for part in parts_of("places.txt") for name in part)


@cache
def _regions() -> frozenset[str]:
    return frozenset(map(key_of, parts_of("places.txt")[0]))
