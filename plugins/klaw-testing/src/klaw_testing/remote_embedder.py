"""The contract of remote embedders for misbehaving servers, as a test class to inherit.

    class TestOpenAIOnTheWire(RemoteEmbedderContract):
        def connect(self, url, **options): ...
        def answer(self, rows): ...

The servers are real sockets that send exactly the bytes of a test (:class:`klaw_testing.doubles.wire.Wire`). The
contract for well-behaved servers is ``klaw_testing.embedder.EmbedderContract``.
"""

# a contract test's name is its law; the numbers are the law's

from __future__ import annotations

import gzip
import json
import logging
import socket
import traceback
from functools import cache
from typing import Any, ClassVar

import numpy as np
import pytest

from klaw_core import EmbedderUnavailableError, EmbeddingError
from klaw_testing.doubles.wire import Script, Wire, reply

KEY = "key-0123456789abcdef"
DIMENSION = 4
ROW = [0.6, 0.8, 0.0, 0.0]
OTHER = [0.0, 0.0, 1.0, 0.0]
TEXT = "what is private"

# Rows that are not what was asked for, and what is said about them.
_WRONG: list[tuple[Any, str]] = [
    ([ROW], r"1 vectors for 2 texts|indexes do not match 2 texts"),
    ([ROW] * 3, r"3 vectors for 2 texts|indexes do not match 2 texts"),
    ([], "0 vectors for 2 texts"),
    ([ROW[:3]] * 2, "3 dimensions, not 4"),
    ([[*ROW, 0.1]] * 2, "5 dimensions, not 4"),
    ([ROW, ROW[:3]], "not rows of numbers"),
    ([ROW, None], "not rows of numbers"),
    ([ROW, ["x"] * 4], "not rows of numbers"),
    ([[[1.0]], [[1.0]]], "without numbers"),
    ([[], []], "without numbers"),
    ([ROW, [0.0] * 4], "vector of zeros"),
    ([ROW, [1e39, *ROW[1:]]], "NaN or an infinity"),
    ([ROW, [None, *ROW[1:]]], "NaN or an infinity"),
    ([ROW, [float("nan"), *ROW[1:]]], "NaN is not JSON"),
]


