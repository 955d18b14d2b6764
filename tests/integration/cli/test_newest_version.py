"""``klaw --version --check``: it asks PyPI, only if it is asked to, and says what it cannot find out."""

import io
import json
import re
from importlib.metadata import version

import pytest

from klaw_core.cli import newest


class Index:
    """In place of PyPI: what it answers, and what it was asked."""

    def __init__(self, monkeypatch):
        self.asked, self.answer = [], b"{}"
        monkeypatch.setattr("urllib.request.urlopen", self.open)
        monkeypatch.setattr("klaw_core.cli.newest.update_command", lambda: "pip install --upgrade klaw")
        monkeypatch.delenv("KLAW_OFFLINE", raising=False)

    def open(self, address, timeout):
        self.asked.append((address, timeout))
        if isinstance(self.answer, Exception):
            raise self.answer
        return io.BytesIO(self.answer)


@pytest.fixture
def index(monkeypatch):
    return Index(monkeypatch)


def test_a_newer_version_is_named_with_the_command_that_installs_it(klaw, index):
    index.answer = json.dumps({"info": {"version": "999.0.0"}}).encode()
    lines = klaw("--version", "--check").stdout.splitlines()
    assert lines == [f"klaw {version('klaw')}", "klaw 999.0.0 is available: pip install --upgrade klaw"]
    assert [address for address, _ in index.asked] == [newest.PYPI]


@pytest.mark.parametrize("order", [("--version", "--check"), ("--check", "--version")])
def test_the_newest_version_is_named_as_that(klaw, index, order):
    index.answer = json.dumps({"info": {"version": version("klaw")}}).encode()
    assert klaw(*order).stdout.splitlines()[1] == "this is the newest version"


@pytest.mark.promise("S1")
def test_nothing_is_asked_without_the_option(klaw, index):
    assert klaw("--version").stdout == f"klaw {version('klaw')}\n"
    assert index.asked == []


@pytest.mark.parametrize("answer", [OSError("no route to host"), b"<html>", b"[]", b"{}", b'{"info": {}}'])
def test_what_cannot_be_asked_is_an_error(klaw, index, answer):
    index.answer = answer
    done = klaw("--version", "--check")
    assert done.exit_code == 1
    assert "PyPI did not return the newest version" in done.stderr
    assert "Traceback" not in done.stderr


def test_nothing_is_asked_while_klaw_is_offline(klaw, index, monkeypatch):
    monkeypatch.setenv("KLAW_OFFLINE", "1")
    done = klaw("--version", "--check")
    assert (done.exit_code, index.asked) == (1, [])
    assert "unset KLAW_OFFLINE" in done.stderr


def test_a_value_that_is_not_understood_is_reported_as_every_command_does(klaw, index, monkeypatch):
    monkeypatch.setenv("KLAW_OFFLINE", "perhaps")
    done = klaw("--version", "--check")
    assert (done.exit_code, index.asked) == (1, [])
    assert "KLAW_OFFLINE: expected 1 or 0, got 'perhaps'" in done.stderr


def test_a_clone_is_updated_as_a_clone(klaw, index, monkeypatch):
    monkeypatch.setattr("klaw_core.cli.newest.update_command", lambda: "cd /klaw && git pull && pip install .")
    assert re.search(r"from a clone.*git pull", klaw("--version", "--check").stdout)
    assert index.asked == []


def test_the_option_is_of_the_version(klaw):
    assert klaw("--check").exit_code == 2
    assert klaw("--check", "status").exit_code == 2
