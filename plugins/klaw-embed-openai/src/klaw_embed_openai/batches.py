"""Embed with OpenAI's Batch API, which costs half and takes up to a day, without paying for a text twice.

A job is a file of requests with one text each; the ``custom_id`` is the hash of the text. The job is recorded on disk
before and after it is submitted, so that the next run after a crash finds it. It then waits for that job, or fetches
its answers again, which costs nothing. https://platform.openai.com/docs/guides/batch
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import asdict, evolve, frozen

from klaw_core import (
    EmbedderUnavailableError,
    EmbeddingError,
    locked,
    own_directory,
    read_regular,
    unit_rows,
    write_atomically,
)
from klaw_http import BodyError, HttpClient, HttpError, StatusError, server_name
from klaw_http.embedding import member

if TYPE_CHECKING:
    from klaw_core import Vector
    from klaw_embed_openai.server import OpenAIServer

_LOG = logging.getLogger("klaw")
_ENDPOINT = "/v1/embeddings"
_ENDED = frozenset({"completed", "failed", "expired", "cancelled"})
_MAX_FAILURES = 2  # consecutive failures, after which this process submits no more batches
_MIN_POLL_SECONDS, _MAX_POLL_SECONDS = 5.0, 60.0
_CANCEL_SECONDS = 900.0  # cancelling takes "up to 10 minutes"; then the finished part can be fetched
# Temporary problems: a wrong key, an exceeded quota, a busy or failing server. Other statuses concern the job, or mean
# that the server has no batches: a redirect, 404 or 501, or 406 or 415 for a body that is not JSON.
_CONFLICT = 409
_PASSING = frozenset({401, 402, 403, 408, _CONFLICT, 425, 429})
_FIRST_OF_SERVER, _NOT_IMPLEMENTED = 500, 501
_UPLOAD_SECONDS = 2 * 24 * 3600  # OpenAI deletes the uploaded texts after this time; a batch takes at most one day
_KEPT_SECONDS = 7 * 24 * 3600  # jobs, and their answers at OpenAI, are deleted after this time
_TRANSFER_SECONDS = 900.0
_BYTES_A_NUMBER = 32
_MAX_DIMENSION = 4096
_BYTES_A_LINE = 4096


@frozen
class Job:
    """The record of one batch on disk: ids and hashes, without texts and keys.

    ``recipe`` identifies everything except the texts that the vectors depend on. ``batch`` is empty until OpenAI has
    returned its id.
    """

    recipe: str
    input_file: str
    submitted_at: float
    texts: tuple[str, ...]
    batch: str = ""


class BatchJobs:
    """Gets vectors through batches; implements ``klaw_http.embedding.Bulk``.

    ``directory`` has a file per job. ``pause`` waits between two requests for the state of a batch.
    """

    def __init__(self, server: OpenAIServer, directory: Path, pause: Callable[[float], None] = time.sleep) -> None:
        self._server = server
        self._options = server.options
        self._place = directory
        self._pause = pause
        self._failures = 0
        self._recipe = f"{server_name(self._options.url)} {json.dumps(server.body([]), sort_keys=True)}"

    @property
    def texts_per_call(self) -> int:
        """Return the maximum number of texts per batch."""
        return self._options.batch_max_texts

    def rows(self, texts: Sequence[str], /) -> dict[str, Vector]:
        """Return the vectors of the texts that a batch has answered; the caller requests the others directly.

        Waits for the jobs that contain any of these texts, and submits a job for the rest if there are enough. Raise
        EmbedderUnavailableError if the server cannot be reached; the job continues, and the next call finds it.
        """
        text_of = {sha256(text.encode()).hexdigest(): text for text in texts}
        found: dict[str, Vector] = {}
        try:
            for path, job in self._jobs_for(text_of):
                rows = self._finish(path, job)
                found.update((text_of[digest], row) for digest, row in rows.items() if digest in text_of)
        except HttpError as error:
            hint = "a batch is still running; run the command again" if self._jobs_with_any(text_of) else ""
            raise EmbedderUnavailableError(error.message, hint=hint) from error
        return found

    def _jobs_for(self, text_of: Mapping[str, str]) -> list[tuple[Path, Job]]:
        """Return the jobs that contain any of these texts, with a new job for the rest if there are enough."""
        if len(text_of) < self._options.batch_min_texts and not self._jobs_with_any(text_of):
            return []
        with locked(self._directory):  # so that two processes do not submit the same texts
            held = self._jobs_with_any(text_of)
            known = {digest for _, job in held for digest in job.texts}
            rest = [digest for digest in text_of if digest not in known][: self._options.batch_max_texts]
            if len(rest) >= self._options.batch_min_texts and self._failures < _MAX_FAILURES:
                held += self._submitted({digest: text_of[digest] for digest in rest})
        return held

    @property
    def _directory(self) -> Path:
        """The directory of the jobs. Raise StoreReadOnlyError for a link that another user may have created."""
        return own_directory(self._place.parent, self._place.name)

    def _jobs_with_any(self, text_of: Mapping[str, str]) -> list[tuple[Path, Job]]:
        return [(path, job) for path, job in self._jobs() if not text_of.keys().isdisjoint(job.texts)]

    def _jobs(self) -> Iterator[tuple[Path, Job]]:
        """Yield the jobs on disk whose vectors are the same as those of this configuration; delete expired ones."""
        for path in sorted(self._directory.glob("*.json")):
            job = _read_job(path)
            if job and time.time() - job.submitted_at > _KEPT_SECONDS:
                path.unlink(missing_ok=True)
            elif job and job.recipe == self._recipe:
                yield path, job

    def _submitted(self, text_of: Mapping[str, str]) -> list[tuple[Path, Job]]:
        """Upload the requests and start the batch; return no job if the server rejects it. Raise HttpError."""
        path = self._directory / f"{sha256(''.join([self._recipe, *text_of]).encode()).hexdigest()[:16]}.json"
        lines = [
            {"custom_id": digest, "method": "POST", "url": _ENDPOINT, "body": self._server.body(text)}
            for digest, text in text_of.items()
        ]
        content = "".join(json.dumps(line) + "\n" for line in lines).encode()
        fields = {
            "purpose": "batch",
            "expires_after[anchor]": "created_at",
            "expires_after[seconds]": str(_UPLOAD_SECONDS),
        }
        try:
            uploaded = self._transfers().upload("/files", fields, "klaw.jsonl", content)
            job = Job(self._recipe, str(uploaded.get("id")), time.time(), tuple(text_of))
            self._keep(path, job)
            return [(path, self._started(path, job))]
        except (StatusError, BodyError) as error:
            if _is_temporary(error):
                raise
            self._failed(error.message)
            path.unlink(missing_ok=True)
            return []

    def _started(self, path: Path, job: Job) -> Job:
        """Create the batch of a job and record its id. A request that may have arrived is never repeated."""
        body = {
            "input_file_id": job.input_file,
            "endpoint": _ENDPOINT,
            "completion_window": "24h",
            "output_expires_after": {"anchor": "created_at", "seconds": _KEPT_SECONDS},
        }
        client = evolve(self._server.client, retries=0)
        job = evolve(job, batch=str(client.post("/batches", body).get("id")))
        self._keep(path, job)
        _LOG.info("batch %s of %d texts submitted", job.batch, len(job.texts))
        return job

    def _finish(self, path: Path, job: Job) -> dict[str, Vector]:
        """Wait for a job and return its vectors by hash; delete one that ended without answers. Raise HttpError.

        A job with answers is kept, because the process may be killed before they are stored.
        """
        try:
            job = job if job.batch else self._found_again(path, job)
            batch = self._awaited(job)
            rows = self._answers(batch, job)
        except (StatusError, BodyError, EmbeddingError) as error:
            if _is_temporary(error):
                raise
            self._failed(error.message)
            path.unlink(missing_ok=True)
            return {}
        if rows and batch.get("status") == "completed":
            self._failures = 0
        else:
            self._failed(f"batch {job.batch} {batch.get('status')}: {_first_error(batch)}")
        if not batch.get("output_file_id"):
            path.unlink(missing_ok=True)
        return rows

    def _found_again(self, path: Path, job: Job) -> Job:
        """Find the batch of a job that was interrupted before its id was recorded, or start it now."""
        with locked(self._directory):
            job = _read_job(path) or job
            if job.batch:
                return job
            listed = self._server.client.get("/batches?limit=100").get("data")
            for batch in listed if isinstance(listed, list) else ():
                if member(batch, "input_file_id") == job.input_file:
                    job = evolve(job, batch=str(member(batch, "id")))
                    self._keep(path, job)
                    return job
            return self._started(path, job)

    def _awaited(self, job: Job) -> dict[str, Any]:
        """Return the batch after it has ended. After the timeout it is cancelled; its finished part can be fetched."""
        path = f"/batches/{job.batch}"
        limit, waited, cancelled = self._options.batch_timeout_seconds, 0.0, False
        while True:
            batch = self._server.client.get(path)
            if batch.get("status") in _ENDED:
                return batch
            if waited >= limit and cancelled:
                raise EmbeddingError(f"batch {job.batch} was cancelled but does not end")
            if waited >= limit:
                _LOG.warning("batch %s took longer than %g s: cancelled", job.batch, waited)
                self._cancel(path)
                cancelled, limit = True, waited + _CANCEL_SECONDS
            counts = batch.get("request_counts")
            _LOG.info("batch %s: %s of %d texts", job.batch, member(counts, "completed"), len(job.texts))
            seconds = min(_MAX_POLL_SECONDS, max(_MIN_POLL_SECONDS, waited / 10), max(limit - waited, 1.0))
            self._pause(seconds)
            waited += seconds

    def _cancel(self, path: str) -> None:
        """Cancel a batch. Errors are ignored, because a batch that has already ended cannot be cancelled."""
        try:
            self._server.client.post(f"{path}/cancel", {})
        except StatusError as error:
            if error.status != _CONFLICT and _is_temporary(error):
                raise

    def _answers(self, batch: Mapping[str, Any], job: Job) -> dict[str, Vector]:
        """Return the vectors in the output of a batch; texts with other answers are requested directly."""
        if not batch.get("output_file_id"):
            return {}
        dimension = self._server.properties().dimension or _MAX_DIMENSION
        limit = len(job.texts) * (_BYTES_A_NUMBER * dimension + _BYTES_A_LINE)
        try:
            output = self._transfers().fetch(f"/files/{batch['output_file_id']}/content", limit)
        except BodyError as error:  # for example too large; it would fail in every run
            _LOG.warning("%s", error.message)
            return {}
        rows: dict[str, Vector] = {}
        for line in output.splitlines():
            with suppress(ValueError, RecursionError, EmbeddingError):
                answer = json.loads(line)
                row = unit_rows(self._server.rows(member(member(answer, "response"), "body"), 1), str(self._server))[0]
                rows[str(member(answer, "custom_id"))] = row
        return rows

    def _transfers(self) -> HttpClient:
        """Return a client with a timeout for tens of megabytes."""
        return evolve(self._server.client, deadline_seconds=_TRANSFER_SECONDS)

    def _failed(self, reason: str) -> None:
        self._failures += 1
        _LOG.warning("%s; the texts without an answer are sent in single requests", reason)

    def _keep(self, path: Path, job: Job) -> None:
        write_atomically(path, json.dumps(asdict(job)))


def _read_job(path: Path) -> Job | None:
    """Return the job in a file, or None if the file does not exist or does not contain a job."""
    try:
        loaded = json.loads(read_regular(path))
        return Job(**{**loaded, "texts": tuple(loaded["texts"]), "submitted_at": float(loaded["submitted_at"])})
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _is_temporary(error: Exception) -> bool:
    """Return whether an error is temporary and does not concern the job, which is then kept."""
    if isinstance(error, StatusError):
        status = error.status
        return status in _PASSING or (status >= _FIRST_OF_SERVER and status != _NOT_IMPLEMENTED)
    return isinstance(error, BodyError)


def _first_error(batch: Mapping[str, Any]) -> str:
    errors = member(batch.get("errors"), "data")
    return str(member(errors[0], "message")) if isinstance(errors, list) and errors else "no reason given"
