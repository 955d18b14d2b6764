"""The list of workspaces: names that are free, no two of one tree, and nothing lost between two processes."""

import errno
import json
import os
import threading
from functools import partial
from glob import escape
from pathlib import Path

import pytest
from attrs import evolve

from klaw_core import Memory, StoreCorruptError, StoreError, WorkspaceError, load_config
from klaw_notes.patterns import problem_of, unmatched_paths
from klaw_notes.remembered import RememberedWorkspace
from klaw_notes.workspace_list import Workspaces, is_gone
from klaw_notes.workspace_options import WorkspaceOptions
from klaw_testing.source import SourceContract

RESERVED = ("saved", "conversations")


@pytest.fixture
def workspaces(tmp_path):
    return Workspaces(tmp_path / "data" / "workspaces.json", frozenset(RESERVED))


@pytest.fixture
def make(tmp_path):
    def make(path):
        directory = tmp_path / path
        directory.mkdir(parents=True, exist_ok=True)
        return directory

    return make


class TestContract(SourceContract):
    @pytest.fixture
    def source(self, workspaces, make):
        root = make("notes")
        for name in ("a.md", "[b].md", "c.md"):
            (root / name).write_text("text")
        return RememberedWorkspace.of(workspaces.remember(root), workspaces)

    def made_again(self, source):
        return RememberedWorkspace.of(source.registry.all()[source.origin], source.registry)


def test_the_list_is_empty_at_first(workspaces):
    assert workspaces.all() == {}
    assert not workspaces.file.exists(), "looking writes nothing"


def test_a_directory_is_remembered_by_its_real_path(workspaces, make, tmp_path, monkeypatch):
    notes = make("notes")
    (tmp_path / "link").symlink_to(notes)
    first = workspaces.remember(tmp_path / "link", "mine")
    assert (first.root, first.origin) == (notes.resolve(), "mine")
    assert Workspaces(workspaces.file).all() == {"mine": first}
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for other in (notes, Path("notes"), Path("~/notes"), notes / ".." / "notes"):
        assert workspaces.remember(other) == first


def test_a_subdirectory_belongs_to_the_known_workspace_and_a_parent_is_rejected(workspaces, make, tmp_path):
    notes = workspaces.remember(make("notes"))
    assert workspaces.remember(make("notes/sub")) == notes
    with pytest.raises(WorkspaceError, match=r"contains the workspace 'notes'.*klaw forget notes/"):
        workspaces.remember(tmp_path)
    beside = workspaces.remember(make("notes-more"))
    assert list(workspaces.all()) == ["notes", "notes-more"]
    assert beside.origin == "notes-more"


def test_a_moved_directory_keeps_its_name_and_patterns(workspaces, make):
    before = workspaces.remember(make("old/notes"), version="1")
    workspaces.exclude("notes", "secret.md")
    now = make("new/notes")
    with pytest.raises(WorkspaceError, match="'notes' is already in use"):
        workspaces.remember(now, "notes")
    before.root.rmdir()
    with pytest.raises(WorkspaceError, match="'notes' is already in use"):
        workspaces.remember(now, "notes", collection="docs")
    moved = workspaces.remember(now, "notes")
    assert moved == evolve(before, root=now.resolve(), exclude=("secret.md",))
    assert workspaces.all() == {"notes": moved}


def test_a_moved_directory_of_documentation_keeps_its_collection(workspaces, make):
    workspaces.remember(make("old/lib"), collection="docs").root.rmdir()
    assert workspaces.remember(make("new/lib"), "lib").collection == "docs"


def test_an_inaccessible_directory_is_not_treated_as_missing(make, monkeypatch):
    directory = make("notes")
    assert not is_gone(directory)
    assert is_gone(directory / "none")
    for number in (errno.EACCES, errno.ENOTCONN, errno.EIO):
        monkeypatch.setattr("os.stat", partial(_refuse, number))
        assert not is_gone(directory)


def _refuse(number, *_, **__):
    raise OSError(number, os.strerror(number))


def test_a_missing_directory_keeps_its_name_unless_the_name_is_requested(workspaces, make):
    drive = workspaces.remember(make("drive/notes"))
    drive.root.rmdir()
    assert workspaces.remember(make("other/notes")).origin == "notes-2"
    assert workspaces.all()["notes"] == drive


