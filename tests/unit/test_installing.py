"""Hints to install something are commands that work where Klaw runs."""

import json
import sys

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


def test_from_an_index_the_name_is_known_there(origin):
    origin({})
    assert installing.install_extras(["openai", "mcp"]) == "pip install 'klaw[openai,mcp]'"
    assert installing.update_command() == "pip install --upgrade klaw"
    assert installing.reinstall_command("klaw-x") == "pip install --force-reinstall klaw-x"
    assert (
        installing.reinstall_command("klaw-x", dependencies=False) == "pip install --force-reinstall --no-deps klaw-x"
    )


def test_from_a_clone_the_directory_is_installed(origin, clone):
    origin({"url": clone.as_uri(), "dir_info": {}})
    assert installing.install_extras(["openai"]) == f"uv pip install '{clone}[openai]'"
    assert installing.update_command() == f"cd '{clone}' && git pull && uv pip install '{clone}'"
    assert installing.reinstall_command("klaw-x") == f"uv pip install --reinstall-package klaw-x '{clone}'"


def test_what_is_editable_stays_so(origin, clone):
    origin({"url": clone.as_uri(), "dir_info": {"editable": True}})
    assert installing.install_extras(["openai"]) == f"uv pip install -e '{clone}[openai]'"


def test_a_python_that_is_not_active_is_named(origin, clone, monkeypatch):
    monkeypatch.delenv("VIRTUAL_ENV")
    origin({"url": clone.as_uri(), "dir_info": {}})
    assert f"-p {sys.executable} " in installing.install_extras(["openai"])


def test_a_clone_that_is_gone_is_not_named(origin, tmp_path):
    origin({"url": (tmp_path / "gone").as_uri(), "dir_info": {}})
    assert installing.install_extras(["openai"]) == "pip install 'klaw[openai]'"


def test_from_a_repository_its_address_is_named(origin):
    origin({"url": "https://example.org/klaw.git", "vcs_info": {"vcs": "git", "commit_id": "1"}})
    assert installing.install_extras(["mcp"]) == "pip install 'klaw[mcp] @ git+https://example.org/klaw.git'"


@pytest.mark.parametrize("written", [None, "", "no JSON", "[]", json.dumps({"url": 3, "dir_info": "x"})])
def test_what_an_installer_wrote_may_be_anything(monkeypatch, written):
    class Distribution:
        def read_text(self, name):
            assert name == "direct_url.json"
            return written

    monkeypatch.setattr(installing, "_origin", READ_ORIGIN)
    monkeypatch.setattr("importlib.metadata.distribution", lambda _name: Distribution())
    assert installing.install_extras(["mcp"]) == "pip install 'klaw[mcp]'"
