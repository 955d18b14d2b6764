"""Servers that answer anything at all: a caller gets an error of Klaw's or sound vectors, soon, and no key."""

from __future__ import annotations

import gzip
import json
import random
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import numpy as np
import pytest

from klaw_core import (
    Candidate,
    ComponentContext,
    Hit,
    KlawError,
    Prompt,
    PromptMessage,
    Query,
    StoredChunk,
    discover,
)
from klaw_testing.values import cut_lines, make_document

KEY = "sk-do-not-show-this-key-000000000000"
DEADLINE_SECONDS = 1.0
#: Only a client that ignores its deadline needs longer, however busy the machine is: a server drips for longer.
PATIENCE_SECONDS = 300.0
SAMPLE = 2
RETRY_AFTER = ("86400", "-1", "x", "Fri, 31 Dec 9999 23:59:59 GMT")

EMBEDDERS = {
    "openai": {"model": "m"},
    "gemini": {"model": "m", "dimension": 8},
    "ollama": {"model": "m"},
}
REMOTE = {"api_key": KEY, "retries": 0, "timeout_seconds": 0.5, "deadline_seconds": DEADLINE_SECONDS}


def _http(body: bytes, status: str = "200 OK", **headers: str) -> bytes:
    named = {"content-type": "application/json", "content-length": str(len(body)), **headers}
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in named.items())
    return f"HTTP/1.1 {status}\r\n{lines}\r\n".encode() + body


