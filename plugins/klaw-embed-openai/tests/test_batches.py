"""The Batch API: half the price, resumed after a kill, never paid twice, and given up when it does not work."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Response

from klaw_core import EmbedderUnavailableError, EmbeddingError
from klaw_embed_openai.batches import BatchJobs
from klaw_embed_openai.options import OpenAIOptions
from klaw_embed_openai.server import OpenAIServer
from klaw_http.embedding import RemoteEmbedder
from klaw_testing.doubles.openai import KEY, FakeOpenAI, error

TEXTS = [f"note number {number}" for number in range(20)]
Connect = Callable[..., RemoteEmbedder]


class KilledError(BaseException):
    """What ends a process in the middle; nothing catches it."""


class Pauses:
    """Waits for nothing; is killed at the n-th wait, if told so."""

    def __init__(self, kill_at: int = 0) -> None:
        self.seconds: list[float] = []
        self._kill_at = kill_at

    def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)
        if len(self.seconds) == self._kill_at:
            raise KilledError


@pytest.fixture
def batched(openai: FakeOpenAI, tmp_path: Path) -> Connect:
    """Build the embedder of a process of its own, over the same directory."""

    def build(pause: Pauses | None = None, **options: Any) -> RemoteEmbedder:
        values = {"dimension": 64, "retries": 0, "batch_api": True, "batch_min_texts": 10, "api_key": KEY, **options}
        built = OpenAIOptions(url=openai.url, **values)
        server = OpenAIServer(built)
        return RemoteEmbedder(built, server, BatchJobs(server, tmp_path / "batches", pause or Pauses()))

    return build


def states(directory: Path) -> list[Path]:
    return sorted((directory / "batches").glob("*.json"))


def test_a_first_index_is_one_batch_with_the_vectors_of_single_requests(
    openai: FakeOpenAI, batched: Connect, connect: Connect
) -> None:
    openai.batch_status = ["validating", "in_progress", "finalizing", "completed"]
    embedder = batched()
    matrix = embedder.embed_documents(TEXTS)
    assert (len(openai.batches), openai.requests) == (1, [])
    assert openai.answered.total() == len(TEXTS)
    np.testing.assert_allclose(matrix, connect().embed_documents(TEXTS), atol=1e-6)
    (batch,) = openai.batches.values()
    assert batch["output_expires_after"]["anchor"] == "created_at"


def test_the_embedder_declares_the_texts_per_call(batched: Connect) -> None:
    assert batched().texts_per_call == 5_000
    assert batched(batch_max_texts=50).texts_per_call == 50


def test_few_texts_and_questions_are_sent_without_a_batch(openai: FakeOpenAI, batched: Connect) -> None:
    embedder = batched()
    embedder.embed_documents(TEXTS[:9])
    embedder.embed_query(TEXTS[10])
    assert (len(openai.batches), len(openai.requests)) == (0, 2)


def test_equal_texts_are_one_line_of_a_batch(openai: FakeOpenAI, batched: Connect) -> None:
    batched().embed_documents([*TEXTS, *TEXTS])
    lines = [json.loads(line) for line in openai.uploads[0].splitlines()]
    assert len(lines) == len({line["custom_id"] for line in lines}) == len(TEXTS)
    assert {(line["method"], line["url"]) for line in lines} == {("POST", "/v1/embeddings")}


@pytest.mark.parametrize("polls", [1, 3])
def test_a_killed_run_continues_its_batch_and_pays_once(
    openai: FakeOpenAI, batched: Connect, tmp_path: Path, polls: int
) -> None:
    openai.batch_status = ["in_progress"] * 4 + ["completed"]
    with pytest.raises(KilledError):
        batched(Pauses(kill_at=polls)).embed_documents(TEXTS)
    assert len(states(tmp_path)) == 1
    assert batched().embed_documents(TEXTS).shape == (20, 64)
    assert (len(openai.batches), openai.requests) == (1, [])
    assert set(openai.answered.values()) == {1}


def test_answers_that_were_not_saved_are_fetched_again_at_no_cost(openai: FakeOpenAI, batched: Connect) -> None:
    first = batched().embed_documents(TEXTS)
    batched().embed_documents(["the probe"])
    again = batched().embed_documents(TEXTS)
    np.testing.assert_array_equal(first, again)
    assert (len(openai.batches), len(openai.requests)) == (1, 1)


def test_a_batch_without_a_stored_id_is_found_by_its_file(
    openai: FakeOpenAI, batched: Connect, httpserver: HTTPServer, tmp_path: Path
) -> None:
    submit = openai._submit

    def answer_lost(request: Any) -> Response:
        submit(request)
        return Response(status=503)

    httpserver.expect_oneshot_request("/v1/batches", method="POST").respond_with_handler(answer_lost)
    with pytest.raises(EmbedderUnavailableError, match=r"503.*run the command again"):
        batched(retries=3).embed_documents(TEXTS)
    assert len(openai.batches) == 1
    assert json.loads(states(tmp_path)[0].read_text())["batch"] == ""
    batched().embed_documents(TEXTS)
    assert (len(openai.batches), openai.requests) == (1, [])
    assert json.loads(states(tmp_path)[0].read_text())["batch"] == "batch_0"


def test_a_batch_that_was_not_created_uses_the_uploaded_file(
    openai: FakeOpenAI, batched: Connect, httpserver: HTTPServer
) -> None:
    httpserver.expect_oneshot_request("/v1/batches", method="POST").respond_with_data("", status=503)
    with pytest.raises(EmbedderUnavailableError):
        batched().embed_documents(TEXTS)
    batched().embed_documents(TEXTS)
    assert (len(openai.uploads), len(openai.batches), openai.requests) == (1, 1, [])


def test_changed_notes_are_sent_in_addition_to_the_batch(openai: FakeOpenAI, batched: Connect) -> None:
    openai.batch_status = ["in_progress", "completed"]
    with pytest.raises(KilledError):
        batched(Pauses(kill_at=1)).embed_documents(TEXTS)
    batched().embed_documents([*TEXTS[5:], "a new note"])
    assert len(openai.batches) == 1
    assert [request["input"] for request in openai.requests] == [["a new note"]]


def test_two_processes_wait_for_one_batch(openai: FakeOpenAI, batched: Connect) -> None:
    openai.batch_status = ["in_progress", "in_progress", "completed"]

    class OtherProcess(Pauses):
        def __call__(self, seconds: float) -> None:
            super().__call__(seconds)
            if len(self.seconds) == 1:
                batched().embed_documents(TEXTS)

    batched(OtherProcess()).embed_documents(TEXTS)
    assert (len(openai.batches), openai.requests) == (1, [])


def test_the_stored_state_is_private_and_has_no_text_and_no_key(batched: Connect, tmp_path: Path) -> None:
    batched().embed_documents(TEXTS)
    (state,) = states(tmp_path)
    assert "note" not in state.read_text()
    assert KEY not in state.read_text()
    assert stat.S_IMODE(state.stat().st_mode) == 0o600
    assert stat.S_IMODE(state.parent.stat().st_mode) == 0o700


def test_a_batch_that_takes_too_long_is_cancelled_and_only_the_rest_is_sent(
    openai: FakeOpenAI, batched: Connect
) -> None:
    openai.batch_status = ["in_progress"]
    pauses = Pauses()
    batched(pauses, batch_timeout_seconds=60.0).embed_documents(TEXTS)
    assert 60 <= sum(pauses.seconds) < 120
    assert "POST /v1/batches/batch_0/cancel" in openai.asked
    assert [request["input"] for request in openai.requests] == [TEXTS[10:]]
    assert set(openai.answered.values()) == {1}


@pytest.mark.parametrize("status", [400, 409])
def test_a_batch_that_ends_just_before_it_is_cancelled_is_paid_for_once(
    openai: FakeOpenAI, batched: Connect, status: int
) -> None:
    openai.batch_status = ["in_progress", "in_progress", "completed"]
    refusal = error(status, "Cannot cancel a batch with status 'completed'.")
    openai.server.expect_oneshot_request("/v1/batches/batch_0/cancel").respond_with_response(refusal)
    batched(batch_timeout_seconds=1.0).embed_documents(TEXTS)
    assert (len(openai.batches), openai.requests) == (1, [])


def test_a_batch_that_cannot_be_cancelled_now_is_kept(openai: FakeOpenAI, batched: Connect, tmp_path: Path) -> None:
    openai.batch_status = ["in_progress"]
    refusal = error(520, "unknown")
    openai.server.expect_oneshot_request("/v1/batches/batch_0/cancel").respond_with_response(refusal)
    with pytest.raises(EmbedderUnavailableError, match="520"):
        batched(batch_timeout_seconds=1.0).embed_documents(TEXTS)
    assert (len(openai.requests), len(states(tmp_path))) == (0, 1)


@pytest.mark.parametrize("status", ["failed", "expired"])
def test_a_batch_that_fails_leaves_the_rest_to_single_requests(
    openai: FakeOpenAI, batched: Connect, caplog: pytest.LogCaptureFixture, status: str
) -> None:
    openai.batch_status = [status]
    assert batched().embed_documents(TEXTS).shape == (20, 64)
    assert set(openai.answered.values()) == {1}
    assert f"batch batch_0 {status}" in caplog.text


def test_after_two_consecutive_failures_no_batch_is_created(openai: FakeOpenAI, batched: Connect) -> None:
    openai.batch_status = ["failed"]
    embedder = batched()
    for run in range(4):
        embedder.embed_documents([f"{run} {text}" for text in TEXTS])
    assert (len(openai.batches), len(openai.requests)) == (2, 4)


def test_a_success_resets_the_count_of_failures(openai: FakeOpenAI, batched: Connect) -> None:
    openai.batch_status = ["failed", "completed", "failed", "completed"]
    embedder = batched()
    for run in range(4):
        embedder.embed_documents([f"{run} {text}" for text in TEXTS])
    assert len(openai.batches) == 4


@pytest.mark.parametrize("status", [301, 307, 400, 404, 405, 406, 413, 415, 422, 451, 501])
def test_a_server_without_batches_gets_single_requests(
    openai: FakeOpenAI, batched: Connect, tmp_path: Path, status: int
) -> None:
    for path in ("/v1/files", "/v1/batches"):
        openai.server.expect_oneshot_request(path, method="POST").respond_with_response(error(status, "no batches"))
    embedder = batched()
    for run in range(2):
        embedder.embed_documents([f"{run} {text}" for text in TEXTS])
    assert (len(openai.batches), len(openai.requests)) == (0, 2)
    assert states(tmp_path) == []


PAGE = Response("<html>sign in to this network</html>")


@pytest.mark.parametrize("path", ["batches/batch_0", "files/file-1/content"])
@pytest.mark.parametrize("status", [401, 402, 403, 408, 409, 425, 429, 500, 502, 520, 522])
def test_a_rejection_unrelated_to_the_batch_keeps_it(
    openai: FakeOpenAI, batched: Connect, path: str, status: int
) -> None:
    openai.batch_status = ["in_progress", "completed"]
    refusal = error(status, f"Incorrect API key provided: {KEY}")
    openai.server.expect_oneshot_request(f"/v1/{path}", method="GET").respond_with_response(refusal)
    with pytest.raises(EmbedderUnavailableError, match=r"a batch is still running; run the command again") as caught:
        batched().embed_documents(TEXTS)
    assert KEY not in str(caught.value)
    batched().embed_documents(TEXTS)
    assert (len(openai.batches), openai.requests) == (1, [])


@pytest.mark.parametrize("path", ["batches/batch_0", "batches"])
def test_a_web_page_instead_of_the_state_keeps_the_batch(openai: FakeOpenAI, batched: Connect, path: str) -> None:
    method = "POST" if path == "batches" else "GET"
    openai.server.expect_oneshot_request(f"/v1/{path}", method=method).respond_with_response(PAGE)
    with pytest.raises(EmbedderUnavailableError, match=r"not valid JSON.*run the command again"):
        batched().embed_documents(TEXTS)
    batched().embed_documents(TEXTS)
    assert (len(openai.uploads), len(openai.batches), openai.requests) == (1, 1, [])


def test_a_web_page_instead_of_the_answers_keeps_the_batch(
    openai: FakeOpenAI, batched: Connect, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Behind the page of a network that wants a sign-in, single requests fail as well."""
    for path in ("files/file-1/content", "embeddings"):
        openai.server.expect_oneshot_request(f"/v1/{path}").respond_with_response(PAGE)
    with pytest.raises(EmbeddingError, match="not valid JSON"):
        batched().embed_documents(TEXTS)
    assert "batch batch_0 completed" in caplog.text
    assert len(states(tmp_path)) == 1
    batched().embed_documents(TEXTS)
    assert (len(openai.batches), openai.requests) == (1, [])


