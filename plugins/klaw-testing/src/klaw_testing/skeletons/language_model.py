"""A language model that repeats what it was asked, to be replaced by a call of a model."""

from collections.abc import Iterable

from attrs import frozen

from klaw_core import Completion, Component, LanguageModel, LanguageModelError, Prompt, estimate_tokens, hookimpl


@frozen
class SkeletonModel(LanguageModel):
    """Its fields are the keys next to ``type = "skeleton"``."""

    model: str = "echo"
    max_tokens: int = 8_192

    def complete(self, prompt: Prompt, /) -> Completion:
        """Return the last message. It cannot fill a schema, and must answer before the deadline."""
        if prompt.schema is not None:
            raise LanguageModelError(f"the model {self.model} does not write JSON", hint="configure another model")
        if prompt.deadline_seconds <= 0:
            raise LanguageModelError(f"the model {self.model} did not answer in time", hint="allow more seconds")
        text = prompt.messages[-1].content
        asked = sum(self.count_tokens(message.content) for message in prompt.messages)
        return Completion(text, None, asked, self.count_tokens(text))

    def count_tokens(self, text: str, /) -> int:
        """Return the number of tokens of a text."""
        return estimate_tokens([text])[0]


@hookimpl
def klaw_language_models() -> Iterable[Component[SkeletonModel, LanguageModel]]:
    """Yield the language model; its options are the model itself."""
    yield Component("skeleton", SkeletonModel, lambda options, _context: options, api=2)
