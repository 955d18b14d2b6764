"""The contract of a language model, and a scripted language model for tests.

class TestMyModel(LanguageModelContract):
    @pytest.fixture
    def model(self):
        return MyModel(...)
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

import pytest
from attrs import define, field
from jsonschema import Draft202012Validator

from klaw_core import Completion, LanguageModel, LanguageModelError, Prompt, PromptMessage, estimate_tokens

_SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}


@define(eq=False)
class ScriptedModel(LanguageModel):
    """A language model that returns scripted answers, in order, and records its prompts.

    An answer is a text, an exception to raise, or a function of the prompt. Calls after the last answer raise an error.
    """

    answers: Sequence[str | Exception | Callable[[Prompt], str]] = ()
    prompts: list[Prompt] = field(factory=list)
    model: str = "scripted"
    max_tokens: int = 8192

    def complete(self, prompt: Prompt, /) -> Completion:
        """Return the next answer. Raise LanguageModelError if there is none, or if it does not match the schema."""
        self.prompts.append(prompt)
        if len(self.prompts) > len(self.answers):
            raise LanguageModelError("the script has ended")
        answer = self.answers[len(self.prompts) - 1]
        if isinstance(answer, Exception):
            raise answer
        text = answer if isinstance(answer, str) else answer(prompt)
        asked = sum(self.count_tokens(message.content) for message in prompt.messages)
        return Completion(text, _value(text, prompt), asked, self.count_tokens(text))

    def count_tokens(self, text: str, /) -> int:
        """Return an estimate of the number of tokens."""
        return estimate_tokens([text])[0]


def _value(text: str, prompt: Prompt) -> object:
    if prompt.schema is None:
        return None
    try:
        value: object = json.loads(text)
    except ValueError as error:
        raise LanguageModelError(f"the answer is not JSON: {error}") from error
    problems = [problem.message for problem in Draft202012Validator(dict(prompt.schema)).iter_errors(value)]
    if problems:
        raise LanguageModelError(f"the answer does not fit the schema: {problems[0]}")
    return value


class LanguageModelContract:
    """The laws of a language model; the subclass defines the fixture ``model``, which may use a test server."""

    @pytest.fixture
    def model(self) -> LanguageModel:
        """Return the language model under test."""
        raise NotImplementedError  # pragma: no cover  # the subclass's fixture replaces it

    def ask(self, text: str, **more: object) -> Prompt:
        """Return a prompt of one message."""
        return Prompt((PromptMessage("user", text),), **more)  # type: ignore[arg-type]  # fields of Prompt

    def test_it_names_itself_and_its_window(self, model: LanguageModel) -> None:
        assert model.model
        assert model.max_tokens > 0

    def test_it_answers_a_prompt(self, model: LanguageModel) -> None:
        completion = model.complete(self.ask("Say one word."))
        assert completion.text
        assert completion.value is None
        assert completion.prompt_tokens >= 0
        assert completion.completion_tokens >= 0

    def test_with_a_schema_the_value_satisfies_it(self, model: LanguageModel) -> None:
        prompt = self.ask('Name a city as JSON: {"city": "Kiel"}', schema=_SCHEMA)
        try:
            completion = model.complete(prompt)
        except LanguageModelError as error:
            assert error.message.strip()  # noqa: PT017  # a model may fail to match the schema, and says so
        else:
            assert Draft202012Validator(_SCHEMA).is_valid(completion.value)

    def test_a_longer_text_has_more_tokens(self, model: LanguageModel) -> None:
        assert 0 <= model.count_tokens("") <= model.count_tokens("one") <= model.count_tokens("one " * 100)

    def test_an_expired_deadline_raises(self, model: LanguageModel) -> None:
        with pytest.raises(LanguageModelError):
            model.complete(self.ask("Say one word.", deadline_seconds=0.0))
