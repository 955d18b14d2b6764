"""Markdown for tests: strategies that generate it, and an independent parser as the oracle."""

from __future__ import annotations

import re
from collections.abc import Iterator

from attrs import frozen
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode
from mdit_py_plugins.front_matter import front_matter_plugin

SENTENCES = (
    "The store owns the file, and indexes enlist in it.",
    "We decided to keep RRF; see RFC 42, sec. 3 for why.",
    "Is it fast enough? Nobody had measured it.",
    'She said "not yet." Then she left.',
    "Version 3.11 adds e.g. possessive quantifiers.",
    "Память агента живёт в одном файле.",
    "Решили, т.е. почти решили, оставить как есть!",
    "内存保存在一个文件里。检索先看关键词，再看向量。",
    "真的吗？是的！",
    "Family 👨‍👩‍👧‍👦 and flags 🇷🇺🇨🇳 and thumbs 👍🏽.",
    "Cafe\u0301 and n\u0303 are decomposed; \u0915\u094d\u0937 is one cluster.",
    "`klaw index ~/notes` reads *every* file…",
    "A hard break  \nends a line",
    "no capital, no full stop",
    "Ok.",
)
TITLES = ("Decision", "The `store` and its *indexes*", "Память", "检索", "A. B", "Options #", "2024-02-24", "")
CODE = (
    "def split(text):",
    "    return text.split('. ')",
    "",
    "# not a heading",
    "    for (i, x) in xs.iter().enumerate() { total += x * i; }",
    "\tlet café = '👩‍💻';",
    "- not a list",
    "{" + ", ".join(f'"key{i}": {i}' for i in range(12)) + "}",
)
HARD = (
    "QUJD" * 150,
    "x" * 700 + " y",
    "这是一段没有任何标点的很长的文字" * 20,
    "🇷🇺" * 60,
    "x" + "👨‍👩‍👧‍👦" * 25,
    "Точка。\u0301не конец. \u0301И это! \u200dТоже? " * 8,
    "Pneumonoultramicroscopicsilicovolcanoconiosis" * 5,
    "a" + "\u0301" * 300 + " b",
    " " * 300 + "far to the right",
    "word" + " " * 400 + "word",
    "a,b;c|" * 60,
    "." * 200,
    "\u0600 a\u200d \u0301b",
    "\x0c\n\x0b",
    "\x00 and \x1c and \u2028 and \x85 and \ufeff.",
    "[label]: https://example.org 'title'",
    "> lazy\ncontinuation\nof a quote",
    "| not | a table",
    "-\n\n  text under an empty marker",
    "# " + "A very long title " * 30,
    "Setext over\ntwo lines\n===",
    "<div>\nunclosed *html*\n</div>",
    "<!-- a comment\n\nthat spans -->",
    "***",
    "\n\n\n\n",
    "1. " * 12 + "deep",
    "> " * 25 + "deeper than any parser nests",
)
_SPECIAL = "#>-*+`~|:=_ \t\n\n\r<![]()\\.!?。123aB\x00\x0c\u2028\u0301\u200d\u0600\ufeff🇷🇺👩"


def markdown_documents(max_blocks: int = 14) -> st.SearchStrategy[str]:
    """Return a strategy for Markdown texts: mostly well-formed notes with some hard cases, and some noise."""
    blocks = st.lists(_blocks(), max_size=max_blocks)
    notes = st.builds(_note, st.sampled_from(("", "", "", "---\ntitle: A note\ntags: [a, b]\n---\n", "\ufeff")), blocks)
    endings = st.sampled_from(("\n", "\n", "\n", "\r\n", "\r"))
    noise = st.text(_SPECIAL, max_size=300)
    return st.one_of(*[st.builds(lambda text, end: text.replace("\n", end), notes, endings)] * 5, noise)


def hard_documents() -> st.SearchStrategy[str]:
    """Return a strategy for texts of hard cases only: long words, clusters, unusual white space, deep nesting."""
    return st.lists(st.sampled_from(HARD), min_size=1, max_size=5).map("\n\n".join)


def _note(front: str, blocks: list[str]) -> str:
    return front + "\n\n".join(blocks) + "\n" * (len(blocks) % 3)


