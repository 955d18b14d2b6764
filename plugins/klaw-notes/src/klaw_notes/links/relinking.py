"""Write the links of a text anew: as Markdown links with other addresses."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TypeAlias

from attrs import define, field

from klaw_core import line_starts
from klaw_notes.links.reading import Link, link_to, matches_in
from klaw_notes.links.verbatim import Definitions, Prose, Shown, shown_of

#: Returns the new address of a link; empty if the link stays as it is.
AddressOf: TypeAlias = Callable[[Link], str]

_DEFINITION = re.compile(
    r"^ {0,3}\[(?:[^\[\]\\]|\\.){1,999}\]:\s{0,99}(?:<(?P<angle>[^<>\n]{1,500})>|(?P<plain>[^\s<>]{1,500}))",
    re.MULTILINE,
)
_IN_LABEL = re.compile(r"[^\[\]]{0,500}\]\(")  # what follows

_Edit: TypeAlias = tuple[int, int, str]  # where it begins and ends, and what is there then


def relinked(text: str, address_of: AddressOf) -> str:
    """Return a Markdown text with new addresses. ``[[Note#Heading|label]]`` becomes ``[label](address)``.

    A link whose place in the text is not certain stays as it is, and so does one in the label of another.
    """
    places = _Places(text, [*line_starts(text), len(text)])
    edits: list[_Edit] = []
    definitions = Definitions.of(text)
    for shown in shown_of(text, definitions):
        if "[[" in shown.text or "](" in shown.text or "]:" in shown.text:
            edits += _edits_of(shown, definitions, places, address_of)
    return _edited(text, edits)


def relinked_value(text: str, address_of: AddressOf) -> str:
    """Return a text that is no Markdown, such as a value of front matter, with new addresses."""
    return _edited(text, list(_edits_in(text, text, address_of)))


@define
class _Places:
    """Where the rows of blocks are in a text: a quotation has marks before its rows, a line of a table has cells."""

    text: str
    starts: list[int]
    _passed: dict[int, int] = field(factory=dict)  # by line: where the next cell can begin

    def of(self, row: str, line: int) -> tuple[int, bool]:
        """Return where a row begins, and whether its ``|`` are escaped there; -1 if it is not there as it is."""
        if line + 1 < len(self.starts):
            for written in dict.fromkeys((row, row.replace("|", "\\|"))):
                place = self.text.find(written, self._passed.get(line, self.starts[line]), self.starts[line + 1])
                if place >= 0:
                    self._passed[line] = place + len(written)
                    return place, written != row
        return -1, False


def _edits_of(shown: Shown, definitions: Definitions, places: _Places, address_of: AddressOf) -> Iterator[_Edit]:
    """Yield the edits of a block, at their places in the whole text."""
    prose = shown.prose
    rows = prose.text.split("\n")
    found = [places.of(row, prose.line - 1 + number) for number, row in enumerate(rows)]
    edits = [*_edits_in(prose.text, shown.text, address_of), *_defined(prose, definitions, address_of)]
    for start, end, new in sorted(edits):
        begin = prose.text.rfind("\n", 0, start) + 1
        place, escaped = found[prose.text.count("\n", 0, start)]
        if place < 0:
            continue
        before, old = prose.text[begin:start], prose.text[start:end]
        if escaped:
            before, old = before.replace("|", "\\|"), old.replace("|", "\\|")
        yield place + len(before), place + len(before) + len(old), new


def _defined(prose: Prose, definitions: Definitions, address_of: AddressOf) -> Iterator[_Edit]:
    """Yield the edits of the definitions in a block."""
    for match in _DEFINITION.finditer(prose.text) if definitions.lines else ():
        name = "angle" if match["angle"] is not None else "plain"
        start, end = match.span(name)
        link = link_to(match[name])
        line = prose.line + prose.text.count("\n", 0, start)
        if line in definitions.lines and link and (address := address_of(link)):
            yield start - (name == "angle"), end + (name == "angle"), address


def _edits_in(written: str, shown: str, address_of: AddressOf) -> Iterator[_Edit]:
    """Yield the edits of a text. ``shown`` is the text without code, in which links are looked for."""
    end_of_last = 0
    for link, match in matches_in(shown, 1):
        if match is None or match.start() < end_of_last or not (address := address_of(link)):
            continue
        end_of_last = match.end()
        start, end = match.span()
        if match.group().startswith("[["):
            if _IN_LABEL.match(shown, end):
                continue
            name, _, label = written[start + 2 : end - 2].partition("|")
            # What Obsidian shows in this place; elsewhere only pictures are shown so.
            start -= written[start - 1 : start] == "!"
            yield start, end, f"[{label.strip() or name.strip()}]({address})"
        else:
            with_brackets = match["angle"] is not None
            start, end = match.span("angle" if with_brackets else "plain")
            yield start - with_brackets, end + with_brackets, address


def _edited(text: str, edits: list[_Edit]) -> str:
    parts: list[str] = []
    last = 0
    for start, end, new in sorted(edits):
        if start >= last:
            parts += text[last:start], new
            last = end
    return "".join((*parts, text[last:]))
