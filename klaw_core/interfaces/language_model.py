"""A language model: a prompt in, text or JSON out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from klaw_core.values.prompts import Completion, Prompt


class LanguageModel(Protocol):
    """Completes prompts. Constructing one is cheap; nothing is loaded or called before the first completion.

    One method is optional: ``status()`` returns facts by name for ``klaw status``, such as the tokens used today. It
    calls no server.
    """

    @property
    def model(self) -> str:
        """Return the name of the model."""

    @property
    def max_tokens(self) -> int:
        """Return the limit of tokens for prompt and completion together."""

    def complete(self, prompt: Prompt, /) -> Completion:
        """Return the completion of a prompt.

        If the prompt has a ``schema``, the completion's ``value`` satisfies it. Raise LanguageModelError if the model
        cannot be called, does not respond before the deadline, or returns nothing that satisfies the schema.
        """

    def count_tokens(self, text: str, /) -> int:
        """Return the number of tokens of a text; an upper bound if the model's tokenizer is not available."""


@runtime_checkable
class CheckedLanguageModel(LanguageModel, Protocol):
    """A language model that can be checked at no cost, or at that of the shortest completion."""

    def check(self) -> None:
        """Check that completions are possible now, within half a minute.

        This must cost nothing, or one completion of a token if the server cannot be checked otherwise. Raise
        LanguageModelError with the reason why they are not, e.g. that the server does not answer.
        """
