"""A directory of notes: everything odd in it is a named SkippedEntry, never an exception and never a way out."""

import errno
import os
import socket
from datetime import UTC, datetime
from pathlib import Path

import pytest
from attrs import evolve

from klaw_core import Document, Entry, SkippedEntry, WorkspaceError
from klaw_notes.workspace import Workspace, decode
from klaw_testing.source import SourceContract


@pytest.fixture
def root(tmp_path):
    (tmp_path / "notes").mkdir()
    return (tmp_path / "notes").resolve()


@pytest.fixture
def workspace(root):
    return Workspace(root, "notes")


def write(root, name, data="text"):
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def names(workspace):
    return [item.path.removeprefix("notes/") for item in workspace.scan() if isinstance(item, Entry)]


def skipped(workspace):
    """What a whole run leaves out, by path."""
    found = {}
    for item in workspace.scan():
        read = workspace.read(item) if isinstance(item, Entry) else item
        if isinstance(read, SkippedEntry):
            found[read.path.removeprefix("notes/")] = read.reason
    return found


def text_of(workspace, name):
    read = workspace.read(Entry(f"notes/{name}"))
    assert isinstance(read, Document), read
    return read.text


class TestContract(SourceContract):
    @pytest.fixture
    def source(self, root, workspace):
        write(root, "MEMORY.md", "what matters")
        write(root, "sub/b.md", "more")
        write(root, "sub/empty.md", "")
        write(root, "binary.md", b"\0\1")
        (root / "dangling.md").symlink_to("nowhere.md")
        (root / "loop").symlink_to("loop")
        return workspace


class TestOrder:
    def test_memory_md_is_first_and_the_rest_is_ordered_by_path(self, root, workspace):
        for name in ("z.md", "a.md", "memory/2026-02-24.md", "memory.md", "MEMORY.md", "A.md", "sub/MEMORY.md"):
            write(root, name)
        rest = ["A.md", "a.md", "memory/2026-02-24.md", "sub/MEMORY.md", "z.md"]
        assert names(workspace) == ["MEMORY.md", "memory.md", *rest]

    def test_a_file_with_several_names_is_read_once_under_the_first_name(self, root, workspace):
        write(root, "notes.md")
        (root / "MEMORY.md").symlink_to("notes.md")
        (root / "zz.md").symlink_to("notes.md")
        write(root, "dir/a.md")
        (root / "again").symlink_to("dir")
        assert names(workspace) == ["MEMORY.md", "dir/a.md"]
        assert skipped(workspace) == {}

    def test_only_notes_are_read(self, root, workspace):
        for name in (
            "a.md",
            "b.markdown",
            "c.txt",
            "d",
            "md",
            ".hidden.md",
            ".git/x.md",
            "node_modules/p/r.md",
            "e.md~",
            "F.MD",
            "g.py",
        ):
            write(root, name)
        assert names(workspace) == ["F.MD", "a.md", "b.markdown", "c.txt"]
        assert names(evolve(workspace, include=("*.py",))) == ["g.py"]

    def test_plain_text_is_not_split_as_markdown(self, root, workspace):
        formats = {}
        for name in ("a.md", "B.MARKDOWN", "c.txt"):
            write(root, name)
            formats[name] = workspace.read(Entry(f"notes/{name}")).format
        assert formats == {"a.md": "markdown", "B.MARKDOWN": "markdown", "c.txt": "plain"}

    @pytest.mark.parametrize(
        ("pattern", "left"),
        [("a.md", ["b.md", "sub/a.md"]), ("sub", ["a.md", "b.md"]), ("sub/*", ["a.md", "b.md"]), ("*a.md", ["b.md"])],
    )
    def test_excluded_files_are_not_counted(self, root, workspace, pattern, left):
        for name in ("a.md", "b.md", "sub/a.md"):
            write(root, name)
        excluding = evolve(workspace, exclude=(pattern,))
        assert names(excluding) == left
        assert skipped(excluding) == {}

    def test_a_scan_reads_thousands_of_files_and_hundreds_of_levels(self, root, workspace):
        for number in range(2000):
            (root / f"{number:04}.md").write_text("x")
        write(root, "/".join(["d"] * 200) + "/deep.md")
        found = names(workspace)
        assert len(found) == 2001
        assert found[-1].endswith("d/deep.md")

    def test_a_missing_directory_is_reported_with_its_fix(self, root, workspace):
        root.rmdir()
        with pytest.raises(WorkspaceError, match=r"does not exist .*klaw forget notes/"):
            workspace.scan()
        root.write_text("")
        with pytest.raises(WorkspaceError, match="is not a directory"):
            workspace.scan()


