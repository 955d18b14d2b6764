"""Files that are not what they should be: each gives an error, and none takes the process down."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import klaw_embed_llamacpp.verification
from klaw_core import EmbedderUnavailableError, EmbeddingError, ModelCorruptError, ModelNotFoundError, update_command
from klaw_embed_llamacpp.embedder import LlamaCppEmbedder
from klaw_embed_llamacpp.header import Header
from klaw_embed_llamacpp.runtime import Settings
from klaw_embed_llamacpp.verification import ModelIdentity, VerificationCache

Build = Callable[..., LlamaCppEmbedder]
SETTINGS = Settings(512, "mean", threads=1)


def _text(value: str) -> bytes:
    return struct.pack("<Q", len(value.encode())) + value.encode()


def _header(*pairs: bytes, version: int = 3, keys: int | None = None) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", version, 0, len(pairs) if keys is None else keys) + b"".join(pairs)


def _pair(key: str, kind: int, value: bytes) -> bytes:
    return _text(key) + struct.pack("<I", kind) + value


ARCHITECTURE = _pair("general.architecture", 8, _text("bert"))
CONTEXT = _pair("bert.context_length", 4, struct.pack("<I", 512))


def test_the_header_of_a_real_file_is_read(minilm_gguf: Path) -> None:
    assert Header.read(minilm_gguf) == Header(512, "mean")


def test_a_file_without_pooling_needs_the_option(tmp_path: Path) -> None:
    path = tmp_path / "plain.gguf"
    words = struct.pack("<IQ", 8, 2) + _text("a") + _text("b")
    scores = struct.pack("<IQ2f", 6, 2, 0.5, 0.5)
    path.write_bytes(_header(ARCHITECTURE, _pair("words", 9, words), _pair("scores", 9, scores), CONTEXT))
    assert Header.read(path) == Header(512, None)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "cannot mmap an empty file"),
        (b"GG", "metadata is truncated"),
        (b"<!DOCTYPE html><title>Not found</title>", "does not begin with GGUF"),
        (_header(ARCHITECTURE, CONTEXT, version=1), "version 1 is not"),
        (_header(ARCHITECTURE, CONTEXT, version=0x03000000), "version 50331648 is not"),
        (_header(CONTEXT), "has no architecture"),
        (_header(ARCHITECTURE), "has no architecture and context length"),
        (_header(ARCHITECTURE, _pair("bert.context_length", 4, struct.pack("<I", 0))), "context length"),
        (_header(ARCHITECTURE, _pair("bert.context_length", 8, _text("512"))), "context length"),
        (_header(ARCHITECTURE, CONTEXT, _pair("bert.pooling_type", 4, struct.pack("<I", 4))), "reranker"),
        (_header(ARCHITECTURE, CONTEXT, keys=2**63), "9223372036854775808 metadata keys"),
        (_header(ARCHITECTURE, CONTEXT, keys=3), "metadata is truncated"),
        (_header(_pair("x", 99, b"")), "a value of type 99"),
        (_header(_pair("x", 9, struct.pack("<IQ", 9, 1))), "an array of type 9"),
        (_header(_pair("x", 9, struct.pack("<IQ", 8, 2**62))), "metadata is truncated"),
        (_header(_pair("x", 9, struct.pack("<IQ", 10, 2**62))), "metadata is truncated"),
        (_header(struct.pack("<Q", 2**63) + b"x"), "metadata is truncated"),
    ],
)
def test_an_invalid_gguf_file_is_rejected_before_llama_cpp(tmp_path: Path, content: bytes, reason: str) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(content)
    with pytest.raises(
        ModelCorruptError, match=f"model.gguf is not a valid GGUF file: .*{reason}.*download the file again"
    ):
        Header.read(path)


@given(content=st.binary(max_size=300), start=st.sampled_from([b"", b"GGUF\3\0\0\0", _header(ARCHITECTURE, CONTEXT)]))
def test_law_bytes_are_read_or_rejected(tmp_path_factory: pytest.TempPathFactory, content: bytes, start: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "any.gguf"
    path.write_bytes(start + content)
    try:
        found = Header.read(path)
    except ModelCorruptError as error:
        assert path.name in str(error)  # noqa: PT017  # any other exception is a failure
    else:
        assert found.context_tokens > 0


def test_a_missing_file_is_named(build: Build, tmp_path: Path) -> None:
    with pytest.raises(ModelNotFoundError, match=r"no file .*absent\.gguf.*memory\.embedding\.path"):
        _ = build(path=str(tmp_path / "absent.gguf")).space


@pytest.mark.parametrize("length", [1_000, 300_000, 20_000_000])
def test_a_truncated_file_is_rejected(build: Build, minilm_gguf: Path, tmp_path: Path, length: int) -> None:
    path = tmp_path / "half.gguf"
    with minilm_gguf.open("rb") as stream:
        path.write_bytes(stream.read(length))
    with pytest.raises(ModelCorruptError, match=r"half\.gguf.*download the file again"):
        _ = build(path=str(path)).space


@pytest.mark.parametrize(
    ("found", "put"),
    [
        (b"bert.attention.head_count\x04\0\0\0\x0c", b"bert.attention.head_count\x04\0\0\0\x00"),
        (b"bert.block_count\x04\0\0\0\x06", b"bert.block_count\x04\0\0\0\xff"),
        (b"bert.embedding_length\x04\0\0\0\x80\x01", b"bert.embedding_length\x04\0\0\0\xff\xff"),
        (b"token_embd.weight\x02\0\0\0\x80\x01", b"token_embd.weight\x02\0\0\0\x81\x01"),
    ],
    ids=["no heads", "layers that are not there", "wide", "another shape"],
)
def test_an_inconsistent_file_is_an_error(
    build: Build, minilm_gguf: Path, tmp_path: Path, found: bytes, put: bytes
) -> None:
    content = minilm_gguf.read_bytes()
    assert content.count(found) == 1
    path = tmp_path / "odd.gguf"
    path.write_bytes(content.replace(found, put))
    with pytest.raises((ModelCorruptError, EmbedderUnavailableError), match=r"odd\.gguf"):
        build(path=str(path)).embed_query("a")


def test_an_unknown_architecture_asks_for_a_newer_llama_cpp(build: Build, minilm_gguf: Path, tmp_path: Path) -> None:
    path = tmp_path / "new.gguf"
    path.write_bytes(minilm_gguf.read_bytes().replace(b"bert", b"trib"))
    with pytest.raises(EmbedderUnavailableError, match="unknown model architecture") as caught:
        _ = build(path=str(path)).space
    assert caught.value.hint == update_command("xllamacpp")


def test_a_file_that_kills_llama_cpp_does_not_kill_klaw(
    minilm_gguf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The trial is a process that aborts, as llama.cpp does when an assertion of its own fails."""
    program = tmp_path / "aborts"
    program.write_text("#!/bin/sh\nkill -ABRT $$\n", encoding="utf-8")
    program.chmod(0o700)
    monkeypatch.setattr(klaw_embed_llamacpp.verification.sys, "executable", str(program))
    with pytest.raises(ModelCorruptError, match=r"llama\.cpp was killed by SIGABRT while it loaded .*minilm\.gguf"):
        VerificationCache(tmp_path / "book").verify(minilm_gguf, SETTINGS)


