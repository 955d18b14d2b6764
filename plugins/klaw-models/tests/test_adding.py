"""Models come into the cache whole and verified, or not at all: from a hub, whatever it does."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import attrs
import pytest
from pytest_httpserver import HTTPServer

from klaw_core import ModelCorruptError, reinstall_command
from klaw_http.download import DownloadLimits
from klaw_models import KnownModel, OnnxEmbedderManifest, find_model, read_manifest
from klaw_models.adding import ModelAdder
from klaw_models.cache import ModelCache
from klaw_models.errors import ModelError
from klaw_models.fetching import Hub
from klaw_testing.doubles.wire import Wire, reply

ModelDirectory = Callable[..., Path]
Add = Callable[..., ModelAdder]

LIMITS = DownloadLimits(retries=1, pause=lambda _seconds: None)


def _assert_untouched(cache: Path) -> None:
    """Nothing half there: no model, no temporary directory."""
    models = cache / "models"
    assert [path.name for path in models.iterdir() if path.name != ".lock"] == []


def test_a_known_model_is_fetched_verified_and_found(
    hub: HTTPServer, adding: Add, cache: Path, bge: KnownModel, counts: list[int]
) -> None:
    added = adding(hub.url_for("")).fetch(bge.name)
    assert added.changed
    manifest = find_model(OnnxEmbedderManifest, bge.name, None, cache)
    assert (manifest.directory, manifest.revision) == (added.directory, bge.revision)
    assert (manifest.pooling, manifest.window_tokens, manifest.license) == ("cls", 512, "MIT")
    assert manifest.query_prefix == "Represent this sentence for searching relevant passages: "
    assert manifest.document_prefix == ""
    for file in manifest.files:
        manifest.check(file)
    assert counts[0] == counts[-1] == bge.size
    assert counts[1:] == sorted(counts[1:])


def test_an_installed_model_is_not_fetched_again(hub: HTTPServer, adding: Add, bge: KnownModel) -> None:
    adding(hub.url_for("")).fetch(bge.name)
    asked = len(hub.log)
    assert not adding(hub.url_for("")).fetch(bge.name).changed
    assert len(hub.log) == asked


@pytest.mark.parametrize("damage", ["weights", "manifest", "missing"])
def test_adding_again_repairs_a_damaged_model(hub: HTTPServer, adding: Add, bge: KnownModel, damage: str) -> None:
    directory = adding(hub.url_for("")).fetch(bge.name).directory
    if damage == "missing":
        (directory / "tokenizer.json").unlink()
    else:
        (directory / {"weights": "model.onnx", "manifest": "model.json"}[damage]).write_bytes(b"{}")
    assert adding(hub.url_for("")).fetch(bge.name).changed
    manifest = read_manifest(directory)
    assert [manifest.check(file).name for file in manifest.files] == ["model.onnx", "tokenizer.json"]


def test_a_manifest_that_fits_other_files_is_not_trusted(
    hub: HTTPServer, adding: Add, bge: KnownModel, model_directory: ModelDirectory, cache: Path
) -> None:
    """Whoever changes a file and its hash in the manifest still meets the hashes that Klaw itself knows."""
    directory = model_directory(cache / "models" / bge.name, bge.name)
    content = json.loads((directory / "model.json").read_text())
    (directory / "tokenizer.json").write_bytes(b"evil")
    content["files"]["tokenizer.json"] = {"sha256": sha256(b"evil").hexdigest(), "size": 4}
    (directory / "model.json").write_text(json.dumps(content))
    assert adding(hub.url_for("")).fetch(bge.name).changed
    assert (directory / "tokenizer.json").read_bytes() != b"evil"


@pytest.mark.parametrize(
    ("script", "message", "hint"),
    [
        (reply(b"no", "404 No"), "answers 404", "--from DIRECTORY"),
        (reply(b"no", "401 No"), "answers 401: the hub requires a login", "--from DIRECTORY"),
        (reply(b"no", "403 No"), "answers 403: the hub requires a login", "--from DIRECTORY"),
        (reply(b"", "503 Busy"), "answers 503", "HF_ENDPOINT"),
        (reply(b"", "302 Found", location="ftp://elsewhere/x?key"), "not encrypted", "--from"),
        (reply(b"x"), "has 1 bytes, expected 35,000", "--from DIRECTORY"),
        (reply(b"x" * 35_000), "has an unexpected checksum: SHA-256", "nothing was kept"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 35000\r\n\r\na graph", "7 of 35,000 bytes", "HF_ENDPOINT"),
        (b"not HTTP at all", "cannot be reached", "HF_ENDPOINT"),
    ],
    ids=["404", "401", "403", "503", "bad redirect", "short", "wrong hash", "truncated", "no HTTP"],
)
def test_a_failure_of_the_hub_leaves_no_files(
    adding: Add, bge: KnownModel, script: bytes, message: str, hint: str
) -> None:
    with Wire(script) as wire:
        found = adding(wire.url)
        with pytest.raises((ModelError, ModelCorruptError)) as caught:
            found.fetch(bge.name)
    assert message in caught.value.message
    assert hint in caught.value.hint
    assert "key" not in str(caught.value)
    _assert_untouched(found.cache_dir)


def test_a_dripping_hub_leaves_no_files(
    adding: Add, cache: Path, bge: KnownModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = attrs.evolve(LIMITS, stretch_seconds=0.5)
    monkeypatch.setattr("klaw_models.adding.Hub", lambda url: Hub(url, limits))
    with Wire() as wire:
        wire.play(wire.drip(b"HTTP/1.1 200 OK\r\ncontent-length: 35000\r\n\r\n", b"a"))
        with pytest.raises(ModelError, match="sent no data, or almost none"):
            adding(wire.url).fetch(bge.name)
    _assert_untouched(cache)


def test_a_failed_repair_keeps_the_old_files(hub: HTTPServer, adding: Add, bge: KnownModel) -> None:
    directory = adding(hub.url_for("")).fetch(bge.name).directory
    (directory / "tokenizer.json").unlink()
    with Wire(reply(b"", "404 No")) as wire, pytest.raises(ModelError):
        adding(wire.url).fetch(bge.name)
    assert (directory / "model.onnx").is_file()


def test_offline_nothing_is_requested(hub: HTTPServer, adding: Add, bge: KnownModel, cache: Path) -> None:
    with pytest.raises(ModelError, match="KLAW_OFFLINE is set") as caught:
        adding(hub.url_for(""), offline=True).fetch(bge.name)
    assert "--from" in caught.value.hint
    assert hub.log == []
    assert not cache.exists()


def test_an_unknown_name_suggests_the_nearest(adding: Add) -> None:
    with pytest.raises(ModelError, match="unknown model 'Minilm-l6-v2'") as caught:
        adding().fetch("Minilm-l6-v2")
    assert "did you mean all-MiniLM-L6-v2?" in caught.value.hint
    assert "--from PATH" in caught.value.hint


@pytest.mark.parametrize("url", ["ftp://mirror", "mirror", "http://me:hidden@mirror"])
def test_an_invalid_mirror_names_the_variable(adding: Add, bge: KnownModel, url: str) -> None:
    with pytest.raises(ModelError, match="HF_ENDPOINT") as caught:
        adding(url).fetch(bge.name)
    assert "hidden" not in str(caught.value)


def test_a_full_disk_is_detected_before_the_download(
    hub: HTTPServer, adding: Add, bge: KnownModel, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(cache.parent)
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: usage._replace(free=100))
    with pytest.raises(ModelError, match=r"35,018 bytes; the disk of .* has 100 free"):
        adding(hub.url_for("")).fetch(bge.name)
    assert hub.log == []


def test_a_disk_that_fills_up_leaves_no_files(
    hub: HTTPServer, adding: Add, bge: KnownModel, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ModelError, match="is full") as caught:
        adding(hub.url_for("")).fetch(bge.name)
    assert "free some space" in caught.value.hint
    _assert_untouched(cache)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_cache_is_reported(hub: HTTPServer, adding: Add, bge: KnownModel, cache: Path) -> None:
    cache.mkdir(mode=0o500)
    with pytest.raises(ModelError, match=r"cannot be kept: .*cache.*: Permission denied"):
        adding(hub.url_for("")).fetch(bge.name)


def test_a_file_in_place_of_the_cache_is_reported(hub: HTTPServer, adding: Add, bge: KnownModel, cache: Path) -> None:
    cache.write_text("a file")
    with pytest.raises(ModelError, match="cannot be kept"):
        adding(hub.url_for("")).fetch(bge.name)


def test_concurrent_downloads_do_not_mix(hub: HTTPServer, adding: Add, bge: KnownModel, cache: Path) -> None:
    (cache / "models").mkdir(parents=True)
    with (cache / "models" / ".lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(ModelError, match="another process"):
            adding(hub.url_for("")).fetch(bge.name)
    assert adding(hub.url_for("")).fetch(bge.name).changed


_KILLED = """
import sys
from contextlib import nullcontext
from pathlib import Path
import attrs
from klaw_models import KNOWN, KnownFile
from klaw_models.adding import ModelAdder

