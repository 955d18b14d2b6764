"""The headings by which people name sections: those of the parser, wherever other parts of a text look like one."""

import pytest
from hypothesis import given
from markdown_it import MarkdownIt
from mdit_py_plugins.front_matter import front_matter_plugin

from klaw_notes.chunking import MarkdownChunker
from klaw_testing import laws
from klaw_testing.chunker import hard_documents, markdown_documents

PARSER = MarkdownIt("commonmark").enable("table").use(front_matter_plugin)


def headings(text):
    return MarkdownChunker().headings(text)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("## Usage\n\n````md\n```sh\n# install it\n```\n````\n\n## Next\n", [1, 9]),
        ("## Usage\n\n~~~md\n```\n# install\n~~~\n\n## Next\n", [1, 8]),
        ("## Usage\n\n<!--\n## Old\n-->\n\n## Next\n", [1, 7]),
        ("Usage\n=====\n\ntext\n\nNext\n-----\n", [1, 6]),
        ("## Usage\n\n1. ```\n   # in fence\n   ```\n\n## Next\n", [1, 7]),
        ("---\ntitle: x\n# a comment\n---\n# Usage\n", [5]),
        ("# A\r\n\r\ntext\r\n## B\r\n", [1, 4]),
        ("# A\r\r## B\r", [1, 3]),
        ("> # In a quote\n\n- # In a list\n\n# Usage\n", [5]),
        ("\ufeff# Usage\n", [1]),
    ],
)
def test_a_heading_is_what_the_parser_says(text, lines):
    assert [heading.line for heading in headings(text)] == lines


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("# Plans", ("Plans",)),
        ("## Plans ##", ("Plans",)),
        (
            "# [1.13.3](https://example.org/c) (2026-01-20)",
            ("1.13.3 (2026-01-20)", "[1.13.3](https://example.org/c) (2026-01-20)"),
        ),
        ("## Getting started {#start-here}", ("Getting started", "start-here", "Getting started {#start-here}")),
        (
            "## Pandoc's {.unnumbered #other key=value}",
            ("Pandoc's", "other", "Pandoc's {.unnumbered #other key=value}"),
        ),
        ("## Using `fromCfn*()` methods", ("Using fromCfn*() methods", "Using `fromCfn*()` methods")),
        ("# A **bold** ![cat](cat.png) one", ("A bold  one", "A **bold** ![cat](cat.png) one")),
        (
            f"# {'long ' * 60}[end](https://example.org)",
            (f"{'long ' * 60}end", f"{'long ' * 60}[end](https://example.org)"),
        ),
        ("#", ()),
    ],
)
def test_a_heading_is_called_by_its_visible_text_its_source_and_its_id(line, names):
    (heading,) = headings(f"{line}\n")
    assert heading.names == names


@laws.law
@given(hard_documents() | markdown_documents())
def test_headings_agree_with_the_tokens_of_the_parser(text):
    tokens = [token for token in PARSER.parse(text.removeprefix("\ufeff")) if token.type == "heading_open"]
    expected = [(token.map[0] + 1, int(token.tag[1:])) for token in tokens if token.level == 0]
    assert [(heading.line, heading.level) for heading in headings(text)] == expected


def test_a_link_in_a_heading_may_be_defined_elsewhere():
    (heading,) = headings("## The [Reply][Generic] of `f`\n\n[Generic]: #generic\n")
    assert heading.names[0] == "The Reply of f"