def test_answers_that_are_too_large_leave_the_texts_to_single_requests(
    openai: FakeOpenAI, batched: Connect, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run = openai._run

    def pad(batch: dict[str, Any], *, whole: bool) -> None:
        run(batch, whole=whole)
        openai.files[batch["output_file_id"]] += b"\n" * 1_000_000

    openai._run = pad  # type: ignore[method-assign]  # a server that answers at length
    for _ in range(2):
        assert batched().embed_documents(TEXTS).shape == (20, 64)
    assert "larger than" in caplog.text
    assert (len(openai.batches), len(openai.requests), len(states(tmp_path))) == (1, 2, 1)


def test_a_failed_upload_stores_no_batch(openai: FakeOpenAI, batched: Connect, tmp_path: Path) -> None:
    openai.server.expect_oneshot_request("/v1/files", method="POST").respond_with_response(error(520, "unknown"))
    with pytest.raises(EmbedderUnavailableError, match="520: unknown") as caught:
        batched().embed_documents(TEXTS)
    assert caught.value.hint == ""
    assert states(tmp_path) == []


def test_invalid_answers_are_requested_again_singly(openai: FakeOpenAI, batched: Connect) -> None:
    run = openai._run

    def spoil(batch: dict[str, Any], *, whole: bool) -> None:
        run(batch, whole=whole)
        lines = openai.files[batch["output_file_id"]].splitlines()
        wrong = json.loads(lines[1])
        wrong["response"]["body"]["data"][0]["embedding"] = [float("nan")] * 64
        short = json.loads(lines[2])
        short["response"]["body"]["data"][0]["embedding"] = [1.0] * 3
        spoiled = [lines[0][:50], json.dumps(wrong).encode(), json.dumps(short).encode(), b"[]", *lines[4:]]
        openai.files[batch["output_file_id"]] = b"\n".join(spoiled)

    openai._run = spoil  # type: ignore[method-assign]  # a server that answers nonsense
    matrix = batched().embed_documents(TEXTS)
    np.testing.assert_allclose(np.linalg.norm(matrix, axis=1), 1, atol=1e-6)
    assert sorted(text for request in openai.requests for text in request["input"]) == sorted(TEXTS[16:])


def test_a_batch_of_another_recipe_is_not_used(openai: FakeOpenAI, batched: Connect) -> None:
    batched().embed_documents(TEXTS)
    batched(dimension=32).embed_documents(TEXTS)
    assert len(openai.batches) == 2


def test_a_job_is_forgotten_after_a_week(batched: Connect, tmp_path: Path) -> None:
    batched().embed_documents(TEXTS)
    (state,) = states(tmp_path)
    job = json.loads(state.read_text())
    state.write_text(json.dumps({**job, "submitted_at": job["submitted_at"] - 8 * 24 * 3600}))
    batched().embed_documents(["another text"])
    assert states(tmp_path) == []


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"texts": 3}', "null", "\0"])
def test_an_invalid_job_file_is_ignored(openai: FakeOpenAI, batched: Connect, tmp_path: Path, content: str) -> None:
    (tmp_path / "batches").mkdir()
    (tmp_path / "batches" / "odd.json").write_text(content)
    batched().embed_documents(TEXTS)
    assert len(openai.batches) == 1
