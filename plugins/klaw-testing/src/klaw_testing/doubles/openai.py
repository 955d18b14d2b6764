"""A fake OpenAI server for tests: its documented protocol on a real socket, with a count of the texts to pay for."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections import Counter
from contextlib import closing
from typing import Any

from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from klaw_testing.doubles.fake_model import FakeModel

KEY = "sk-fake-0123456789abcdef"


class FakeOpenAI:
    """Serves one model below ``url``.

    ``answered`` counts the texts whose vectors were sent or batched; ``answered.total()`` is the number of texts to pay
    for. ``requests`` has the bodies of the requests for vectors, ``asked`` every method and path. ``key`` is the
    required key, if any. ``batch_status`` has the state of a batch at each request; the last one is repeated.
    """

    def __init__(self, server: HTTPServer, *, key: str = "", dimension: int = 1536) -> None:
        self.server = server
        self.url = server.url_for("/v1")
        self.key = key
        self.name = "text-embedding-3-small"
        self.model = FakeModel(dimension=dimension, context=8192)
        self.knows_base64 = True
        self.answered: Counter[str] = Counter()
        self.asked: list[str] = []
        self.requests: list[dict[str, Any]] = []
        self.files: dict[str, bytes] = {}
        self.uploads: list[bytes] = []
        self.batches: dict[str, dict[str, Any]] = {}
        self.batch_status = ["completed"]
        server.expect_request("/v1/embeddings", method="POST").respond_with_handler(self._embeddings)
        server.expect_request("/v1/files", method="POST").respond_with_handler(self._upload)
        server.expect_request("/v1/batches", method="POST").respond_with_handler(self._submit)
        server.expect_request("/v1/batches", method="GET").respond_with_handler(self._list)
        server.expect_request(re.compile("/v1/batches/.*/cancel"), method="POST").respond_with_handler(self._cancel)
        server.expect_request(re.compile("/v1/batches/[^/]*"), method="GET").respond_with_handler(self._look)
        server.expect_request(re.compile("/v1/files/.*/content"), method="GET").respond_with_handler(self._content)

    def _embeddings(self, request: Request) -> Response:
        if refusal := self._refusal(request):
            return refusal
        body = json.loads(request.data)
        self.requests.append(body)
        return self._answer(body)

    def _answer(self, body: dict[str, Any]) -> Response:
        """Answer the body of a request for vectors, sent directly or in a batch."""
        texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
        if body["model"] != self.name:
            return error(404, f"The model `{body['model']}` does not exist or you do not have access to it.")
        if not all(texts):
            return error(400, "'$.input' is invalid. Please check the API reference.")
        if any(self.model.too_long(text) for text in texts):
            return error(400, f"This model's maximum context length is {self.model.context} tokens.")
        base64 = body.get("encoding_format") == "base64" and self.knows_base64
        data = [
            {"object": "embedding", "index": place, "embedding": self._vector(text, body.get("dimensions"), base64)}
            for place, text in enumerate(texts)
        ]
        self.answered.update(texts)
        return answer({"object": "list", "data": data, "model": self.name, "usage": {"total_tokens": 1}})

    def _vector(self, text: str, dimension: int | None, base64: bool) -> object:  # noqa: FBT001  # its only caller is above
        vector = self.model.vector(text, dimension)
        return b64encode(vector.astype("<f4").tobytes()).decode() if base64 else vector.tolist()

    def _upload(self, request: Request) -> Response:
        if refusal := self._refusal(request):
            return refusal
        assert request.form["purpose"] == "batch"
        name = f"file-{len(self.files)}"
        with closing(request.files["file"]) as file:
            self.files[name] = file.read()
        self.uploads.append(self.files[name])
        return answer({"id": name, "object": "file", "purpose": "batch", "bytes": len(self.files[name])})

    def _submit(self, request: Request) -> Response:
        if refusal := self._refusal(request):
            return refusal
        body = json.loads(request.data)
        assert (body["endpoint"], body["completion_window"]) == ("/v1/embeddings", "24h")
        name = f"batch_{len(self.batches)}"
        self.batches[name] = {"id": name, "object": "batch", "status": "validating", **body}
        return answer(self.batches[name])

    def _list(self, request: Request) -> Response:
        return self._refusal(request) or answer({"object": "list", "data": list(self.batches.values())[::-1]})

    def _look(self, request: Request) -> Response:
        if refusal := self._refusal(request):
            return refusal
        batch = self.batches.get(request.path.rpartition("/")[2])
        if batch is None:
            return error(404, "No batch found")
        if batch["status"] not in {"completed", "failed", "expired", "cancelled"}:
            status = self.batch_status.pop(0) if len(self.batch_status) > 1 else self.batch_status[0]
            batch["status"] = "cancelled" if batch["status"] == "cancelling" else status
            if batch["status"] in {"completed", "expired", "cancelled"}:
                self._run(batch, whole=batch["status"] == "completed")
        return answer(batch)

    def _run(self, batch: dict[str, Any], *, whole: bool) -> None:
        """Answer all requests of a batch, or the first half of them, in no particular order."""
        lines = [json.loads(line) for line in self.files[batch["input_file_id"]].splitlines()]
        output = []
        for line in lines if whole else lines[: len(lines) // 2]:
            response = self._answer(line["body"])
            if response.status_code == 200:  # others go to the error file
                body = {"status_code": 200, "request_id": "r", "body": json.loads(response.data)}
                output.append({"id": "l", "custom_id": line["custom_id"], "response": body, "error": None})
        batch["output_file_id"] = f"file-{len(self.files)}"
        batch["request_counts"] = {"total": len(lines), "completed": len(output), "failed": len(lines) - len(output)}
        self.files[batch["output_file_id"]] = "".join(json.dumps(line) + "\n" for line in output[::-1]).encode()

    def _cancel(self, request: Request) -> Response:
        if refusal := self._refusal(request):
            return refusal
        batch = self.batches[request.path.split("/")[-2]]
        batch["status"] = "cancelling"
        return answer(batch)

    def _content(self, request: Request) -> Response:
        return self._refusal(request) or Response(self.files[request.path.split("/")[-2]])

    def _refusal(self, request: Request) -> Response | None:
        self.asked.append(f"{request.method} {request.path}")
        sent = request.headers.get("authorization", "")
        if self.key and sent != f"Bearer {self.key}":
            return error(401, f"Incorrect API key provided: {sent.removeprefix('Bearer ')}.")
        return None


def answer(value: object, status: int = 200) -> Response:
    """Return a JSON response."""
    return Response(json.dumps(value), status=status, content_type="application/json")


def error(status: int, message: str) -> Response:
    """Return an error response in OpenAI's form."""
    return answer({"error": {"message": message, "type": "invalid_request_error", "param": None, "code": None}}, status)
