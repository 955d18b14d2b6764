"""markdown-it-py's block parser, which asks fewer rules about each line.

markdown-it-py asks every rule whether a block begins at a line, and asks most of them again for each line of a
paragraph. Here a rule is asked only if the line begins with a character that can open its block, a paragraph of plain
lines is found by one regular expression, and a token is a small object. The blocks are those of markdown-it-py:
``test_block_parser.py`` compares the two.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import accumulate, count
from operator import add
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.parser_block import ParserBlock
from markdown_it.rules_block import StateBlock, lheading, paragraph, table
from mdit_py_plugins.front_matter import front_matter_plugin

# The characters that a line must begin with, after its indentation, for a rule to find its block there. ``code`` and
# ``table`` are asked under other conditions; a rule that is not listed is asked about every line.
_OPENS = {
    "front_matter": "-",
    "code": "",
    "table": "",
    "fence": "`~",
    "blockquote": ">",
    "hr": "*-_",
    "list": "*+-0123456789",
    "html_block": "<",
    "heading": "#",
    "lheading": "",
    "paragraph": "",
}
_SPECIAL = frozenset("".join(_OPENS.values()))
# A line that begins with one of these can be the second line of a table, or underline a heading.
_RULES_A_TABLE = frozenset("|-:")
_UNDERLINES = frozenset("=-")
_CODE_INDENT = 4
_WITH_TEXT = "with_text"  # in the environment of a parse

# Lines without indentation that begin with none of these characters, up to an empty line: always one paragraph.
_PLAIN = re.compile(r"(?:[^\s`~>*\-_+<#|:=0-9][^\n]*\n)++(?=[ \t]*\n)")
_BLANK = frozenset(" \t")
_LINE_ENDS = re.compile(r"\r\n?")


class BlockToken:
    """What a rule finds: the fields of markdown-it-py's ``Token`` that block rules set."""

    map: list[int] | None = None
    content = ""
    hidden = False

    def __init__(self, kind: str, tag: str, level: int) -> None:
        self.type = kind
        self.tag = tag
        self.level = level


class _State(StateBlock):
    """The state of a parse, with its lines found by few calls. Its tokens are small objects."""

    tokens: list[Any]

    def __init__(self, text: str, parser: MarkdownIt, env: dict[str, Any]) -> None:
        super().__init__("", parser, env, [])
        self.src = text
        lines = text.split("\n")
        if not lines[-1].strip(" \t"):  # white space after the last line end is no line
            lines.pop()
        sizes = list(map(len, lines))
        *starts, _ = map(add, accumulate(sizes, initial=0), count())
        ends = list(map(add, starts, sizes))
        widths = [
            size - len(line.lstrip(" \t")) if line[:1] in _BLANK else 0 for line, size in zip(lines, sizes, strict=True)
        ]
        columns = widths.copy()
        if "\t" in text:
            columns = [len(line[:width].expandtabs(4)) for line, width in zip(lines, widths, strict=True)]
        # markdown-it-py expects one line more.
        self.bMarks, self.eMarks = [*starts, len(text)], [*ends, len(text)]
        self.tShift, self.sCount = [*widths, 0], [*columns, 0]
        self.bsCount = [0] * len(self.bMarks)
        self.lineMax = len(starts)

    def push(self, ttype: str, tag: str, nesting: int) -> Any:
        """Add a token."""
        if nesting < 0:
            self.level -= 1
        token = BlockToken(ttype, tag, self.level)
        if nesting > 0:
            self.level += 1
        self.tokens.append(token)
        return token


class _Blocks(ParserBlock):
    """The loop over the lines. The rules call it again for the inside of quotes and list items."""

    def tokenize(self, state: StateBlock, startLine: int, endLine: int) -> None:  # noqa: N803  # markdown-it-py's
        """Add the tokens of these lines."""
        rules = self._rules
        deepest = state.md.options.maxNesting
        blank_before = False
        line = startLine
        while line < endLine:
            state.line = line = state.skipEmptyLines(line)
            if line >= endLine or state.sCount[line] < state.blkIndent:
                return
            if state.level >= deepest:
                state.line = endLine
                return
            if not (state.level == 0 and _plain_paragraph(state, line)):
                self._block(state, line, endLine, rules)
            # What follows is for lists: whether an empty line separates two blocks of an item.
            state.tight = not blank_before
            line = state.line
            blank_before = blank_before or (line - 1 < endLine and state.isEmpty(line - 1))
            if line < endLine and state.isEmpty(line):
                blank_before = True
                state.line = line = line + 1

    def _block(self, state: StateBlock, line: int, end: int, rules: dict[str, tuple[Any, ...]]) -> None:
        """Add the block that begins at a line."""
        indented = state.sCount[line] - state.blkIndent >= _CODE_INDENT
        # The rule of front matter looks at the first character of the text, wherever in the first line it is asked.
        if indented or line == 0 or _second_of_table(state, line + 1):
            asked = rules["all"]
        else:
            asked = rules.get(state.src[state.bMarks[line] + state.tShift[line]], rules["other"])
        for rule in asked:
            if rule(state, line, end, False):
                return
        _paragraph(state, line, end)

    @property
    def _rules(self) -> dict[str, tuple[Any, ...]]:
        """Return the rules to ask about a line, in order, by its first character."""
        found = self.__dict__.get("_asked")
        if found is None:
            named = [
                (name, rule)
                for name, rule in zip(self.ruler.get_active_rules(), self.ruler.getRules(""), strict=True)
                if name not in {"lheading", "paragraph"}
            ]
            found = {
                character: tuple(rule for name, rule in named if character in _OPENS.get(name, character))
                for character in _SPECIAL
            }
            found["all"] = tuple(rule for _, rule in named)
            found["other"] = tuple(rule for name, rule in named if name not in _OPENS)
            self.__dict__["_asked"] = found
        return found