def test_the_trial_prints_only_the_reason(minilm_gguf: Path) -> None:
    command = [sys.executable, "-m", "klaw_embed_llamacpp.trial", str(minilm_gguf), "512", "mean", "1"]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (run.stdout, run.stderr) == ("384\n", "")


def test_a_verification_is_cached_until_the_file_changes(minilm_gguf: Path, tmp_path: Path) -> None:
    path, verifications = tmp_path / "model.gguf", VerificationCache(tmp_path / "book")
    path.write_bytes(minilm_gguf.read_bytes())
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert verifications.verify(path, SETTINGS) == ModelIdentity(digest, 384)
    (record,) = verifications.directory.iterdir()
    content = json.loads(record.read_text(encoding="utf-8"))
    record.write_text(json.dumps(content | {"proof": {"sha256": "0" * 64, "dimension": 7}}), encoding="utf-8")
    assert verifications.verify(path, SETTINGS) == ModelIdentity("0" * 64, 7)
    assert verifications.verify(path, Settings(256, "mean", threads=1)) == ModelIdentity(digest, 384)
    path.write_bytes(path.read_bytes() + b"\0")
    assert verifications.verify(path, SETTINGS) == ModelIdentity(hashlib.sha256(path.read_bytes()).hexdigest(), 384)