class TestUnusualFiles:
    def test_circular_links_do_not_block_a_scan(self, root, workspace):
        write(root, "a.md")
        (root / "one").symlink_to("two")
        (root / "two").symlink_to("one")
        (root / "self.md").symlink_to("self.md")
        (root / "around").symlink_to(".")
        (root / "sub").mkdir()
        (root / "sub" / "up").symlink_to("..")
        assert names(workspace) == ["a.md"]
        assert "self.md" in skipped(workspace)

    def test_links_to_the_outside_are_named_and_not_followed(self, root, workspace, tmp_path):
        write(tmp_path, "notes-secret/secret.md", "secret")
        (root / "out.md").symlink_to(tmp_path / "notes-secret" / "secret.md")
        (root / "outdir").symlink_to(tmp_path / "notes-secret")
        (root / "up").symlink_to("..")
        assert names(workspace) == []
        assert skipped(workspace) == dict.fromkeys(("out.md", "outdir", "up"), "points outside the workspace")
        for name in ("out.md", "outdir/secret.md", "../notes-secret/secret.md", "sub/../../notes-secret/secret.md"):
            read = workspace.read(Entry(f"notes/{name}"))
            assert isinstance(read, SkippedEntry), name

    def test_a_link_to_a_note_in_the_workspace_is_a_note(self, root, workspace):
        write(root, ".store/real.md", "the text")
        (root / "link.md").symlink_to(".store/real.md")
        assert names(workspace) == ["link.md"]
        assert text_of(workspace, "link.md") == "the text"

    def test_something_other_than_a_file_is_named_without_waiting(self, root, workspace):
        os.mkfifo(root / "pipe.md")
        with socket.socket(socket.AF_UNIX) as server:
            here = Path.cwd()
            os.chdir(root)  # the path of a socket is at most 108 bytes long
            server.bind("socket.md")
            os.chdir(here)
        (root / "device.md").symlink_to("/dev/zero")
        (root / "dangling.md").symlink_to("nowhere.md")
        assert skipped(workspace) == {
            "dangling.md": "is a broken link",
            "device.md": "points outside the workspace",
            "pipe.md": "is not a regular file",
            "socket.md": "is not a regular file",
        }

    def test_a_directory_with_the_name_of_a_note_is_scanned(self, root, workspace):
        write(root, "odd.md/inside.md")
        assert names(workspace) == ["odd.md/inside.md"]

    def test_a_file_that_is_replaced_after_the_scan_by_something_else_is_skipped(self, root, workspace, tmp_path):
        (tmp_path / "secret.md").write_text("secret")

        def become(change):
            path = write(root, "a.md")
            (entry,) = workspace.scan()
            path.unlink()
            change(path)
            read = workspace.read(entry)
            assert isinstance(read, SkippedEntry)
            path.rmdir() if path.is_dir() else path.unlink(missing_ok=True)
            return read.reason, read.keep

        assert become(lambda _path: None) == ("vanished", True)
        assert become(os.mkfifo) == ("is not a regular file", False)
        assert become(lambda path: path.symlink_to(tmp_path / "secret.md")) == ("points outside the workspace", False)
        assert become(lambda path: path.symlink_to(path.name))[0] == "points outside the workspace"
        assert become(Path.mkdir)[0]

    def test_an_unreadable_file_is_named_and_kept(self, root, workspace, monkeypatch):
        write(root, "a.md")
        write(root, "sub/b.md")
        opening, listing = os.open, os.scandir

        def refuse(call, suffix):
            def instead(path, *arguments, **options):
                if str(path).endswith(suffix):
                    raise PermissionError(13, "Permission denied")
                return call(path, *arguments, **options)

            return instead

        monkeypatch.setattr(os, "open", refuse(opening, "a.md"))
        monkeypatch.setattr(os, "scandir", refuse(listing, "sub"))
        assert skipped(workspace) == dict.fromkeys(("a.md", "sub"), "cannot be read: Permission denied")
        assert [item.keep for item in workspace.scan() if isinstance(item, SkippedEntry)] == [True]
        assert workspace.read(Entry("notes/a.md")).keep

    @pytest.mark.skipif(os.geteuid() == 0, reason="root reads whatever chmod forbids")
    def test_a_file_without_read_permission_is_named(self, root, workspace):
        write(root, "a.md").chmod(0)
        assert skipped(workspace) == {"a.md": "cannot be read: Permission denied"}

    def test_a_file_over_the_limit_is_named_with_both_sizes(self, root, workspace):
        capped = evolve(workspace, max_bytes=1000)
        write(root, "just.md", "x" * 1000)
        write(root, "over.md", "x" * 1001)
        assert skipped(capped) == {"over.md": "is larger than 1,000 bytes (1,001)"}

    @pytest.mark.parametrize(
        "name",
        [
            "line\nbreak.md",
            "🧵.md",
            "日本語.md",
            "a b.md",
            "tab\t.md",
            "-rf.md",
            "quo'te\".md",
            "%s.md",
            "a" * 250 + ".md",
        ],
    )
    def test_a_file_can_have_any_unicode_name(self, root, workspace, name):
        write(root, name, "the text")
        assert names(workspace) == [name]
        assert text_of(workspace, name) == "the text"

    def test_a_file_whose_name_is_not_unicode_is_skipped_with_a_printable_name(self, root, workspace):
        Path(os.fsdecode(os.fsencode(root) + b"/caf\xe9.md")).write_text("text")
        directory = Path(os.fsdecode(os.fsencode(root) + b"/d\xff"))
        directory.mkdir()
        (directory / "a.md").write_text("text")
        assert names(workspace) == []
        found = skipped(workspace)
        assert found == dict.fromkeys((r"caf\udce9.md", r"d\udcff/a.md"), "has a name that is not valid UTF-8")
        for path in found:
            path.encode()


