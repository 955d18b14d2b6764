"""A memory whose vectors are in LanceDB, from the command line."""

import shutil

import pytest
from click.testing import CliRunner

from klaw_core.cli.program import cli
from klaw_testing.doubles.ollama import FakeOllama

SECRET = "s3-7f3a9c51e0d2"
TABLES = """
[memory.embedding]
type = "ollama"
model = "all-minilm:l6-v2"
url = "URL"

[[memory.retrieval]]
type = "fts5"

[[memory.retrieval]]
type = "lancedb"
buffer = 1
"""


@pytest.fixture
def tables(httpserver):
    return TABLES.replace("URL", FakeOllama(httpserver).url)


@pytest.fixture
def run(tmp_path, monkeypatch, tables):
    """Run a command on a data directory of this test; return what it printed."""
    (tmp_path / "notes").mkdir()
    for name, text in {"sea": "gulls cry at dawn", "hill": "sheep graze all day", "town": "bells ring at noon"}.items():
        (tmp_path / "notes" / f"{name}.md").write_text(f"# {name}\n\n{text}\n")
    (tmp_path / "klaw.toml").write_text(tables)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KLAW_CONFIG", str(tmp_path / "klaw.toml"))
    monkeypatch.setenv("KLAW_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("S3_SECRET", SECRET)

    def call(*arguments, exit_code=0):
        result = CliRunner().invoke(cli, arguments)
        assert result.exit_code == exit_code, result.output
        return result.output

    return call


def test_a_memory_is_indexed_searched_forgotten_and_fixed(run, tmp_path):
    assert "3 new" in run("index", "notes")
    folder = tmp_path / "data" / "lancedb"
    assert "lancedb" in run("search", "gulls cry", "--explain")
    assert "no problems found" in run("doctor")
    run("forget", "notes/sea.md", "--yes")
    assert "sea.md" not in run("search", "gulls cry")
    assert len(list(folder.glob("*.lance"))) == 1
    run("reindex")
    run("search", "sheep")
    assert len(list(folder.glob("*.lance"))) <= 2  # what was replaced is an orphan, removed after a day
    shutil.rmtree(folder)
    assert "searched without lancedb" in run("search", "sheep graze")
    assert "memory/lancedb" in run("doctor", exit_code=1)
    run("doctor", "--fix")
    assert "no problems found" in run("doctor")
    assert "lancedb" in run("search", "sheep graze", "--explain")


def test_storage_options_are_never_shown(run, tmp_path, tables):
    written = f'{tables}storage = {{ aws_secret_access_key = "{SECRET}", secret = "${{S3_SECRET}}", region = "r" }}\n'
    (tmp_path / "klaw.toml").write_text(written)
    for command in (("config", "list"), ("config", "get", "memory.retrieval"), ("status",), ("plugins",)):
        assert SECRET not in run(*command)
    assert "${S3_SECRET}" in run("config", "list")
    (tmp_path / "klaw.toml").write_text(f"{tables}storage = '{SECRET}'\n")
    said = run("search", "sheep", exit_code=1)
    assert "storage: expected a table of strings" in said
    assert SECRET not in said
