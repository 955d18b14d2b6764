"""One entry of a JSON text with comments is added, changed and removed; nothing else changes."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klaw_tools.jsonc import parse, with_entry

SERVER = {"command": "klaw", "args": ["mcp"]}
SPACE = st.sampled_from(("", " ", "\n", "\n\t", "  // a note, {\n", ' /* a " note */ '))
LEAF = st.one_of(st.integers(), st.booleans(), st.none(), st.text(max_size=5), st.sampled_from(("//", "/*", ",}", '"')))


@st.composite
def texts(draw):
    """A text of an object, as people write them, and the notes in it."""

    def written(depth):
        if depth > 3 or draw(st.booleans()):
            return json.dumps(draw(LEAF))
        if draw(st.booleans()):
            return f"[{draw(SPACE)}{written(depth + 1)}{draw(SPACE)}]"
        return members(depth + 1)

    def members(depth):
        names = draw(st.lists(st.sampled_from(("servers", "theme", 'a"b', "é")), unique=True, max_size=3))
        parts = [f"{draw(SPACE)}{json.dumps(name)}{draw(SPACE)}:{draw(SPACE)}{written(depth)}" for name in names]
        last = "," if parts and draw(st.booleans()) else ""
        return f"{{{','.join(parts)}{draw(SPACE)}{last}{draw(SPACE)}}}"

    return f"{draw(SPACE)}{members(0)}{draw(SPACE)}"


def notes(text):
    return re.findall(r"// a note, \{\n|/\* a \" note \*/", text)


@given(text=texts())
def test_nothing_but_the_entry_changes_and_it_can_be_removed(text):
    before = parse(text)
    servers = before.get("servers", {})
    if not isinstance(servers, dict):
        with pytest.raises(ValueError, match="is not an object"):
            with_entry(text, ("servers",), "klaw", SERVER)
        return
    added = with_entry(text, ("servers",), "klaw", SERVER)
    assert parse(added) == {**before, "servers": {**servers, "klaw": SERVER}}
    assert notes(added) == notes(text)
    assert with_entry(added, ("servers",), "klaw", SERVER) == added
    changed = with_entry(added, ("servers",), "klaw", {"command": "other"})
    assert parse(changed)["servers"]["klaw"] == {"command": "other"}
    removed = with_entry(changed, ("servers",), "klaw", None)
    assert {"servers": {}, **parse(removed)} == {"servers": {}, **before}
    assert notes(removed) == notes(text)
    if "klaw" not in servers:
        assert removed == text
    assert with_entry(text, ("servers",), "klaw", None) == text


@pytest.mark.parametrize(
    "text",
    [
        "{}\n",
        '{"a": 1}',
        '{"a": 1, "servers": {"other": {}}}',
        '// mine\n{\n  "a": "x", // keep\n}\n',
        '{\n\t"a": "x" // keep\n\t/* why */\n}\n',
        '{\n  "servers": {\n    // none yet\n  },\n  "z": [1, 2,],\n}\n',
        '{\n  "servers": {\n    "other": {"url": "http://x"}\n  }\n}\n',
    ],
)
def test_removing_what_was_added_gives_the_same_text(text):
    added = with_entry(text, ("servers",), "klaw", SERVER)
    assert parse(added)["servers"]["klaw"] == SERVER
    assert with_entry(added, ("servers",), "klaw", None) == text


def test_an_entry_is_written_as_its_neighbours_are():
    text = '{\n\t"servers": {\n\t\t"other": {} // mine\n\t}\n}\n'
    assert with_entry(text, ("servers",), "klaw", {"command": "k"}) == (
        '{\n\t"servers": {\n\t\t"other": {}, // mine\n\t\t"klaw": {\n\t\t\t"command": "k"\n\t\t}\n\t}\n}\n'
    )


@pytest.mark.parametrize("text", ["[", "7", "{'a': 1}", '{"a": 1} x', '{"a": "// no end}', "{/* no end }"])
def test_what_is_no_object_is_refused(text):
    with pytest.raises(ValueError):  # noqa: PT011  # by whichever part of the text is wrong
        with_entry(text, ("servers",), "klaw", SERVER)
