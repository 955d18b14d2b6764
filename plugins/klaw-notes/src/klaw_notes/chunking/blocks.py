"""The block structure of a Markdown text, as character ranges of the source.

markdown-it-py parses the blocks (``block_parser``), not what is inside of them, because text is split only between
blocks, lines and sentences. Its positions are line numbers of a text with normalised line ends; they are converted to
offsets of the original text, including carriage returns.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Literal, TypeAlias

from attrs import define, frozen

from klaw_core import line_starts
from klaw_notes.chunking.block_parser import BlockToken, block_tokens
from klaw_notes.chunking.cuts import cluster_boundary, content

Kind: TypeAlias = Literal[
    "heading", "paragraph", "code", "table", "html", "front matter", "quote", "list item", "thematic break", "message"
]

_KINDS: dict[str, Kind] = {
    "heading_open": "heading",
    "paragraph_open": "paragraph",
    "fence": "code",
    "code_block": "code",
    "table_open": "table",
    "html_block": "html",
    "front_matter": "front matter",
    "blockquote_open": "quote",
    "list_item_open": "list item",
    "hr": "thematic break",
}
_CLOSINGS = {"blockquote_close", "list_item_close"}
# A heading of a megabyte, repeated in the path of every chunk below it, would be quadratic.
_MAX_HEADING_CHARACTERS = 160


@define(eq=False)  # a frozen object takes three times as long to make
class Block:
    """One block: ``text[start:end]`` without outer blank lines, indentation of its first line included.

    Only a quote and a list item have ``children``; a list is represented by its items. ``level`` (1 to 6) and
    ``title`` belong to headings.
    """

    kind: Kind
    start: int
    end: int
    children: tuple[Block, ...] = ()
    level: int = 0
    title: str = ""


@frozen(eq=False)
class Outline:
    """The headings that open sections: those at the top level of the text, not those in a quote or a list."""

    starts: Sequence[int]
    paths: Sequence[tuple[str, ...]]

    def path_at(self, position: int) -> tuple[str, ...]:
        """Return the headings in effect at a character, outermost first, with the one that opens there."""
        index = bisect_right(self.starts, position)
        return self.paths[index - 1] if index else ()


def parse(text: str) -> tuple[Block, ...]:
    """Return the top-level blocks, in order; every character outside them is white space.

    The time is linear in the text: markdown-it-py nests at most 20 levels, and deeper blocks are text of level 20.
    """
    # A byte order mark would hide the first block. Removing it does not change line numbers.
    tokens = block_tokens(text.removeprefix("\ufeff"))
    root = _Frame("paragraph", 0, len(text))
    frames = [root]
    # markdown-it-py recognises the same line ends as the core (rules_core/normalize.py).
    lines = [*line_starts(text), len(text)]
    for index, token in enumerate(tokens):
        if token.type in _CLOSINGS:
            frame = frames.pop()
            frames[-1].children.append(frame)
        elif token.map is not None and (kind := _KINDS.get(token.type)) is not None:
            frame = _Frame(kind, lines[token.map[0]], lines[token.map[1]])
            if kind == "heading":
                frame.level, frame.title = int(token.tag[1:]), _title(tokens[index + 1])
            if kind in {"quote", "list item"}:
                frames.append(frame)
            else:
                frames[-1].children.append(frame)
    return _finished_children(text, root) or _leaf(text, root)


def outline(blocks: Iterable[Block]) -> Outline:
    """Return where each section opens and the path of headings in effect from there.

    A heading closes every heading of its own or a deeper level; skipped levels leave no hole in the path.
    """
    starts: list[int] = []
    paths: list[tuple[str, ...]] = []
    above: list[Block] = []
    for block in blocks:
        if block.kind == "heading":
            while above and above[-1].level >= block.level:
                above.pop()
            above.append(block)
            starts.append(block.start)
            paths.append(tuple(_short(heading.title) for heading in above if heading.title))
    return Outline(starts, paths)


class _Frame:
    """A block while its children are still being read."""

    __slots__ = ("children", "end", "kind", "level", "start", "title")

    def __init__(self, kind: Kind, start: int, end: int) -> None:
        self.kind: Kind = kind
        self.start = start
        self.end = end
        self.children: list[_Frame] = []
        self.level = 0
        self.title = ""


def _finished_children(text: str, frame: _Frame) -> tuple[Block, ...]:
    """Return the children as blocks that together cover their container, without outer blank lines.

    Text between two children (the ``>`` of an empty line in a quote) belongs to the one before it, and text before the
    first child (a list marker alone on its line) to the first.
    """
    blocks: list[Block] = []
    children = frame.children
    start = frame.start
    for index, child in enumerate(children):
        child.start = start
        child.end = start = max(start, children[index + 1].start) if index + 1 < len(children) else frame.end
        blocks.extend(_leaf(text, child, _finished_children(text, child) if child.children else ()))
    return tuple(blocks)


def _leaf(text: str, frame: _Frame, children: tuple[Block, ...] = ()) -> tuple[Block, ...]:
    """Return the frame as a block, or nothing if all of it is white space."""
    bounds = content(text, frame.start, frame.end)
    return () if bounds is None else (Block(frame.kind, *bounds, children, frame.level, frame.title),)


def _title(inline: BlockToken) -> str:
    """Return a heading's text on one line."""
    return " ".join(line.strip() for line in inline.content.split("\n"))


def _short(title: str) -> str:
    """Return a title, truncated at a word if it is very long."""
    if len(title) <= _MAX_HEADING_CHARACTERS:
        return title
    title = title[: _MAX_HEADING_CHARACTERS + 1]
    cut = title.rfind(" ")
    if cut <= 0:
        cuts = range(_MAX_HEADING_CHARACTERS, 0, -1)
        cut = next((cut for cut in cuts if cluster_boundary(title, cut)), _MAX_HEADING_CHARACTERS)
    return title[:cut].rstrip()
