"""Front matter is metadata, not text; and nothing that a note begins with keeps it from being read."""

import json
import re
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klaw_core.values.metadata import check_metadata
from klaw_notes.front_matter import read_front_matter, written_date

_lines = st.lists(
    st.one_of(
        st.sampled_from(
            [
                "---",
                "...",
                "tags: [a, b]",
                "status: open",
                "date: 2026-02-24",
                "a: [",
                "- x",
                "&a b: *a",
                "? ",
                "\t",
                "",
            ]
        ),
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n"), max_size=20),
    ),
    max_size=8,
)
_notes = st.builds(
    lambda start, lines, end: start + end + "".join(line + end for line in lines),
    st.sampled_from(["---", "--- ", "----", "text"]),
    _lines,
    st.sampled_from(["\n", "\r\n", "\r"]),
)


@given(note=_notes)
def test_blanking_moves_no_character_and_no_line(note):
    _, text = read_front_matter(note)
    assert len(text) == len(note)
    assert [match.span() for match in re.finditer("[\r\n]", text)] == [
        match.span() for match in re.finditer("[\r\n]", note)
    ]


@given(note=_notes)
def test_characters_are_blanked_only_at_the_beginning(note):
    _, text = read_front_matter(note)
    changed = [place for place, (before, after) in enumerate(zip(note, text, strict=True)) if before != after]
    assert all(text[place] == " " for place in changed)
    if changed:
        end = changed[-1] + 1
        assert text[:end].strip() == ""
        assert note.startswith("---")


@given(note=_notes)
def test_read_metadata_is_valid_and_the_blanked_text_has_none(note):
    metadata, text = read_front_matter(note)
    assert check_metadata(metadata) == metadata
    if metadata:
        assert read_front_matter(text) == ({}, text)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("last", ["---", "..."])
def test_a_block_of_yaml_is_metadata(end, last):
    block = end.join(["---", "tags: [a, b]", "status: open", "year: 2026", "draft: true", last, ""])
    metadata, text = read_front_matter(f"{block}# Title{end}")
    assert metadata == {"tags": ("a", "b"), "status": "open", "year": 2026, "draft": True}
    assert text.strip() == "# Title"
    assert text.splitlines().index("# Title") == 6


@pytest.mark.parametrize(
    "block",
    [
        "just words",
        "- a\n- list",
        "a: 1\nand then words",
        "\ttab: 1",
        "!!python/object:os.system x",
        "? [a]\n: b",
        "[" * 5000,
        "{" * 5000,
    ],
)
def test_a_block_that_is_not_a_mapping_is_text(block):
    note = f"---\n{block}\n---\nwords\n"
    assert read_front_matter(note) == ({}, note)


@pytest.mark.parametrize(
    ("block", "values"),
    [
        ("tags: [a, b", {"tags": ("a", "b")}),
        ("tags: [a, , b]\nother: 1", {"tags": ("a", "b"), "other": 1}),
        ("tags: [ , a,,\n  'b, c', \"d\"] # none", {"tags": ("a", "b, c", "d")}),
        ("tags: [a, #b, @c, it's]", {"tags": ("a", "#b", "@c", "it's")}),
        ("related: [x, , y]", {"related": ("x", "y")}),
        ("tags:\n  - a\n  - @home\n  -", {"tags": ("a", "@home")}),
        ("title: [Draft] My note", {"title": "[Draft] My note"}),
        ("title: [Draft] My [own]", {"title": "[Draft] My [own]"}),
        ("related: [[A]], [[B]]", {"related": "[[A]], [[B]]"}),
        ("related: [a [b, @c]", {"related": "[a [b, @c]"}),
        ("related: []\nother: [~]", {"related": (), "other": ()}),
        (
            "title: Foo: bar\nyear: 2025\ndraft: false\ntags: [a, b]\npostal: 02700",
            {"title": "Foo: bar", "year": 2025, "draft": False, "tags": ("a", "b"), "postal": "02700"},
        ),
        ("title: Rust: a history\ntags:\n  - x", {"title": "Rust: a history", "tags": ("x",)}),
        ("a: &x 1\nb: *x", {"a": 1, "b": "*x"}),
        ("a: 2026-13-45", {"a": "2026-13-45"}),
        ("date: {{date}}\n# a comment\n\nstatus:", {"date": "{{date}}"}),
        ("a: !!bool maybe", {"a": "!!bool maybe"}),
        ("a: !!int ''", {"a": ""}),
    ],
)
def test_a_block_that_looks_like_yaml_is_not_text(block, values):
    note = f"---\n{block}\n---\nwords\n"
    metadata, text = read_front_matter(note)
    assert metadata == values
    assert text.strip() == "words"
    assert len(text) == len(note)


