"""Lists of names in files beside this module: what is known to be a value of a slot, such as a place.

A capital does not make a place, a name or an employer: people move to Linux, work at Night, and are Misspelled.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache

from klaw_words.lazy_patterns import lazy_pattern

#: Letters of Latin names without a decomposition.
_LETTERS = str.maketrans("łŁøØıđĐß’", "lLoOidDs'")

_CYRILLIC = lazy_pattern(r"[а-яё]", re.IGNORECASE)


def without_accents(name: str) -> str:
    """Return a name as the lists have it: in Latin letters without accents; й and ё are letters of their own."""
    if name.isascii() or _CYRILLIC.search(name):
        return name
    folded = unicodedata.normalize("NFD", name.translate(_LETTERS))
    return "".join(character for character in folded if not unicodedata.combining(character))


@cache
def parts_of(file: str, separator: str = ",") -> tuple[tuple[str, ...], ...]:
    """Return the names of each part of a file; a comment begins a part."""
    from importlib.resources import files  # as slow to import as everything else here

    text = (files(__package__) / file).read_text("utf-8")
    parts = re.split(r"(?:^#.*\n)+", text, flags=re.MULTILINE)[1:]
    return tuple(tuple(name.strip() for name in " ".join(part.split()).split(separator)) for part in parts)
