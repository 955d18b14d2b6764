"""The command line asks a server that has its memory open, and opens the memory itself where there is none."""

from __future__ import annotations

import json
import re
import signal

import pytest

QUESTION = ("search", "kiln degrees")


def _calls(running, operation="memory.search"):
    found = re.search(rf'klaw_calls_total{{operation="{operation}",status="200"}} (\d+)', _metrics(running))
    return int(found[1]) if found else 0


def _metrics(running):
    return running.get("/metrics").body.decode()


@pytest.fixture
def running(home):
    """Return a server that has warmed up: its own search is not counted, but runs first."""
    with home.serving() as running:
        yield running


def test_a_served_search_equals_a_local_one_in_every_form(home, running):
    (home.path / "another.toml").write_text(
        "[memory.sync]\non_search = true\n"
    )  # another configuration: not the server's
    explained = [("--explain", *form) for form in [(), ("--json",), ("--format", "md")]]
    forms = [*explained, ("--format", "csv"), ("--format", "files")]
    for number, form in enumerate(forms):
        own = home.run(*QUESTION, *form, "--config", home.path / "another.toml")
        assert _calls(running) == number
        served = home.run(*QUESTION, *form)
        assert _calls(running) == number + 1
        assert (served.stdout, served.stderr, served.returncode) == (own.stdout, own.stderr, own.returncode), form
        assert "twelve hundred" in served.stdout or form == ("--format", "files")


def test_filters_reach_the_server(home, running):
    home.run("save", "The lake froze.", "--source", "log")
    options = ("--source", "log", "--since", "2020-01-01", "--until", "2999-01-01", "--min-relevance", "0", "-k", "1")
    (found,) = json.loads(home.run("search", "lake", *options, "--json").stdout)
    assert found["source"] == "log"
    nothing = home.run("search", "lake", "--where", "tags=a,b", "--where", "year>=2025", "--json")
    assert (nothing.returncode, json.loads(nothing.stdout)) == (0, [])
    assert _calls(running) == 2


def test_errors_equal_those_of_a_local_command(home, running):
    wrong = home.run("search", "kiln", "--collection", "none")
    assert wrong.returncode == 1
    assert wrong.stderr.startswith("klaw: unknown collection 'none'")
    assert running.get("/health").status == 200


def test_the_memory_is_used_if_the_server_has_ended(home):
    with home.serving() as running:
        running.end(signal.SIGKILL)
        assert (home.data / "server.json").exists()
        found = home.run(*QUESTION)
        assert "twelve hundred" in found.stdout
        assert found.stderr == ""
    with home.serving():  # and the next one takes its place
        assert "twelve hundred" in home.run(*QUESTION).stdout


def test_a_server_file_that_others_can_write_is_ignored(home, running):
    (home.data / "server.json").chmod(0o644)
    assert "twelve hundred" in home.run(*QUESTION).stdout
    assert _calls(running) == 0


def test_nothing_heavy_is_imported_for_a_served_search(home, running):
    import subprocess
    import sys

    command = [sys.executable, "-X", "importtime", "-m", "klaw_core", *QUESTION, "--json", "--data-dir", str(home.data)]
    done = subprocess.run(
        command, env=home.environment, cwd=home.path, capture_output=True, text=True, check=True, timeout=300
    )
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert _calls(running) == 1
    assert "klaw_core.cli.served" in imported
    assert not {"numpy", "apsw", "pluggy", "jsonschema", "klaw_core.memory", "klaw_core.assembly"} & imported
