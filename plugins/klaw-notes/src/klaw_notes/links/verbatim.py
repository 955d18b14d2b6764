"""What a text of Markdown has between its markup: the text of its blocks, without code, tags and comments.

markdown-it-py decides what these are, so that an unclosed mark, a fence in an item of a list and a comment of several
lines mean here what they mean to the program that shows the note.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise
from typing import Any, TypeAlias

from attrs import frozen
from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline

from klaw_notes.chunking.block_parser import block_tokens

_Rule: TypeAlias = Callable[[StateInline, bool], bool]

_SPANS = "spans"  # in the environment of a parse: the ranges of code and tags
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


def without_verbatim(text: str) -> str:
    """Return the text of a block with spaces for code, tags and comments; line ends stay."""
    if "`" not in text and "<" not in text:
        return text
    parts: list[str] = []
    end = 0
    for start, stop in _verbatim(text):
        parts += text[end:start], "".join("\n" if character == "\n" else " " for character in text[start:stop])
        end = stop
    return "".join((*parts, text[end:]))


def _verbatim(text: str) -> list[tuple[int, int]]:
    env: dict[str, Any] = {_SPANS: [], _OFFSET: 0}
    parser = _parser()
    parser.inline.parse(text, parser, env, [])
    spans: list[tuple[int, int]] = env[_SPANS]
    return spans


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark")
    rules = dict(zip(parser.inline.ruler.get_active_rules(), parser.inline.ruler.getRules(""), strict=True))
    for name in ("backticks", "html_inline"):
        parser.inline.ruler.at(name, _noted(rules[name]))
    parser.inline.ruler.at("image", _shifted(rules["image"]))
    return parser


def _noted(rule: _Rule) -> _Rule:
    """Return a rule that also notes the range of each token that it finds."""

    def run(state: StateInline, silent: bool) -> bool:  # noqa: FBT001  # markdown-it's
        start, before = state.pos, len(state.tokens)
        found = rule(state, silent)
        if len(state.tokens) > before:  # not if it only looks ahead, or finds a mark that nothing closes
            offset = state.env[_OFFSET]
            state.env[_SPANS].append((offset + start, offset + state.pos))
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
