"""The chunker ``code``: splits source code between functions and classes, at line ends; headings are paths of symbols.

A class that fits in a chunk is not split; otherwise each method is a chunk. Comments belong to the definition below
them. Code without an installed grammar, or that takes the parser too long, is split as plain text.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import import_module
from itertools import accumulate, chain
from typing import Any

from attrs import define, evolve, field, frozen

from klaw_core import Heading, HeadingChunker, PlainOptions, Span, TokenCounter, VariantChunker, line_starts
from klaw_documents.chunkers.languages import LANGUAGES
from klaw_documents.chunkers.sections import Section, cut_sections

_MAX_CHARACTERS = 2_000_000  # larger files are usually data or generated
_MAX_STEPS = 20_000  # calls of the parser's progress callback, about one per 100 operations
_MAX_NESTING = 6  # nested symbols
_MAX_SEARCH_DEPTH = 6  # levels of the tree between a symbol and its nested symbols
_MAX_WRAPPED = 8  # children of a node around a definition: the decorators and the definition
_MAX_NAME_CHARACTERS = 100
_CHARACTERS_PER_TOKEN = 16

_DEFINITION_NAMES = (
    # Python, PHP, C and C++, Bash
    "function_definition class_definition method_declaration namespace_definition struct_specifier class_specifier "
    "union_specifier enum_specifier "
    # JavaScript and TypeScript
    "function_declaration generator_function_declaration class_declaration abstract_class_declaration "
    "method_definition interface_declaration enum_declaration type_alias_declaration internal_module "
    "variable_declarator "
    # Go, Rust
    "type_declaration function_item impl_item struct_item enum_item trait_item union_item mod_item macro_definition "
    # Java, C#
    "record_declaration constructor_declaration annotation_type_declaration struct_declaration namespace_declaration "
    "trait_declaration "
    # Ruby
    "method singleton_method class module singleton_class"
)
_DEFINITIONS = frozenset(_DEFINITION_NAMES.split())
_NEED_BODY = frozenset({"struct_specifier", "class_specifier", "union_specifier", "enum_specifier"})
_FUNCTIONS = frozenset({"arrow_function", "function_expression", "function", "generator_function", "class"})
# Nodes before a definition that belong to it.
_ABOVE = re.compile(r"comment|attribute_item|attribute_list|decorator|annotation")


@frozen(eq=False)
class CodeChunker(VariantChunker, HeadingChunker):
    """Splits source code; ``language`` is one of LANGUAGES, or empty for an unknown language."""

    options: PlainOptions = field(factory=PlainOptions)
    language: str = ""

    def variant(self, name: str, /) -> CodeChunker:
        """Return the chunker of a language."""
        return evolve(self, language=name if name in LANGUAGES else "")

    def split(self, text: str, count_tokens: TokenCounter, /) -> Iterator[Span]:
        """Yield the spans of ``text`` in order. Time is linear in the text."""
        sections = self._sections(text, count_tokens, self.options.max_tokens)
        yield from cut_sections(text, sections, self.options, count_tokens, "code")

    def headings(self, text: str, /) -> tuple[Heading, ...]:
        """Return the functions, classes and methods. Code between them ends a section, and has no name."""
        return tuple(self._headings(text))

    def _headings(self, text: str) -> Iterator[Heading]:
        starts = line_starts(text)
        above: tuple[str, ...] = ()
        last = 0
        for section in self._sections(text, lambda lines: [1] * len(lines), 1):
            path, part = section.heading, text[section.start : section.end]
            new = next((depth for depth, name in enumerate(path) if above[depth : depth + 1] != (name,)), len(path))
            line = bisect_right(starts, section.start + len(part) - len(part.lstrip()))
            names = [(path[depth], " > ".join(path[: depth + 1])) for depth in range(new, len(path))]
            if line > last and part.strip() and (names or above):
                yield Heading(line, new + 1, tuple(dict.fromkeys(chain.from_iterable(names))))
                last = line
            above = path

    def _sections(self, text: str, count_tokens: TokenCounter, max_tokens: int) -> Sequence[Section]:
        grammar = _grammar(self.language) if 0 < len(text) <= _MAX_CHARACTERS and not text.isspace() else None
        if grammar is None or (root := _root(grammar, text)) is None:
            return [Section(0, len(text))]
        lines = text.split("\n")
        sizes = count_tokens([f"{line}\n" for line in lines])
        largest = [
            max(size, -(-(len(line) + 1) // _CHARACTERS_PER_TOKEN)) for size, line in zip(sizes, lines, strict=True)
        ]
        outline = _Outline(lines, list(accumulate(largest, initial=0)), max_tokens)
        outline.add(root, (), 0, len(lines))
        return outline.sections(len(text))


@cache
def _grammar(language: str) -> Any:
    """Return the grammar of a language, or None if it is not installed."""
    if not language:
        return None
    known = LANGUAGES[language]
    try:
        tree_sitter: Any = import_module("tree_sitter")
        grammar: Any = import_module(known.package)
    except ImportError:
        return None
    return tree_sitter.Language(getattr(grammar, known.function)())


def _root(grammar: Any, text: str) -> Any:
    """Return the root of the syntax tree, or None if the parser takes too many steps."""
    steps = 0

    def is_too_long(*_state: object) -> bool:
        nonlocal steps
        steps += 1
        return steps > _MAX_STEPS

    data = text.encode("utf-8", "replace")
    parser = import_module("tree_sitter").Parser(grammar)  # one per text, because threads cannot share a parser
    try:
        tree = parser.parse(lambda offset, _point: data[offset : offset + 65536], progress_callback=is_too_long)
    except ValueError:  # raised if the parser was stopped
        return None
    return None if tree is None else tree.root_node


@define(eq=False)
class _Outline:
    """The parts of a text in order: (first row, row after the last one, path of symbols, whether its symbol begins)."""

    lines: Sequence[str]
    sizes: Sequence[int]  # tokens of all rows before each row
    max_tokens: int
    parts: list[tuple[int, int, tuple[str, ...], bool]] = field(factory=list, init=False)

    def add(self, node: Any, path: tuple[str, ...], first: int, last: int) -> None:
        """Add the rows from ``first`` to ``last`` of a node: its symbols, and the text between them."""
        row = first
        for symbol, top, name in _symbols(node, first):
            begin, end = max(top, row), min(_row_after(symbol), last)
            if end <= begin:
                continue
            self._append(row, begin, path, begins=row == first)
            inner = (*path, name)
            if self.sizes[end] - self.sizes[begin] <= self.max_tokens or len(inner) >= _MAX_NESTING:
                self._append(begin, end, inner, begins=True)
            else:
                self.add(symbol, inner, begin, end)
            row = end
        self._append(row, last, path, begins=row == first)

    def _append(self, first: int, last: int, path: tuple[str, ...], *, begins: bool) -> None:
        """Append rows; rows with only closing brackets are added to the previous part."""
        if first >= last:
            return
        text = self.lines[first:last]
        if self.parts and not any(any(map(str.isalnum, line)) for line in text):
            row, _, above, began = self.parts[-1]
            self.parts[-1] = (row, last, above, began)
        else:
            self.parts.append((first, last, path, begins))

    def sections(self, length: int) -> list[Section]:
        """Return the parts as sections of the text."""
        starts = [*accumulate((len(line) + 1 for line in self.lines), initial=0)]
        return [
            Section(starts[first], min(starts[last], length), path, int(begins))
            for first, last, path, begins in self.parts
        ]


def _symbols(node: Any, first: int) -> Iterator[tuple[Any, int, str]]:
    """Yield the outermost definitions below a node: each with its first row and its name.

    The first row is that of the comments above the definition.
    """
    pending = [(child, 1) for child in reversed(node.children)]
    above, free = -1, first  # the first row of the comments above; rows before `free` belong to another definition
    while pending:
        child, depth = pending.pop()
        if not child.is_named:
            continue
        row = child.start_point[0]
        if _ABOVE.search(child.type) and child.type not in _DEFINITIONS:
            above = row if above < 0 and row >= free else above
            continue
        if child.type in _DEFINITIONS and (name := _name(child)):
            top = _outermost(child, node)
            yield child, above if 0 <= above <= top else top, name
            above, free = -1, _row_after(child)
        elif depth < _MAX_SEARCH_DEPTH:
            # A node around a definition, such as `export` or a decorator, starts in the same row.
            pending += [(inner, depth + 1) for inner in reversed(child.children)]
            continue
        above, free = -1, max(free, _row_after(child))


def _outermost(child: Any, node: Any) -> int:
    """Return the first row of a definition including decorators, ``export``, and the parameters of a template."""
    row = int(child.start_point[0])
    outer = child.parent
    while (
        outer is not None
        and outer.id != node.id
        and _row_after(outer) == _row_after(child)
        and len(outer.named_children) <= _MAX_WRAPPED
    ):
        row = int(outer.start_point[0])
        outer = outer.parent
    return row


def _row_after(node: Any) -> int:
    """Return the row after the last row of a node."""
    row, column = map(int, node.end_point)
    return row + int(column > 0)


def _name(node: Any) -> str:
    """Return the name of a definition; empty if the node is not a definition."""
    kind = node.type
    if kind in _NEED_BODY and node.child_by_field_name("body") is None:
        return ""
    if kind == "variable_declarator":
        value = node.child_by_field_name("value")
        if value is None or value.type not in _FUNCTIONS:
            return ""
    if kind == "impl_item":
        trait, of = node.child_by_field_name("trait"), node.child_by_field_name("type")
        return _short(" for ".join(_decoded(part) for part in (trait, of) if part is not None))
    name = node.child_by_field_name("name")
    if name is None and kind == "type_declaration":  # Go: `type Name struct`
        spec = next((child for child in node.named_children if child.child_by_field_name("name")), None)
        name = None if spec is None else spec.child_by_field_name("name")
    if name is None:
        name = _declared(node)
    if name is None:
        return ""
    receiver = node.child_by_field_name("receiver")  # Go: `func (s *Server) Start()`
    owner = re.sub(r"[()*]", " ", _decoded(receiver)).split() if receiver is not None else []
    return _short(f"{owner[-1]}.{_decoded(name)}" if owner else _decoded(name))


def _declared(node: Any) -> Any:
    """Return the name in a declarator of C or C++, or None."""
    found = node.child_by_field_name("declarator")
    for _ in range(_MAX_SEARCH_DEPTH):
        inner = None if found is None else found.child_by_field_name("declarator")
        if inner is None:
            break
        found = inner
    return found


def _decoded(node: Any) -> str:
    return str(node.text.decode("utf-8", "replace"))


def _short(name: str) -> str:
    return " ".join(name.split())[:_MAX_NAME_CHARACTERS]