def _drip(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n")
        for _ in range(8_000):
            connection.sendall(b" ")
            time.sleep(0.05)


def _vectors(dice: random.Random) -> object:
    """Return what might be vectors, in the shape of any provider, with one thing wrong."""
    bad = [float("nan"), float("inf"), 1e999, -1e308, "1.0", None, {}, [], True, 2**70, -0.0]
    row = [dice.choice([0.1, -0.2, *bad]) for _ in range(dice.choice((0, 1, 3, 8, 8, 8)))]
    rows = [row] * dice.choice((0, 1, 1, 2, 5000))
    score = dice.choice([0.5, *bad])
    return dice.choice(
        [
            {"data": [{"embedding": one, "index": dice.choice((0, 1, -1, 2**40, "0", None))} for one in rows]},
            {"embeddings": [{"values": one} for one in rows]},
            {"embeddings": rows, "models": [{"name": "m:latest", "digest": dice.choice(["x", None, 7, "\x1b[2J"])}]},
            {"models": dice.choice([None, {}, [None], [{"name": 5}]])},
            {"results": [{"index": dice.choice((0, 1, -1, 10**9, "0")), "relevance_score": score} for _ in range(3)]},
            [{"index": 0, "score": score}],
            {"error": {"message": f"your key {KEY} is wrong {KEY[::-1]}"}},
            {"choices": [_choice(dice)], "usage": {"prompt_tokens": dice.choice([-1, 2**70, "7", None, 3])}},
            {"choices": [_choice(dice)], "usage": dice.choice([None, [], 7])},
            {"model_info": {"bert.embedding_length": dice.choice(bad), "bert.context_length": dice.choice(bad)}},
            rows,
        ]
    )


def _choice(dice: random.Random) -> object:
    """Return what might be a completion, with one thing wrong."""
    whole = json.dumps({"city": "Kiel"})
    texts = [whole, whole[:-3], f"your key {KEY}", json.dumps({"city": KEY, "town": 1}), '{"city": "\\ud83d"}']
    texts += ["[" * 50_000, '{"a":' * 50_000, "{" * 50_000, "<html>", "\x1b[2J", "<think>" * 1000, "x" * 1_000_000, ""]
    content = dice.choice([*texts, None, 7, [], [None], [{"text": 7}], {"text": whole}])
    said = {"content": content}
    message = dice.choice([said, said, said, {"refusal": f"no: {KEY}"}, None, "Kiel", [content]])
    return dice.choice([{"message": message, "finish_reason": dice.choice(["stop", "length", None, 7])}, message, None])


def answers(dice: random.Random) -> bytes | Callable[[socket.socket], None]:
    """Return what a hostile server sends to one request."""
    body = json.dumps(_vectors(dice)).encode()
    return dice.choice(
        [
            _http(body),
            _http(body),
            _http(body),
            _http(body, "401 Unauthorized"),
            _http(
                body,
                "429 Too Many Requests",
                retry_after=dice.choice(RETRY_AFTER),
            ),
            _http(body, dice.choice(("500 No", "503 Busy", "999 What", "100 Continue", "204 No Content"))),
            _http(b"", "302 Found", location="http://169.254.169.254/latest/meta-data"),
            _http(b"", "307 Temporary Redirect", location="file:///etc/passwd"),
            _http(b"<html>" + KEY.encode() + b"</html>", content_type="text/html"),
            _http(b"[" * 100_000),
            _http(b'{"a":' * 50_000),
            _http(body[: len(body) // 2]),
            _http(body, content_length=str(len(body) + 100)),
            _http(body, content_length=dice.choice(("-1", "x", "9" * 30))),
            _http(gzip.compress(b"[" + b"0," * 30_000_000 + b"0]", 9), content_encoding="gzip"),
            _http(b"not gzip", content_encoding="gzip"),
            _http(body, x="y" * 200_000),
            _http(b"\xff\xfe\x00" + body),
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFFFFF\r\n",
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhel",
            b"\x00" * 5000,
            b"SSH-2.0-OpenSSH_9.0\r\n",
            b"",
            dice.randbytes(200),
            _drip,
        ]
    )


@contextmanager
def serving(dice: random.Random) -> Iterator[str]:
    """Give the address of a hostile server."""
    listener = socket.create_server(("127.0.0.1", 0))

    def answer(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            connection.settimeout(5)
            connection.recv(65536)
            reply = answers(dice)
            if callable(reply):
                reply(connection)
            else:
                connection.sendall(reply)

    def accept() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                threading.Thread(target=answer, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
    finally:
        listener.close()


def build(kind: str, name: str, tmp_path, **options):
    component = discover().component(kind, name)
    return component.factory(component.options(**options), ComponentContext(data_dir=tmp_path, cache_dir=tmp_path))


def outcome(work: Callable[[], object]) -> str:
    """Return what went wrong with a call, empty if it ended as it may."""
    began = time.monotonic()
    try:
        work()
    except KlawError as error:
        if KEY in f"{error} {error.hint} {error.__cause__!r}":
            return f"the key is shown: {error}"
    except Exception as error:  # noqa: BLE001  # whatever it is, it must not come out
        return f"{type(error).__name__}: {error}"
    took = time.monotonic() - began
    return f"took {took:.0f} s" if took > PATIENCE_SECONDS else ""


def use_embedder(embedder) -> None:
    space = embedder.space
    matrix = embedder.embed_documents(["one", "two"])
    assert matrix.shape == (2, space.dimension)
    assert np.isfinite(matrix).all()
    assert np.allclose(np.linalg.norm(matrix, axis=1), 1, atol=1e-3)


@pytest.mark.parametrize("name", EMBEDDERS)
def test_an_embedding_server_may_answer_anything(cases, tmp_path, name):
    problems = []
    for number, dice in cases.seeded(f"server {name}", SAMPLE):
        with serving(dice) as url:
            embedder = build("embedder", name, tmp_path, url=url, **REMOTE, **EMBEDDERS[name])
            if problem := outcome(lambda embedder=embedder: use_embedder(embedder)):
                problems.append((number, problem))
    assert problems == []


@pytest.mark.parametrize("dialect", ["jina", "tei"])
def test_a_reranking_server_may_answer_anything(cases, tmp_path, dialect):
    document = make_document("notes/a.md", "one\ntwo\nthree")
    chunks = [
        StoredChunk(key, chunk, document.path, document.source, document.created_at)
        for key, chunk in enumerate(cut_lines(document), start=1)
    ]
    candidates = [Candidate(stored, Hit(stored.key, 1.0 / stored.key)) for stored in chunks]

    def use(reranker) -> None:
        scores = reranker.rerank(Query("question", "memory"), candidates, 3) or ()
        assert all(np.isfinite(score.score) for score in scores)
        assert {score.key for score in scores} <= {stored.key for stored in chunks}

    problems = []
    for number, dice in cases.seeded(f"reranker {dialect}", SAMPLE):
        with serving(dice) as url:
            options = {"api_key": KEY, "retries": 0, "timeout_seconds": DEADLINE_SECONDS, "bypass": False}
            reranker = build("reranker", "http", tmp_path, url=url, dialect=dialect, **options)
            if problem := outcome(lambda reranker=reranker: use(reranker)):
                problems.append((number, problem))
    assert problems == []


def test_a_language_model_may_answer_anything(cases, tmp_path):
    city = {"type": "object", "required": ["city"], "additionalProperties": False, "properties": {"city": {}}}

    def use(model, schema) -> None:
        prompt = Prompt((PromptMessage("user", "Name a city."),), schema, deadline_seconds=DEADLINE_SECONDS)
        completion = model.complete(prompt)
        completion.text.encode()
        assert completion.prompt_tokens >= 0
        assert completion.completion_tokens >= 0
        assert schema is None or set(completion.value) == {"city"}

    problems = []
    for number, dice in cases.seeded("language model", SAMPLE):
        with serving(dice) as url:
            model = build("language model", "openai", tmp_path, url=url, model="m", api_key=KEY, retries=0)
            schema = dice.choice([None, city])
            if problem := outcome(lambda model=model, schema=schema: use(model, schema)):
                problems.append((number, problem))
    assert problems == []


@pytest.mark.parametrize("kind", ["plain", "silent", "wrong name", "self-signed", "garbage", "closed"])
@pytest.mark.parametrize("name", EMBEDDERS)
def test_an_encrypted_connection_that_cannot_be_trusted_gives_an_error(tmp_path, name, kind):
    """No certificate, a strange one, one of another name, or no TLS at all: an error, and no key goes out."""
    listener = socket.create_server(("127.0.0.1", 0))
    got: list[bytes] = []

    def accept() -> None:
        with suppress(OSError, ssl.SSLError):
            while True:
                connection, _ = listener.accept()
                connection.settimeout(3)
                with connection, suppress(OSError, ssl.SSLError):
                    if kind == "closed":
                        connection.close()
                        continue
                    got.append(connection.recv(65536))
                    reply = {"plain": _http(b"{}"), "garbage": bytes(range(256)) * 20}.get(kind, b"")
                    alert = b"\x15\x03\x03\x00\x02\x02\x28"  # a fatal alert: handshake failure
                    if kind != "silent":
                        connection.sendall(reply or alert)

    threading.Thread(target=accept, daemon=True).start()
    url = f"https://127.0.0.1:{listener.getsockname()[1]}/v1"
    embedder = build("embedder", name, tmp_path, url=url, **REMOTE, **EMBEDDERS[name])
    with pytest.raises(KlawError) as caught:
        use_embedder(embedder)
    listener.close()
    assert KEY not in str(caught.value)
    assert not any(KEY.encode() in data for data in got)
