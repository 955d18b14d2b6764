"""The prompt and the completion of a language model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from attrs import field, frozen

PromptRole: TypeAlias = Literal["system", "user", "assistant"]


@frozen
class PromptMessage:
    """One message of a prompt."""

    role: PromptRole
    content: str = field(repr=False)


@frozen
class Prompt:
    """A list of messages, and what the answer must be.

    ``schema`` is a JSON Schema of an object; with it the answer is JSON. ``max_tokens`` limits the completion (None:
    the model's own limit), ``deadline_seconds`` the duration of the call.
    """

    messages: tuple[PromptMessage, ...]
    schema: Mapping[str, Any] | None = field(default=None, repr=False)
    max_tokens: int | None = None
    deadline_seconds: float = 60.0
    temperature: float = 0.0


@frozen
class Completion:
    """The answer of a model. ``value`` is the parsed JSON if the prompt had a schema, otherwise None.

    ``prompt_tokens`` and ``completion_tokens`` are as the model counted them.
    """

    text: str = field(repr=False)
    value: Any = field(default=None, repr=False)
    prompt_tokens: int = 0
    completion_tokens: int = 0
