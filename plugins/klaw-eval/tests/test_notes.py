"""A document becomes a note with one heading at most, and none of its words is lost."""

from __future__ import annotations

import pytest
from markdown_it import MarkdownIt

from klaw_eval.notes import as_note, note_path, write_notes
from klaw_eval.values import Page

LOOKS_LIKE_MARKDOWN = [
    "# not a heading",
    "- not a list",
    "1. not a list",
    "12) not a list",
    "> not a quote",
    "```\nnot code\n```",
    "~~~ not code",
    "    not code, though indented",
    "--- \ntitle: not front matter\n---",
    "a line\n===",
    "a line\n---",
    "| a | b |\n|---|---|\n| 1 | 2 |",
    "<div>\nnot HTML",
    "[a]: not a link",
    "* * *",
    "+ not a list",
]


@pytest.mark.parametrize("text", LOOKS_LIKE_MARKDOWN)
def test_text_that_looks_like_markdown_is_a_paragraph(text):
    tokens = MarkdownIt("commonmark").enable("table").parse(as_note(Page("1", text)))

    assert [token.type for token in tokens] == ["paragraph_open", "inline", "paragraph_close"]
    assert sorted(tokens[1].content.replace("\\", "").split()) == sorted(text.split())


def test_a_title_is_the_only_heading():
    note = as_note(Page("1", "One.\n\n# Two.\n \nThree\nand four.", title="The\n# title"))

    assert note == "# The # title\n\nOne.\n\n\\# Two.\n\nThree and four.\n"


def test_a_note_without_a_title_has_no_heading():
    assert as_note(Page("1", "One.")) == "One.\n"


def test_characters_that_a_file_cannot_contain_become_spaces():
    assert as_note(Page("1", "a\ud800b\0c")) == "a b c\n"


def test_ids_never_reach_the_file_system(tmp_path):
    pages = [Page("../../etc/passwd", "a"), Page("a/b", "b"), Page("x" * 5_000, "c"), Page("\0", "d")]

    write_notes(pages, tmp_path)

    found = sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.md"))
    assert found == [note_path(number) for number in range(4)]
