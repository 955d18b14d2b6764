"""A server of Qdrant's REST interface: requests are read with Qdrant's own models, and answered by its local mode."""

from __future__ import annotations

import json
import os
import re

import numpy as np
import pytest
from numpy.typing import NDArray
from qdrant_client import models
from qdrant_client.local.qdrant_local import QdrantLocal
from werkzeug import Request, Response

from klaw_qdrant.options import QdrantOptions

KEY = "q-7f3a9c51e0d2"


class Server:
    """What a server with an API key answers. ``is_away``: 503 for everything; ``asked``: the requests, in order.

    A real server may be another process on another machine. Local mode compares every vector, has no indexes of
    payloads (a request for one is only read), and no limit of requests.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.local = QdrantLocal(":memory:")
        self.is_away = False
        self.asked: list[str] = []

    def answer(self, request: Request) -> Response:
        """Answer a request as the server would."""
        path = request.path.removeprefix("/qdrant")
        self.asked.append(f"{request.method} {path}")
        if self.is_away:
            return _json({"status": {"error": "Service unavailable"}}, 503)
        if request.headers.get("api-key") != KEY:
            return _json({"status": {"error": "Must provide an API key or an Authorization bearer token"}}, 401)
        name, _, action = path.removeprefix("/collections").strip("/").partition("/")
        try:
            result = self._result(request, name, action)
        except ValueError as error:  # local mode's error for a collection that is not there
            return _json({"status": {"error": f"Not found: {error}"}}, 404)
        return _json({"result": result, "status": "ok", "time": 0.001}, 200)

    def _result(self, request: Request, name: str, action: str) -> object:
        data = request.get_data()
        match request.method, bool(name), action:
            case "GET", False, "":
                return self.local.get_collections().model_dump(mode="json")
            case "PUT", True, "":
                asked = models.CreateCollection.model_validate_json(data)
                return self.local.create_collection(name, asked.vectors)
            case "DELETE", True, "":
                return name in _names(self.local) and self.local.delete_collection(name)
            case "PUT", True, "index":
                assert models.CreateFieldIndex.model_validate_json(data).field_schema == "integer"
                return {"operation_id": 1, "status": "completed"}
            case "PUT", True, "points":
                assert request.args["wait"] == "true"
                points = models.PointsList.model_validate_json(data).points
                return self.local.upsert(name, points).model_dump(mode="json")
            case "POST", True, _:
                return self._post(name, action, data)
        raise AssertionError(f"Qdrant has no {request.method} {request.path}")

    def _post(self, name: str, action: str, data: bytes) -> object:
        if action == "points/count":
            counted = models.CountRequest.model_validate_json(data)
            return self.local.count(name, counted.filter, exact=counted.exact).model_dump(mode="json")
        if action == "points/scroll":
            asked = models.ScrollRequest.model_validate_json(data)
            found, following = self.local.scroll(
                name,
                asked.filter,
                asked.limit,
                asked.order_by,
                asked.offset,
                with_payload=asked.with_payload,
                with_vectors=asked.with_vector or False,
            )
            return {"points": [each.model_dump(mode="json") for each in found], "next_page_offset": following}
        assert action == "points/query"
        query = models.QueryRequest.model_validate_json(data)
        found, _ = self.local.scroll(name, query.filter, self.local.count(name).count or 1, with_vectors=True)
        return {"points": _scored(found, np.array(query.query, np.float32))[: query.limit]}


def _scored(found: list[models.Record], asked: NDArray[np.float32]) -> list[dict[str, object]]:
    """Return ids and scores as a server compares, pair by pair. Local mode scales what it has at each search."""
    rows = [(float(np.sum(np.array(each.vector, np.float32) * asked)), str(each.id)) for each in found]
    return [{"id": each, "score": score} for score, each in sorted(rows, key=lambda row: (-row[0], row[1]))]


def _names(local: QdrantLocal) -> set[str]:
    return {each.name for each in local.get_collections().collections}


def _json(body: object, status: int) -> Response:
    return Response(json.dumps(body), status, content_type="application/json")


@pytest.fixture
def server(httpserver) -> Server:
    """A server that answers under the path ``/qdrant``, as behind a proxy."""
    running = Server(httpserver.url_for("/qdrant"))
    httpserver.expect_request(re.compile("/qdrant/.*")).respond_with_handler(running.answer)
    return running


@pytest.fixture
def options(server) -> QdrantOptions:
    """The options for the server; for a real one if ``KLAW_TEST_QDRANT_URL`` names it, with its key."""
    if real := os.environ.get("KLAW_TEST_QDRANT_URL"):
        return QdrantOptions(real, os.environ.get("KLAW_TEST_QDRANT_KEY", ""))
    return QdrantOptions(server.url, KEY)