def block_tokens(text: str, *, with_text: bool = False) -> list[Any]:
    """Return the block tokens of a text: CommonMark, tables and front matter; nothing inside a paragraph is parsed.

    A paragraph has only the token that opens it; after that of a heading, another has its text. ``with_text``: every
    paragraph has such a token, too. The text is without the marks of quotes and items, and with one line for each line
    of the token's ``map``.

    Link definitions are paragraphs, so that they stay part of the text.
    """
    parser = _parser()
    source = (_LINE_ENDS.sub("\n", text) if "\r" in text else text).replace("\0", "\ufffd")
    if not source:
        return []
    state = _State(source, parser, {_WITH_TEXT: with_text})
    parser.block.tokenize(state, state.line, state.lineMax)
    return state.tokens


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark")
    parser.block = _Blocks()
    parser.configure("commonmark").enable("table").use(front_matter_plugin)
    parser.block.ruler.disable("reference")
    return parser


def _plain_paragraph(state: StateBlock, line: int) -> bool:
    """Add a paragraph of plain lines; return whether there is one."""
    found = _PLAIN.match(state.src, state.bMarks[line])
    if found is None:
        return False
    state.line = line + state.src.count("\n", found.start(), found.end())
    _add_paragraph(state, line)
    return True


def _paragraph(state: StateBlock, first: int, end: int) -> None:
    """Add the paragraph that begins at a line, or the heading that it is if a line of ``=`` or ``-`` ends it."""
    if end != state.lineMax:  # in some quotes: a paragraph goes on behind them, a heading does not
        if not lheading(state, first, end, False):
            paragraph(state, first, end, False)
        return
    parent, state.parentType = state.parentType, "paragraph"
    line = first + 1
    level = 0
    while line < end and not state.isEmpty(line):
        indent = state.sCount[line] - state.blkIndent
        if indent < _CODE_INDENT:
            start = state.bMarks[line] + state.tShift[line]
            if indent >= 0 and state.src[start] in _UNDERLINES:
                level = _underlined(state, line, start)
                if level:
                    break
            # A negative count marks a line that a quote has looked at.
            if state.sCount[line] >= 0 and _ends_paragraph(state, line, end):
                break
        line += 1
    state.line = line
    if level:
        text = state.getLines(first, line, state.blkIndent, False).strip()
        state.line = line + 1
        state.push("heading_open", f"h{level}", 0).map = [first, state.line]
        inline = state.push("inline", "", 0)
        inline.map, inline.content = [first, line], text
    else:
        _add_paragraph(state, first)
    state.parentType = parent


def _add_paragraph(state: StateBlock, first: int) -> None:
    """Add the token that opens a paragraph, from line ``first`` to ``state.line``, and its text if it is wanted."""
    lines = [first, state.line]
    state.push("paragraph_open", "p", 0).map = lines
    if state.env[_WITH_TEXT]:
        inline = state.push("inline", "", 0)
        inline.map, inline.content = lines, state.getLines(first, state.line, state.blkIndent, False).strip()


def _underlined(state: StateBlock, line: int, start: int) -> int:
    """Return the level of the heading that a line of ``=`` or ``-`` underlines; 0 if it is another line."""
    underline = state.src[start : state.eMarks[line]].rstrip(" \t")
    marker = underline[0]
    if underline.strip(marker):
        return 0
    return 1 if marker == "=" else 2


def _ends_paragraph(state: StateBlock, line: int, end: int) -> bool:
    """Return whether a block that ends a paragraph begins at a line."""
    if state.src[state.bMarks[line] + state.tShift[line]] in _SPECIAL:
        return any(rule(state, line, end, True) for rule in state.md.block.ruler.getRules("paragraph"))
    return _second_of_table(state, line + 1) and table(state, line, end, True)


def _second_of_table(state: StateBlock, line: int) -> bool:
    """Return whether a line can be the second of a table."""
    if line >= state.lineMax:
        return False
    start = state.bMarks[line] + state.tShift[line]
    return start < state.eMarks[line] and state.src[start] in _RULES_A_TABLE