class RemoteEmbedderContract:
    """The laws of a remote embedder."""

    #: The server's answers before the first request for vectors.
    preamble: ClassVar[tuple[bytes, ...]] = ()
    #: The header with the key.
    key_header: ClassVar[str] = "authorization"

    def connect(self, url: str, **options: object) -> Any:
        """Build the embedder of a model with ``DIMENSION`` dimensions at this server, as the plugin does."""
        raise NotImplementedError

    def answer(self, rows: Any) -> dict[str, Any]:
        """Return the object in which the server sends these rows."""
        raise NotImplementedError

    def _wire(self, *scripts: Script) -> Wire:
        return Wire(*self.preamble, *scripts)

    def _embedder(self, wire: Wire, **options: object) -> Any:
        return self.connect(wire.url, **{"api_key": KEY, "retries": 0, "timeout_seconds": 5.0, **options})

    def _reply(self, *rows: Any) -> bytes:
        return reply(json.dumps(self.answer(list(rows))).encode())

    def _asked(self, wire: Wire) -> int:
        return len(wire.requests) - len(self.preamble)

    def test_rows_get_unit_length(self) -> None:
        with self._wire(self._reply(np.multiply(ROW, 7).tolist(), OTHER)) as wire:
            matrix = self._embedder(wire).embed_documents(["a", "b"])
        np.testing.assert_allclose(matrix, [ROW, OTHER], atol=1e-6)

    def test_one_call_of_the_size_it_asks_for_is_one_request(self) -> None:
        with self._wire(self._reply(ROW, OTHER)) as wire:
            embedder = self._embedder(wire, batch_size=2)
            assert embedder.texts_per_call == 2
            assert embedder.remote
            embedder.embed_documents(["a", "b"])
            assert self._asked(wire) == 1

    @pytest.mark.parametrize("status", ["429 Too Many Requests", "500 Oops", "502 Bad", "503 Busy"])
    def test_a_server_that_cannot_now_is_asked_again(self, status: str) -> None:
        refusal = reply(b'{"error": {"message": "try again"}}', status, retry_after="0")
        with self._wire(refusal, self._reply(ROW)) as wire:
            assert self._embedder(wire, retries=1).embed_query("a").shape == (DIMENSION,)
            assert self._asked(wire) == 2

    @pytest.mark.parametrize("status", ["429 Too Many Requests", "500 Oops", "503 Busy"])
    def test_one_that_still_cannot_is_unavailable_and_says_why(self, status: str) -> None:
        with (
            self._wire(reply(b'{"error": {"message": "out of quota"}}', status)) as wire,
            pytest.raises(EmbedderUnavailableError, match=rf"answers {status[:3]}: out of quota.*2 attempts") as caught,
        ):
            self._embedder(wire, retries=1).embed_query("a")
        assert caught.value.hint == ""  # the server is running, so a hint to start it would be wrong

    def test_retry_after_is_kept_to_or_given_up(self) -> None:
        with (
            self._wire(reply(b"", "429 Later", retry_after="3600"), self._reply(ROW)) as wire,
            pytest.raises(EmbedderUnavailableError, match=r"after 3600 s would exceed the deadline of 9 s"),
        ):
            self._embedder(wire, retries=1, deadline_seconds=9.0).embed_query("a")

    def test_a_connection_that_breaks_off_is_made_again(self) -> None:
        with self._wire(self._reply(ROW)[:-9], self._reply(ROW)) as wire:
            assert self._embedder(wire, retries=1).embed_query("a").shape == (DIMENSION,)

    def test_a_slow_drip_ends_at_the_deadline(self) -> None:
        with self._wire() as wire:
            wire.play(*self.preamble, wire.drip(b"HTTP/1.1 200 OK\r\ncontent-length: 900\r\n\r\n", b" "))
            with pytest.raises(EmbedderUnavailableError, match=r"did not finish within 0.4 s"):
                self._embedder(wire, deadline_seconds=0.4).embed_query("a")

    def test_silence_ends_at_the_timeout(self) -> None:
        with self._wire() as wire:
            wire.play(*self.preamble, _silence(wire))
            with pytest.raises(EmbedderUnavailableError, match=r"was silent for 0.2 s"):
                self._embedder(wire, timeout_seconds=0.2).embed_query("a")

    def test_no_server_is_unavailable_and_the_url_is_named(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        with pytest.raises(EmbedderUnavailableError, match=url):
            self.connect(url, api_key=KEY, retries=0).embed_query("a")

    @pytest.mark.parametrize(("rows", "expected"), _WRONG)
    def test_wrong_rows_are_refused_and_the_server_is_named(self, rows: Any, expected: str) -> None:
        with self._wire(self._reply(*rows)) as wire, pytest.raises(EmbeddingError, match=expected) as caught:
            self._embedder(wire).embed_documents(["a", "b"])
        assert wire.url in str(caught.value)

    @pytest.mark.parametrize("body", [b"", b"[]", b"{}", b"<html>", b"null", b"\xff", b"[" * 100_000])
    def test_what_is_no_answer_is_refused(self, body: bytes) -> None:
        with self._wire(reply(body)) as wire, pytest.raises(EmbeddingError, match=wire.url):
            self._embedder(wire).embed_query("a")

    def test_truncated_json_is_refused(self) -> None:
        body = json.dumps(self.answer([ROW])).encode()[:-9]
        with self._wire(reply(body)) as wire, pytest.raises(EmbeddingError, match="not valid JSON"):
            self._embedder(wire).embed_query("a")

    def test_a_gzip_bomb_is_refused(self) -> None:
        with self._wire(reply(_bomb(), content_encoding="gzip")) as wire, pytest.raises(EmbeddingError, match="larger"):
            self._embedder(wire).embed_query("a")

    def test_a_redirect_is_refused(self) -> None:
        with Wire(self._reply(ROW)) as elsewhere:
            with (
                self._wire(reply(b"", "307 Elsewhere", location=f"{elsewhere.url}/v1")) as wire,
                pytest.raises(EmbeddingError, match="redirect"),
            ):
                self._embedder(wire).embed_query(TEXT)
            assert elsewhere.requests == []

    def test_what_was_answered_before_a_failure_stays_answered(self) -> None:
        busy = reply(b"", "503 Busy")
        with self._wire(self._reply(ROW, OTHER), busy, self._reply(OTHER)) as wire:
            embedder = self._embedder(wire, batch_size=2)
            first = embedder.embed_documents(["a", "b"])
            with pytest.raises(EmbedderUnavailableError):
                embedder.embed_documents(["c"])
            np.testing.assert_allclose(first, [ROW, OTHER], atol=1e-6)
            np.testing.assert_allclose(embedder.embed_documents(["c"]), [OTHER], atol=1e-6)
            assert self._asked(wire) == 3

    def test_a_call_that_fails_in_its_second_request_returns_nothing(self) -> None:
        refusal = reply(b'{"error": {"message": "no"}}', "422 No")
        with self._wire(self._reply(ROW, OTHER), refusal) as wire, pytest.raises(EmbeddingError, match="422: no"):
            self._embedder(wire, batch_size=2).embed_documents(["a", "b", "c"])

    @pytest.mark.parametrize("status", ["401 No", "403 No", "400 API key not valid"])
    def test_a_refused_key_is_unavailable_with_a_hint(self, status: str) -> None:
        said = json.dumps({"error": {"message": f"API key not valid: {KEY}"}}).encode()
        with self._wire(reply(said, status)) as wire, pytest.raises(EmbedderUnavailableError) as caught:
            self._embedder(wire).embed_query("a")
        assert "memory.embedding.api_key" in caught.value.hint

    @pytest.mark.parametrize("status", ["401 No", "429 Later", "500 Oops", "400 Wrong"])
    def test_the_key_is_sent_in_its_header_and_shown_nowhere(
        self, caplog: pytest.LogCaptureFixture, status: str
    ) -> None:
        caplog.set_level(logging.DEBUG)
        said = json.dumps({"error": {"message": f"Incorrect API key provided: {KEY}"}}).encode()
        with self._wire(reply(said, status)) as wire:
            embedder = self._embedder(wire)
            with pytest.raises(EmbeddingError) as caught:
                embedder.embed_query(TEXT)
        line, _, headers = wire.requests[-1].partition(b"\r\n")
        head = headers.partition(b"\r\n\r\n")[0].decode().lower()
        assert KEY.encode() not in line
        sent = [header for header in head.splitlines() if KEY in header]
        assert [header.partition(":")[0] for header in sent] == [self.key_header]
        shown = repr(embedder) + repr(embedder.options) + repr(vars_of(embedder.server)) + caplog.text
        shown += "".join(traceback.format_exception(caught.value))
        assert caplog.records
        assert KEY not in shown
        assert TEXT not in shown


@cache
def _bomb() -> bytes:
    return gzip.compress(bytes(70 * 1024 * 1024), 1)


def _silence(wire: Wire) -> Script:
    def script(_connection: socket.socket) -> None:
        wire.released.wait(300)

    return script


def vars_of(server: object) -> list[str]:
    """Return the repr of everything a server object holds."""
    names = [name for name in dir(server) if not name.startswith("__")]
    return [repr(getattr(server, name)) for name in names]
