"""A fake chat server for tests: the protocol on a real socket, with given answers. Requires pytest-httpserver."""

from __future__ import annotations

import json
from typing import Any

from attrs import define, field
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from klaw_core import Prompt, PromptMessage

#: The schema of the answers.
CITY = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}


def ask(text: str = "Name a city.", **more: Any) -> Prompt:
    """Return a prompt of two messages."""
    return Prompt((PromptMessage("system", "You are terse."), PromptMessage("user", text)), **more)


@define
class FakeChat:
    """A chat server. ``forms`` are the supported response formats; ``answer`` is the text of its answers.

    ``refusals`` are keys of a request that it rejects, with the error messages; ``more`` replaces parts of an answer.
    """

    url: str
    answer: str = "Kiel"
    forms: tuple[str, ...] = ("json_schema", "json_object")
    refusals: dict[str, str] = field(factory=dict)
    more: dict[str, Any] = field(factory=dict)
    requests: list[dict[str, Any]] = field(factory=list)
    headers: list[dict[str, str]] = field(factory=list)

    @classmethod
    def at(cls, server: HTTPServer) -> FakeChat:
        """Return a chat server at ``/v1`` of an HTTP server."""
        fake = cls(server.url_for("/v1"))
        server.expect_request("/v1/chat/completions", method="POST").respond_with_handler(fake.respond)
        return fake

    def respond(self, request: Request) -> Response:
        """Answer a request and record it."""
        body = json.loads(request.data)
        self.requests.append(body)
        self.headers.append({name.lower(): value for name, value in request.headers.items()})
        form = body.get("response_format", {}).get("type")
        for name, words in self.refusals.items():
            if name in body:
                return _json({"error": {"message": words}}, 400)
        if form and form not in self.forms:
            return _json({"error": {"message": f"This response_format type {form} is unavailable"}}, 400)
        choice = {"index": 0, "message": {"role": "assistant", "content": self.answer}, "finish_reason": "stop"}
        usage = {"prompt_tokens": 11, "completion_tokens": 5, "total_tokens": 16}
        return _json({"object": "chat.completion", "choices": [choice], "usage": usage, **self.more})


def _json(value: object, status: int = 200) -> Response:
    return Response(json.dumps(value), status, content_type="application/json")
