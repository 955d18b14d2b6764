"""``klaw models`` as it is typed: what it prints, what it exits with, and what works afterwards."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest
from pytest_httpserver import HTTPServer

from klaw_core.cli.program import cli
from klaw_models import KNOWN, KnownModel
from klaw_models.command import command

ModelDirectory = Callable[..., Path]
Klaw = Callable[..., tuple[int, str, str]]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where ``klaw`` keeps its cache in this test."""
    for name in ("XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.delenv("HF_ENDPOINT", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "XDG_CACHE_HOME" / "klaw"


@pytest.fixture
def klaw(cache: Path, capsys: pytest.CaptureFixture[str]) -> Klaw:
    """Return a function that runs ``klaw models`` here and returns exit code, output and errors."""

    def run(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as caught:
            cli.main(["models", *arguments], prog_name="klaw")
        shown = capsys.readouterr()
        assert isinstance(caught.value.code, int)
        assert not list((cache / "models").glob(".adding-*"))
        return caught.value.code, shown.out, shown.err

    return run


def _listed(klaw: Klaw) -> dict[str, dict[str, Any]]:
    code, out, _ = klaw("list", "--json")
    assert code == 0
    return {entry["name"]: entry for entry in json.loads(out)}


def test_the_entry_point_leads_to_the_command() -> None:
    (point,) = entry_points(group="klaw.commands", name="models")
    assert point.load() is command


def test_the_list_shows_every_known_model(klaw: Klaw) -> None:
    code, out, err = klaw("list")
    assert (code, err) == (0, "")
    lines = {line.split()[0]: line for line in out.splitlines()}
    assert lines.keys() >= KNOWN.keys()
    assert "klaw models add" in lines["multilingual-e5-small"]
    assert "384-d" in lines["multilingual-e5-small"]
    assert "487.4 MB" in lines["multilingual-e5-small"]
    assert "about 100" in lines["multilingual-e5-small"]
    listed = _listed(klaw)
    assert listed["bge-small-en-v1.5"]["where"] == "download"
    assert listed["bge-small-en-v1.5"]["pinned"] is True
    assert listed["embeddinggemma-300M"]["kind"] == "gguf-embedder"


def test_a_model_is_added_listed_verified_and_removed(
    klaw: Klaw, hub: HTTPServer, bge: KnownModel, monkeypatch: pytest.MonkeyPatch, cache: Path
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", hub.url_for("/").rstrip("/"))
    code, out, err = klaw("add", bge.name)
    assert (code, err) == (0, "")
    assert f"{bge.name} added and verified" in out
    assert "klaw config set memory.embedding.model bge-small-en-v1.5" in out
    entry = _listed(klaw)[bge.name]
    assert (entry["where"], entry["directory"]) == ("cache", str(cache / "models" / bge.name))
    assert (entry["size"], entry["pinned"], entry["problem"]) == (bge.size, True, "")
    assert klaw("verify", bge.name) == (0, f"{bge.name}  ok\n", "")
    assert "is already installed and verified" in klaw("add", bge.name)[1]
    assert klaw("remove", bge.name)[0] == 0
    assert not (cache / "models" / bge.name).exists()
    assert klaw("remove", bge.name)[0] == 1


def test_json_output_has_only_json(
    klaw: Klaw, hub: HTTPServer, bge: KnownModel, monkeypatch: pytest.MonkeyPatch, cache: Path
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", hub.url_for(""))
    _, out, err = klaw("add", bge.name, "--json")
    assert err == ""
    assert json.loads(out) == {"name": bge.name, "directory": str(cache / "models" / bge.name), "added": True}
    _, out, _ = klaw("verify", bge.name, "--json")
    assert json.loads(out) == [{"name": bge.name, "sound": True, "problems": []}]
    _, out, _ = klaw("remove", bge.name, "--json")
    assert json.loads(out)["name"] == bge.name


def test_verify_finds_the_wrong_file_and_names_the_fix(
    klaw: Klaw, hub: HTTPServer, bge: KnownModel, monkeypatch: pytest.MonkeyPatch, cache: Path
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", hub.url_for(""))
    klaw("add", bge.name)
    path = cache / "models" / bge.name / "tokenizer.json"
    path.write_bytes(b"changed")
    code, out, _ = klaw("verify")
    assert code == 1
    assert "tokenizer.json does not match its manifest" in out
    assert f"klaw models add {bge.name}" in out
    code, out, _ = klaw("verify", "--json")
    assert code == 1
    assert [entry["sound"] for entry in json.loads(out) if entry["name"] == bge.name] == [False]
    assert klaw("add", bge.name)[0] == 0
    assert klaw("verify")[0] == 0


def test_a_broken_manifest_is_listed_with_its_problem(klaw: Klaw, model_directory: ModelDirectory, cache: Path) -> None:
    model_directory(cache / "models" / "mine")
    (cache / "models" / "mine" / "model.json").write_text("{")
    code, out, _ = klaw("list")
    assert code == 0
    assert "broken" in out
    assert "is not a model manifest" in out
    assert klaw("verify", "mine")[0] == 1


def test_verify_of_a_missing_model_is_an_error(klaw: Klaw) -> None:
    code, _, err = klaw("verify", "bge-small-en-v1.5")
    assert code == 1
    assert "klaw models add bge-small-en-v1.5" in err


def test_an_own_model_is_added(klaw: Klaw, model_directory: ModelDirectory, cache: Path) -> None:
    source = model_directory()
    (source / "model.json").unlink()
    code, _, err = klaw("add", "someone/theirs", "--from", str(source))
    assert code == 1
    assert "--window" in err
    options = ("--dimension", "8", "--window", "32", "--pooling", "mean", "--license", "MIT", "--query-prefix", "q: ")
    options += ("--document-prefix", "d: ")
    assert klaw("add", "someone/theirs", "--from", str(source), *options)[0] == 0
    entry = _listed(klaw)["someone/theirs"]
    assert (entry["where"], entry["dimension"], entry["license"], entry["pinned"]) == ("cache", 8, "MIT", False)
    assert klaw("remove", "someone/theirs")[0] == 0
    assert not (cache / "models" / "someone").exists()


def test_wrong_options_are_a_usage_error(klaw: Klaw, tmp_path: Path) -> None:
    assert klaw("add")[0] == 2
    for options in (["--pooling", "mean"], ["--cross-encoder"], ["--license", "MIT"]):
        code, _, err = klaw("add", "bge-small-en-v1.5", *options)
        assert (code, f"{options[0]}: what describes a model needs --from" in err) == (2, True)
    assert klaw("add", "x", "--from", str(tmp_path / "nowhere"))[0] == 2
    code, _, err = klaw("add", "bge-small")
    assert code == 1
    assert "did you mean bge-small-en-v1.5" in err


def test_an_invalid_mirror_is_named(klaw: Klaw, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://xn--a")
    code, _, err = klaw("add", "bge-small-en-v1.5")
    assert code == 1
    assert "HF_ENDPOINT: 'http://xn--a' has no valid host" in err


def test_offline_nothing_is_downloaded(
    klaw: Klaw, hub: HTTPServer, bge: KnownModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", hub.url_for(""))
    monkeypatch.setenv("KLAW_OFFLINE", "1")
    code, _, err = klaw("add", bge.name)
    assert code == 1
    assert "KLAW_OFFLINE is set" in err
    assert hub.log == []


@pytest.mark.parametrize("quiet", [False, True])
def test_the_bar_is_shown_only_on_terminals(tmp_path: Path, *, quiet: bool) -> None:
    """On a terminal the bar shows bytes; with --quiet, or into a file, there is none."""
    program = (
        "import sys; from klaw_core.cli.kit import Settings; from klaw_models.progress import bytes_progress\n"
        f"with bytes_progress(Settings(quiet={quiet}), 2_000_000) as show:\n    show(1_000_000)\n"
    )
    command_line = [sys.executable, "-c", program]
    assert subprocess.run(command_line, check=True, capture_output=True, cwd=tmp_path).stderr == b""
    leader, follower = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    subprocess.run(command_line, check=True, stderr=follower, env=environment, cwd=tmp_path)
    os.write(follower, b".")
    shown = os.read(leader, 65536).decode()
    for descriptor in (leader, follower):
        os.close(descriptor)
    assert ("1.0/2.0 MB" in shown) is not quiet


def test_the_help_needs_no_http_library() -> None:
    program = (
        "import sys; import klaw_models.command; "
        "assert not {'httpx2', 'httpcore2', 'numpy', 'rich'} & sys.modules.keys(), sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_an_own_cross_encoder_is_added(klaw: Klaw, model_directory: ModelDirectory) -> None:
    source = model_directory()
    (source / "model.json").unlink()
    options = ("--cross-encoder", "--window", "32", "--license", "MIT")
    assert klaw("add", "someone/judge", "--from", str(source), *options)[0] == 0
    assert _listed(klaw)["someone/judge"]["kind"] == "onnx-cross-encoder"
