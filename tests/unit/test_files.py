"""A file is replaced whole or not at all, for its owner alone."""

import errno
import fcntl
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from klaw_core import StoreError, StoreFullError, StoreReadOnlyError
from klaw_core.files.atomic import locked, make_private_directory, open_regular, write_atomically
from klaw_core.files.held import TEMPORARY, Temporary
from klaw_journals.rewriting import keep_ranges, write_new


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


class TestDirectories:
    @pytest.mark.promise("S2")
    def test_every_created_directory_is_private(self, tmp_path):
        before = os.umask(0)
        try:
            make_private_directory(tmp_path / "a" / "b" / "c")
        finally:
            os.umask(before)
        assert [mode(tmp_path / path) for path in ("a", "a/b", "a/b/c")] == [0o700] * 3

    def test_an_existing_directory_is_not_changed(self, tmp_path):
        tmp_path.chmod(0o755)
        make_private_directory(tmp_path)
        assert mode(tmp_path) == 0o755

    def test_a_file_in_place_of_the_directory_is_named_with_its_fix(self, tmp_path):
        (tmp_path / "file").write_text("")
        for path in (tmp_path / "file", tmp_path / "file" / "below"):
            with pytest.raises(StoreReadOnlyError, match=r"cannot be created.*KLAW_DATA_DIR"):
                make_private_directory(path)


class TestAtomicWrites:
    def test_the_file_is_private_in_a_new_directory(self, tmp_path):
        path = tmp_path / "new" / "file.json"
        write_atomically(path, "память\n")
        assert path.read_text("utf-8") == "память\n"
        assert mode(path) == 0o600
        assert list(path.parent.iterdir()) == [path]

    def test_a_link_stays_one(self, tmp_path):
        (tmp_path / "dotfiles").mkdir()
        target, link = tmp_path / "dotfiles" / "config.toml", tmp_path / "config.toml"
        target.write_text("old")
        link.symlink_to(target)
        write_atomically(link, "new")
        assert link.is_symlink()
        assert target.read_text() == "new"

    @pytest.mark.parametrize(
        "write", [lambda path: write_atomically(path, "new"), lambda path: keep_ranges(path, iter)]
    )
    def test_a_device_or_a_pipe_is_not_replaced(self, tmp_path, monkeypatch, write):
        """A user with the rights to do so would lose ``/dev/null``."""
        monkeypatch.chdir(tmp_path)
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind("socket")
        os.mkfifo("pipe")
        for name in ("socket", "pipe"):
            with pytest.raises(StoreReadOnlyError):
                write(tmp_path / name)
            assert not (tmp_path / name).is_file()
        assert {path.name for path in tmp_path.iterdir()} == {"socket", "pipe"}

    @pytest.mark.parametrize("call", ["write", "fsync", "replace"])
    @pytest.mark.parametrize(
        ("number", "kind"),
        [(errno.ENOSPC, StoreFullError), (errno.EIO, StoreReadOnlyError), (errno.EROFS, StoreReadOnlyError)],
    )
    def test_a_failure_at_any_step_keeps_the_old_file(self, tmp_path, monkeypatch, call, number, kind):
        path = tmp_path / "file"
        path.write_text("old")

        def fail(*_arguments, **_options):
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(os, call, fail)
        with pytest.raises(kind, match="file cannot be written"):
            write_atomically(path, "new")
        monkeypatch.undo()
        assert path.read_text() == "old"
        assert list(tmp_path.iterdir()) == [path], "and nothing beside it"

    def test_what_stands_at_the_name_of_a_temporary_file_that_was_not_made_stays(self, tmp_path):
        planted = tmp_path / f"{TEMPORARY}file-fixed"
        planted.symlink_to(tmp_path / "other")
        with pytest.raises(OSError, match="symbolic links"), Temporary(tmp_path / "file", fixed="fixed"):
            pass
        assert planted.is_symlink()

    def test_a_temporary_file_that_was_opened_and_not_taken_is_removed(self, tmp_path):
        temporary = Temporary(tmp_path / "file")
        temporary.open()  # an interrupt may come right after it
        temporary.give_back()
        assert list(tmp_path.iterdir()) == []

    def test_short_writes_are_continued(self, tmp_path, monkeypatch):
        whole = os.write
        monkeypatch.setattr(os, "write", lambda descriptor, data: whole(descriptor, bytes(data[:3])))
        write_atomically(tmp_path / "file", "a longer text")
        assert (tmp_path / "file").read_text() == "a longer text"

    def test_the_content_is_flushed_before_the_rename_and_the_directory_after_it(self, tmp_path, monkeypatch):
        steps = []
        sync, replace = os.fsync, os.replace
        monkeypatch.setattr(os, "fsync", lambda fd: (steps.append(stat.S_ISDIR(os.fstat(fd).st_mode)), sync(fd)))
        monkeypatch.setattr(os, "replace", lambda *paths: (steps.append("replace"), replace(*paths)))
        write_atomically(tmp_path / "file", "text")
        assert steps == [False, "replace", True]

    def test_leftovers_of_crashes_are_removed_and_files_in_use_are_not(self, tmp_path):
        old, young, other = (tmp_path / name for name in (".klaw-file-old", ".klaw-file-young", ".klaw-other-old"))
        for path in (old, young, other):
            path.write_text("")
        for path in (old, other):
            os.utime(path, (0, 0))
        write_atomically(tmp_path / "file", "text")
        assert sorted(tmp_path.iterdir()) == [young, other, tmp_path / "file"]

    def test_concurrent_writers_leave_one_complete_file(self, tmp_path):
        texts = [str(number) * 10_000 for number in range(8)]
        failures = []

        def write(text):
            try:
                for _ in range(10):
                    write_atomically(tmp_path / "file", text)
            except StoreError as error:
                failures.append(error)

        threads = [threading.Thread(target=write, args=(text,)) for text in texts]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            if (tmp_path / "file").exists():
                assert (tmp_path / "file").read_text() in texts
        assert failures == []
        assert list(tmp_path.iterdir()) == [tmp_path / "file"]


