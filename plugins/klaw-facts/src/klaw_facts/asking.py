"""Ask a language model for a list: with a schema if it supports one; otherwise parse what can be parsed.

An answer in another form is parsed item by item, and the remaining items are counted as refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from attrs import define, evolve, field, frozen

from klaw_core import LanguageModel, LanguageModelError, Prompt, PromptMessage

_MAX_TOKENS = 800
_DEADLINE_SECONDS = 120.0


class UnusableAnswerError(LanguageModelError):
    """The model's answer is unusable."""


@frozen
class Usage:
    """A run's usage of a model. ``refused`` counts items of answers that were invalid or failed verification."""

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    refused: int = 0

    def __sub__(self, other: Usage) -> Usage:
        return Usage(
            self.calls - other.calls,
            self.tokens_in - other.tokens_in,
            self.tokens_out - other.tokens_out,
            self.refused - other.refused,
        )


@define(eq=False)
class Asker:
    """Asks a language model for lists, and counts the usage."""

    model: LanguageModel
    usage: Usage = field(factory=Usage)

    @property
    def name(self) -> str:
        """The value of ``made_by`` for facts and batches from this model."""
        return f"model:{self.model.model}"

    def ask(self, task: str, lines: Iterable[str], schema: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
        """Return the objects in the list ``name`` of the answer.

        Raise UnusableAnswerError for an unusable answer, LanguageModelError if the model does not answer.
        """
        messages = (PromptMessage("system", task), PromptMessage("user", "\n".join(lines)))
        try:
            value = self._complete(Prompt(messages, schema, _MAX_TOKENS, _DEADLINE_SECONDS))
        except LanguageModelError:
            # Perhaps the server does not support schemas. If it does not answer at all, this raises.
            form = f"Answer with JSON only: {json.dumps(_example(schema, name))}"
            plain = (*messages, PromptMessage("user", form))
            value = salvage(self._complete(Prompt(plain, None, _MAX_TOKENS, _DEADLINE_SECONDS)), name)
        items = value.get(name) if isinstance(value, Mapping) else value
        if not isinstance(items, list):
            raise UnusableAnswerError(f"{self.model.model} returned no list of {name}")
        sound = [item for item in items if isinstance(item, Mapping)]
        if items and not sound:
            raise UnusableAnswerError(f"{self.model.model} returned a list of {name} that are not objects")
        self.refuse(len(items) - len(sound))
        return sound

    def refuse(self, count: int = 1) -> None:
        """Count refused items of an answer."""
        self.usage = evolve(self.usage, refused=self.usage.refused + count)

    def _complete(self, prompt: Prompt) -> Any:
        """Return the value of the answer, or its text if no schema was given."""
        self.usage = evolve(self.usage, calls=self.usage.calls + 1)
        completion = self.model.complete(prompt)
        self.usage = evolve(
            self.usage,
            tokens_in=self.usage.tokens_in + completion.prompt_tokens,
            tokens_out=self.usage.tokens_out + completion.completion_tokens,
        )
        return completion.text if prompt.schema is None else completion.value


def list_schema(name: str, properties: Mapping[str, Any], most: int, optional: Sequence[str] = ()) -> dict[str, Any]:
    """Return the JSON Schema of an object with one list of objects that have these properties."""
    item = {
        "type": "object",
        "properties": dict(properties),
        "required": [key for key in properties if key not in optional],
        "additionalProperties": False,
    }
    return {
        "type": "object",
        "properties": {name: {"type": "array", "maxItems": most, "items": item}},
        "required": [name],
        "additionalProperties": False,
    }


def is_number(value: object) -> bool:
    """Return whether a value is an integer and not a boolean."""
    return isinstance(value, int) and not isinstance(value, bool)


def salvage(text: str, name: str) -> Any:
    """Parse an answer: as JSON, or the largest JSON value in it, or every complete object in it.

    Raise UnusableAnswerError if nothing can be parsed.
    """
    decoder = json.JSONDecoder()
    best: Any = None
    longest = 0
    objects: list[Any] = []
    position = 0
    while (
        start := min((at for at in (text.find("{", position), text.find("[", position)) if at >= 0), default=-1)
    ) >= 0:
        try:
            value, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            position = start + 1
            continue
        if end - start > longest:
            best, longest = value, end - start
        if isinstance(value, Mapping):
            objects.append(value)
        position = end
    if isinstance(best, Mapping) and isinstance(best.get(name), list):
        return best
    if isinstance(best, list) and len(objects) <= 1:
        return {name: best}
    if objects:
        return {name: objects}
    raise UnusableAnswerError(f"the answer has no {name}")


def _example(schema: Mapping[str, Any], name: str) -> dict[str, Any]:
    properties = schema["properties"][name]["items"]["properties"]
    return {name: [{key: _EXAMPLES.get(str(kind.get("type")), "…") for key, kind in properties.items()}]}


_EXAMPLES: Mapping[str, Any] = {"integer": 0, "array": [0]}