def test_the_cached_verification_is_private(minilm_gguf: Path, tmp_path: Path) -> None:
    """It names a file of theirs, and whoever could write it could have any file taken for proven."""
    before = os.umask(0)
    try:
        VerificationCache(tmp_path / "cache" / "book").verify(minilm_gguf, SETTINGS)
    finally:
        os.umask(before)
    made = sorted((tmp_path / "cache").rglob("*"))
    assert [stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "cache", *made)] == [0o700, 0o700, 0o600]


@pytest.mark.parametrize("content", ["{", '{"seen": null}'])
def test_an_invalid_cache_of_verifications_is_replaced(minilm_gguf: Path, tmp_path: Path, content: str) -> None:
    verifications = VerificationCache(tmp_path)
    verifications.verify(minilm_gguf, SETTINGS)
    (record,) = tmp_path.iterdir()
    record.write_text(content, encoding="utf-8")
    assert verifications.verify(minilm_gguf, SETTINGS).dimension == 384
    assert json.loads(record.read_text(encoding="utf-8"))["proof"]["dimension"] == 384


def test_without_a_cache_it_still_works(minilm_gguf: Path, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("", encoding="utf-8")
    assert VerificationCache(blocked / "below").verify(minilm_gguf, SETTINGS).dimension == 384


def _install(cache_dir: Path, source: Path, **changes: Any) -> None:
    directory = cache_dir / "models" / changes.get("name", "mini")
    directory.mkdir(parents=True)
    (directory / "mini.gguf").symlink_to(source)
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    manifest = {
        "format": 1,
        "kind": "gguf-embedder",
        "name": "mini",
        "revision": digest,
        "dimension": 384,
        "window_tokens": 256,
        "max_tokens": 250,
        "pooling": "mean",
        "query_prefix": "query: ",
        "document_prefix": "text: ",
        "model": "mini.gguf",
        "files": {"mini.gguf": {"sha256": digest}},
        **changes,
    }
    (directory / "model.json").write_text(json.dumps(manifest), encoding="utf-8")


def test_a_model_is_found_by_name_and_used_as_its_manifest_says(
    build: Build, cache_dir: Path, minilm_gguf: Path
) -> None:
    _install(cache_dir, minilm_gguf, name="by-name")
    named, plain = build(model="by-name"), build(path=str(minilm_gguf))
    assert str(named.space).startswith("by-name@")
    assert named.space.pooling == "mean/250 estimated, after 'text: '"
    assert named.space.revision == plain.space.revision
    assert (named.embed_query("a cat") == plain.embed_query("query: a cat")).all()
    assert (named.embed_documents(["a cat"]) == plain.embed_documents(["text: a cat"])).all()


@pytest.mark.parametrize(
    "changes", [{"files": {"mini.gguf": {"sha256": "0" * 64}}}, {"dimension": 383}], ids=["hash", "dimension"]
)
def test_a_file_that_differs_from_its_manifest_is_rejected(
    build: Build, cache_dir: Path, minilm_gguf: Path, changes: dict[str, Any]
) -> None:
    name = f"wrong-{next(iter(changes))}"
    _install(cache_dir, minilm_gguf, name=name, **changes)
    with pytest.raises(ModelCorruptError, match=r"mini\.gguf does not match its manifest"):
        build(model=name).embed_query("a")


def test_an_unknown_name_is_an_error(build: Build) -> None:
    with pytest.raises(ModelNotFoundError, match="no-such-model"):
        build(model="no-such-model")
    with pytest.raises(EmbeddingError):
        build(path="/nowhere/at/all")
