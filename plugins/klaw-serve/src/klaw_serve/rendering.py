"""A Markdown text as a tree of plain JSON, from which the page builds elements. No HTML is made anywhere.

A node is a string, or a list of a tag, an object of attributes and its nodes:
``["p", {"lines": [3, 4]}, "see ", ["a", {"to": "b.md"}, "b"]]``. The tags are those of :data:`TAGS`. HTML in a text
stays text. ``to`` is the target of a link as it was written, ``note`` the name in a wikilink, and ``lines`` the first
and the last line of the source.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import groupby
from typing import Any, Final, TypeAlias

from markdown_it import MarkdownIt
from markdown_it.token import Token

Node: TypeAlias = Any  # str, or [tag, attributes, *nodes]

#: All tags of nodes; ``task``, ``image`` and ``properties`` are no HTML.
TAGS: Final = frozenset(
    [
        *("p", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "li", "blockquote", "pre", "code", "hr"),
        *("table", "thead", "tbody", "tr", "th", "td", "em", "strong", "s", "mark", "a", "br"),
        *("task", "image", "properties"),
    ]
)

#: Real notes of this length take half a second, the worst texts some seconds, and a browser longer to show them.
_MAX_CHARACTERS = 200_000
_SUFFIXES = (".md", ".markdown", ".mdx", ".qmd", ".rmd")
_SAVED = "saved/"
_FRONT = re.compile(r"\A\ufeff?---[ \t]*\n(.*?\n)??(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_PROPERTY = re.compile(r"([^\s:#-][^:\n]*):(?:[ \t]+(.*))?")
_ITEM = re.compile(r"[ \t]*-[ \t]+(.*)")
_TASK = re.compile(r"\[([ xX])\][ \t]+")
_CALLOUT = re.compile(r"\[!(\w+)\][+-]?[ \t]*")
_INLINE = re.compile(
    r"!?\[\[(?P<note>[^\[\]|\n]+)(?:\|(?P<label>[^\[\]\n]+))?\]\]|==(?P<mark>[^=\n]+)==|(?P<br><br[ \t]*/?>)"
)


def is_markdown(path: str) -> bool:
    """Return whether the text of a document is Markdown: a note, or a saved memory."""
    return path.startswith(_SAVED) or path.lower().endswith(_SUFFIXES)


def render(text: str) -> list[Node] | None:
    """Return the blocks of a text; None if it is too long to be shown as anything but its source."""
    if len(text) > _MAX_CHARACTERS:
        return None
    front = _FRONT.match(text)
    found: list[Node] = []
    if front is not None:
        written = front[1] or ""
        found.append(["properties", {"lines": [1, front[0].count("\n")]}, *_properties(written)])
        text = "\n" * front[0].count("\n") + text[front.end() :]  # the lines keep their numbers
    return [*found, *_blocks(_parser().parse(text))]


@cache
def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])


def _properties(written: str) -> Iterator[list[str]]:
    """Yield names and values of front matter as they were written; a line of another form continues the value."""
    name, values = "", list[str]()
    for line in written.splitlines():
        found = _PROPERTY.fullmatch(line)
        if found is None:
            item = _ITEM.fullmatch(line)
            values += [item[1] if item else line.strip()]
            continue
        if name or any(values):
            yield [name, ", ".join(filter(None, values))]
        name, values = found[1].strip(), [(found[2] or "").strip()]
    if name or any(values):
        yield [name, ", ".join(filter(None, values))]


def _blocks(tokens: Sequence[Token]) -> list[Node]:
    """Return the tree of block tokens, which open and close elements."""
    root: list[Node] = []
    inside = [root]
    for token in tokens:
        if token.nesting == 1:
            node: list[Node] = [token.tag, _attributes(token)]
            if token.hidden:  # a paragraph of a tight list is no element
                inside.append(inside[-1])
                continue
            inside[-1].append(node)
            inside.append(node)
        elif token.nesting == -1:
            inside.pop()
        elif token.type == "inline":
            inside[-1] += _inline(token.children or (), inside[-1])
        else:
            inside[-1].append(_leaf(token))
    return [[tag, *more] for tag, *more in root if more[1:] or tag == "hr"]  # what was only a comment is nothing


def _leaf(token: Token) -> Node:
    if token.type in {"fence", "code_block"}:
        language = token.info.split(maxsplit=1)[0] if token.info.strip() else ""
        return ["pre", {**_lines(token), **({"language": language} if language else {})}, token.content.rstrip("\n")]
    return ["hr", _lines(token)] if token.type == "hr" else ["p", _lines(token), token.content]


def _lines(token: Token) -> dict[str, Any]:
    return {"lines": [token.map[0] + 1, max(token.map[0] + 1, token.map[1])]} if token.map else {}


def _attributes(token: Token) -> dict[str, Any]:
    found = _lines(token)
    if "style" in token.attrs:  # of a table's cell: text-align:left
        found["align"] = str(token.attrs["style"]).partition(":")[2]
    if "start" in token.attrs:
        found["start"] = token.attrs["start"]
    return found


def _inline(tokens: Sequence[Token], parent: Sequence[Node]) -> list[Node]:
    """Return the nodes of a line's tokens. A list item's box and a quote's kind are at its start."""
    root: list[Node] = []
    inside = [root]
    for token in tokens:
        if token.nesting == 1:
            target = {"to": str(token.attrs["href"])} if token.tag == "a" else {}
            node: list[Node] = [token.tag, target]
            inside[-1].append(node)
            inside.append(node)
        elif token.nesting == -1:
            inside.pop()
        else:
            inside[-1].append(_piece(token))
    found = list(_nodes(root))
    if found and isinstance(found[0], str):
        found[:1] = _start(found[0], str(parent[0]) if parent else "")
    return found


