"""What is named like the question comes first, and lists of references do not."""

import re
from datetime import UTC, datetime

import pytest

from klaw_core import Chunk, Memory, StoredChunk, load_config
from klaw_rerank_basic.definition import Definitions, is_listing
from klaw_rerank_basic.plugin import NAMES

MONDAY = datetime(2026, 11, 23, tzinfo=UTC)
LEADERS = "\n".join(f"HIST{name} . . . . . . . . . {page}" for page, name in enumerate("ABCDEFGH"))
LINKS = "\n".join(f"- [Page {number}](./page{number}.md)" for number in range(8))
PROSE = "HISTCONTROL decides what is kept.\nSee [the manual](m.md) for more.\nIt is a list.\n1. One\n2. Two"


def stored(text="", path="docs/a.md", heading=(), **metadata):
    chunk = Chunk("id", text, 0, len(text), 1, 1, heading, text, "hash")
    return StoredChunk(1, chunk, path, "a", MONDAY, metadata=metadata)


@pytest.mark.parametrize(
    ("question", "has"),
    [
        ("Write-Plugin", {"path": "docs/guides/Write-Plugin.md"}),
        ("write plugin", {"path": "docs/guides/Write-Plugin.md"}),
        ("Prototype Poisoning", {"heading": ("Guides", "Prototype Poisoning")}),
        ("ConcurrentHashMap.computeIfAbsent", {"heading": ("ConcurrentHashMap", "computeIfAbsent")}),
        ("computeIfAbsent", {"heading": ("Map", "`computeIfAbsent(key, function)`")}),
        ("fs.readFile", {"heading": ("fs.readFile(path[, options], callback)",)}),
        ("iter_params", {"heading": ("def iter_params(self):",)}),
        ("The Left Hand of Darkness", {"title": "The left hand of darkness"}),
        ("Krabat", {"aliases": ("Krabat", "Preussler")}),
        ("krabat", {"aliases": ("Krabat", "Preussler")}),
        ("bread", {"path": "docs/Bread.md"}),
    ],
)
def test_an_equal_name_title_heading_or_symbol_is_the_definition(question, has):
    assert re.search(NAMES, question, re.IGNORECASE)
    assert Definitions().prefer(question).holds(stored(**has))
    assert not Definitions().prefer(question).holds(stored("Uses " + question, heading=("Uses of " + question,)))


@pytest.mark.parametrize(
    "question",
    [
        "where is computeIfAbsent defined?",
        "Where's the function computeIfAbsent implemented?",
        "where do we define computeIfAbsent",
        "where is the computeIfAbsent method declared",
        "definition of computeIfAbsent",
        "show me the implementation of the function computeIfAbsent",
    ],
)
def test_a_question_for_the_place_of_a_definition_asks_for_the_name(question):
    assert re.search(NAMES, question, re.IGNORECASE)
    assert Definitions().prefer(question).holds(stored(heading=("def computeIfAbsent(self):",)))
    assert not Definitions().prefer(question).holds(stored("where is computeIfAbsent defined?"))


@pytest.mark.parametrize("question", ["when does the ferry leave?", "?", "", "a b c d e f g"])
def test_questions_that_are_no_name_are_left_alone(question):
    assert not re.search(NAMES, question, re.IGNORECASE)


@pytest.mark.parametrize(
    "text",
    [
        "HISTCONTROL\nA list of values that control how commands are saved.",
        "HISTCONTROL\n: A list of values that control how commands are saved.",
        ".. glossary::\n\n    histcontrol\n        A list of values that control how commands are saved.",
        "    def histcontrol(self):\n        pass",
        ".. envvar:: HISTCONTROL\n\n   What is kept.",
        "Text.\n\n.. autofunction:: histcontrol\n",
        "   .. py:method:: async bash.History.histcontrol(self, *, keep=True)\n",
        ".. option:: --histcontrol",
    ],
)
def test_a_term_alone_on_a_line_and_a_defined_symbol_are_definitions(text):
    assert Definitions().prefer("HISTCONTROL").holds(stored(text))
    assert not Definitions().prefer("HISTCONTROL").holds(stored(f"We set HISTCONTROL\nonce. {text[20:]}"))
    assert not Definitions().prefer("HISTCONTROL").holds(stored(f"HISTCONTROL . . . . . . 84\n{LEADERS}"))


def test_a_question_of_signs_names_nothing():
    assert Definitions().prefer("-- ?!") is None


@pytest.mark.parametrize(
    "listing",
    [
        stored(LEADERS),
        stored(LINKS),
        stored("x", path="api/class-use/HttpClient.html"),
        stored("x", path="api/index-all.html"),
        stored("x", heading=("Uses of Class java.net.http.HttpClient",)),
    ],
)
def test_index_pages_and_lists_of_links_are_listings(listing):
    assert is_listing(listing)
    assert not Definitions().prefer("HttpClient").holds(listing)


@pytest.mark.parametrize("text", ["", PROSE, "[one](a.md)", "Wait . . . . what?\nYes.\nNo.\nPerhaps.\nWell."])
def test_prose_is_no_listing(text):
    assert not is_listing(stored(text))


def test_the_definition_outranks_its_uses(tmp_path):
    config = load_config(data_dir=tmp_path / "data", overrides={"memory": {"embedding": {"type": "none"}}})
    notes = tmp_path / "docs"
    notes.mkdir()
    (notes / "Write-Plugin.md").write_text("# How to\n\nA plugin is a function. Read on.\n", "utf-8")
    for name in ("a", "b", "c"):
        uses = "\n\n".join(f"## Write plugin {name} {number}\n\nwrite plugin, write plugin." for number in range(3))
        (notes / f"{name}.md").write_text(f"# Write plugin uses\n\n{uses}\n", "utf-8")
    with Memory.open(config) as memory:
        memory.index(notes)
        results = memory.search("Write-Plugin")
    assert results[0].path == "docs/Write-Plugin.md"
    assert "definition" in {part.component for part in results[0].explain}


SHORT = "### Other\n\nSome text.\n\n### `onRequest` ###\n```js\n# inside\n```\n"


def test_the_heading_of_a_short_section_in_a_chunk_is_a_name():
    assert Definitions().prefer("onRequest").holds(stored(SHORT))
    assert Definitions().prefer("other").holds(stored(SHORT, "docs/a.html"))


def test_a_comment_in_code_is_no_heading():
    assert not Definitions().prefer("inside").holds(stored(SHORT))
    assert not Definitions().prefer("other").holds(stored(SHORT, "docs/a.py"))
