"""A Markdown text as a tree: what it shows, and that nothing but the listed nodes can come of any text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klaw_serve.rendering import TAGS, is_markdown, render

ATTRIBUTES = {"lines", "language", "align", "start", "to", "note", "done"}
MARKUP = st.lists(
    st.sampled_from(
        [
            *"#*_`~>-|[]()!<=:\\\n\t 1a",
            *("\n\n", "[[", "]]", "```", "---\n", "<br>", "<!--", "-->", "<script>", "[x] ", "&lt;"),
            *("javascript:a", "http://a", "- [ ] ", "|a|b|\n|-|-|\n"),
        ]
    ),
    max_size=60,
).map("".join)


def words(node):
    return node if isinstance(node, str) else "".join(words(each) for each in node[2:])


def walk(node):
    if isinstance(node, str):
        return
    yield node
    if node[0] != "properties":
        for each in node[2:]:
            yield from walk(each)


def shape(text):
    return [node[0] for node in render(text)]


def test_the_blocks_of_a_note_keep_their_lines():
    front = "---\ntitle: Pump\ntags:\n  - a\n  - b\n---\n"
    text = f"{front}# Pump\n\nOne\ntwo\n\n- x\n- y\n\n|a|b|\n|-|-:|\n|1|2|\n\n```py\nz\n```\n"
    found = render(text)
    assert [(node[0], node[1]["lines"]) for node in found] == [
        *(("properties", [1, 6]), ("h1", [7, 7]), ("p", [9, 10]), ("ul", [12, 14])),
        *(("table", [15, 17]), ("pre", [19, 21])),
    ]
    assert found[0][2:] == [["title", "Pump"], ["tags", "a, b"]]
    assert found[4][3][2][3] == ["td", {"align": "right"}, "2"]
    assert found[5] == ["pre", {"lines": [19, 21], "language": "py"}, "z"]


@pytest.mark.parametrize(
    ("text", "nodes"),
    [
        ("[b](b.md)", [["a", {"to": "b.md"}, "b"]]),
        ("[[B|the b]] ![[c]]", [["a", {"note": "B"}, "the b"], " ", ["a", {"note": "c"}, "c"]]),
        ("==m== a<br>b", [["mark", {}, "m"], " a", ["br", {}], "b"]),
        ("![p](https://a/p.png)", [["image", {"to": "https://a/p.png"}, "p"]]),
        ("[j](javascript:alert(1))", ["[j](javascript:alert(1))"]),
        ("<img src=x onerror=a>", ["<img src=x onerror=a>"]),
        ("a <!-- hidden --> b", ["a b"]),
        ("`<b>` &lt;", [["code", {}, "<b>"], " ", "<"]),
    ],
)
def test_a_line_has_what_was_written(text, nodes):
    ((tag, _, *found),) = render(text)
    assert tag == "p"
    assert words(["p", {}, *found]) == words(["p", {}, *nodes])
    assert [each for each in found if not isinstance(each, str)] == [
        each for each in nodes if not isinstance(each, str)
    ]


def test_tasks_and_callouts_are_recognised_at_the_start():
    tasks = render("- [ ] a\n- [x] b\n- c [x] d\n")[0]
    assert [node[1] for node in walk(tasks) if node[0] == "task"] == [{"done": False}, {"done": True}]
    assert render("> [!warning] Hot\n")[0][2][2:] == [["strong", {}, "Warning"], " ", "Hot"]


def test_a_comment_alone_and_an_empty_text_show_nothing():
    assert shape("<!-- a\nb -->\n\n# T\n") == ["h1"]
    assert shape("") == []


def test_a_text_that_is_too_long_is_shown_as_its_source():
    assert render("a " * 100_001) is None


def test_notes_and_saved_memories_are_markdown():
    paths = ["notes/a.md", "notes/B.MD", "saved/2026-01-01/0123", "notes/a.py", "papers/a.pdf"]
    assert [is_markdown(path) for path in paths] == [True, True, True, False, False]


@given(MARKUP | st.text())
def test_any_text_becomes_only_listed_nodes_with_lines_in_order(text):
    found = render(text)
    for block in found:
        for tag, attributes, *nodes in walk(block):
            assert tag in TAGS
            assert set(attributes) <= ATTRIBUTES
            assert not attributes.get("to", "").lower().startswith(("javascript:", "vbscript:", "file:", "data:text"))
            assert tag == "properties" or not [each for each in nodes if not isinstance(each, (str, list))]
    lines = [tuple(block[1]["lines"]) for block in found]
    assert lines == sorted(lines)
