"""What a text of Markdown has between its markup: the text of its blocks, without code, tags and comments.

Comments are those of HTML, and those of Obsidian: ``%% … %%``. An escaped bracket is none.

markdown-it-py decides what these are, so that an unclosed mark, a fence in an item of a list and a comment of several
lines mean here what they mean to the program that shows the note.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import Any, TypeAlias

from attrs import evolve, field, frozen
from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline
from mdit_py_plugins.front_matter import front_matter_plugin

from klaw_notes.chunking.block_parser import block_tokens

_Rule: TypeAlias = Callable[[StateInline, bool], bool]

_SPANS = "spans"  # in the environment of a parse: the ranges of code, tags and escaped brackets
_REFERRING = "referring"  # the links whose addresses are defined elsewhere in the text: their ranges and addresses
_REFERENCES = "references"  # these definitions, as markdown-it-py has them
_ID_OF_TAG = re.compile(r"""\s(?:id|name)\s*=\s*["']?(?P<id>[^\s"'<>=`]{1,300})""", re.IGNORECASE)
_COMMENT = "%%"  # opens and closes one of Obsidian
_MARK = re.compile(_COMMENT)
_SHIFT_OF = {"!": len("![")}  # a picture is found where its alternative text is shifted to
_OFFSET = "offset"  # where the text that is parsed begins: the alternative text of a picture is parsed on its own


@frozen
class Prose:
    """The text of a paragraph, a heading or a cell of a table, whose first line has the number ``line``, from 1."""

    text: str
    line: int
    is_heading: bool


def prose_of(text: str) -> Iterator[Prose]:
    """Yield what is neither code nor HTML: the texts of the blocks, in order. Time is linear in the text."""
    tokens = block_tokens(text.removeprefix("\ufeff"), with_text=True)
    for before, token in pairwise([None, *tokens]):
        if token.type == "inline":
            yield Prose(token.content, token.map[0] + 1, before is not None and before.type == "heading_open")


@frozen
class Shown:
    """A block, and its ``text`` with spaces for what is no place of links: code, tags, comments, escaped brackets.

    ``referring`` are its links whose addresses are defined elsewhere (``[a][1]``): where each is, and its address.
    ``ids`` are those of its tags. Line ends stay.
    """

    prose: Prose
    text: str
    referring: tuple[tuple[int, int, str], ...] = ()
    ids: tuple[str, ...] = ()


def shown_of(text: str, definitions: Definitions) -> Iterator[Shown]:
    """Yield the blocks of a text, in order. Time is linear in the text."""
    blocks = (_shown(prose, definitions) for prose in prose_of(text))
    yield from _without_comments(list(blocks)) if _COMMENT in text else blocks


@frozen
class Definitions:
    """The definitions of links in a text (``[1]: note.md``), and the numbers of their lines, from 1."""

    references: Mapping[str, Any] = field(factory=dict)
    lines: frozenset[int] = frozenset()

    @classmethod
    def of(cls, text: str) -> Definitions:
        """Read the definitions. Only a text that can have any is parsed."""
        if "]:" not in text:
            return cls()
        env: dict[str, Any] = {}
        _defining().parse(text.removeprefix("\ufeff"), env)
        found = env.get(_REFERENCES, {})
        places = [each["map"] for each in (*found.values(), *env.get("duplicate_refs", ()))]
        return cls(found, frozenset(line + 1 for first, end in places for line in range(first, end)))


def _shown(prose: Prose, definitions: Definitions) -> Shown:
    text = prose.text
    if not ("`" in text or "<" in text or "\\" in text or (definitions.references and "[" in text)):
        return Shown(prose, text)
    spans, referring = _verbatim(text, definitions)
    ids = [_ID_OF_TAG.search(text[start:end]) for start, end in spans if text.startswith("<", start)]
    wanted = [
        (start, end, address)
        for start, end, address in referring
        if prose.line + text.count("\n", 0, start) not in definitions.lines
    ]
    return Shown(prose, _blanked(text, spans), tuple(wanted), tuple(found["id"] for found in ids if found))


def _blanked(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """Return a text with spaces at some ranges, which are in order; line ends stay."""
    parts: list[str] = []
    last = 0
    for start, end in spans:
        if start >= last:
            parts += text[last:start], "".join("\n" if character == "\n" else " " for character in text[start:end])
            last = end
    return "".join((*parts, text[last:]))


def _without_comments(blocks: Sequence[Shown]) -> Iterator[Shown]:
    """Yield blocks without the comments of Obsidian.

    One ends in its block, or begins at the start of a line and ends in a later block. What nothing ends is text.
    """
    marks = [(number, found.start()) for number, block in enumerate(blocks) for found in _MARK.finditer(block.text)]
    spans: dict[int, list[tuple[int, int]]] = {}
    at = 0
    while at + 1 < len(marks):
        (first, start), (last, end) = marks[at : at + 2]
        if first != last and blocks[first].text[:start].rpartition("\n")[2].strip():
            at += 1
            continue
        for number in range(first, last + 1):
            whole = len(blocks[number].text)
            begin, stop = start if number == first else 0, end + len(_COMMENT) if number == last else whole
            spans.setdefault(number, []).append((begin, stop))
        at += 2
    for number, block in enumerate(blocks):
        hidden = spans.get(number, ())
        kept = (each for each in block.referring if not any(start <= each[0] < end for start, end in hidden))
        yield evolve(block, text=_blanked(block.text, hidden), referring=tuple(kept)) if hidden else block


def _verbatim(text: str, definitions: Definitions) -> tuple[list[tuple[int, int]], list[tuple[int, int, str]]]:
    env: dict[str, Any] = {_SPANS: [], _REFERRING: [], _OFFSET: 0, _REFERENCES: dict(definitions.references)}
    parser = _parser()
    parser.inline.parse(text, parser, env, [])
    return sorted(env[_SPANS]), sorted(env[_REFERRING])


@cache
def _defining() -> MarkdownIt:
    """Return markdown-it-py for blocks, with definitions; what is inside of them is not parsed."""
    parser = MarkdownIt("commonmark").enable("table").use(front_matter_plugin)
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark")
    rules = dict(zip(parser.inline.ruler.get_active_rules(), parser.inline.ruler.getRules(""), strict=True))
    for name in ("backticks", "html_inline", "escape"):
        parser.inline.ruler.at(name, _noted(rules[name]))
    parser.inline.ruler.at("link", _referring(rules["link"]))
    parser.inline.ruler.at("image", _shifted(_referring(rules["image"])))
    return parser


def _noted(rule: _Rule) -> _Rule:
    """Return a rule that also notes the range of each token that it finds; of escaped characters, the brackets."""

    def run(state: StateInline, silent: bool) -> bool:  # noqa: FBT001  # markdown-it's
        start, before = state.pos, len(state.tokens)
        found = rule(state, silent)
        if len(state.tokens) > before:  # not if it only looks ahead, or finds a mark that nothing closes
            escaped = state.tokens[-1].content if state.tokens[-1].type == "text_special" else "["
            if escaped in {"[", "]"} or state.src[start] != "\\":
                offset = state.env[_OFFSET]
                state.env[_SPANS].append((offset + start, offset + state.pos))
        return found

    return run


def _referring(rule: _Rule) -> _Rule:
    """Return the rule of links or pictures, which also notes the range and the address of each that is defined."""

    def run(state: StateInline, silent: bool) -> bool:  # noqa: FBT001  # markdown-it's
        start, before = state.pos, len(state.tokens)
        found = rule(state, silent)
        if found and not silent and state.src[state.pos - 1] == "]":
            place = state.env[_OFFSET] - _SHIFT_OF.get(state.src[start], 0)
            token = next(each for each in state.tokens[before:] if each.type in {"link_open", "image"})
            address = str(token.attrGet("href") or token.attrGet("src") or "")
            state.env[_REFERRING].append((place + start, place + state.pos, address))
        return found

    return run


def _shifted(rule: _Rule) -> _Rule:
    """Return the rule of pictures, which parses their alternative text, with the ranges in that put at their place."""

    def run(state: StateInline, silent: bool) -> bool:  # noqa: FBT001  # markdown-it's
        offset = state.env[_OFFSET]
        state.env[_OFFSET] = offset + state.pos + len("![")
        try:
            return rule(state, silent)
        finally:
            state.env[_OFFSET] = offset

    return run
