"""The language model ``openai``: ``POST /chat/completions`` (https://platform.openai.com/docs/api-reference/chat)."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Mapping
from functools import partial
from typing import Any

from attrs import define, evolve, field

from klaw_core import Completion, LanguageModel, LanguageModelError, Prompt, PromptMessage, estimate_tokens
from klaw_http import BodyError, HttpClient, HttpError, NoAnswerError, StatusError
from klaw_http.deadline import Deadline
from klaw_llm_openai.answers import Answer, NoTextError, find_value, is_strict, read_answer
from klaw_llm_openai.options import FORMS, OPENAI_URL, OpenAIModelOptions, environment_url
from klaw_llm_openai.usage import Reservation, UsageLedger

_MAX_SECONDS = 86_400.0
_MESSAGE_TOKENS = 8  # the tokens that a chat template may add to a message
_MAX_BYTES = 8 * 1024 * 1024
_NOT_FOUND = 404
_KEY_REFUSED = frozenset({401, 402, 403})
_BODY_REFUSED = frozenset({400, 415, 422})
_FAILED = frozenset({500, 501})
_BUSY = 429
_ANSWERS = frozenset({400, _BUSY, 501})  # instead of a list of models, from a server that answers
# Answers of a server that has no list of models, or denies it to this key. Only a completion shows whether it works.
_NO_LIST = frozenset({403, _NOT_FOUND, 405})
_CHECK_SECONDS = 5.0
_CHECK_COMPLETION_SECONDS = 20.0  # a server may load the model first
_ABOUT_FORM = re.compile(r"response_format|schema|grammar|json|structured")
_PLACE = "[memory.language_model]"


@define(eq=False)
class OpenAIModel(LanguageModel):
    """One model on one server. Safe to use from several threads.

    If a server rejects a parameter (the response format, the name of the limit of an answer's length, the temperature),
    the process remembers it. Each rejected request counts for the daily limit of requests.
    """

    options: OpenAIModelOptions
    ledger: UsageLedger
    _form: str = field(init=False)
    _length_name: str = field(default="max_tokens", init=False)
    _takes_temperature: bool = field(default=True, init=False)

    def __attrs_post_init__(self) -> None:
        """Start with the strictest allowed response format."""
        self._form = FORMS[0] if self.options.response_format == "auto" else self.options.response_format

    @property
    def model(self) -> str:
        """The model's name on the server."""
        return self.options.model

    @property
    def max_tokens(self) -> int:
        """The maximum number of tokens of prompt and completion together."""
        return self.options.context_tokens

    def count_tokens(self, text: str, /) -> int:
        """Return an estimate, rather too high than too low, without calling the server."""
        return estimate_tokens([text])[0]

    def status(self) -> dict[str, int | str]:
        """Return the model and its usage today, for ``klaw status``."""
        today = self.ledger.today()
        return {
            "language_model": str(self),
            "language_model_requests_today": today.requests,
            "language_model_tokens_today": today.tokens,
        }

    def check(self) -> None:
        """Check that the server answers and takes the key. Raise LanguageModelError.

        This asks for the list of models, which costs nothing, and ignores its content. A server that answers 403, 404
        or 405 to that may complete prompts nevertheless, so it is asked for a completion of one token, which counts for
        the limits of the day.
        """
        self.ledger.today()
        client = evolve(self._client(), retries=0, deadline_seconds=_CHECK_SECONDS)
        try:
            client.fetch("/models", _MAX_BYTES)
        except HttpError as error:
            status = _status_of(error)
            if status in _NO_LIST:
                self._check_completion(client)
            elif status not in _ANSWERS:
                raise LanguageModelError(f"{self}: {error.message}", hint=self._hint(error)) from error

    def _check_completion(self, client: HttpClient) -> None:
        """Check that the server completes a prompt, with or without text. Raise LanguageModelError."""
        prompt = Prompt((PromptMessage("user", "Hi"),), max_tokens=1)
        try:
            self._adapted_completion(prompt, client, Deadline(_CHECK_COMPLETION_SECONDS))
        except NoTextError:
            return  # a reasoning model needs more than one token
        except HttpError as error:
            said = error.detail.lower() if isinstance(error, StatusError) else ""
            status = _status_of(error)
            is_too_short = status in _BODY_REFUSED and "token" in said  # a reasoning model may reject such a limit
            if status != _BUSY and not is_too_short:
                raise LanguageModelError(f"{self}: {error.message}", hint=self._hint(error)) from error

    def complete(self, prompt: Prompt, /) -> Completion:
        """Return the completion of a prompt; with a schema, ``value`` satisfies it. Raise LanguageModelError."""
        deadline = Deadline(min(prompt.deadline_seconds, _MAX_SECONDS))
        try:
            return self._adapted_completion(prompt, self._client(), deadline)
        except HttpError as error:
            raise LanguageModelError(f"{self}: {error.message}", hint=self._hint(error)) from error

    def _adapted_completion(self, prompt: Prompt, client: HttpClient, deadline: Deadline) -> Completion:
        """Send a request until no parameter of it is rejected. Raise HttpError, LanguageModelError."""
        form = self._form
        while True:
            try:
                completion = self._completion(prompt, form, client, deadline)
            except StatusError as error:
                form = self._adapted(error, prompt, form)
            else:
                self._form = form if prompt.schema else self._form
                return completion

    def _completion(self, prompt: Prompt, form: str, client: HttpClient, deadline: Deadline) -> Completion:
        """Send a request with one response format. Raise HttpError, LanguageModelError."""
        messages = self._messages(prompt, form)
        asked = sum(self.count_tokens(message.content) + _MESSAGE_TOKENS for message in messages)
        room = self.options.context_tokens - asked
        if room <= 0:
            raise LanguageModelError(
                f"{self}: the prompt has about {asked:,} tokens, of {self.options.context_tokens:,}",
                hint="memory.language_model.context_tokens is the model's window",
            )
        longest = min(room, prompt.max_tokens or self.options.max_completion_tokens)
        left = round(deadline.remaining(), 2)
        if left <= 0:
            raise LanguageModelError(f"{self}: the deadline of {prompt.deadline_seconds:g} s has passed")
        reservation = self.ledger.reserve(asked, longest)
        client = evolve(
            client, read_timeout_seconds=left, deadline_seconds=left, pause=partial(self._wait_and_repeat, reservation)
        )
        answer = self._send(client, self._body(messages, prompt, form, longest), reservation)
        asked, given = self._settle(reservation, answer)
        if prompt.schema is None:
            return Completion(answer.text, None, asked, given)
        try:
            value = find_value(answer.text, prompt.schema, client.without_secrets)
        except BodyError as error:
            raise self._mismatch_error(error, longest if answer.is_cut else 0, form) from error
        return Completion(answer.text, value, asked, given)

    def _mismatch_error(self, error: BodyError, cut_after: int, form: str) -> LanguageModelError:
        """Return the error for an answer that does not match the schema.

        ``cut_after`` is the token limit at which the answer was cut off, or 0.
        """
        if cut_after:
            return LanguageModelError(
                f"{self}: the answer was cut off after {cut_after:,} tokens, before its JSON ended",
                hint="memory.language_model.max_completion_tokens is the bound where a prompt names none",
            )
        hint = f'response_format = "text" in {_PLACE} is for a server that does not know schemas'
        return LanguageModelError(f"{self}: {error.message}", hint="" if form == FORMS[-1] else hint)

    def _send(self, client: HttpClient, body: Mapping[str, object], reservation: Reservation) -> Answer:
        """Send a request; one that was rejected or never sent uses no tokens. Raise HttpError, LanguageModelError."""
        try:
            return read_answer(client.post("/chat/completions", body), client.without_secrets)
        except StatusError:
            self.ledger.settle(reservation, 0, 0)
            raise
        except NoAnswerError as error:
            if error.status is not None or not error.was_sent:
                self.ledger.settle(reservation, 0, 0, was_sent=error.was_sent)
            raise

    def _settle(self, reservation: Reservation, answer: Answer) -> tuple[int, int]:
        """Count the tokens of an answer, as the server reports or estimated; return those of prompt and answer."""
        given = self.count_tokens(answer.text) if answer.completion_tokens is None else answer.completion_tokens
        asked = reservation.prompt_tokens if answer.prompt_tokens is None else answer.prompt_tokens
        self.ledger.settle(reservation, asked, given)
        return asked, given

    def _messages(self, prompt: Prompt, form: str) -> list[PromptMessage]:
        """Return the messages to send; they contain the schema if the server does not enforce it."""
        if prompt.schema is None or form == FORMS[0]:
            return list(prompt.messages)
        told = (
            "Answer with one JSON object and nothing else. It must satisfy this JSON Schema: "
            f"{json.dumps(prompt.schema, ensure_ascii=False)}"
        )
        return [*prompt.messages, PromptMessage("user", told)]

    def _body(self, messages: list[PromptMessage], prompt: Prompt, form: str, longest: int) -> dict[str, object]:
        body: dict[str, object] = {
            "model": self.options.model,
            "messages": [
                # A lone surrogate cannot be sent (RFC 8259, 8.2).
                {"role": message.role, "content": message.content.encode("utf-8", "replace").decode()}
                for message in messages
            ],
            self._length_name: longest,
            "stream": False,
        }
        if self._takes_temperature:
            body["temperature"] = prompt.temperature
        if prompt.schema is not None and form == "json_schema":
            schema = {"name": "answer", "strict": is_strict(prompt.schema), "schema": dict(prompt.schema)}
            body["response_format"] = {"type": form, "json_schema": schema}
        elif prompt.schema is not None and form == "json_object":
            body["response_format"] = {"type": form}
        return body

    def _adapted(self, error: StatusError, prompt: Prompt, form: str) -> str:
        """Adapt to a rejected parameter; return the response format for the next request. Raise ``error`` otherwise."""
        said = error.detail.lower()
        if error.status not in _BODY_REFUSED and not (error.status in _FAILED and _ABOUT_FORM.search(said)):
            raise error
        if self._length_name == "max_tokens" and "max_completion_tokens" in said:
            self._length_name = "max_completion_tokens"
        elif self._takes_temperature and "temperature" in said:
            self._takes_temperature = False
        elif prompt.schema is None or self.options.response_format != "auto" or form == FORMS[-1]:
            raise error
        else:
            return FORMS[FORMS.index(form) + 1]
        return form

    def _wait_and_repeat(self, reservation: Reservation, seconds: float) -> None:
        """Wait before a request is retried, and count the retry."""
        self.ledger.repeat(reservation)
        time.sleep(seconds)

    def _client(self) -> HttpClient:
        """Return a client with the key in its headers. Raise LanguageModelError if the key for OpenAI is missing.

        ``OPENAI_API_KEY`` is only sent to OpenAI and to ``OPENAI_BASE_URL``. A server that is only in the configuration
        gets ``api_key``, or no key.
        """
        url, key = self.options.url, self.options.api_key
        if not key and url in {OPENAI_URL, environment_url()}:
            key = os.environ.get("OPENAI_API_KEY", "").strip()
        if not key and url == OPENAI_URL:
            raise LanguageModelError(f"{url} needs a key, and there is none", hint=_KEY)
        headers: Mapping[str, Any] = {"authorization": f"Bearer {key}"} if key else {}
        try:
            return HttpClient(url, headers=headers, retries=self.options.retries, max_response_bytes=_MAX_BYTES)
        except ValueError as error:  # the message of this error does not contain the key
            raise LanguageModelError(f"OPENAI_API_KEY cannot be sent: {error}") from error

    def _hint(self, error: HttpError) -> str:
        if isinstance(error, NoAnswerError) and error.status is None and self.options.url != OPENAI_URL:
            return "is it running? `klaw config get memory.language_model.url` prints its address"
        if isinstance(error, StatusError) and error.status in _KEY_REFUSED:
            return _KEY
        if isinstance(error, StatusError) and error.status == _NOT_FOUND:
            return f"is {self.model!r} a model of this server, and the path of memory.language_model.url right?"
        return ""

    def __str__(self) -> str:
        return f"{self.options.model} at {self.options.url}"


def _status_of(error: HttpError) -> int | None:
    """Return the status that the server has answered, if it has."""
    return error.status if isinstance(error, StatusError | NoAnswerError) else None


_KEY = f"export OPENAI_API_KEY=… for OpenAI, or set api_key in {_PLACE}"
