"""Directories that nobody would make by accident: nothing leaves the workspace, nothing hangs, all is counted."""

import os
import socket
import sys
import unicodedata
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from klaw_core import KlawError, Memory, NotFoundError, WorkspaceError
from klaw_core.config.load import load_config

SECRET = "the secret of the harbour master"
WORDS = {"embedding": {"type": "none"}, "retrieval": [{"type": "fts5"}]}


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("paths").resolve()


@pytest.fixture
def notes(tmp_path):
    (tmp_path / "notes").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.md").write_text(SECRET)
    return (tmp_path / "notes").resolve()


def open_memory(root: Path) -> Memory:
    environment = {"KLAW_CONFIG": os.devnull}
    return Memory.open(load_config(data_dir=root / "data", environment=environment, overrides={"memory": WORDS}))


@pytest.fixture
def memory(tmp_path):
    with open_memory(tmp_path) as opened:
        yield opened


def test_everything_odd_at_once_costs_the_sound_notes_nothing(notes, memory, tmp_path):
    (notes / "sound.md").write_text("the sound note")
    (notes / "out.md").symlink_to(tmp_path / "outside" / "secret.md")
    (notes / "out").symlink_to(tmp_path / "outside")
    (notes / "loop").symlink_to(".")
    (notes / "one.md").symlink_to("two.md")
    (notes / "two.md").symlink_to("one.md")
    (notes / "device.md").symlink_to("/dev/zero")
    os.mkfifo(notes / "pipe.md")
    (notes / "bomb.md").write_bytes(b"x" * (10 * 1024 * 1024 + 1))
    (notes / "line.md").write_bytes(b"harbour " * 300_000)  # one line
    Path(os.fsdecode(os.fsencode(notes) + b"/\xff\xfe.md")).write_text("no name")
    deep = notes.joinpath(*["d"] * 300)
    deep.mkdir(parents=True)
    (deep / "deep.md").write_text("far below")
    with socket.socket(socket.AF_UNIX) as server:
        here = Path.cwd()
        os.chdir(notes)  # the path of a socket is at most 108 bytes long
        server.bind("socket.md")
        os.chdir(here)
    report = memory.index(notes)
    assert (report.added, len(report.skipped)) == (3, 9), report.skipped
    assert memory.search("sound")[0].path == "notes/sound.md"
    assert memory.search("far below")[0].path.endswith("/deep.md")
    assert list(memory.search("secret master")) == []
    assert memory.index().unchanged == 3


def test_thousands_of_notes(notes, memory, cases):
    count = cases.number(1_100, 10_000)
    for number in range(count):
        (notes / f"{number}.md").write_text(f"note word{number}")
    report = memory.index(notes)
    assert (report.added, report.chunks, report.skipped) == (count, count, ())
    assert memory.search("word987")[0].path == "notes/987.md"
    assert memory.index().unchanged == count


@pytest.mark.skipif(sys.platform == "darwin", reason="its file system folds case")
def test_names_that_some_file_systems_take_for_one_are_kept_apart(notes, memory):
    composed, decomposed = (unicodedata.normalize(form, "café.md") for form in ("NFC", "NFD"))
    texts = {
        "A.md": "upper",
        "a.md": "lower",
        composed: "composed",
        decomposed: "decomposed",
        "ﬁ.md": "one",
        "fi.md": "two",
    }
    for name, text in texts.items():
        (notes / name).write_text(text)
    assert memory.index(notes).added == len(texts)
    for name, text in texts.items():
        assert memory.get(f"notes/{name}").content == text
        assert memory.search(text)[0].path == f"notes/{name}"
    memory.forget("notes/A.md")
    assert memory.get("notes/a.md").content == "lower"
    with pytest.raises(NotFoundError):
        memory.get("notes/A.md")


@pytest.mark.parametrize(
    "make",
    [
        Path.touch,
        os.mkfifo,
        lambda path: path.symlink_to(path),
        lambda path: path.symlink_to("/dev/null"),
        lambda _: None,
    ],
)
def test_a_workspace_that_is_no_directory(tmp_path, memory, make):
    path = tmp_path / "notes"
    make(path)
    with pytest.raises(WorkspaceError):
        memory.index(path)
    with pytest.raises(WorkspaceError):
        memory.index(f"{path}\0")
    assert not (tmp_path / "data" / "workspaces.json").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads whatever chmod forbids")
def test_a_directory_that_may_not_be_read(notes, memory):
    (notes / "a.md").write_text("the harbour")
    memory.index(notes)
    notes.chmod(0)
    try:
        memory.index()
        assert memory.search("harbour")[0].path == "notes/a.md"
    finally:
        notes.chmod(0o700)


STEPS = (
    *("..", ".", "/", "~", "", "*", "[", "\\", "\0", "\udcff", "%2e%2e", ":1:1", "x" * 300),
    *("notes", "outside", "secret.md", "a.md", "saved", "conversations", "data", "klaw.db", "etc", "passwd"),
)
ANYWHERE = st.sampled_from(STEPS)


@pytest.fixture(scope="module")
def module_memory(home):
    (home / "outside").mkdir()
    (home / "outside" / "secret.md").write_text(SECRET)
    (home / "notes").mkdir()
    (home / "notes" / "a.md").write_text("the harbour")
    with open_memory(home) as memory:
        memory.index(home / "notes")
        (home / "notes" / "out.md").symlink_to(home / "outside" / "secret.md")
        (home / "notes" / "out").symlink_to(home / "outside")
        yield memory


@given(st.lists(ANYWHERE | st.text(max_size=5), max_size=8).map("/".join))
@example("notes/out.md")
@example("notes/out/secret.md")
@example("notes/../outside/secret.md")
@settings(deadline=None)
def test_no_path_leads_out_and_none_forgets_more_than_it_names(module_memory, path):
    for place in (path, f"{module_memory.config.data_dir.parent}/{path}"):
        try:
            content = module_memory.get(place).content
        except KlawError as error:
            str(error).encode("utf-8", "backslashreplace")
        else:
            assert content == "the harbour"
        if "a.md" not in place and place.rstrip("/") != "notes":
            with pytest.raises(NotFoundError):
                module_memory.forget(place)
    assert module_memory.search("harbour")[0].path == "notes/a.md"
    assert SECRET not in str(list(module_memory.search("secret master")))
