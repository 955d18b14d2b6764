"""Conditions on metadata, against a model that is written the slow way, and as a person writes them."""

import math
import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klaw_core import Condition, QueryError, RecordError, check_metadata, metadata_part, parse_condition
from klaw_testing.values import conditions, metadata

_COMPARE = {
    "=": lambda own, wanted: own == wanted,
    "<": lambda own, wanted: own < wanted,
    "<=": lambda own, wanted: own <= wanted,
    ">": lambda own, wanted: own > wanted,
    ">=": lambda own, wanted: own >= wanted,
}

# What can be written on a command line and is read as what it is.
_written_keys = st.from_regex(r"[a-z][a-z0-9_.-]{0,8}", fullmatch=True)
_written_values = st.one_of(
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.from_regex(r'[^,"\x00-\x20\x7f-\xa0][^,"\x00-\x1f\x7f-\xa0]{0,12}', fullmatch=True),
)


def naive(condition, values):
    """Decide a condition by comparing every pair of values of one type."""
    if condition.key not in values:
        return condition.operator == "!="
    found = values[condition.key]
    own = list(found) if isinstance(found, tuple) else [found]
    own += [number for text in own if isinstance(text, str) for number in numbers(text)]
    if isinstance(found, tuple):
        slashes = [(text, place) for text in found for place, letter in enumerate(text) if letter == "/"]
        own += [text[:place] for text, place in slashes if _is_named(text, place)]
    own = [folded(item) for item in own]
    wanted = list(map(folded, condition.value if isinstance(condition.value, tuple) else [condition.value]))
    operator = "=" if condition.operator in {"!=", "in"} else condition.operator
    pairs = [(mine, other) for mine in own for other in wanted if isinstance(mine, str) == isinstance(other, str)]
    held = any(_COMPARE[operator](mine, other) for mine, other in pairs)
    return not held if condition.operator == "!=" else held


def _is_named(text, place):
    """Return whether a slash in a tag has a name before it."""
    return place > 0 and text[place - 1] != "/"


def folded(value):
    """Return a text without its case, and with accents apart from their letters."""
    if not isinstance(value, str):
        return value
    return unicodedata.normalize("NFD", "".join(map(str.casefold, unicodedata.normalize("NFD", value))))


def numbers(text):
    """Return the number that a string is."""
    if re.fullmatch(r"0x[0-9a-fA-F]+|0o[0-7]+|0b[01]+", text):
        return [int(text, 0)]
    if not text.isascii() or not re.fullmatch(
        r"[-+]?([0-9]+(_[0-9]+)*(\.[0-9]*)?|\.[0-9]+)(e[-+]?[0-9]+)?", text.lower()
    ):
        return []
    number = float(text) if set(text.lower()) & set(".e") else int(text)
    is_kept = -(2**63) <= number < 2**63 if isinstance(number, int) else math.isfinite(number)
    return [number] if is_kept else []


def written(value):
    """Write a value as a person does: strings in quotes."""
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else repr(value)


@given(condition=conditions, values=metadata)
def test_a_condition_agrees_with_the_reference_model(condition, values):
    assert condition.holds(values) == naive(condition, values)


@pytest.mark.parametrize(
    ("value", "compared"),
    [
        *[("02700", ("02700", 2700)), ("1.10", ("1.10", 1.1)), ("0x1e", ("0x1e", 30)), ("0o17", ("0o17", 15))],
        *[("1_000", ("1_000", 1000)), ("0b101", ("0b101", 5)), ("1__0", ("1__0",)), ("_1", ("_1",))],
        *[("5", ("5", 5)), (5, (5,)), (True, (True,)), ("five", ("five",)), ("1e999", ("1e999",))],
        *[(("a", "05", "a", "5.0"), ("a", "05", "5.0", 5)), ("1" * 5_000, ("1" * 5_000,))],
    ],
)
def test_a_string_that_is_a_number_compares_as_both(value, compared):
    assert Condition.compared(value) == compared
    for item in compared:
        assert Condition("key", "=", item).holds({"key": value})
    assert not Condition("key", "=", 6).holds({"key": value})


@given(condition=conditions, values=metadata)
def test_not_equal_is_the_negation_of_equal(condition, values):
    if not isinstance(condition.value, tuple):
        equal = Condition(condition.key, "=", condition.value).holds(values)
        assert Condition(condition.key, "!=", condition.value).holds(values) is not equal


@given(values=metadata)
def test_valid_metadata_is_kept_unchanged(values):
    assert check_metadata(values) == values
    assert check_metadata(check_metadata(values)) == check_metadata(values)


