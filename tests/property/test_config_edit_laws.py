"""Laws of editing a configuration: the value is stored, and everything else is unchanged."""

import tomllib
from pathlib import Path

import pytest
import tomlkit
from hypothesis import given
from hypothesis import strategies as st

from klaw_core.cli.config_edit import parse_place, parse_value, with_listed, with_value
from klaw_core.config.layers import leaves
from klaw_core.config.tables import COMPONENT_ARRAYS, DEFAULTS

FILE = """\
# one comment
trusted_projects = ["/a"]  # two comments

[memory.embedding]
type = "onnx"
# three comments
model = "x"  # four comments

[memory.fusion]
# five comments

[[memory.retrieval]]
type = "sqlite-vec"

# six comments
[[memory.retrieval]]
type = "fts5"  # seven comments

[plugins]
disabled = [
    "a",  # eight comments
]
"""
PLACES = st.sampled_from(
    [
        "memory.embedding.model",
        "memory.embedding.threads",
        "memory.fusion.k",
        "memory.chunking.max_tokens",
        "memory.retrieval[0].weight",
        "memory.retrieval[1].text_weight",
        "plugins.new",
        "top",
    ]
)
ARRAYS = st.sampled_from([*(f"memory.{name}" for name in COMPONENT_ARRAYS), "memory.embedding.fallback"])
VALUES = (
    st.integers(-(2**60), 2**60)
    | st.booleans()
    | st.text(st.characters(exclude_categories=("Cs",)), max_size=20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.lists(st.integers(0, 9), max_size=3)
)


def comments(source):
    return {number for number in ("one", "two", "three", "four", "five", "six", "seven", "eight") if number in source}


@given(st.lists(st.tuples(PLACES, VALUES), max_size=5))
def test_the_last_value_is_stored_and_the_rest_is_unchanged(edits):
    source, expected = FILE, dict(leaves(tomllib.loads(FILE)))
    for place, value in edits:
        source, removed = with_value(source, place, value)
        expected[place] = value
        assert removed == ()

    assert dict(leaves(tomllib.loads(source))) == expected
    # A comment beside a value that was replaced may go with it; the others stay.
    beside = {"memory.embedding.model": "four"}
    assert comments(source) >= comments(FILE) - {beside.get(place, "") for place, _ in edits}


@given(PLACES, VALUES)
def test_setting_a_value_is_idempotent(place, value):
    once, _ = with_value(FILE, place, value)

    assert with_value(once, place, value)[0] == once


@given(PLACES, VALUES)
def test_an_empty_file_can_be_edited(place, value):
    source, _ = with_value("", place.replace("[1]", "[0]"), value)

    assert dict(leaves(tomllib.loads(source)))[place.replace("[1]", "[0]")] == value


@given(ARRAYS, VALUES)
def test_a_missing_array_is_created_with_its_defaults(array, value):
    source, _ = with_value("", f"{array}[0].path", value)

    expected = {place: default for place, default in leaves(DEFAULTS) if place.startswith(f"{array}[")}
    assert dict(leaves(tomllib.loads(source))) == {**expected, f"{array}[0].path": value}


@given(ARRAYS, st.lists(VALUES, min_size=1, max_size=3), st.booleans())
def test_a_table_is_added_to_an_array_in_any_notation(array, values, is_inline):
    table, _, key = array.rpartition(".")
    entries = [{"type": "first"}, *({"path": value} for value in values)]
    source = f'[{table}]\n{key} = [{{type = "first"}}]\n' if is_inline else f'[[{array}]]\ntype = "first"\n'
    for index, value in enumerate(values, start=1):
        source, _ = with_value(source, f"{array}[{index}].path", value)

    found = tomllib.loads(source)
    for step in array.split("."):
        found = found[step]
    assert found == entries


@given(VALUES)
def test_toml_values_are_read_back(value):
    assert parse_value(tomlkit.item(value).as_string()) == value


@given(st.text(st.characters(exclude_characters="0123456789"), max_size=30))
def test_an_invalid_toml_value_is_read_as_a_string(text):
    plain = f"{text} and so on"

    assert parse_value(plain) == plain


@given(st.lists(st.from_regex(r"[A-Za-z0-9_-]{1,8}", fullmatch=True) | st.integers(0, 99), max_size=5))
def test_paths_are_split_into_steps(steps):
    steps = ["memory", *steps, "key"]
    place = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps).lstrip(".")

    assert parse_place(place) == tuple(steps)


@given(st.lists(st.sampled_from(["/a", "/b", "/ü x"]), max_size=6))
def test_trust_adds_each_project_once(directories):
    source = FILE
    for directory in directories:
        source = with_listed(source, "trusted_projects", Path(directory))

    assert tomllib.loads(source)["trusted_projects"] == list(dict.fromkeys(["/a", *directories]))


@pytest.mark.parametrize("table", ["embedding", "fusion", "search"])
def test_a_table_that_is_no_array_has_no_default_tables(table):
    source, _ = with_value("", f"memory.{table}[0].type", "x")
    assert dict(leaves(tomllib.loads(source))) == {f"memory.{table}[0].type": "x"}
