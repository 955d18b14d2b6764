"""Convert HTML to Markdown: headings, lists, tables, code and quotes are kept, everything else becomes paragraphs.

The tree is walked without recursion, because an untrusted page may be nested very deeply. The addresses of links are
left out, because questions do not contain them, and so are menus, footers, forms and hidden elements.
"""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any

from attrs import define, field, frozen

from klaw_documents.parsers.values import clean

_DROPPED_NAMES = (
    "script style noscript template svg math iframe object canvas video audio button select textarea input nav "
    "aside dialog head"
)
_DROPPED = frozenset(_DROPPED_NAMES.split())
_FRAMES = frozenset({"header", "footer"})  # outside of an article
_DROPPED_ROLES_NAMES = "navigation banner contentinfo search complementary menu menubar toolbar"
_DROPPED_ROLES = frozenset(_DROPPED_ROLES_NAMES.split())
_DROPPED_CLASSES = frozenset({"headerlink", "anchor-link", "sphinxsidebar", "skip-link", "sr-only", "visually-hidden"})
_BLOCKS_NAMES = (
    "address article blockquote body center dd details div dl dt fieldset figcaption figure footer form h1 h2 h3 "
    "h4 h5 h6 header hgroup hr html li main ol p pre section summary table tbody td tfoot th thead tr ul caption"
)
_BLOCKS = frozenset(_BLOCKS_NAMES.split())
_LEVELS = {f"h{level}": level for level in range(1, 7)}
_SPACE = re.compile(r"[ \t\n\f\r\u00a0]+")
# What begins a heading, code or HTML at the start of a line, or makes a heading of the line before it.
_STRUCTURE = r"#{1,6}(?:\s|$)|`{3}|~{3}|<[!?/]|<[A-Za-z][A-Za-z0-9-]*(?:[\s/>]|$)|[=-]+[ \t]*$"
# Characters that would be Markdown at the start of a line.
_MARKUP = re.compile(rf"(?:{_STRUCTURE}|[-+*](?:\s|$)|\d{{1,9}}[.)](?:\s|$)|>|[=|-]{{2,}}\s*$)")
# The same in quotes and lists, which stay what they are.
_STRUCTURES = re.compile(rf"^((?:[ \t>]|[-+*][ \t]|\d{{1,9}}[.)][ \t])*)(?={_STRUCTURE})", re.MULTILINE)
_MAX_DEPTH = 8  # the maximum depth of lists and quotes
_MIN_SHARE = 0.2  # an element with a smaller share of a page's text is not its main part


@frozen
class Page:
    """The text of a page as Markdown, and the metadata in its head."""

    text: str
    title: str = ""
    author: str = ""
    date: str = ""


def fenced(text: str, language: str) -> str:
    """Return a fenced code block."""
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text.strip(chr(10))}\n{fence}"


def escaped(text: str) -> str:
    """Return a text without headings, fences and HTML: it changes no heading of the text around it.

    Quotes, lists and what is inside of lines stay as they are.
    """
    return _STRUCTURES.sub(r"\1\\", text)


def markdown_of(html: str) -> str:
    """Return a complete fragment or document as Markdown."""
    tree = _tree(html)
    return "" if tree.body is None else _Writer().write(tree.body, whole=True)


def page_of(html: str) -> Page:
    """Return the main content of a page."""
    tree = _tree(html)
    if tree.body is None:
        return Page("")
    title = tree.css_first("title")
    text = ""
    if (main := _main(tree)) is not None:
        text = _Writer().write(main, whole=True)
    if not text.strip() or len(text) < _MIN_SHARE * len(whole := _Writer().write(tree.body)):
        text = whole if text.strip() else _Writer().write(tree.body)
    # A page that has only navigation and forms is converted completely.
    text = text if text.strip() else _Writer().write(tree.body, whole=True)
    return Page(
        text,
        "" if title is None else title.text(),
        _meta(tree, "author", "article:author", "dcterms.creator"),
        _meta(tree, "article:published_time", "date", "dcterms.date", "dc.date"),
    )


def _tree(html: str) -> Any:
    return import_module("selectolax.lexbor").LexborHTMLParser(html)