@pytest.mark.parametrize(
    ("place", "problem"),
    [("mine", "belongs to"), ("mine/sub", "belongs to"), ("", "contains .*mine, the configured source")],
)
def test_a_configured_directory_is_not_added_a_second_time(workspaces, make, tmp_path, place, problem):
    make("mine/sub")
    (tmp_path / "link").symlink_to(tmp_path / "mine")
    for configured in (tmp_path / "mine", tmp_path / "link"):
        with pytest.raises(WorkspaceError, match=problem):
            workspaces.remember(tmp_path / place, configured={"mine": configured})
    known = workspaces.remember(make("known"))
    assert workspaces.remember(make("known"), configured={"work": make("known/work")}) == known
    assert workspaces.remember(make("b/mine"), configured={"mine": tmp_path / "else"}).origin == "mine-2"


class TestNames:
    def test_a_taken_name_gets_a_number_unless_it_was_chosen(self, workspaces, make):
        names = [workspaces.remember(make(f"{parent}/docs")).origin for parent in "abc"]
        assert names == ["docs", "docs-2", "docs-3"]
        with pytest.raises(WorkspaceError, match=r"'docs' is already in use.*--name"):
            workspaces.remember(make("d/docs"), "docs")
        workspaces.forget("docs-2")
        assert workspaces.remember(make("d/docs")).origin == "docs-2"

    @pytest.mark.parametrize("name", RESERVED)
    def test_a_reserved_name_is_never_used(self, workspaces, make, name):
        assert workspaces.remember(make(name)).origin == f"{name}-2"
        with pytest.raises(WorkspaceError, match="is already in use"):
            workspaces.remember(make("other"), name)

    @pytest.mark.parametrize("name", ["a/b", "/", ".", "..", ".hidden", "line\nbreak", "nul\0", "\udcff", "\u202e"])
    def test_an_ambiguous_name_is_rejected(self, workspaces, make, name):
        with pytest.raises(WorkspaceError, match=r"is not a valid workspace name.*--name"):
            workspaces.remember(make("notes"), name)
        assert workspaces.all() == {}

    @pytest.mark.parametrize("name", ["日本語", "my notes", "🧵", "a.b", "-x", "notes[1]", "%s"])
    def test_any_other_name_is_accepted(self, workspaces, make, name):
        assert workspaces.remember(make(name)).origin == name
        assert list(Workspaces(workspaces.file).all()) == [name]

    def test_the_root_has_a_name_too(self, workspaces):
        assert workspaces.remember(Path("/")).origin == "root"

    def test_a_directory_whose_name_is_not_unicode_needs_an_explicit_name(self, workspaces, tmp_path):
        odd = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9"))
        odd.mkdir()
        with pytest.raises(WorkspaceError, match="--name"):
            workspaces.remember(odd)
        remembered = workspaces.remember(odd, "cafe")
        assert Workspaces(workspaces.file).all() == {"cafe": remembered}
        assert remembered.root == odd.resolve()
        workspaces.file.read_text("utf-8")


@pytest.mark.parametrize("path", ["nothing", "file", "loop", "nul\0", "x" * 5000, "file/below"])
def test_something_other_than_a_directory_is_reported(workspaces, tmp_path, path):
    (tmp_path / "file").write_text("")
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(WorkspaceError):
        workspaces.remember(tmp_path / path)
    with pytest.raises(WorkspaceError):
        workspaces.remember(Path("~nosuchuser/notes"))
    assert not workspaces.file.exists()


class TestChanges:
    def test_a_removal_is_stored_and_an_unknown_name_is_ignored(self, workspaces, make):
        workspaces.remember(make("notes"))
        workspaces.forget("nothing")
        workspaces.forget("notes")
        assert Workspaces(workspaces.file).all() == {}

    @pytest.mark.parametrize("name", ["a.md", "sub/a.md", "a[1].md", "*.md", "?.md"])
    def test_only_the_excluded_note_is_left_out(self, workspaces, make, name):
        notes = make("notes")
        for other in (name, "a1.md", "b.md"):
            (notes / other).parent.mkdir(exist_ok=True)
            (notes / other).write_text("text")
        workspaces.remember(notes)
        for _ in range(2):
            workspaces.exclude("notes", name)
        found = Workspaces(workspaces.file).all()["notes"]
        assert len(found.exclude) == 1
        assert sorted(entry.path for entry in found.scan()) == ["notes/a1.md", "notes/b.md"]

    def test_concurrent_changes_are_not_lost(self, workspaces, make):
        directories = [make(f"dir{number}") for number in range(12)]
        (directories[0] / "a.md").write_text("")
        workspaces.remember(directories[0])

        def work(directory):
            Workspaces(workspaces.file).remember(directory)
            Workspaces(workspaces.file).exclude("dir0", f"{directory.name}.md")

        threads = [threading.Thread(target=work, args=(directory,)) for directory in directories[1:]]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(workspaces.all()) == 12
        assert len(workspaces.all()["dir0"].exclude) == 11


