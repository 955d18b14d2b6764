"""Parse a server's answer: its text, its token counts, and the JSON in the text.

https://platform.openai.com/docs/api-reference/chat/object. Answers of servers differ: ``content`` may be a list of
parts, a reasoning model may put its thoughts before the answer, and JSON may be in a fence or in prose.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from attrs import frozen
from jsonschema import Draft202012Validator

from klaw_http import BodyError
from klaw_http.embedding import member

_MAX_TOKENS = 10_000_000  # the maximum plausible token count of one call
_MAX_DETAIL_CHARACTERS = 300
_MAX_STARTS = 200  # positions in an answer at which JSON is tried
_START = re.compile(r"[{\[]")
_THOUGHTS, _THOUGHTS_END = "<think>", "</think>"


class NoTextError(BodyError):
    """The server has completed the prompt, but the answer has no text: a refusal, or an answer that was cut off."""


@frozen
class Answer:
    """One completion. Token counts are None if the server did not return them."""

    text: str
    is_cut: bool
    prompt_tokens: int | None
    completion_tokens: int | None


def read_answer(body: Mapping[str, Any], clean: Callable[[str], str]) -> Answer:
    """Return a server's answer. Raise BodyError if it contains no completion, NoTextError if that has no text.

    ``clean`` removes keys from the server's text before it is used in an error.
    """
    choices = body.get("choices")
    if not isinstance(choices, list) or not choices:
        said = member(body.get("error"), "message") or body.get("error")
        because = f": {_printable(said, clean)}" if isinstance(said, str) else ""
        raise BodyError(f"the server answers no completion{because}")
    message, reason = member(choices[0], "message"), member(choices[0], "finish_reason")
    if isinstance(refusal := member(message, "refusal"), str) and refusal:
        raise NoTextError(f"the model refuses: {_printable(refusal, clean)}")
    if reason == "content_filter":
        raise NoTextError("the answer was withheld by the server's content filter")
    text = _without_thoughts(_text(member(message, "content")))
    is_cut = reason == "length"
    if not text:
        raise NoTextError("the answer is empty" + (": it was cut off before it began" if is_cut else ""))
    usage = body.get("usage")
    return Answer(text, is_cut, _count(member(usage, "prompt_tokens")), _count(member(usage, "completion_tokens")))


def _text(content: object) -> str:
    if isinstance(content, list):
        content = "".join(part for item in content if isinstance(part := member(item, "text"), str))
    return _without_surrogates(content) if isinstance(content, str) else ""


def _without_thoughts(text: str) -> str:
    """Return a text without the model's thoughts before it; empty if there is no answer."""
    answer = text.rpartition(_THOUGHTS_END)[2].strip()
    return "" if answer.startswith(_THOUGHTS) else answer


def _without_surrogates(text: str) -> str:
    """Return a text without lone surrogates, which JSON can contain but UTF-8 cannot."""
    return text.encode("utf-8", "replace").decode()


def _count(value: object) -> int | None:
    return value if type(value) is int and 0 <= value <= _MAX_TOKENS else None


def _printable(text: str, clean: Callable[[str], str]) -> str:
    """Return a text on one printable line, without keys."""
    printable = "".join(character if character.isprintable() else " " for character in clean(_without_surrogates(text)))
    return " ".join(printable.split())[:_MAX_DETAIL_CHARACTERS]


def find_value(text: str, schema: Mapping[str, Any], clean: Callable[[str], str]) -> Any:
    """Return the longest JSON value in a text that satisfies a schema. Raise BodyError if there is none."""
    validator = Draft202012Validator(dict(schema))
    best: Any = None
    longest, problem = 0, "it contains no JSON"
    for value, length in _values(text):
        if length <= longest:
            continue
        if (error := next(validator.iter_errors(value), None)) is not None:
            problem = _printable(error.message, clean)
        else:
            best, longest = value, length
    if not longest:
        raise BodyError(f"the answer does not fit the schema: {problem}")
    return best


def _values(text: str) -> Iterator[tuple[Any, int]]:
    """Yield the JSON values in a text that are not inside another one, with their lengths."""
    decoder = json.JSONDecoder(parse_constant=_reject)
    position = 0
    for _ in range(_MAX_STARTS):
        found = _START.search(text, position)
        if found is None:
            return
        try:
            value, position = decoder.raw_decode(text, found.start())
            # An escape sequence may be a lone surrogate.
            yield json.loads(_without_surrogates(json.dumps(value, ensure_ascii=False))), position - found.start()
        except (ValueError, RecursionError):
            position = max(position, found.start() + 1)


def _reject(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def is_strict(schema: object) -> bool:
    """Return whether OpenAI accepts a schema as ``strict``: every object is closed and requires all its properties.

    https://platform.openai.com/docs/guides/structured-outputs
    """
    if isinstance(schema, list):
        return all(map(is_strict, schema))
    if not isinstance(schema, Mapping):
        return True
    if "properties" in schema:
        closed = schema.get("additionalProperties") is False
        if not closed or set(schema.get("required", ())) != set(schema["properties"]):
            return False
    return all(map(is_strict, schema.values()))