@given(key=_written_keys, operator=st.sampled_from(["=", "!=", "<", "<=", ">", ">="]), value=_written_values)
def test_a_formatted_condition_is_parsed_back(key, operator, value):
    read = parse_condition(f"{key}{operator}{written(value)}")
    assert (read.key, read.operator, read.value, type(read.value)) == (key, operator, value, type(value))
    assert parse_condition(f"  {key} {operator}  {written(value)} ") == read


@given(key=_written_keys, values=st.lists(_written_values, min_size=2, max_size=4))
def test_several_values_mean_any_of_them(key, values):
    read = parse_condition(f"{key}={', '.join(map(written, values))}")
    assert (read.key, read.operator, read.value) == (key, "in", tuple(values))


@given(text=st.text(max_size=40))
def test_every_text_is_a_condition_or_a_query_error(text):
    try:
        found = parse_condition(text)
    except QueryError as error:
        assert error.message.strip()  # noqa: PT017  # any other exception is a failure
    else:
        assert isinstance(found, Condition)
        assert found.key in text


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a=7", 7),
        ("a=1_000", "1_000"),
        ('a="7"', "7"),
        ("a=7.5", 7.5),
        ("a=true", True),
        ('a="true"', "true"),
        ("a=True", True),
        ("a=FALSE", False),
        ("a=nan", "nan"),
        ("a=inf", "inf"),
        ("a=99999999999999999999999", "99999999999999999999999"),
        ("a=2026-02-24", "2026-02-24"),
        ("a=b=c", "b=c"),
        ("a=", ""),
        ("a=two words", "two words"),
    ],
)
def test_a_value_is_parsed_with_its_type(text, value):
    read = parse_condition(text).value
    assert (read, type(read)) == (value, type(value))


@pytest.mark.parametrize("text", ["", "tags", "=x", "a b=c", "!=x", "<3", "a==b", "a>>b", "a<>b", "a=!b"])
def test_an_invalid_condition_is_rejected(text):
    with pytest.raises(QueryError, match="is not a condition"):
        parse_condition(text)


@pytest.mark.parametrize(
    "values",
    [{"": 1}, {"a\nb": 1}, {"k" * 101: 1}, {"a": None}, {"a": [1]}, {"a": float("nan")}, {"a": 2**63}, {"a": "\ud800"}],
)
def test_metadata_that_no_store_can_keep_is_rejected(values):
    with pytest.raises(RecordError):
        check_metadata(values)


_anything = (
    st.none()
    | st.floats()
    | st.integers()
    | st.text(max_size=3)
    | st.lists(st.text(max_size=2) | st.integers(), max_size=2)
)


@given(st.dictionaries(st.text(max_size=5), _anything, max_size=70))
def test_law_invalid_entries_are_dropped_and_valid_ones_kept(values):
    """It can be kept, and nothing that can be kept beside it is missing."""
    part = metadata_part(values)
    assert check_metadata(part) == part
    for key in values.keys() - part.keys():
        with pytest.raises(RecordError):
            check_metadata({**part, key: values[key]})


@pytest.mark.parametrize("tag", ["energy", "energy/heating", "energy/heating/pump"])
def test_a_tag_is_also_what_is_above_it(tag):
    assert Condition("tags", "=", tag).holds({"tags": ("energy/heating/pump",)})
    assert not Condition("tags", "=", tag).holds({"tags": ("renewable/energy",)})
    assert not Condition("place", "=", "a").holds({"place": "a/b"})


@pytest.mark.parametrize(
    ("written", "asked"),
    [
        *[("JavaScript", "javascript"), ("javascript", "JAVASCRIPT"), ("iOS", "ios"), ("Straße", "STRASSE")],
        *[("Caf\u00e9", "cafe\u0301"), ("ΣΟΦΟΣ", "σοφος"), ("Память", "память")],
    ],
)
def test_the_case_of_letters_and_the_form_of_unicode_do_not_count(written, asked):
    for value, other in ((written, asked), (asked, written)):
        assert Condition("tags", "=", value).holds({"tags": (other,)})
        assert Condition("tags", "in", ("x", value)).holds({"tags": other})
        assert Condition("tags", "=", value).holds({"tags": (f"{other}/part",)})
        assert not Condition("tags", "!=", value).holds({"tags": (other, "x")})
        assert Condition("tags", "<=", value).holds({"tags": other})
        assert not Condition("tags", "<", value).holds({"tags": other})
    assert Condition("tags", "!=", "java").holds({"tags": (written, asked)})
