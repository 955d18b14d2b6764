"""Standard streams that are full, closed, or left by their reader; each in a process of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

FULL = Path("/dev/full")
READERS = (
    ["search", "bread"],
    ["search", "bread", "--json"],
    ["search", "bread", "--format", "md"],
    ["get", "notes/auth.md"],
    ["get", "notes/auth.md", "--json"],
    ["config", "list"],
    ["config", "path"],
    ["export", "-"],
    ["--help"],
    ["search", "--help"],
)

#: What an error of standard output says about what the command did before.
KEPT = "write to another file; changes of this command are kept"


def in_shell(redirection, *arguments, stdin=None):
    """Run ``klaw`` as a shell does that is told to redirect."""
    return subprocess.run(
        ["/bin/sh", "-c", f'exec "$0" -m klaw_core "$@" {redirection}', sys.executable, *arguments],
        input=stdin,
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=300,
    )


def told(done, arguments):
    """Return the message of an error, which is an object where JSON was asked for."""
    if "--json" in arguments:
        return json.loads(done.stderr)["error"]
    return done.stderr.removeprefix("klaw: ").rstrip().removesuffix(f" → {KEPT}")


@pytest.mark.usefixtures("indexed")
class TestOutput:
    @pytest.mark.skipif(not FULL.exists(), reason="this system has no device that is always full")
    @pytest.mark.one_of(3)
    @pytest.mark.parametrize("arguments", READERS)
    def test_a_full_disk_is_reported(self, arguments):
        done = in_shell(f">{FULL}", *arguments)

        assert done.returncode == 1
        assert told(done, arguments) == "cannot write to standard output: No space left on device"

    @pytest.mark.skipif(not FULL.exists(), reason="this system has no device that is always full")
    def test_a_full_disk_is_reported_for_output_larger_than_a_buffer(self, user_home):
        (user_home / "notes" / "long.md").write_text("rye bread\n" * 20_000, "utf-8")
        done = in_shell(f">{FULL}", "get", "notes/long.md")

        assert done.returncode == 1
        assert done.stderr == f"klaw: cannot write to standard output: No space left on device → {KEPT}\n"

    @pytest.mark.one_of(3)
    @pytest.mark.parametrize("arguments", READERS)
    def test_output_to_a_closed_stdout_is_an_error(self, arguments):
        done = in_shell(">&-", *arguments)

        assert done.returncode == 1
        assert told(done, arguments) == "cannot write to standard output: Bad file descriptor"

    def test_a_command_without_output_needs_no_stdout(self, user_home):
        (user_home / "notes" / "new.md").write_text("A heron.\n", "utf-8")

        assert in_shell(">&-", "index", "--quiet").returncode == 0
        assert "heron" in in_shell("", "search", "heron").stdout

    @pytest.mark.one_of(3)
    @pytest.mark.parametrize("arguments", READERS)
    def test_a_reader_that_closes_the_pipe_is_not_an_error_in_any_command(self, arguments):
        read, write = os.pipe()
        os.close(read)  # the reader has gone before the first line
        with subprocess.Popen(
            [sys.executable, "-m", "klaw_core", *arguments], stdout=write, stderr=subprocess.PIPE
        ) as process:
            os.close(write)
            _, errors = process.communicate(timeout=300)

        assert (process.returncode, errors.replace(b"klaw: exported 1 workspace\n", b"")) == (0, b"")

    def test_a_reader_that_closes_the_pipe_does_not_stop_the_work(self, user_home):
        for name in ("one", "two"):
            (user_home / name).mkdir()
            (user_home / name / "a.md").write_text(f"A heron in {name}.\n", "utf-8")
        read, write = os.pipe()
        os.close(read)
        arguments = ["index", str(user_home / "one"), str(user_home / "two")]
        with subprocess.Popen([sys.executable, "-m", "klaw_core", *arguments], stdout=write, stderr=write) as process:
            os.close(write)

        assert process.returncode == 0
        assert in_shell("", "search", "heron", "--format", "files").stdout.split() == ["one/a.md", "two/a.md"]


@pytest.mark.usefixtures("indexed")
class TestNoticesAndInput:
    @pytest.mark.parametrize("redirection", ["2>&-", f"2>{FULL}"])
    def test_a_notice_that_cannot_be_printed_is_not_an_error(self, redirection):
        found = in_shell(redirection, "search", "bread")
        nothing = in_shell(redirection, "search", "zebra")

        assert (found.returncode, nothing.returncode) == (0, 0)
        assert "rye bread" in found.stdout

    @pytest.mark.parametrize("redirection", ["2>&-", f"2>{FULL}", ">&- 2>&-", "<&- >&- 2>&-"])
    def test_an_error_that_cannot_be_printed_keeps_its_exit_status(self, redirection):
        assert in_shell(redirection, "get", "notes/none.md").returncode == 1
        assert in_shell(redirection, "serch").returncode == 2

    def test_a_closed_stdin_is_empty(self):
        done = in_shell("<&-", "search", "-")

        assert done.returncode == 1
        assert "the query is empty" in done.stderr

    def test_forget_does_nothing_if_it_cannot_ask(self):
        assert "pass --yes" in in_shell("<&-", "forget", "notes/auth.md").stderr


@pytest.mark.usefixtures("indexed")
@pytest.mark.parametrize("limit", range(5, 12))
def test_an_error_for_want_of_descriptors_names_the_limit(limit):
    """SQLite, imports and journals say it in different words, or not at all."""
    done = subprocess.run(
        ["/bin/sh", "-c", f'ulimit -n {limit} && exec "$0" -m klaw_core save x', sys.executable],
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0 or "the limit of open files (ulimit -n)" in done.stderr


def test_a_data_directory_that_is_not_utf8_is_named(user_home):
    script = 'export KLAW_DATA_DIR="$(printf "%s/bad\\377" "$1")"; exec "$0" -m klaw_core save x'
    started = ["/bin/sh", "-c", script, sys.executable, str(user_home)]
    done = subprocess.run(started, capture_output=True, check=False)
    assert done.returncode == 1
    assert b"the path of the data directory is not valid UTF-8" in done.stderr
