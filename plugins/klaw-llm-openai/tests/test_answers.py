"""What is taken of an answer, without a server."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from klaw_http import BodyError
from klaw_llm_openai.answers import find_value, is_strict, read_answer
from klaw_testing.doubles.chat import CITY


def body(message, **choice):
    return {"choices": [{"message": message, **choice}]}


def same(text):
    return text


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ({"content": " Kiel\n"}, "Kiel"),
        ({"content": [{"type": "text", "text": "Ki"}, {"type": "text", "text": "el"}, 7]}, "Kiel"),
        ({"content": "<think>Which {city}?</think>\nKiel"}, "Kiel"),
        ({"content": "Kiel \ud83d"}, "Kiel ?"),
    ],
)
def test_the_text_of_an_answer(message, text):
    assert read_answer(body(message), same).text == text


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ({}, "no completion"),
        ({"choices": []}, "no completion"),
        ({"choices": {"0": 1}, "error": {"message": "out\nof \x1b[2J memory"}}, "no completion: out of [2J memory"),
        ({"choices": [7]}, "empty"),
        (body({"content": None}), "empty"),
        (body({"content": ""}, finish_reason="length"), "cut off before it began"),
        (body({"content": "<think>Is {it} Kiel"}, finish_reason="stop"), "empty"),
        (body({"refusal": "I cannot.", "content": None}), "refuses: I cannot."),
        (body({"content": "x"}, finish_reason="content_filter"), "content filter"),
    ],
)
def test_an_answer_without_a_completion_is_an_error(answer, problem):
    with pytest.raises(BodyError) as caught:
        read_answer(answer, same)
    assert problem in caught.value.message


@pytest.mark.parametrize("count", [-1, 1.5, True, "7", None, 10**12])
def test_an_invalid_count_of_tokens_is_ignored(count):
    answer = read_answer({**body({"content": "Kiel"}), "usage": {"prompt_tokens": count}}, same)
    assert answer.prompt_tokens is None


@pytest.mark.parametrize(
    "text",
    [
        '{"city": "Kiel"}',
        'Here it is: {"city": "Kiel"} - and [1, 2] too.',
        '```json\n{"city": "Kiel"}\n```',
        'For example {"town": "x"} or {"city": 7}. So: {"city": "Kiel"}',
        '{ broken [ {"city": "Kiel"}',
    ],
)
def test_json_is_found_in_prose(text):
    assert find_value(text, CITY, same) == {"city": "Kiel"}


@pytest.mark.parametrize(
    "text", ["Kiel", '{"city": 7}', '{"city": "Kiel', "[" * 50_000, "{" * 50_000, '{"city": NaN}', "9" * 10_000]
)
def test_json_that_does_not_fit_is_an_error(text):
    with pytest.raises(BodyError, match="does not fit the schema"):
        find_value(text, CITY, same)


def test_an_unpaired_surrogate_in_json_is_replaced():
    value = find_value('{"city": "K\\ud83d"}', CITY, same)
    assert value == {"city": "K?"}
    value["city"].encode()


@given(st.dictionaries(st.just("city"), st.text(), min_size=1), st.text(alphabet="ab {}[],:\"'`\n"), st.text("xy {["))
def test_json_in_any_text_satisfies_the_schema(value, before, after):
    assert find_value(json.dumps(value), CITY, same) == value
    with suppress(BodyError):  # the prose may swallow it
        assert Draft202012Validator(CITY).is_valid(find_value(f"{before}{json.dumps(value)}{after}", CITY, same))


def test_strict_schemas_of_openai_are_recognised():
    assert is_strict(CITY)
    assert not is_strict({**CITY, "additionalProperties": True})
    assert not is_strict({**CITY, "required": []})
    assert not is_strict({"type": "array", "items": {"properties": {"a": {}}}})
    assert is_strict({"anyOf": [CITY, {"type": "null"}]})