model = KNOWN["bge-small-en-v1.5"]
KNOWN[model.name] = attrs.evolve(model, files=(KnownFile("onnx/model.onnx", "0" * 64, 1_000_000),))
bar = lambda total: nullcontext(lambda done: print(done, flush=True))
ModelAdder(Path(sys.argv[1]), bar, hub_url=sys.argv[2]).fetch(
    model.name
)
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_files_of_an_interrupted_download_are_removed(
    hub: HTTPServer, adding: Add, bge: KnownModel, cache: Path, how: signal.Signals
) -> None:
    with Wire() as wire:
        wire.play(wire.drip(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n", b"x" * 100))
        command = [sys.executable, "-c", _KILLED, str(cache), wire.url]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
            assert process.stdout is not None
            assert int(process.stdout.readline()) > 0
            process.send_signal(how)
            process.wait()
    if how == signal.SIGINT:
        _assert_untouched(cache)
    else:
        assert list((cache / "models").glob(".adding-*"))
    assert ModelCache(cache).names() == []
    adding(hub.url_for("")).fetch(bge.name)
    assert {path.name for path in (cache / "models").iterdir()} == {".lock", bge.name}


def test_a_broken_package_is_not_replaced_by_a_download(
    adding: Add, bge: KnownModel, model_directory: ModelDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = model_directory(tmp_path / "elsewhere" / "site-packages" / "klaw_model_x", bge.name)
    (directory / "model.onnx").unlink()
    monkeypatch.setattr("klaw_models.adding.locate", lambda _name, _cache: directory)
    with pytest.raises(ModelCorruptError) as caught:
        adding().fetch(bge.name)
    assert caught.value.hint == reinstall_command("klaw-model-x", dependencies=False)


# From files
