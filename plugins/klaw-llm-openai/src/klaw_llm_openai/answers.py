"""What of a server's answer is taken: its text, its count of tokens, and the JSON in the text.

https://platform.openai.com/docs/api-reference/chat/object. Servers differ: ``content`` may be a list of parts, a model
that thinks may put its thoughts in front of the answer, and a JSON answer may stand in a fence or in prose.
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

_MOST_TOKENS = 10_000_000  # what a server may say that one call took
_LONGEST_DETAIL = 300
_MOST_STARTS = 200  # places in an answer where JSON is looked for
_START = re.compile(r"[{\[]")
_THOUGHTS, _THOUGHTS_END = "<think>", "</think>"


@frozen
class Answer:
    """One completion as the server gave it. Counts of tokens are None where it gave none."""

    text: str
    is_cut: bool
    prompt_tokens: int | None
    completion_tokens: int | None


def read_answer(body: Mapping[str, Any], clean: Callable[[str], str]) -> Answer:
    """Return what a server answered. Raise BodyError if it holds no completion.

    ``clean`` takes keys out of the server's words before they stand in an error.
    """
    choices = body.get("choices")
    if not isinstance(choices, list) or not choices:
        said = member(body.get("error"), "message") or body.get("error")
        because = f": {_shown(said, clean)}" if isinstance(said, str) else ""
        raise BodyError(f"the server answers no completion{because}")
    message, reason = member(choices[0], "message"), member(choices[0], "finish_reason")
    if isinstance(refusal := member(message, "refusal"), str) and refusal:
        raise BodyError(f"the model refuses: {_shown(refusal, clean)}")
    if reason == "content_filter":
        raise BodyError("the answer was withheld by the server's content filter")
    text = _without_thoughts(_text(member(message, "content")))
    is_cut = reason == "length"
    if not text:
        raise BodyError("the answer is empty" + (": it was cut off before it began" if is_cut else ""))
    usage = body.get("usage")
    return Answer(text, is_cut, _count(member(usage, "prompt_tokens")), _count(member(usage, "completion_tokens")))


def _text(content: object) -> str:
    if isinstance(content, list):
        content = "".join(part for item in content if isinstance(part := member(item, "text"), str))
    return _whole(content) if isinstance(content, str) else ""


def _without_thoughts(text: str) -> str:
    """Return a text without what a model thought before it; empty if it never came to an answer."""
    answer = text.rpartition(_THOUGHTS_END)[2].strip()
    return "" if answer.startswith(_THOUGHTS) else answer


def _whole(text: str) -> str:
    """Return a text without half surrogate pairs, which JSON can hold and UTF-8 cannot."""
    return text.encode("utf-8", "replace").decode()


def _count(value: object) -> int | None:
    return value if type(value) is int and 0 <= value <= _MOST_TOKENS else None


def _shown(text: str, clean: Callable[[str], str]) -> str:
    """Return a text on one printable line, without keys."""
    printable = "".join(character if character.isprintable() else " " for character in clean(_whole(text)))
    return " ".join(printable.split())[:_LONGEST_DETAIL]


def find_value(text: str, schema: Mapping[str, Any], clean: Callable[[str], str]) -> Any:
    """Return the longest JSON value in a text that satisfies a schema. Raise BodyError if there is none."""
    validator = Draft202012Validator(dict(schema))
    best: Any = None
    longest, problem = 0, "it contains no JSON"
    for value, length in _values(text):
        if length <= longest:
            continue
        if (error := next(validator.iter_errors(value), None)) is not None:
            problem = _shown(error.message, clean)
        else:
            best, longest = value, length
    if not longest:
        raise BodyError(f"the answer does not fit the schema: {problem}")
    return best


def _values(text: str) -> Iterator[tuple[Any, int]]:
    """Yield the JSON values of a text that stand in no other, with their lengths."""
    decoder = json.JSONDecoder(parse_constant=_reject)
    position = 0
    for _ in range(_MOST_STARTS):
        found = _START.search(text, position)
        if found is None:
            return
        try:
            value, position = decoder.raw_decode(text, found.start())
            # An escape may stand for half a surrogate pair.
            yield json.loads(_whole(json.dumps(value, ensure_ascii=False))), position - found.start()
        except (ValueError, RecursionError):
            position = max(position, found.start() + 1)


def _reject(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def is_strict(schema: object) -> bool:
    """Return whether OpenAI takes a schema as ``strict``: every object is closed and requires all it names.

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
