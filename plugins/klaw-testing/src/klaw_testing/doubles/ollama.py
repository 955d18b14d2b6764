"""A fake Ollama server for tests: its documented protocol on a real socket, with vectors that depend on every word.

Like the real one, it rejects texts that exceed the model's window (with ``truncate`` false) or truncates them
(without), and counts two special tokens.
"""

from __future__ import annotations

import json
from typing import Any

from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from klaw_testing.doubles.fake_model import FakeModel

DIGEST = "1b226e2802dbb772b5fc32a58f103ca1804ef7501331012de126ab22f67475ef"


class FakeOllama:
    """Serves one model. ``embed_requests`` has the texts of every request for vectors, ``bodies`` the bodies."""

    def __init__(self, server: HTTPServer) -> None:
        self.url = server.url_for("").rstrip("/")
        self.name = "all-minilm:l6-v2"
        self.model = FakeModel()
        self.digest = DIGEST
        self.parameters = "num_ctx                        256"
        self.model_info: dict[str, Any] = {
            "general.architecture": "bert",
            "bert.context_length": 512,
            "bert.embedding_length": self.model.dimension,
        }
        self.asked: list[str] = []
        self.embed_requests: list[list[str]] = []
        self.bodies: list[dict[str, Any]] = []
        server.expect_request("/api/tags", method="GET").respond_with_handler(self._tags)
        server.expect_request("/api/show", method="POST").respond_with_handler(self._show)
        server.expect_request("/api/embed", method="POST").respond_with_handler(self._embed)

    def _tags(self, _request: Request) -> Response:
        self.asked.append("tags")
        details = {"format": "gguf", "family": "bert", "parameter_size": "23M", "quantization_level": "F16"}
        entry = {"name": self.name, "model": self.name, "size": 45960996, "digest": self.digest, "details": details}
        return _json({"models": [{"name": "llama3:latest", "digest": "0" * 64}, entry]})

    def _show(self, request: Request) -> Response:
        self.asked.append("show")
        if missing := self._missing(request):
            return missing
        shown = {"parameters": self.parameters, "model_info": self.model_info, "capabilities": ["embedding"]}
        return _json(shown)

    def _embed(self, request: Request) -> Response:
        self.asked.append("embed")
        if missing := self._missing(request):
            return missing
        body = json.loads(request.data)
        self.bodies.append(body)
        self.embed_requests.append(body["input"])
        if not body.get("truncate", True) and any(self.model.too_long(text) for text in body["input"]):
            return _json({"error": "the input length exceeds the context length"}, 400)
        vectors = [self.model.vector(text).tolist() for text in body["input"]]
        return _json({"model": body["model"], "embeddings": vectors, "total_duration": 1, "prompt_eval_count": 1})

    def _missing(self, request: Request) -> Response | None:
        name = json.loads(request.data)["model"]
        if (name if ":" in name.rpartition("/")[2] else f"{name}:latest").lower() == self.name.lower():
            return None
        return _json({"error": f'model "{name}" not found, try pulling it first'}, 404)


def _json(value: object, status: int = 200) -> Response:
    return Response(json.dumps(value), status=status, content_type="application/json; charset=utf-8")