def _piece(token: Token) -> Node:
    if token.type == "image":
        return ["image", {"to": str(token.attrs["src"])}, token.content]
    if token.type == "code_inline":
        return ["code", {}, token.content]
    if token.type == "hardbreak":
        return ["br", {}]
    return "\n" if token.type == "softbreak" else token.content


def _nodes(pieces: Sequence[Node]) -> Iterator[Node]:
    """Yield nodes; a text that several tokens have is read as one, as a comment may have several lines."""
    for is_text, group in groupby(pieces, lambda piece: isinstance(piece, str)):
        if is_text:
            yield from _text(_without_comments("".join(group)))
            continue
        for tag, attributes, *inner in group:
            yield [tag, attributes, *(inner if tag in {"code", "image"} else _nodes(inner))]


def _without_comments(text: str) -> str:
    """Return a text without ``<!-- … -->``. Not by a pattern: the time of one is quadratic if no comment ends."""
    start = text.find("<!--")
    while start >= 0 and (end := text.find("-->", start + 4)) >= 0:
        text = text[:start] + text[end + 3 :].lstrip(" \t\n")
        start = text.find("<!--", start)
    return text


def _text(text: str) -> Iterator[Node]:
    """Yield a text with what many programs add to Markdown: wikilinks, marked words, a line break in a table."""
    at = 0
    for found in _INLINE.finditer(text):
        if found.start() > at:
            yield text[at : found.start()]
        kind = next(name for name in ("note", "mark", "br") if found[name])
        yield _ADDED[kind](found)
        at = found.end()
    if at < len(text):
        yield text[at:]


_ADDED: Final[Mapping[str, Callable[[re.Match[str]], Node]]] = {
    "note": lambda found: ["a", {"note": found["note"].strip()}, (found["label"] or found["note"]).strip()],
    "mark": lambda found: ["mark", {}, found["mark"]],
    "br": lambda _found: ["br", {}],
}


def _start(text: str, parent: str) -> list[Node]:
    """Return the first text of a block, with the box of a task and the kind of a callout as nodes."""
    if task := _TASK.match(text):
        return [["task", {"done": task[1] != " "}], text[task.end() :]]
    callout = _CALLOUT.match(text) if parent == "p" else None
    if callout is None:
        return [text]
    return [["strong", {}, callout[1].capitalize()], *([" ", text[callout.end() :]] if text[callout.end() :] else [])]
