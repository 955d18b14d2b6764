"""A fake Gemini API for tests: its documented protocol on a real socket."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

import numpy as np
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from klaw_testing.doubles.fake_model import FakeModel

KEY = "AIza-fake-0123456789abcdef"


class FakeGemini:
    """Serves one model below ``url``. Like the real API, it truncates long texts silently.

    ``answered`` counts the texts whose vectors were sent; ``requests`` has the single requests of each batch. Vectors
    shorter than ``model.dimension`` are not of unit length.
    """

    def __init__(self, server: HTTPServer, *, dimension: int = 3072) -> None:
        self.url = server.url_for("/v1beta")
        self.key = KEY
        self.name = "gemini-embedding-001"
        self.model = FakeModel(dimension=dimension, context=2048)
        self.answered: Counter[str] = Counter()
        self.requests: list[list[dict[str, Any]]] = []
        path = re.compile(r"/v1beta/models/[^/]*:batchEmbedContents")
        server.expect_request(path, method="POST").respond_with_handler(self._embed)

    def _embed(self, request: Request) -> Response:
        if request.headers.get("x-goog-api-key") != self.key:
            return error(400, "API key not valid. Please pass a valid API key.", "INVALID_ARGUMENT")
        requests = json.loads(request.data)["requests"]
        self.requests.append(requests)
        name = request.path.rpartition("/")[2].removesuffix(":batchEmbedContents")
        if name != self.name:
            return error(404, f"models/{name} is not found for API version v1beta.", "NOT_FOUND")
        if len(requests) > 100:  # the API's own bound
            return error(400, "at most 100 requests can be in one batch", "INVALID_ARGUMENT")
        texts = ["".join(part["text"] for part in each["content"]["parts"]) for each in requests]
        if not all(texts) or {each["model"] for each in requests} != {f"models/{name}"}:
            return error(400, "content is empty, or a model is another", "INVALID_ARGUMENT")
        self.answered.update(texts)
        rows = [
            self._values(text, each.get("outputDimensionality")) for text, each in zip(texts, requests, strict=True)
        ]
        return answer({"embeddings": [{"values": row} for row in rows]})

    def _values(self, text: str, dimension: int | None) -> list[float]:
        vector = self.model.vector(text, dimension)
        shortened = dimension is not None and dimension < self.model.dimension
        return (vector * np.float64(0.7) if shortened else vector).tolist()  # type: ignore[no-any-return]  # numpy's


def answer(value: object, status: int = 200) -> Response:
    """Return a JSON response."""
    return Response(json.dumps(value), status=status, content_type="application/json; charset=UTF-8")


def error(status: int, message: str, name: str) -> Response:
    """Return an error response in Google's form."""
    return answer({"error": {"code": status, "message": message, "status": name}}, status)