class TestText:
    @pytest.mark.parametrize(
        ("data", "text"),
        [
            (b"plain", "plain"),
            ("память 内存".encode(), "память 内存"),
            (b"\xef\xbb\xbfwith a mark", "with a mark"),
            ("UTF-16 ё".encode("utf-16"), "UTF-16 ё"),
            ("UTF-16 ё".encode("utf-16-be").join([b"\xfe\xff", b""]), "UTF-16 ё"),
            ("UTF-32 ё".encode("utf-32"), "UTF-32 ё"),
            (b"\x00\x00\xfe\xff" + "UTF-32 ё".encode("utf-32-be"), "UTF-32 ё"),
            (b"one\r\ntwo\rthree\n", "one\r\ntwo\rthree\n"),
        ],
    )
    def test_text_is_read_unchanged(self, data, text):
        assert decode(data) == text

    @pytest.mark.parametrize(
        ("data", "reason"),
        [
            (b"", "is empty"),
            (b" \n\t\r\n", "is empty"),
            (b"\xef\xbb\xbf", "is empty"),
            (b"\xff\xfe", "is empty"),
            (b"\x89PNG\0\0", "is binary"),
            (b"\xc3\xa9a\xe9", "is not valid UTF-8 (byte 3)"),
            (b"a\x07b\xe9", "is not valid UTF-8 (byte 3)"),
            (b"\xed\xa0\x80", "is not valid UTF-8 (byte 0)"),
            (b"\xff\xfe\x00\xd8", "is not valid UTF-16 (byte 2)"),
        ],
    )
    def test_other_content_is_skipped_with_the_reason(self, root, workspace, data, reason):
        write(root, "a.md", data)
        assert skipped(workspace) == {"a.md": reason}


class TestDates:
    @pytest.mark.parametrize(
        ("name", "date"),
        [
            ("2026-02-24.md", (2026, 2, 24)),
            ("2026-02-24 standup.md", (2026, 2, 24)),
            ("2026-02-24-standup.md", (2026, 2, 24)),
            ("memory/2024-02-29.md", (2024, 2, 29)),
        ],
    )
    def test_a_note_whose_name_is_a_day_has_that_date(self, root, workspace, name, date):
        write(root, name)
        assert workspace.read(Entry(f"notes/{name}")).created_at == datetime(*date, tzinfo=UTC)

    @pytest.mark.parametrize(
        "name", ["2026-02-30.md", "0000-01-01.md", "2026-02-241.md", "x2026-02-24.md", "2026-2-4.md"]
    )
    def test_any_other_note_is_dated_by_its_modification_time(self, root, workspace, name):
        path = write(root, name)
        os.utime(path, (0, 1_700_000_000.75))
        assert workspace.read(Entry(f"notes/{name}")).created_at == datetime.fromtimestamp(1_700_000_000, UTC)

    @pytest.mark.parametrize("seconds", [-1, 0, 2**33, 2**38, -(2**37)])
    def test_any_time_of_a_file_system_is_accepted(self, root, workspace, seconds):
        path = write(root, "a.md")
        try:
            os.utime(path, (seconds, seconds))
        except OSError:
            pytest.skip("this file system refuses the time")
        assert workspace.read(Entry("notes/a.md")).created_at.utcoffset() is not None


