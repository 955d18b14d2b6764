"""A search has the same arguments with the same defaults, whether they are given one by one or as one value."""

from inspect import Parameter, signature

import attrs
import pytest

from klaw_core import Filters, Memory, QueryError, SearchRequest
from klaw_core.values.search import MAX_QUERY_CHARACTERS

#: Where the value has another name than the argument.
RENAMED = {"text": "query", "collections": "collection"}


def test_the_value_has_every_argument_with_its_default():
    arguments = dict(signature(Memory.search).parameters)
    arguments.pop("self")
    fields = {RENAMED.get(field.name, field.name): field for field in attrs.fields(SearchRequest)}
    assert list(fields) == list(arguments) or set(fields) == set(arguments)
    assert len(fields) >= 10
    for name, field in fields.items():
        default = arguments[name].default
        assert field.default == default or (field.default is attrs.NOTHING and default is Parameter.empty), name


def test_collections_are_one_name_or_several_without_repetition():
    assert SearchRequest("a").collections is None
    assert SearchRequest("a", collections="docs").collections == ("docs",)
    assert SearchRequest("a", collections=["docs", "memory", "docs"]).collections == ("docs", "memory")
    assert SearchRequest("a", collections=[]).collections == ()


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"text": ""}, "empty"),
        ({"text": " \n"}, "empty"),
        ({"text": "x" * (MAX_QUERY_CHARACTERS + 1)}, "10,001 characters"),
        ({"limit": 0}, "limit"),
        ({"mode": "guess"}, "'guess'"),
        ({"duplicates": "maybe"}, "'maybe'"),
        ({"per_document": 0}, "per_document"),
        ({"filters": Filters(path="\ud800")}, "path"),
    ],
)
def test_what_cannot_be_searched_for_is_an_error_that_says_what(given, says):
    with pytest.raises(QueryError, match=says):
        attrs.evolve(SearchRequest("lantern"), **given).check()
    SearchRequest("lantern").check()