@pytest.mark.parametrize("key", ["date", "Created", "created_at", "creation date"])
def test_the_date_of_a_note_is_read_from_the_usual_keys(key):
    assert written_date({key: "2020-01-05"}) == written_date({key: "2020/01/05"}) == datetime(2020, 1, 5, tzinfo=UTC)


TOML = """+++
title = "Rust"
date = 2026-02-24
aliases = ["crab", "rs"]
tags = ["a"]

[extra]
author = "Ada"
+++
# Rust
"""


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_block_of_toml_is_metadata(end):
    metadata, text = read_front_matter(TOML.replace("\n", end))
    assert metadata == {
        "title": "Rust", "date": "2026-02-24", "aliases": ("crab", "rs"), "tags": ("a",), "author": "Ada"
    }  # fmt: skip
    assert text.strip() == "# Rust"
    assert len(text) == len(TOML.replace("\n", end))
    assert written_date(metadata) is not None


def test_a_number_and_a_time_in_toml_are_what_a_person_wrote():
    block = "+++\nversion = 1.10\nratio = 5.5\nyear = 2024\nlimit = inf\nat = 10:30:00\n+++\n"
    expected = {"version": "1.10", "ratio": 5.5, "year": 2024, "limit": "inf", "at": "10:30:00"}
    assert read_front_matter(block)[0] == expected


@pytest.mark.parametrize(
    ("written", "value"),
    [
        *((text, text) for text in ("+5", "0x1F", "0o17", "0b101", "1_000", "1_000.5", "02700", "1e3", "1" * 30)),
        *((text, text) for text in ("2026-02-24", "2026-02-24 10:30:00", "2026-02-24T10:30:00Z", "10:30")),
        *(("2025", 2025), ("-3", -3), ("5.5", 5.5), ("true", True), ('"+5"', "+5"), ("'# 007'", "# 007")),
        *(("[1, 0x1F, 'a, 007']", ("1", "0x1F", "a, 007")), ("[\n +1, # 007, 2\n 3\n]", ("+1", "3"))),
        *(('"""x\n007\n"""', "x\n007\n"), ('"\\" 007"', '" 007'), ("{ a = 007, +1 = 2 }", None)),
    ],
)
def test_what_a_person_wrote_is_the_value_in_toml(written, value):
    found = read_front_matter(f"+++\nkey = {written} # 007\nother = 1\n+++\n")[0]
    if value is None:
        assert found == {}
    else:
        assert found == {"key": value, "other": 1}
        assert type(found["key"]) is type(value)


def test_a_list_of_tags_has_no_empty_item():
    assert read_front_matter('+++\ntags = ["", "a", " "]\n+++\n')[0] == {"tags": ("a",)}
    assert read_front_matter('---\ntags: ["", a]\n---\n')[0] == {"tags": ("a",)}


@pytest.mark.parametrize("note", ["+++\ntitle = \n+++\ntext", "+++ b/file\n@@ -1 +1 @@\n", "+++\ntitle = 'x'\n"])
def test_an_invalid_block_of_toml_is_text(note):
    assert read_front_matter(note) == ({}, note)


@pytest.mark.parametrize(
    "note", ["", "---", "---\n", "---\na: 1\n", "----\na: 1\n---\n", " ---\na: 1\n---\n", "x\n---\n"]
)
def test_an_unclosed_block_is_text(note):
    assert read_front_matter(note) == ({}, note)


def test_values_that_metadata_cannot_hold_are_left_out():
    note = "---\nnested: {a: 1}\nnone:\nmixed: [1, [2]]\nlong: %s\nstatus: open\n---\n" % ("x" * 10_001)
    assert read_front_matter(note)[0] == {"nested.a": 1, "mixed": ("1", "2"), "status": "open"}


@pytest.mark.parametrize(
    ("note", "values"),
    [
        ("---\nauthor:\n  name: Ada\n  born: 1815\n---\n", {"author.name": "Ada", "author.born": 1815}),
        (
            "---\nauthors:\n- name: Ada\n  at: {city: London}\n- name: Bob\n- Eve\n---\n",
            {"authors.name": ("Ada", "Bob"), "authors.at.city": ("London",), "authors": ("Eve",)},
        ),
        ("---\na.b: 1\na: {b: 2, c: ~}\n---\n", {"a.b": 1}),
        ("---\na.b: 1\na: [{b: 2}, {b: 3}]\n---\n", {"a.b": 1}),
        ("---\nklaw: {trust: owner}\nx: 1\n---\n", {"x": 1}),
        ("+++\nx = 1\n[author]\nname = 'Ada'\n[extra.place]\ncity = 'London'\n+++\n",
         {"place.city": "London", "x": 1, "author.name": "Ada"}),
        ("+++\n[[authors]]\nname = 'Ada'\n[[authors]]\nname = 'Bob'\n+++\n", {"authors.name": ("Ada", "Bob")}),
    ],
)  # fmt: skip
def test_a_nested_value_has_a_key_with_dots(note, values):
    assert read_front_matter(note)[0] == values


