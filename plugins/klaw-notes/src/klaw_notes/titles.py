"""The title of a note: its folders, its file name, and the title and aliases in its front matter.

In Obsidian the file name is the title, and most notes have no other.
"""

from __future__ import annotations

import re
from datetime import date
from pathlib import PurePosixPath

from klaw_core import Metadata
from klaw_words.days import named_day

_MAX_TITLE_CHARACTERS = 200  # a longer name was not written by a person
_JOINTS = re.compile(r"[\s_-]+")
_ALIASES = ("aliases", "alias")
_CLOCK = r"(?:[01]\d|2[0-3])[0-5]\d(?:[0-5]\d)?"
# The day at the start of a file's name: as most programs write it, as Logseq does (``2026_02_24``), and as Denote and
# Zettelkasten do, with the time (``20260224T101530--title``, ``202602241015 title``). Twelve digits that begin with 19
# are rather a number.
_IN_NAME = re.compile(
    r"((?:19|20)\d{2})([-_.])(\d{2})\2(\d{2})(?!\d)"
    rf"|((?:19|20)\d{{2}})(\d{{2}})(\d{{2}})(?:T{_CLOCK}|(?<=20\d{{6}}){_CLOCK})?(?![^\W_])"
)


def note_title(relative: str, metadata: Metadata) -> str:
    """Return the title of a note: ``Recipes / Borscht (Beet soup)``.

    Hyphens and underscores become spaces, and a date at the beginning is written in the forms that people search for.
    """
    path = PurePosixPath(relative)
    stem = _readable(path.stem)
    given = metadata.get("title")
    title = "" if given is None or isinstance(given, tuple) else " ".join(str(given).split())
    names = [title, stem, *_aliases(metadata)]
    distinct = list({name.casefold(): name for name in reversed(names) if name}.values())[::-1]
    others = f" ({', '.join(distinct[1:])})" if len(distinct) > 1 else ""
    folders = filter(None, (_readable(folder) for folder in path.parent.parts))
    return " / ".join((*folders, f"{''.join(distinct[:1])}{others}"))[:_MAX_TITLE_CHARACTERS].rstrip()


def leading_day(name: str) -> tuple[date, str] | None:
    """Return the day at the beginning of a file's name, and the rest of the name; None if it begins with none."""
    match = _IN_NAME.match(name)
    if match is None:
        return None
    year, month, day = (match[1], match[3], match[4]) if match[1] else match.group(5, 6, 7)
    try:
        return date(int(year), int(month), int(day)), name[match.end() :]
    except ValueError:
        return None


def _aliases(metadata: Metadata) -> list[str]:
    found: list[str] = []
    for key in _ALIASES:
        value = metadata.get(key, ())
        found += value if isinstance(value, tuple) else [str(value)]
    return [" ".join(alias.split()) for alias in found]


def _readable(name: str) -> str:
    """Return a name with spaces for hyphens and underscores, and its date written out."""
    found = leading_day(name)
    words = _JOINTS.sub(" ", name if found is None else found[1]).strip()
    return words if found is None else f"{named_day(found[0])} {words}".rstrip()