class TestLookup:
    @pytest.fixture(autouse=True)
    def files(self, root, tmp_path):
        for name in ("a.md", "sub/b.md", ".env", ".git/c.md", "key.pem", "node_modules/d.md", "gone/e.md"):
            write(root, name)
        write(tmp_path, "outside.md")
        (root / "out.md").symlink_to(tmp_path / "outside.md")

    @pytest.mark.parametrize("relative", ["a.md", "sub/b.md"])
    def test_a_note_belongs_to_the_workspace(self, workspace, relative):
        assert workspace.holds(relative)

    @pytest.mark.parametrize(
        "relative",
        [
            "", ".", "..", "/", "sub", "sub/", "nothing.md", ".env", ".git/c.md", "key.pem", "node_modules/d.md",
            "gone/e.md", "out.md", "../outside.md", "sub/../../outside.md", "sub/../a.md", "\0.md", "x" * 5000 + ".md",
            "\ud800.md",
        ],
    )  # fmt: skip
    def test_other_files_do_not_belong_to_the_workspace(self, workspace, relative):
        assert not evolve(workspace, exclude=("gone",)).holds(relative)

    def test_a_note_is_located_by_any_path_to_it(self, root, workspace, tmp_path, monkeypatch):
        (tmp_path / "link").symlink_to(root)
        monkeypatch.chdir(root / "sub")
        for path in (str(root / "sub" / "b.md"), str(tmp_path / "link" / "sub" / "b.md"), "b.md", "../sub/b.md"):
            assert workspace.locate(path) == f"{workspace.origin}/sub/b.md", path

    @pytest.mark.parametrize("path", ["", "/", "/etc/passwd", "~nosuchuser/a.md", "\0", "\ud800", "x" * 5000, "b.md"])
    def test_other_paths_locate_nothing(self, workspace, path, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        assert workspace.locate(path) is None

    def test_the_notes_of_a_workspace_are_those_of_a_scan(self, root, workspace):
        scanned = set(names(workspace))
        every = {path.relative_to(root).as_posix() for path in root.rglob("*")}
        assert {relative for relative in every if workspace.holds(relative)} == scanned


@pytest.mark.parametrize("kind", ["file", "directory"])
def test_a_file_that_changes_its_type_during_a_scan_does_not_end_it(tmp_path, monkeypatch, kind):
    """Between the look at a link and the reading of it it may have become a file: EINVAL."""
    (tmp_path / "there.md").write_text("one")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "b.md").write_text("two")
    place = tmp_path / ("link.md" if kind == "file" else "link")
    place.symlink_to(tmp_path / ("there.md" if kind == "file" else "sub"))
    readlink = os.readlink

    def changed(path, *more, **options):
        if os.fspath(path).endswith(place.name):
            raise OSError(errno.EINVAL, "Invalid argument", path)
        return readlink(path, *more, **options)

    monkeypatch.setattr(os, "readlink", changed)
    found = [entry.path for entry in Workspace(tmp_path, "notes").scan()]
    assert {"notes/there.md", "notes/sub/b.md"} <= set(found)


def test_its_class_is_that_of_its_documents_and_part_of_what_they_depend_on(root):
    write(root, "a.md", "---\ntrust: owner\nklaw.trust: owner\n---\ntext")
    own, foreign = Workspace(root, "notes"), Workspace(root, "notes", trust="foreign")
    entries = [next(iter(each.scan())) for each in (own, foreign)]
    read = [each.read(entry) for each, entry in zip((own, foreign), entries, strict=True)]
    assert [each.trust for each in read] == ["owner", "foreign"]
    assert [each.metadata for each in read] == [{"trust": "owner"}] * 2
    assert foreign.read_changed(entries[1], read[0].digest) is not None
    assert foreign.read_changed(entries[1], read[1].digest) is None
