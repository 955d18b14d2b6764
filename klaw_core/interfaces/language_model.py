"""A language model: a prompt in, text or JSON out."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from klaw_core.values.prompts import Completion, Prompt


class LanguageModel:
    """Completes prompts. Constructing one is cheap; nothing is loaded or called before the first completion."""

    __slots__ = ()

    if TYPE_CHECKING:  # attributes or properties

        @property
        def model(self) -> str:
            """Return the name of the model."""

        @property
        def max_tokens(self) -> int:
            """Return the limit of tokens for prompt and completion together."""

    @abstractmethod
    def complete(self, prompt: Prompt, /) -> Completion:
        """Return the completion of a prompt.

        If the prompt has a ``schema``, the completion's ``value`` satisfies it. Raise LanguageModelError if the model
        cannot be called, does not respond before the deadline, or returns nothing that satisfies the schema.
        """

    @abstractmethod
    def count_tokens(self, text: str, /) -> int:
        """Return the number of tokens of a text; an upper bound if the model's tokenizer is not available."""

    def status(self) -> Mapping[str, int | str]:
        """Return what ``klaw status`` shows of it, by name, such as the tokens used today. Call no server."""
        return {}

    def check(self) -> None:
        """Check that completions are possible now, within half a minute.

        This must cost nothing, or one completion of a token if the server cannot be checked otherwise. Raise
        LanguageModelError with the reason why they are not, e.g. that the server does not answer.
        """