def _main(tree: Any) -> Any:
    """Return the element of a page's main part, or None if it is not marked."""
    for selector in ("main", '[role="main"]', "article"):
        found = tree.css(selector)
        if len(found) == 1:
            return found[0]
    return None


def _meta(tree: Any, *names: str) -> str:
    for item in tree.css("meta"):
        attributes = item.attributes
        if (attributes.get("name") or attributes.get("property") or "").lower() in names:
            return attributes.get("content") or ""
    return ""


@define(eq=False)
class _Table:
    rows: list[list[str]] = field(factory=list)
    has_head: bool = False
    caption: str = ""


@define(eq=False)
class _Writer:
    """Collects Markdown during the walk through a tree."""

    _out: list[str] = field(factory=list, init=False)
    _inline: list[str] = field(factory=list, init=False)
    _lists: list[tuple[bool, int]] = field(factory=list, init=False)  # (is ordered, number of items)
    _marker: str = field(default="", init=False)
    _quotes: int = field(default=0, init=False)
    _tables: list[_Table] = field(factory=list, init=False)
    _pre: int = field(default=0, init=False)
    _articles: int = field(default=0, init=False)
    _whole: bool = field(default=False, init=False)

    def write(self, root: Any, *, whole: bool = False) -> str:
        """Return the Markdown of an element; with ``whole``, including its headers and footers."""
        self._whole = whole
        node, depth = root, 0
        while True:
            child = None
            if node.is_text_node:
                self._text(node.text_content or "")
            elif node.is_element_node and (node is root or not self._is_dropped(node)):
                self._enter(node)
                child = node.first_child
                if child is None:
                    self._leave(node)
            if child is not None:
                node, depth = child, depth + 1
                continue
            while depth and node.next is None:
                node, depth = node.parent, depth - 1
                self._leave(node)
            if not depth:
                break
            node = node.next
        self._flush()
        return "\n".join(self._out).strip("\n") + ("\n" if self._out else "")

    def _is_dropped(self, node: Any) -> bool:
        tag, attributes = node.tag, node.attributes
        if tag in _DROPPED or (tag in _FRAMES and not self._whole and not self._articles):
            return True
        if not attributes:
            return False
        if "hidden" in attributes or attributes.get("aria-hidden") == "true":
            return True
        if (attributes.get("role") or "").lower() in _DROPPED_ROLES:
            return True
        return not _DROPPED_CLASSES.isdisjoint((attributes.get("class") or "").split())

    def _text(self, text: str) -> None:
        self._inline.append(text if self._pre else _SPACE.sub(" ", text))

    def _enter(self, node: Any) -> None:  # noqa: C901  # a branch for each tag
        tag = node.tag
        if tag in _BLOCKS and not self._pre and not self._in_cell(tag):
            self._flush()
        if tag == "br":
            self._inline.append("\n")
        elif tag == "img":
            self._text(f" {node.attributes.get('alt') or ''} ")
        elif tag in {"ul", "ol"}:
            self._lists.append((tag == "ol", 0))
        elif tag == "li":
            self._begin_item()
        elif tag == "blockquote":
            self._quotes += 1
        elif tag == "pre":
            self._pre += 1
        elif tag == "code" and not self._pre:
            self._inline.append("`")
        elif tag in {"article", "main"}:
            self._articles += 1
        elif tag == "table":
            self._tables.append(_Table())
        elif tag == "tr" and len(self._tables) == 1:
            self._tables[0].rows.append([])
        elif tag in {"td", "th"} and self._tables:
            self._inline.append(" ")

    def _leave(self, node: Any) -> None:  # noqa: C901  # a branch for each tag
        tag = node.tag
        if tag in _LEVELS and not self._tables:
            self._heading(_LEVELS[tag])
        elif tag == "pre":
            self._pre -= 1
            if not self._pre and not self._tables:
                self._code(_language(node))
        elif tag in {"td", "th"} and self._tables:
            self._cell(is_head=tag == "th")
        elif tag == "table":
            self._table()
        elif tag == "caption" and len(self._tables) == 1:
            self._tables[0].caption = self._take_text().replace("\n", " ")
        elif tag in _BLOCKS and not self._pre and not self._in_cell(tag):
            self._flush()
        if tag in {"ul", "ol"} and self._lists:
            self._lists.pop()
            if not self._lists:
                self._blank()
        elif tag == "blockquote":
            self._quotes -= 1
        elif tag in {"article", "main"}:
            self._articles -= 1
        elif tag == "code" and not self._pre:
            self._inline.append("`")

    def _in_cell(self, tag: str) -> bool:
        """Return whether a block is in a table, where it becomes part of a line."""
        if not self._tables:
            return False
        if tag in {"p", "div", "li", "tr", "dt", "dd"}:
            self._inline.append(" ")
        return True

    def _begin_item(self) -> None:
        ordered, number = self._lists[-1] if self._lists else (False, 0)
        if self._lists:
            self._lists[-1] = (ordered, number + 1)
        self._marker = f"{number + 1}. " if ordered else "- "

    def _take_text(self) -> str:
        """Return the inline text so far, one line per line break of the page, and clear it."""
        text = clean("".join(self._inline)).replace("``", "")
        self._inline.clear()
        return "\n".join(filter(None, (" ".join(line.split()) for line in text.split("\n"))))

    def _flush(self) -> None:
        """Write the inline text as a paragraph or an item of a list."""
        text = self._take_text()
        if not text:
            return
        lines = [f"\\{line}" if _MARKUP.match(line) else line for line in text.split("\n")]
        self._block(lines)

    def _heading(self, level: int) -> None:
        text = self._take_text().replace("\n", " ")
        if text:
            self._marker = ""
            self._blank()
            self._out += [f"{'#' * level} {text}", ""]

    def _code(self, language: str) -> None:
        text = clean("".join(self._inline)).strip("\n")
        self._inline.clear()
        if text.strip():
            self._blank()
            self._block(fenced(text, language).split("\n"))
            self._blank()

    def _block(self, lines: list[str]) -> None:
        """Write lines, indented according to the lists and quotes around them."""
        depth = min(len(self._lists), _MAX_DEPTH)
        quote = "> " * min(self._quotes, _MAX_DEPTH)
        marker, self._marker = self._marker, ""
        if depth:
            outer = "   " * (depth - 1)
            first, rest = (f"{outer}{marker}", f"{outer}{' ' * len(marker)}") if marker else ("   " * depth,) * 2
        else:
            first = rest = ""
            self._blank()
        self._out += [f"{quote}{first if index == 0 else rest}{line}".rstrip() for index, line in enumerate(lines)]
        if not depth:
            self._blank()

    def _blank(self) -> None:
        if self._out and self._out[-1]:
            self._out.append("")

    def _cell(self, *, is_head: bool) -> None:
        if len(self._tables) > 1:
            return
        table = self._tables[0]
        if not table.rows:
            table.rows.append([])
        table.rows[-1].append(self._take_text().replace("\n", " ").replace("|", "\\|"))
        table.has_head = table.has_head or is_head

    def _table(self) -> None:
        if not self._tables:
            return
        table = self._tables.pop()
        if self._tables:
            return
        caption = " ".join(filter(None, (table.caption, self._take_text().replace("\n", " "))))
        rows = [row for row in table.rows if any(row)]
        width = max(map(len, rows), default=0)
        self._blank()
        if caption:
            self._out += [escaped(caption), ""]
        if width < 2:  # noqa: PLR2004  # a table with one column is text
            for row in rows:
                self._out += [escaped(row[0].replace("\\|", "|")), ""]
            return
        full = [[*row, *[""] * (width - len(row))] for row in rows]
        if not table.has_head:
            full.insert(0, [""] * width)
        full.insert(1, ["---"] * width)
        self._out += [f"| {' | '.join(row)} |" for row in full]
        self._blank()


def _language(node: Any) -> str:
    """Return the language in the class of a code block."""
    code = node.css_first("code")
    for item in (code, node):
        for name in ((item.attributes.get("class") or "") if item is not None else "").split():
            kind, _, language = name.partition("-")
            if kind in {"language", "lang"} and language.isalnum():
                return str(language)
    return ""
