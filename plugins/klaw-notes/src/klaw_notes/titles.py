"""The title of a note: its folders, its file name, and the title and aliases in its front matter.

In Obsidian the file name is the title, and most notes have no other.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from klaw_core import Metadata
from klaw_core.values.days import leading_day, named_day

_MAX_TITLE_CHARACTERS = 200  # a longer name was not written by a person
_JOINTS = re.compile(r"[\s_-]+")
_ALIASES = ("aliases", "alias")


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
