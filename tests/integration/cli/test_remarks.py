"""An answer says what it lacks: files that are gone, kinds of file that are not read, chunks without a vector."""

from __future__ import annotations

import json

import pytest

from klaw_core import Memory
from klaw_core.config.load import load_config

GONE = "notes/kiln.md: the file cannot be found; its text is that of the last index run: klaw index"
UNREAD = "{}: not read, though the name has words of the question; what is not read: klaw status"


@pytest.fixture
def indexed(klaw, user_home):
    notes = user_home / "work" / "notes"
    notes.mkdir()
    (notes / "kiln.md").write_text("# Kiln\n\nThe kiln fires the glaze.\n", "utf-8")
    (notes / "boat.md").write_text("# Boat\n\nThe boat leaves at noon.\n", "utf-8")
    for name in ("a.png", "b.png", "c.xyz"):
        (notes / name).write_bytes(b"\0")
    assert klaw("index", "notes").exit_code == 0
    return klaw


@pytest.mark.parametrize("form", ["text", "json", "csv", "md", "files"])
def test_a_deleted_file_is_said_at_every_exit(indexed, user_home, form):
    question = ("search", "--format", form, "which kiln fires the glaze")
    assert "the last index run" not in indexed(*question).stderr
    (user_home / "work" / "notes" / "kiln.md").unlink()
    found = indexed(*question)
    assert "kiln" in found.stdout
    assert GONE in found.stderr
    with Memory.open(load_config()) as memory:
        assert GONE in memory.search("kiln").notices
        assert GONE in memory.call_tool("memory_search", {"query": "kiln"})["notices"]
        assert GONE in memory.context("kiln").notices
        assert GONE not in memory.search("boat").notices


@pytest.mark.usefixtures("indexed")
def test_several_deleted_files_are_one_line(user_home):
    for name in ("kiln.md", "boat.md"):
        (user_home / "work" / "notes" / name).unlink()
    with Memory.open(load_config()) as memory:
        (said,) = [notice for notice in memory.search("the kiln and the boat").notices if "last index run" in notice]
    assert " and 1 more: the file cannot be found" in said


def test_files_that_are_not_read_are_said_only_if_nothing_fits_and_their_names_do(indexed, user_home):
    notes = user_home / "work" / "notes"
    (notes / "Zyzzyva_Plans.png").write_bytes(b"\0")
    (notes / "is.xyz").write_bytes(b"\0")
    said = UNREAD.format("notes/Zyzzyva_Plans.png")
    assert said in indexed("search", "zyzzyva").stderr
    for question in ("quagga", "what is a quagga", "kiln glaze plan"):
        assert "not read" not in indexed("search", question).stderr
    with Memory.open(load_config()) as memory:
        assert said in memory.call_tool("memory_search", {"query": "zyzzyva"})["notices"]
        assert said in memory.context("zyzzyva").notices
    assert json.loads(indexed("search", "--json", "zyzzyva").stdout) == []
    (notes / "a zyzzyva.xyz").write_bytes(b"\0")  # fewer words of the question than the other
    assert UNREAD.format("notes/Zyzzyva_Plans.png and 1 more") in indexed("search", "the zyzzyva plan").stderr


def test_a_workspace_of_the_configuration_has_the_same_remarks(klaw, user_home):
    notes = user_home / "work" / "vault"
    notes.mkdir()
    (notes / "kiln.md").write_text("# Kiln\n\nThe kiln fires the glaze.\n", "utf-8")
    (notes / "Zyzzyva_Plans.png").write_bytes(b"\0")
    file = user_home / "own.toml"
    table = f'[[memory.sources]]\ntype = "workspace"\npath = "{notes.as_posix()}"\nname = "own"\n'
    file.write_text(f'[memory.embedding]\ntype = "none"\n{table}', "utf-8")
    assert klaw("index", "--config", str(file)).exit_code == 0
    assert UNREAD.format("own/Zyzzyva_Plans.png") in klaw("search", "--config", str(file), "zyzzyva").stderr
    assert "not read" not in klaw("search", "--config", str(file), "-c", "docs", "zyzzyva").stderr
    assert "(not read: 1 .png)" in klaw("status", "--config", str(file)).stdout
    (notes / "kiln.md").unlink()
    assert GONE.replace("notes/", "own/") in klaw("search", "--config", str(file), "kiln").stderr


def test_the_status_says_how_many_files_of_which_kinds_are_not_read(indexed):
    assert "(not read: 2 .png, 1 .xyz)" in indexed("status").stdout
    assert json.loads(indexed("status", "--json").stdout)["unread"] == {"notes": {".png": 2, ".xyz": 1}}
