"""Tables of vectors as collections of Qdrant (https://api.qdrant.tech).

A point has a UUID that is the number of its batch and its key. So a key that comes again is another point, and who
reads only the ids knows both. The payload has what Qdrant compares: the key, the labels, and the time of writing.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any
from uuid import UUID

import numpy as np

from klaw_core import RetrievalError, Vector
from klaw_http import HttpClient, HttpError, StatusError
from klaw_qdrant.options import QdrantOptions
from klaw_store_sqlitevec.outside import Changes, Found, OutsideIndex, TableRecord, Wanted

# The numbers in the vectors of one request or answer: 10 MB of JSON, where a server accepts 32.
_MAX_NUMBERS = 500_000
_IDS_AT_ONCE = 10_000
_KEY, _LABELS, _WRITTEN = "key", "labels", "written"
_KEY_BITS = 64
_KEYS = (1 << _KEY_BITS) - 1


class QdrantTables(OutsideIndex):
    """The collections on a server. Safe to use from several threads, and after a fork."""

    def __init__(self, options: QdrantOptions) -> None:
        self._url = options.url.rstrip("/")
        self._client = HttpClient(
            options.url,
            headers={"api-key": options.api_key} if options.api_key else {},
            read_timeout_seconds=options.timeout_seconds,
            deadline_seconds=options.timeout_seconds,
        )

    def apply(self, table: TableRecord, changes: Changes) -> int:
        """Add the changes. Create the collection if necessary."""
        with self._translated("written"):
            if not table.version:  # an existing collection comes from a transaction that was rolled back
                self._client.delete(_at(table.name))
                self._create(table.name, table.dimension)
            rows = zip(changes.keys.tolist(), changes.vectors, changes.labels, strict=True)
            self._write(
                table,
                [_point(_id(key, changes.batch), key, vector.tolist(), labels) for key, vector, labels in rows],
            )
            return 1

    def copy(self, table: TableRecord, name: str, alive: Mapping[int, int]) -> int:
        """Create a collection ``name`` from the valid points."""
        copied = TableRecord(name, table.dimension, 1)
        with self._translated("written"):
            self._create(name, table.dimension)
            asked = {"limit": _points_at_once(table), "with_vector": True, "with_payload": [_LABELS]}
            for points in self._scroll(table.name, asked):
                valid = []
                for point in points:
                    key, batch = _key_and_batch(point["id"])
                    if alive.get(key) == batch:
                        valid.append(_point(point["id"], key, point["vector"], point["payload"][_LABELS]))
                self._write(copied, valid)
            return copied.version

    def count(self, table: TableRecord) -> int:
        """Return the number of points, including invalid ones."""
        with self._translated("read"):
            return int(self._post(table.name, "count", {"exact": True})["count"])

    def nearest(self, table: TableRecord, vector: Vector, limit: int, wanted: Wanted, *, exact: bool) -> Found:
        """Return the nearest points, including invalid ones. ``exact`` compares every vector with the question."""
        body = {"query": vector.tolist(), "limit": limit, "filter": _conditions(wanted), "params": {"exact": exact}}
        with self._translated("searched"):
            points = self._post(table.name, "query", body)["points"]
            found = [(*_key_and_batch(point["id"]), point["score"]) for point in points]
        keys, batches, scores = zip(*found, strict=True) if found else ((), (), ())
        return Found(np.array(keys, np.int64), np.array(batches, np.int64), np.array(scores, np.float32))

    def read_batches(self, table: TableRecord) -> Iterator[tuple[int, int]]:
        """Yield the key and the batch number of every point, including invalid ones."""
        with self._translated("read"):
            for points in self._scroll(table.name, {"limit": _IDS_AT_ONCE, "with_payload": False}):
                yield from (_key_and_batch(point["id"]) for point in points)

    def names(self) -> set[str]:
        """Return the names of all collections."""
        with self._translated("read"):
            return {each["name"] for each in self._client.get("/collections")["result"]["collections"]}

    def drop(self, name: str) -> None:
        """Remove a collection, if it exists."""
        with self._translated("written"):
            self._client.delete(_at(name))

    def last_written(self, name: str) -> datetime:
        """Return the time of the newest point; of an empty collection, now, because another process may fill it."""
        body = {"limit": 1, "with_payload": [_WRITTEN], "order_by": {"key": _WRITTEN, "direction": "desc"}}
        with self._translated("read"):
            points = self._post(name, "scroll", body)["points"]
            return datetime.fromtimestamp(points[0]["payload"][_WRITTEN], UTC) if points else datetime.now(UTC)

    def _create(self, name: str, dimension: int) -> None:
        self._client.put(_at(name), {"vectors": {"size": dimension, "distance": "Cosine"}})
        for indexed in (_KEY, _LABELS, _WRITTEN):  # without, a filter compares every point, and a strict server refuses
            self._client.put(f"{_at(name)}/index?wait=true", {"field_name": indexed, "field_schema": "integer"})

    def _write(self, table: TableRecord, points: Sequence[dict[str, Any]]) -> None:
        size = _points_at_once(table)
        for start in range(0, len(points), size):
            self._client.put(f"{_at(table.name)}/points?wait=true", {"points": points[start : start + size]})

    def _scroll(self, name: str, body: Mapping[str, object]) -> Iterator[list[dict[str, Any]]]:
        offset = None
        while True:
            page = self._post(name, "scroll", {**body, "offset": offset})
            yield page["points"]
            offset = page["next_page_offset"]
            if offset is None:
                return

    def _post(self, name: str, action: str, body: Mapping[str, object]) -> dict[str, Any]:
        result: dict[str, Any] = self._client.post(f"{_at(name)}/points/{action}", body)["result"]
        return result

    @contextmanager
    def _translated(self, done: str) -> Iterator[None]:
        """Convert refusals, silence, and answers of another form to RetrievalError."""
        try:
            yield
        except HttpError as error:
            lost = isinstance(error, StatusError) and error.status == HTTPStatus.NOT_FOUND
            hint = "`klaw reindex` builds it again" if lost else "check the url and the api_key of qdrant: klaw doctor"
            message = f"the vectors on {self._url} could not be {done}: {error.message}"
            raise RetrievalError(message, hint=hint) from error
        except (KeyError, TypeError, ValueError, IndexError) as error:
            message = f"the answer of {self._url} is not Qdrant's"
            raise RetrievalError(message, hint="check the url of qdrant") from error


def _at(name: str) -> str:
    return f"/collections/{name}"


def _points_at_once(table: TableRecord) -> int:
    return max(1, _MAX_NUMBERS // table.dimension)


def _point(point: str, key: int, vector: Sequence[float], labels: Sequence[int]) -> dict[str, Any]:
    return {"id": point, "vector": vector, "payload": {_KEY: key, _LABELS: labels, _WRITTEN: int(time.time())}}


def _id(key: int, batch: int) -> str:
    return str(UUID(int=batch << _KEY_BITS | key))


def _key_and_batch(point: str) -> tuple[int, int]:
    number = UUID(point).int
    return number & _KEYS, number >> _KEY_BITS


def _conditions(wanted: Wanted) -> dict[str, Any]:
    """Return what is wanted as a filter of Qdrant; an empty one if everything is."""
    if wanted.keys is not None:
        return {"must": [{"key": _KEY, "match": {"any": wanted.keys.tolist()}}]}
    return {"must": [{"key": _LABELS, "match": {"any": sorted(each)}} for each in wanted.labels]}