class TestFile:
    @pytest.mark.parametrize(
        "content",
        [b"", b"{", b"[]", b"3", b"null", b'{"a": 3}', b'{"a": {}}', b'{"a": {"path": 3}}', b"caf\xe9", b"[" * 100_000],
    )
    def test_a_foreign_file_is_named_and_not_changed(self, workspaces, make, content):
        workspaces.file.parent.mkdir()
        workspaces.file.write_bytes(content)
        for call in (workspaces.all, lambda: workspaces.remember(make("notes")), lambda: workspaces.forget("a")):
            with pytest.raises(StoreCorruptError, match=r"workspaces\.json.*klaw index DIR"):
                call()
        assert workspaces.file.read_bytes() == content

    def test_an_unreadable_file_is_named(self, workspaces):
        workspaces.file.mkdir(parents=True)
        with pytest.raises(StoreError, match="cannot be read"):
            workspaces.all()

    def test_the_file_is_readable_by_people(self, workspaces, make):
        workspaces.remember(make("заметки"))
        workspaces.exclude("заметки", "a.md")
        text = workspaces.file.read_text("utf-8")
        assert "заметки" in text
        assert json.loads(text) == {"заметки": {"path": str(make("заметки").resolve()), "exclude": ["a.md"]}}


def test_excluding_from_a_workspace_that_was_just_forgotten_changes_nothing(workspaces, make):
    workspaces.remember(make("notes"))
    workspaces.remember(make("others"))
    workspaces.forget("notes")
    workspaces.exclude("notes", "a.md")
    assert list(workspaces.all()) == ["others"]
    assert workspaces.all()["others"].exclude == ()


class TestPatterns:
    @pytest.mark.parametrize("pattern", ["[", "*.[m", "[!", "[]", "[!]", "a[b]c[d", "draft[/x.md", "", "/", "./"])
    def test_one_that_cannot_be_meant_so_is_refused_wherever_it_is_given(self, workspaces, make, pattern):
        home = make("notes")
        workspaces.remember(home)
        before = workspaces.file.read_bytes()

        for change in ({"include": [pattern]}, {"exclude": [pattern]}):
            with pytest.raises(WorkspaceError, match="pattern"):
                workspaces.remember(home, **change)
            with pytest.raises(ValueError, match="pattern"):
                WorkspaceOptions(str(home), **change)
        with pytest.raises(WorkspaceError, match="pattern"):
            workspaces.change_patterns("notes", add=[pattern])

        assert workspaces.file.read_bytes() == before

    @pytest.mark.parametrize("name", ["[", "a]b", "[]", "[!x", "*", "x[1].md"])
    def test_every_file_can_be_named_by_one(self, name):
        assert problem_of(escape(name)) == ""
        assert unmatched_paths([escape(name)], [name]) == []

    def test_those_of_the_configuration_are_read_as_those_of_the_command(self, workspaces, make):
        configured = WorkspaceOptions(str(make("notes")), exclude=("./drafts/", "/old", "a/*"))
        assert configured.exclude == ("drafts", "old", "a/*")
        assert configured.exclude == workspaces.remember(configured.root, exclude=configured.exclude).exclude

    def test_patterns_of_names_that_match_nothing_do_not_empty_a_workspace(self, workspaces, make):
        home = make("notes")
        (home / "a.md").write_text("a note")
        workspaces.remember(home)

        with pytest.raises(WorkspaceError, match=r"no file in .* has a name that matches '\*\.org'"):
            workspaces.remember(home, include=["*.org"])

        assert workspaces.named("notes").has_files()
        assert workspaces.remember(home, include=["*.org", "A.*"]).has_files()

    def test_what_matches_nothing_is_told(self, workspaces, make):
        home = make("notes")
        (home / "drafts").mkdir()
        (home / "drafts" / "A.md").write_text("a note")
        workspace = workspaces.remember(home)

        found = workspace.unmatched(["*.MD", "drafts/*", "*.org"], ["drafts", "drafts/*", "*.md", "A.md", "old/*"])

        assert found == (["drafts/*", "*.org"], ["A.md", "old/*"])


def test_a_run_tells_which_patterns_match_nothing(tmp_path):
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "a.md").write_text("a note")
    with Memory.open(load_config(data_dir=tmp_path / "data", environment={})) as memory:
        memory.index(notes, embed=False)
        unmatched = memory.workspaces.unmatched

        assert unmatched("notes", ["*.md", "d/*"], ["old"]) == ["no file in notes matches 'd/*' or 'old'"]
        assert list(unmatched("notes", ["*.md"], ["a.md"])) == []
        assert list(unmatched("configured", ["*.org"], [])) == []
