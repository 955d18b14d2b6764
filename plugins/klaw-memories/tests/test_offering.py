"""A USER.md goes into core memory only if a person says so, and is offered until one was imported."""

import pytest
from click.testing import CliRunner

from klaw_core.cli.program import cli

TEXT = "# About me\n\n- Name: Ada\n- Location: Lyon\n"


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.setenv("KLAW_EMBEDDER", "none")
    monkeypatch.setenv("KLAW_CONFIG", "/dev/null")
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")

    def run(*arguments):
        return CliRunner().invoke(cli, [*arguments, "--data-dir", str(tmp_path / "data")])

    return run


def core(run):
    return run("core", "get").stdout


def test_init_offers_and_imports_only_with_yes(run, tmp_path):
    (tmp_path / "here" / "USER.md").write_text(TEXT, "utf-8")
    assert "klaw core import" in run("init").stderr
    assert core(run) == ""
    assert "2 facts" in run("init", "--yes").stderr
    assert "name: Ada" in core(run)
    assert "USER.md" not in run("init").stderr, "nothing is offered after an import"


def test_index_names_the_user_md_of_a_directory(run, tmp_path):
    notes = tmp_path / "here" / "notes"
    notes.mkdir()
    (notes / "USER.md").write_text(TEXT, "utf-8")
    assert f"klaw core import {notes / 'USER.md'}" in run("index", str(notes)).stderr
    assert core(run) == ""
    assert run("core", "import", str(notes / "USER.md")).exit_code == 0
    assert "USER.md" not in run("index", str(notes)).stderr


def test_an_import_keeps_what_is_known_and_adds_what_is_new(run, tmp_path):
    file = tmp_path / "here" / "USER.md"
    file.write_text(TEXT, "utf-8")
    run("core", "set", "user", "name", "Eve")
    assert run("core", "import", "USER.md").stdout == "location = Lyon\n"
    file.write_text(f"{TEXT}- Occupation: printer\n", "utf-8")
    assert run("core", "import", "USER.md").stdout == "occupation = printer\n"
    assert "name: Eve" in core(run)


@pytest.mark.parametrize("content", [None, b"", b"only prose", b"Name: \xff", b"x" * 300_000])
def test_what_is_no_user_md_is_refused_and_not_offered(run, tmp_path, content):
    file = tmp_path / "here" / "USER.md"
    if content is not None:
        file.write_bytes(content)
    result = run("core", "import", "USER.md")
    assert result.exit_code == 1
    assert "\u2192" in result.stderr, "the error has a hint"
    assert "USER.md" not in run("init").stderr
    assert core(run) == ""


@pytest.mark.parametrize("name", ["USER.md", "../USER.md"])
def test_the_json_of_an_import(run, tmp_path, name):
    (tmp_path / "here" / name).write_text(TEXT, "utf-8")
    assert '"name": "Ada"' in run("core", "import", name, "--json").stdout