class TestNewFiles:
    def test_a_new_file_never_replaces_an_existing_one(self, tmp_path):
        write_new(tmp_path / "file", b"one")
        with pytest.raises(FileExistsError):
            write_new(tmp_path / "file", b"two")
        assert (tmp_path / "file").read_bytes() == b"one"
        assert mode(tmp_path / "file") == 0o600
        assert list(tmp_path.iterdir()) == [tmp_path / "file"]


def test_only_a_regular_file_is_opened(tmp_path):
    (tmp_path / "file").write_text("text")
    with open_regular(tmp_path / "file") as file:
        assert file.read() == b"text"
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path, tmp_path / "nothing", "/dev/null"):
        before = len(list(Path("/dev/fd").iterdir()))
        with pytest.raises(OSError):  # noqa: PT011  # which one says the system
            open_regular(path)
        assert len(list(Path("/dev/fd").iterdir())) == before, "no descriptor is left open"


#: A program that holds the lock of a directory until its input ends.
HOLD = """
import sys
from pathlib import Path
from klaw_core.files.atomic import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


class TestLocks:
    def test_threads_take_turns(self, tmp_path):
        inside, most = [], []

        def work():
            with locked(tmp_path):
                inside.append(1)
                most.append(len(inside))
                time.sleep(0.002)
                inside.pop()

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert most == [1] * 8

    def test_processes_take_turns_and_a_killed_process_leaves_no_lock(self, tmp_path):
        pipe = subprocess.PIPE
        with subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdin=pipe, stdout=pipe) as process:
            assert process.stdout.readline() == b"held\n"
            descriptor = os.open(tmp_path, os.O_RDONLY)
            with pytest.raises(BlockingIOError):
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            process.kill()
        os.close(descriptor)
        with locked(tmp_path):
            pass

    @pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
    def test_a_child_of_a_killed_process_does_not_keep_its_lock(self, tmp_path):
        ready, begun = os.pipe()
        reader, writer = os.pipe()  # the grandchild lives until it is closed
        holder = os.fork()
        if not holder:
            with locked(tmp_path):
                if not os.fork():
                    os.close(writer)
                    os.write(begun, b".")
                    os.read(reader, 1)
                    os._exit(0)
                os.read(ready, 1)
                os.kill(os.getpid(), signal.SIGKILL)
        os.waitpid(holder, 0)
        descriptor = os.open(tmp_path, os.O_RDONLY)
        try:
            assert fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB) is None, "it is free"
        finally:
            for number in (descriptor, ready, begun, reader, writer):
                os.close(number)

    def test_an_error_inside_releases_the_lock(self, tmp_path):
        with pytest.raises(RuntimeError), locked(tmp_path):
            raise RuntimeError
        with locked(tmp_path):
            pass

    def test_the_directory_of_the_lock_is_created(self, tmp_path):
        with locked(tmp_path / "new"):
            assert mode(tmp_path / "new") == 0o700


def test_a_file_system_without_locks_is_reported_with_its_fix(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("fcntl.flock", refuse)
    with pytest.raises(StoreReadOnlyError, match="cannot be locked") as caught, locked(tmp_path):
        pass
    assert "--data-dir" in caught.value.hint


def test_an_interrupt_while_a_file_is_opened_is_not_hidden_by_an_error_of_closing(tmp_path, monkeypatch):
    """Ctrl-C comes after the file object has taken the descriptor, and before its caller has the file object."""
    path = tmp_path / "chat.jsonl"
    path.write_bytes(b"{}\n")

    def interrupted(descriptor, mode):
        with open(descriptor, mode):  # noqa: PTH123  # a descriptor
            raise KeyboardInterrupt

    monkeypatch.setattr("klaw_core.files.held.open", interrupted, raising=False)
    with pytest.raises(KeyboardInterrupt):
        open_regular(path)