def _blocks() -> st.SearchStrategy[str]:
    paragraph = st.builds(
        lambda sentences, joint: joint.join(sentences),
        st.lists(st.sampled_from(SENTENCES), min_size=1, max_size=9),
        st.sampled_from((" ", "\n")),
    )
    title = st.sampled_from(TITLES)
    heading = st.one_of(
        st.builds(
            lambda level, text, close: f"{'#' * level} {text}{close}", st.integers(1, 6), title, _either("", " ##")
        ),
        st.builds(lambda text, line: f"{text or 'Untitled'}\n{line}", title, _either("===", "---")),
    )
    code = st.lists(st.sampled_from(CODE), max_size=20).map("\n".join)
    fence = st.builds(
        lambda mark, info, body, close: f"{mark}{info}\n{body}\n{mark if close else ''}",
        _either("```", "~~~~"),
        _either("", "python"),
        code,
        st.sampled_from((True, True, True, True, False)),
    )
    indented = code.map(lambda body: "    " + body.replace("\n", "\n    "))
    table = st.lists(st.sampled_from(SENTENCES), max_size=8).map(_table)
    leaves = st.one_of(
        heading, paragraph, paragraph, paragraph, fence, indented, table, st.sampled_from(HARD), st.just("For example:")
    )
    return st.recursive(leaves, _nest, max_leaves=6)


def _nest(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    several = st.lists(inner, min_size=1, max_size=4)
    return st.one_of(
        several.map(lambda blocks: _prefixed("> ", "> ", "\n\n".join(blocks))),
        st.builds(_list, several, st.sampled_from(("- ", "* ", "1. ", "10) ")), _either("\n", "\n\n")),
    )


def _list(items: list[str], marker: str, joint: str) -> str:
    return joint.join(_prefixed(marker, " " * len(marker), item) for item in items)


def _prefixed(first: str, rest: str, text: str) -> str:
    return first + text.replace("\n", "\n" + rest)


def _table(cells: list[str]) -> str:
    rows = [f"| {number} | {cell.replace(chr(10), ' ')} |" for number, cell in enumerate(cells)]
    return "\n".join(("| n | text |", "|---|:--|", *rows))


def _either(one: str, other: str) -> st.SearchStrategy[str]:
    return st.sampled_from((one, other))


@frozen
class Element:
    """A block found by the oracle: ``text[start:end]``, whole lines without outer blank lines.

    ``share_start`` is the end of the previous block and ``share_end`` the start of the next one. ``row`` has the start
    and end of each heading directly above. Only headings have a ``level`` and a ``title``. ``top`` means not nested.
    """

    kind: str
    start: int
    end: int
    share_start: int
    share_end: int
    row: tuple[int, ...]
    top: bool
    level: int = 0
    title: str = ""

    @property
    def bounds(self) -> tuple[int, int]:
        """Return where the element starts and ends."""
        return self.start, self.end


def elements(text: str) -> list[Element]:
    """Return every block of a text, containers before their content; a list is represented by its items."""
    parser = MarkdownIt("commonmark").enable("table").use(front_matter_plugin)
    parser.disable("reference")
    tree = SyntaxTreeNode(parser.parse(text.removeprefix("\ufeff")))
    offsets = [0]
    for line in re.split(r"(?<=\n)|(?<=\r)(?!\n)", text):
        offsets.append(offsets[-1] + len(line))
    return list(_read(text, offsets, _unlisted(tree), (0, len(text)), (), top=True))


def _unlisted(node: SyntaxTreeNode) -> list[SyntaxTreeNode]:
    """Return a node's child blocks; each list is replaced with its items."""
    children: list[SyntaxTreeNode] = []
    for child in node.children:
        children.extend(child.children if child.type in {"bullet_list", "ordered_list"} else [child])
    return children


def _read(
    text: str,
    offsets: list[int],
    nodes: list[SyntaxTreeNode],
    around: tuple[int, int],
    row: tuple[int, ...],
    *,
    top: bool,
) -> Iterator[Element]:
    blocks = [(node, *_trimmed(text, offsets[node.map[0]], offsets[node.map[1]])) for node in nodes if node.map]
    for index, (node, start, end) in enumerate(blocks):
        share_start = blocks[index - 1][2] if index else around[0]
        share_end = blocks[index + 1][1] if index + 1 < len(blocks) else around[1]
        if start < end:
            level = int(node.tag[1:]) if node.type == "heading" else 0
            title = _heading_text(text[start:end], level) if level else ""
            yield Element(node.type, start, end, share_start, share_end, row, top, level, title)
        if node.type in {"blockquote", "list_item"}:
            yield from _read(text, offsets, _unlisted(node), (share_start, share_end), row, top=False)
        row = (*row, start, end) if node.type == "heading" else ()


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    end = start + len(text[start:end].rstrip())
    while start < end and (blank := re.match(r"\s*?(?:\r\n?|\n)", text[start:end])):
        start += blank.end()
    return start, end


def _heading_text(source: str, level: int) -> str:
    """Return a heading's source text on one line."""
    lines = re.split(r"\r\n?|\n", source.replace("\0", "\ufffd").removeprefix("\ufeff").strip())
    if lines[0].lstrip().startswith("#" * level) and len(lines) == 1:
        return re.sub(r"(^|[ \t])#+[ \t]*$", "", lines[0].strip()[level:]).strip()
    return " ".join(line.strip() for line in lines[:-1])
