"""The fast check of a tool's arguments accepts only arguments that match the JSON Schema."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from klaw_core import Tool
from klaw_tools.arguments import adapted, problems_of

NAMES = st.sampled_from(["a", "b", "c"])
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 12),
    st.floats(width=16, allow_nan=False),
    st.text("xyé𝄞", max_size=4),
    st.lists(st.text("xy", max_size=2), max_size=2),
    st.dictionaries(st.just("k"), st.integers(0, 1), max_size=1),
)
RULES = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["string", "integer", "number", "boolean", "array", ["string", "integer"]]),
        "description": st.just("What it is."),
        "minLength": st.integers(0, 3),
        "maxLength": st.integers(0, 3),
        "minimum": st.integers(-1, 5),
        "maximum": st.integers(0, 9),
        "enum": st.lists(st.sampled_from(["x", "y", 1, True]), min_size=1, max_size=2),
        "pattern": st.just("x"),
        "items": st.just({"type": "string"}),
        "multipleOf": st.just(2),
    },
)
SCHEMAS = st.builds(
    lambda properties, required: {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    },
    st.dictionaries(NAMES, RULES, max_size=3),
    st.lists(NAMES, unique=True, max_size=2),
)


@given(SCHEMAS, st.dictionaries(NAMES, VALUES, max_size=3))
def test_arguments_without_problems_are_those_that_match_the_schema(schema, arguments):
    assert (not problems_of(arguments, schema)) == Draft202012Validator(schema).is_valid(arguments)


def test_a_property_may_have_several_types():
    for value, fits in (("a", True), (7, True), (True, False), (1.5, False)):
        schema = {
            "type": "object",
            "properties": {"a": {"type": ["string", "integer"]}},
            "required": [],
            "additionalProperties": False,
        }
        assert (not problems_of({"a": value}, schema)) == fits


@pytest.mark.parametrize("number", [float("nan"), "nan", [float("nan")]])
def test_nan_is_in_no_range(number):
    """JSON of Python has it, and so has a model's text."""
    tool = Tool("search", "Search.", {"x": {"type": "number", "minimum": 0, "maximum": 1}}, lambda _arguments: {})
    assert problems_of(adapted({"x": number}, tool), tool.input_schema) == ["x must be a number, not NaN"]


@pytest.mark.parametrize(
    ("sent", "wanted"),
    [
        ('["a", "b"]', ["a", "b"]),
        (' ["a"]', ["a"]),
        ("[]", []),
        ("a", ["a"]),
        ("[draft", ["[draft"]),
        ('{"a": 1}', ['{"a": 1}']),
        (["a"], ["a"]),
    ],
)
def test_an_array_is_read_however_a_model_sends_it(sent, wanted):
    tool = Tool("t", "", {"x": {"type": "array", "items": {"type": "string"}}}, lambda _: None, ("x",))
    assert adapted({"x": sent}, tool) == {"x": wanted}
