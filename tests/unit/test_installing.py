"""Hints to install something are commands that work where Klaw runs."""

import json
import sys
import tomllib
from pathlib import Path

import pytest

from klaw_core.plugins import installing

#: As it is outside of tests.
READ_ORIGIN = installing._origin


@pytest.fixture
def origin(monkeypatch):
    """Say where every distribution was installed from."""

    def say(found):
        monkeypatch.setattr(installing, "_origin", lambda _name: found)

    monkeypatch.setenv("VIRTUAL_ENV", sys.prefix)
    return say


@pytest.fixture
def clone(tmp_path):
    directory = tmp_path / "my clone"
    directory.mkdir()
    (directory / "pyproject.toml").touch()
    return directory


def test_a_distribution_from_an_index_is_named(origin):
    origin({})
    assert installing.install_extras(["openai", "mcp"]) == "pip install 'klaw[openai,mcp]'"
    assert installing.update_command() == "pip install --upgrade klaw"
    assert installing.reinstall_command("klaw-x") == "pip install --force-reinstall klaw-x"
    assert (
        installing.reinstall_command("klaw-x", dependencies=False) == "pip install --force-reinstall --no-deps klaw-x"
    )


def test_a_distribution_from_a_clone_is_installed_from_its_directory(origin, clone):
    origin({"url": clone.as_uri(), "dir_info": {}})
    assert installing.install_extras(["openai"]) == f"uv pip install '{clone}[openai]'"
    assert installing.update_command() == f"cd '{clone}' && git pull && uv pip install '{clone}'"
    assert installing.reinstall_command("klaw-x") == f"uv pip install --reinstall-package klaw-x '{clone}'"


def test_an_editable_installation_stays_editable(origin, clone):
    origin({"url": clone.as_uri(), "dir_info": {"editable": True}})
    assert installing.install_extras(["openai"]) == f"uv pip install -e '{clone}[openai]'"


def test_an_inactive_python_is_named_in_the_command(origin, clone, monkeypatch):
    monkeypatch.delenv("VIRTUAL_ENV")
    origin({"url": clone.as_uri(), "dir_info": {}})
    assert f"-p {sys.executable} " in installing.install_extras(["openai"])


@pytest.fixture
def tool(monkeypatch, tmp_path):
    """Make the environment that runs one of ``uv tool install``."""

    def make(requirements):
        (tmp_path / "uv-receipt.toml").write_text(f"[tool]\nrequirements = [{requirements}]\n", "utf-8")
        monkeypatch.setattr(sys, "prefix", str(tmp_path))

    return make


def test_a_uv_tool_keeps_its_extras_and_packages(origin, clone, tool):
    """``uv tool install`` makes the environment again: what it is not told is not there afterwards."""
    origin({"url": clone.as_uri(), "dir_info": {}})
    klaw = f'{{ name = "klaw", extras = ["default", "mcp"], directory = "{clone}" }}'
    tool(f'{klaw}, {{ name = "klaw-x", specifier = ">=1" }}')
    command = f"uv tool install --with 'klaw-x>=1' '{clone}[default,mcp"
    assert installing.install_extras(["openai"]) == f"{command},openai]'"
    assert installing.install_extras(["mcp"]) == f"{command}]'"
    assert installing.update_command() == f"cd '{clone}' && git pull && {command}]'"
    again = installing.reinstall_command("klaw-y", dependencies=False)
    assert again.startswith("uv tool install --reinstall-package klaw-y --with ")


def test_an_editable_uv_tool_stays_editable(origin, clone, tool):
    origin({"url": clone.as_uri(), "dir_info": {}})
    tool(f'{{ name = "klaw", editable = "{clone}" }}, {{ name = "x", git = "https://example.org/x" }}')
    assert installing.install_extras(["mcp"]).endswith(f"--with 'x @ git+https://example.org/x' -e '{clone}[mcp]'")


@pytest.mark.parametrize("written", ['{ name = "klaw" }', '{ name = "other" }', "1", "]"])
def test_an_invalid_uv_receipt_is_ignored(origin, clone, tool, written):
    origin({"url": clone.as_uri(), "dir_info": {}})
    tool(written)
    assert installing.install_extras(["mcp"]).startswith("uv pip install ")


def test_a_clone_that_was_deleted_is_not_named(origin, tmp_path):
    origin({"url": (tmp_path / "gone").as_uri(), "dir_info": {}})
    assert installing.install_extras(["openai"]) == "pip install 'klaw[openai]'"


def test_a_distribution_from_a_repository_is_named_by_its_address(origin):
    origin({"url": "https://example.org/klaw.git", "vcs_info": {"vcs": "git", "commit_id": "1"}})
    assert installing.install_extras(["mcp"]) == "pip install 'klaw[mcp] @ git+https://example.org/klaw.git'"


@pytest.mark.parametrize("written", [None, "", "no JSON", "[]", json.dumps({"url": 3, "dir_info": "x"})])
def test_invalid_records_of_an_installer_are_ignored(monkeypatch, written):
    class Distribution:
        def read_text(self, name):
            assert name == "direct_url.json"
            return written

    monkeypatch.setattr(installing, "_origin", READ_ORIGIN)
    monkeypatch.setattr("importlib.metadata.distribution", lambda _name: Distribution())
    assert installing.install_extras(["mcp"]) == "pip install 'klaw[mcp]'"


def test_uv_builds_a_changed_clone_again():
    """By default uv looks at pyproject.toml alone: a clone that was updated would stay as it was installed."""
    root = Path(__file__).parents[2]
    for file in (root / "pyproject.toml", *root.glob("plugins/*/pyproject.toml")):
        keys = [key["file"] for key in tomllib.loads(file.read_text("utf-8"))["tool"]["uv"]["cache-keys"]]
        sources = [source for key in keys if key.endswith("/**/*") for source in file.parent.glob(key)]
        assert "pyproject.toml" in keys, file
        assert any(source.suffix == ".py" for source in sources), file
