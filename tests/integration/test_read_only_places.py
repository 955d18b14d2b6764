"""Commands of a user who may not write to a directory: what reads works, and what writes says who may."""

import os
import shutil
import subprocess
import sys

import pytest

#: What a superuser may do in spite of the modes of files.
_POWERS = "-dac_override,-dac_read_search,-fowner"
READS = (["search", "bread"], ["status"], ["get", "notes/b.md"], ["list"], ["workspace", "list"], ["index"])
WRITES = (["save", "a text"], ["forget", "notes/b.md", "--yes"], ["core", "set", "user", "name", "Ada"], ["reindex"])


def _prefix():
    if os.name == "nt":
        pytest.skip("Windows has no modes of directories")
    if os.geteuid():
        return []
    if not shutil.which("setpriv"):
        pytest.skip("the superuser may write everywhere, and there is no setpriv")
    return ["setpriv", f"--bounding-set={_POWERS}", f"--inh-caps={_POWERS}"]


@pytest.fixture
def klaw(tmp_path):
    """Run a command of Klaw with directories of its own, as somebody whom the modes of files bind."""
    prefix = _prefix()
    for name in ("home", "data", "notes"):
        (tmp_path / name).mkdir()
    (tmp_path / "notes" / "b.md").write_text("# Bread\n\nrye bread\n", "utf-8")
    own = {name: value for name, value in os.environ.items() if not name.startswith(("KLAW_", "XDG_"))}
    own |= {"HOME": str(tmp_path / "home"), "KLAW_DATA_DIR": str(tmp_path / "data"), "KLAW_EMBEDDER": "none"}

    def run(*arguments):
        command = [*prefix, sys.executable, "-m", "klaw_core", *arguments]
        done = subprocess.run(command, env=own, capture_output=True, encoding="utf-8", check=False)
        assert "Traceback" not in done.stderr
        assert "defect in Klaw" not in done.stderr
        return done

    assert run("index", str(tmp_path / "notes")).returncode == 0
    yield run
    for name in ("home", "data", "notes"):
        (tmp_path / name).chmod(0o700)


def test_a_data_directory_that_is_read_only_can_be_read(klaw, tmp_path):
    (tmp_path / "data").chmod(0o500)
    codes = {" ".join(command): klaw(*command).returncode for command in READS}
    assert set(codes.values()) == {0}, codes
    for command in WRITES:
        done = klaw(*command)
        assert done.returncode == 1, command
        assert "Permission denied" in done.stderr or "it is read-only" in done.stderr
        assert f"chmod u+rwx {tmp_path / 'data'}" in done.stderr or f"ls -ld {tmp_path / 'data'}" in done.stderr


def test_a_home_directory_and_notes_that_are_read_only_stop_nothing(klaw, tmp_path):
    for name in ("home", "notes"):
        (tmp_path / name).chmod(0o500)
    codes = {" ".join(command): klaw(*command).returncode for command in (*READS, *WRITES)}
    assert set(codes.values()) == {0}, codes


def test_a_data_directory_that_cannot_be_entered_is_named(klaw, tmp_path):
    (tmp_path / "data").chmod(0)
    for command in (*READS[:2], *WRITES[:2]):
        done = klaw(*command)
        assert done.returncode == 1, command
        assert "Permission denied" in done.stderr
        assert f"ls -ld {tmp_path / 'data'}" in done.stderr or f"chmod u+rwx {tmp_path / 'data'}" in done.stderr
