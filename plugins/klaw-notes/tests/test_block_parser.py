"""The faster block parser finds the blocks of markdown-it-py, whatever the text."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from mdit_py_plugins.front_matter import front_matter_plugin

from klaw_notes.chunking.block_parser import block_tokens

#: What can open, continue or end a block, and what only looks like it.
PARTS = (
    *("a", "b c", "Word. ", "é", "。", "\\|", "k: v", "10", "[x]: y", "\u00a0", "\x0c", "\0"),
    *("\n", "\n", "\n", "\n\n", "\r\n", "\r", "\t", "  ", "    "),
    *("- ", "* ", "+ ", "1. ", "2) ", "1", ".", "-", "=", "...", "> ", ">", "#", " ## ", "#" * 7),
    *("```", "~~~", "---", "===", "***", "___", "|", "|-|-|", "| a | b |", "--|--", ":-:", "<div>", "<!--", "-->"),
)
NOTES = sorted((Path(__file__).parents[3] / "docs").rglob("*.md"))


def plain() -> MarkdownIt:
    """Return markdown-it-py with the same rules, as it is."""
    parser = MarkdownIt("commonmark").enable("table").use(front_matter_plugin)
    parser.core.ruler.enableOnly(["normalize", "block"])
    parser.block.ruler.disable("reference")
    return parser


def blocks_of(tokens: Iterable[Any]) -> list[tuple[object, ...]]:
    """Return what the chunker reads of tokens: kinds, lines and levels, and the text of headings."""
    found: list[tuple[object, ...]] = []
    before = ""
    for token in tokens:
        if token.type == "inline":
            if before == "heading_open":
                found.append(("text", token.content))
        elif token.type not in {"heading_close", "paragraph_close"}:
            found.append((token.type, token.tag, token.map, token.level))
        before = token.type
    return found


@given(st.lists(st.sampled_from(PARTS), max_size=24).map("".join))
@example("- a-->|\n1. [x]: y|k: v")  # a list whose first line the rule of front matter takes
@example("> a\n\nb\n===\n")
@example("> - a\nb\n---\n")
@example("a\n| b |\n| - |\n")
@example("  \n \t")
def test_the_blocks_are_those_of_markdown_it(text: str) -> None:
    assert blocks_of(block_tokens(text)) == blocks_of(plain().parse(text))


@given(st.lists(st.sampled_from(PARTS), max_size=24).map("".join))
@example("> a\nb\n> c\n\n- d\n  e\n===\n")
def test_the_texts_are_those_of_markdown_it(text: str) -> None:
    assert texts_of(block_tokens(text, with_text=True)) == texts_of(plain().parse(text))


def texts_of(tokens: Iterable[Any]) -> list[tuple[object, ...]]:
    """Return the texts of paragraphs, headings and cells with their lines."""
    return [(token.content, token.map) for token in tokens if token.type == "inline"]


@pytest.mark.parametrize("note", NOTES, ids=lambda note: note.name)
def test_the_blocks_of_real_pages_are_those_of_markdown_it(note: Path) -> None:
    text = note.read_text(encoding="utf-8")

    found = blocks_of(block_tokens(text))

    assert len(found) > 1
    assert found == blocks_of(plain().parse(text))


def test_rules_are_not_asked_about_lines_that_they_cannot_match() -> None:
    text = "Words.\n" * 2_000 + "\n"

    tokens = block_tokens(text)

    assert [(token.type, token.map) for token in tokens] == [("paragraph_open", [0, 2_000])]