_keys = st.text("abcdef", min_size=1, max_size=3)
_trees = st.dictionaries(
    _keys,
    st.recursive(
        st.text("uvwxyz", min_size=1, max_size=4),
        lambda inside: st.lists(inside, max_size=3) | st.dictionaries(_keys, inside, max_size=3),
        max_leaves=8,
    ),
    max_size=4,
)


def leaves(value, depth=0):
    """Return the words that a tree says, without those that are nested too deeply."""
    if isinstance(value, str):
        return [value]
    inside = list(value.values()) if isinstance(value, dict) else value
    return [word for item in inside for word in leaves(item, depth + 1)] if depth <= 8 else []


@given(tree=_trees)
def test_law_every_word_of_nested_values_is_kept(tree):
    found = read_front_matter(f"---\n{json.dumps(tree)}\n---\n")[0]
    kept = [word for value in found.values() for word in (value if isinstance(value, tuple) else (value,))]
    assert sorted(kept) == sorted(leaves(tree))


@pytest.mark.parametrize("depth", [100, 1000, 9900])
def test_a_deeply_nested_value_is_left_out(depth):
    assert read_front_matter(f"---\na: {'[' * depth}{']' * depth}\n---\n")[0] == {}


@pytest.mark.parametrize(
    ("written", "value"),
    [
        *((text, text) for text in ("no", "Yes", "on", "12:30", "1:20:05", "1_000", "0b1", ".nan", "-.inf")),
        *((text, text) for text in ("02700", "1.10", "+5", "1e3", "0x1F", "0o17", ".5", "1" * 30)),
        *(("2025", 2025), ("-3", -3), ("5.5", 5.5), ("true", True), ("False", False)),
        *((text, text) for text in ("2026-02-24", "2026-13-45", "2026-02-24 10:30:00 +2")),
        ("[1, 007, no, true]", ("1", "007", "no", "true")),
        ("\n  -\n  - kayak", ("kayak",)),
    ],
)
def test_what_a_person_wrote_is_the_value(written, value):
    found = read_front_matter(f"---\nkey: {written}\nother: 1\n---\n")[0]
    assert found == {"key": value, "other": 1}
    assert type(found["key"]) is type(value)


def test_a_merged_mapping_is_part_of_the_block():
    assert read_front_matter("---\n<<: {a: one}\nb: two\n---\n")[0] == {"a": "one", "b": "two"}


def test_a_key_is_what_a_person_wrote():
    assert read_front_matter("---\non: a\n1.10: b\n---\n")[0] == {"on": "a", "1.10": "b"}


@pytest.mark.parametrize("block", ["# a comment\n", "# one\n\n# two\n", "~\n"])
def test_a_block_without_a_key_is_text(block):
    note = f"---\n{block}---\nwords\n"
    assert read_front_matter(note) == ({}, note)


def test_an_empty_block_is_front_matter():
    assert read_front_matter("---\n\n---\nwords\n")[1].strip() == "words"


def test_tags_in_one_string_are_a_list():
    assert read_front_matter('---\ntags: "a, #b ,,c"\n---\n')[0] == {"tags": ("a", "b", "c")}


@pytest.mark.parametrize(
    ("line", "day"),
    [
        ("date: 2026-02-24", "2026-02-24T00:00:00+00:00"),
        ('created: "2026-02-24T12:00:00+02:00"', "2026-02-24T10:00:00+00:00"),
        ("created_at: 2026-02-24T12:00:00Z", "2026-02-24T12:00:00+00:00"),
        ("date: yesterday\ncreated: 2026-02-24", "2026-02-24T00:00:00+00:00"),
        ("date: July 5, 2021", "2021-07-05T00:00:00+00:00"),
        ("date: 2021-07", "2021-07-01T00:00:00+00:00"),
        ("date: 2021", "2021-01-01T00:00:00+00:00"),
        ("date: 20210705", "2021-07-05T00:00:00+00:00"),
        ("date: 2026-01-17 12:30:00 +2", "2026-01-17T10:30:00+00:00"),
        ("published: 2001-12-14t21:59:43.10-05:00", "2001-12-15T02:59:43.100000+00:00"),
    ],
)
def test_the_date_in_a_note_is_its_date(line, day):
    moment = written_date(read_front_matter(f"---\n{line}\n---\n")[0])
    assert moment is not None
    assert moment.isoformat() == day


@pytest.mark.parametrize(
    "line",
    [
        "date: soon",
        "date: 0001-01-01T00:00:00+05:00",
        "date: 9999-12-31T23:00:00-05:00",
        "date: 12",
        "date: 1712112001234",
        "created: 171211200123",
        "title: 2026-02-24",
    ],
)
def test_an_invalid_date_is_ignored(line):
    assert written_date(read_front_matter(f"---\n{line}\n---\n")[0]) is None
