"""Tags in the text of a note, as Obsidian and Logseq write them: ``#zettel``, ``#energy/heating``."""

from __future__ import annotations

import re
from collections.abc import Iterator

from klaw_core import Metadata

# https://help.obsidian.md/tags: letters, digits, "_", "-" and "/", and not only digits.
_TAG = re.compile(r"(?<![^\s(,;])#(?P<tag>[^\W_][\w/-]*)")
_BEGINNING = re.compile(r"#[^\W_]")
_COLOUR = re.compile(r"(?:[0-9a-f]{3}){1,2}|[0-9a-f]{8}", re.IGNORECASE)
_FENCE = re.compile(r"[ \t>]*(`{3,}|~{3,})")
# Code, comments and links between words are no places of tags.
_VERBATIM = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)|<!--.*?-->|\]\([^()]*\)|\[\[[^\[\]]*\]\]|https?://\S+")
_CODE_LINE = re.compile(r"(?: {4}|\t)\s*#")
_MAX_TAGS, _MAX_CHARACTERS = 100, 100


def with_tags_of(text: str, metadata: Metadata) -> Metadata:
    """Return the metadata of a note with the tags of its text and of its property ``tag`` added to its ``tags``."""
    written = [*_values(metadata.get("tags")), *_values(metadata.get("tag"))]
    found = [tag.removeprefix("#") for tag in written] + list(inline_tags(text))
    if not found:
        return metadata
    distinct: dict[str, str] = {}
    for tag in found:
        distinct.setdefault(tag.casefold(), tag)
    return {**metadata, "tags": tuple(distinct.values())}


def inline_tags(text: str) -> Iterator[str]:
    """Yield at most 100 tags of a Markdown text, in order; a tag may occur more than once."""
    if not _BEGINNING.search(text):
        return
    count = 0
    fence = ""
    for line in text.splitlines():
        if "#" not in line and "```" not in line and "~~~" not in line:  # most lines
            continue
        if mark := _FENCE.match(line):
            fence = "" if fence and mark[1].startswith(fence) else fence or mark[1]
            continue
        if fence or not _BEGINNING.search(line) or _CODE_LINE.match(line):
            continue
        for match in _TAG.finditer(_VERBATIM.sub(" ", line)):
            tag = match["tag"].rstrip("-/")
            if tag.replace("/", "").isdigit() or len(tag) > _MAX_CHARACTERS or _is_colour(tag):
                continue
            yield tag
            count += 1
            if count == _MAX_TAGS:
                return


def _is_colour(tag: str) -> bool:
    return any(map(str.isdigit, tag)) and _COLOUR.fullmatch(tag) is not None


def _values(value: object) -> tuple[str, ...]:
    if value is None or isinstance(value, bool):
        return ()
    return value if isinstance(value, tuple) else (str(value),)
