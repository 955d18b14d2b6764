"""A key is sent to its server and shown nowhere: not by any command, in any log, error, file or row, right or wrong."""

import json
import logging
import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from pytest_httpserver import HTTPServer

from klaw_core.cli.program import cli
from klaw_core.config.load import load_config
from klaw_testing.doubles.gemini import FakeGemini
from klaw_testing.doubles.ollama import FakeOllama
from klaw_testing.doubles.openai import FakeOpenAI

KEY = "sk-hostile-7f3a9c51e0d2"
PLACES = ("CONFIG", "DATA", "CACHE")
COMMANDS = (
    ("index", "notes"),
    ("search", "harbour"),
    ("search", "harbour", "--mode", "vector", "--explain", "--json"),
    ("save", "gulls cry at dawn"),
    ("embed",),
    ("reindex",),
    ("status", "--json"),
    ("status",),
    ("doctor", "--json"),
    ("doctor",),
    ("plugins", "--json"),
    ("config", "list"),
    ("config", "list", "--json"),
    ("config", "get", "memory.embedding"),
    ("config", "get", "memory.reranking"),
    ("config", "get", "memory.embedding.api_key"),
    ("config", "path", "--json"),
    ("export", "-"),
)


@pytest.fixture
def home(tmp_path, monkeypatch):
    for name in ("OPENAI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY", "OLLAMA_HOST", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in PLACES:
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.md").write_text("# Harbour\n\nThe harbour and its gulls.\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def serve(httpserver: HTTPServer, kind: str, *, right: bool) -> str:
    """Answer as the provider does, knowing the key or refusing it and repeating it in the refusal."""
    if not right:
        said = json.dumps({"error": {"message": f"Incorrect API key provided: {KEY}"}})
        httpserver.expect_request(re.compile(".*")).respond_with_data(said, 401)
        return httpserver.url_for("/v1")
    if kind == "openai":
        return FakeOpenAI(httpserver, key=KEY, dimension=16).url
    if kind == "gemini":
        fake = FakeGemini(httpserver, dimension=16)
        fake.key = KEY
        return fake.url
    return FakeOllama(httpserver).url


def write_config(home: Path, embedder: dict[str, str], url: str, key: str) -> Path:
    file = home / "config" / "klaw" / "config.toml"
    file.parent.mkdir(parents=True)
    lines = ["[memory.embedding]", *(f"{name} = {json.dumps(value)}" for name, value in embedder.items())]
    lines += [f'url = "{url}"', f'api_key = "{key}"', "retries = 0"]
    lines += ["[[memory.reranking]]", 'type = "http"', f'url = "{url}"', f'api_key = "{key}"', "retries = 0"]
    file.write_text("\n".join(lines))
    return file


def shown(caplog: pytest.LogCaptureFixture) -> str:
    """Run every command, with a traceback where one fails; return all that was said."""
    said = []
    for command in COMMANDS:
        result = CliRunner().invoke(cli, [*command, "--debug"], prog_name="klaw")
        said += [f"$ {command}", result.output, repr(result.exception)]
    return "\n".join([*said, caplog.text])


def kept(home: Path, besides: Path) -> list[str]:
    """Return the files that hold the key, other than the one in which a person wrote it."""
    files = (path for path in home.rglob("*") if path.is_file() and path != besides)
    return [str(path) for path in files if KEY.encode() in path.read_bytes()]


@pytest.mark.parametrize("written", ["literal", "variable"])
@pytest.mark.parametrize("right", [True, False], ids=["right", "refused"])
@pytest.mark.parametrize("kind", ["openai", "gemini", "ollama"])
def test_no_command_shows_a_key_or_keeps_it(  # noqa: PLR0917  # fixtures
    home, httpserver, caplog, monkeypatch, kind, right, written
):
    caplog.set_level(logging.DEBUG)
    url = serve(httpserver, kind, right=right)
    monkeypatch.setenv("THE_KEY", KEY)
    file = write_config(home, {"type": kind}, url, KEY if written == "literal" else "${THE_KEY}")
    said = shown(caplog)
    asked = [header for request, _ in httpserver.log for header in request.headers.values()]
    assert any(KEY in header for header in asked), "it was sent"
    assert not any(KEY in request.url for request, _ in httpserver.log)
    assert "memory.embedding.api_key" in said
    assert KEY not in said
    assert kept(home, file) == []
    assert KEY not in repr(load_config())


def test_a_key_that_is_set_or_wrong_is_not_repeated(home):
    """By `config set`, and by the messages about it."""

    def run(*arguments):
        return CliRunner().invoke(cli, [*arguments, "--debug"], prog_name="klaw").output

    run("config", "set", "memory.embedding.type", "openai")
    assert "***" in run("config", "set", "memory.embedding.api_key", KEY)
    assert KEY not in run("config", "set", "--json", "memory.embedding.api_key", KEY)
    assert KEY in (home / "config" / "klaw" / "config.toml").read_text()
    assert (home / "config" / "klaw" / "config.toml").stat().st_mode & 0o077 == 0
    for wrong in (f'["{KEY}"]', f'{{ a = "{KEY}" }}', f'"{KEY} "', "7739125"):
        said = run("config", "set", "memory.embedding.api_key", wrong)
        assert "api_key" in said
        assert KEY not in said
        assert "7739125" not in said


def test_a_secret_of_a_component_that_is_not_installed_is_masked(home):
    file = home / "config" / "klaw" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text(f'[memory.embedding]\ntype = "elsewhere"\naccess_token = "{KEY}"\nmax_tokens = 5\n')
    said = CliRunner().invoke(cli, ["config", "list"], prog_name="klaw").output
    assert 'memory.embedding.access_token = "***"' in said
    assert "memory.embedding.max_tokens = 5" in said
    assert KEY not in said


@pytest.mark.parametrize(
    "text",
    [
        '[plugins]\ndisabled = ["klaw-fts5"]',
        'trusted_projects = ["/"]',
        '[memory.store]\ntype = "sqlite"\npath = "/tmp/elsewhere.db"',
        '[memory.embedding]\ntype = "openai"\nurl = "http://127.0.0.1:9"\napi_key = "${HOME}"',
        '[memory.embedding]\nmodel = "other"',
        '[[memory.sources]]\ntype = "workspace"\npath = "/etc"',
        '[[memory.reranking]]\ntype = "http"\nurl = "http://127.0.0.1:9"',
        '[[memory.retrieval]]\ntype = "other"',
        "[memory.conversations]\nredact_secrets = false",
        '[memory.chunking]\ntype = "${THE_KEY}"',
        '[memory.fusion]\ntype = "rrf"\nk = "${THE_KEY}"',
        "a." * 9_000 + "b = 1",
        "x = [" + "[" * 90_000,
        "#" + "x" * 2_000_000,
    ],
)
def test_a_strangers_project_sets_nothing_loads_nothing_and_learns_nothing(home, monkeypatch, text):
    monkeypatch.setenv("THE_KEY", KEY)
    before = repr(load_config())
    project = home / "project"
    project.mkdir()
    (project / "klaw.toml").write_text(text)
    monkeypatch.chdir(project)
    result = CliRunner().invoke(cli, ["config", "list"], prog_name="klaw")
    assert result.exit_code == 1, result.output
    assert "klaw.toml" in result.output
    assert KEY not in result.output
    assert "defect" not in result.output
    assert repr(load_config()) == before
