"""A path that was shown without what nobody sees leads back to its document, through every exit that takes one."""

import json

import pytest
from click.testing import CliRunner

from klaw_core import Memory, NotFoundError, load_config
from klaw_core.cli import shown_paths
from klaw_core.cli.kit import visible
from klaw_core.cli.neutral import one_line
from klaw_core.cli.program import cli
from klaw_core.cli.shown_paths import path_as_shown

UNSEEN = ["\xad", "\u200b", "\u2060", "\ufeff", "\u034f", "\u3164", "\u202e", "\U000e0041"]


def open_memory(home):
    overrides = {"memory": {"embedding": {"type": "none"}}}
    return Memory.open(
        load_config(data_dir=home / "data", overrides=overrides, environment={"KLAW_CONFIG": "/dev/null"})
    )


def fetch(memory, path):
    from klaw_mcp.connector import connector_tools

    return connector_tools(memory, memory.toolbox()["memory_search"])["fetch"].run({"id": path})["text"]


DOORS = {
    "memory_get": lambda memory, path: memory.call_tool("memory_get", {"path": path})["content"],
    "lines of memory_get": lambda memory, path: memory.call_tool("memory_get", {"path": f"{path}:1-3"})["content"],
    "a section of memory_get": lambda memory, path: memory.call_tool("memory_get", {"path": f"{path}#Soft"})["content"],
    "fetch": fetch,
}


@pytest.fixture
def memory(tmp_path):
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "plain.md").write_text("# Plain\n\nThe heron.\n")
    with open_memory(tmp_path) as opened:
        opened.index(notes)
        yield opened


def write(memory, name, text):
    root = next(source.root for source in memory.sources() if source.root is not None)
    (root / name).write_text(f"# Soft\n\n{text}\n")
    memory.index()


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("character", UNSEEN)
def test_the_path_that_a_model_was_shown_leads_to_the_document(memory, character, door):
    write(memory, f"so{character}ft.md", "The kestrel is here.")
    (found,) = memory.call_tool("memory_search", {"query": "kestrel"})["results"]
    path = found["path"].partition(":")[0]
    assert path == "notes/soft.md"
    assert "The kestrel is here." in DOORS[door](memory, path)


def test_klaw_get_takes_the_path_that_it_was_shown_too(memory, tmp_path, monkeypatch):
    write(memory, "so\xadft.md", "The kestrel is here.")
    monkeypatch.setenv("KLAW_CONFIG", "/dev/null")
    for target in ("notes/soft.md", "notes/soft.md:3", "notes/soft.md#Soft"):
        done = CliRunner().invoke(cli, ["get", target, "--data-dir", str(tmp_path / "data")])
        assert "The kestrel is here." in done.stdout, target
    done = CliRunner().invoke(cli, ["get", "notes/sift.md", "--data-dir", str(tmp_path / "data")])
    assert done.exit_code == 1


def by_command(memory, path):
    return CliRunner().invoke(cli, ["forget", path, "--yes", "--data-dir", str(memory.config.data_dir)])


def test_klaw_forget_asks_about_the_document_that_is_shown_so(memory, tmp_path, monkeypatch):
    monkeypatch.setenv("KLAW_CONFIG", "/dev/null")
    write(memory, "so\xadft.md", "one")
    done = CliRunner().invoke(cli, ["forget", "notes/soft.md", "--data-dir", str(tmp_path / "data")])
    assert "stdin is not a terminal" in done.stderr


def by_tool(memory, path):
    return memory.call_tool("memory_forget", {"path": path}, allow=["memory_forget"])


@pytest.mark.parametrize("forget", [by_command, by_tool])
def test_what_forgets_takes_the_path_that_it_was_shown_if_it_is_of_one_document(memory, monkeypatch, forget):
    monkeypatch.setenv("KLAW_CONFIG", "/dev/null")
    monkeypatch.setattr(shown_paths, "_PAGE", 1)
    write(memory, "so\xadft.md", "one")
    write(memory, "sof\u200bt.md", "two")
    forget(memory, "notes/soft.md")
    assert len(memory.documents()) == 3
    memory.forget("notes/sof\u200bt.md")
    forget(memory, "notes/soft.md")
    assert [each.path for each in memory.documents()] == ["notes/plain.md"]


def test_a_forgotten_note_is_restored_by_the_path_that_it_was_shown(memory):
    write(memory, "so\xadft.md", "one")
    write(memory, "sof\u200bt [1].md", "two")
    for path in ("notes/so\xadft.md", "notes/sof\u200bt [1].md"):
        memory.forget(path)
        assert memory.restore(visible(path)).added == 1
        assert path in [each.path for each in memory.documents()]
    write(memory, "sof\u200bt.md", "three")
    memory.forget("notes/so\xadft.md")
    memory.forget("notes/sof\u200bt.md")
    with pytest.raises(NotFoundError, match="was not forgotten"):
        memory.restore("notes/soft.md")


def test_a_path_that_several_documents_are_shown_by_leads_to_none(memory):
    write(memory, "so\xadft.md", "one")
    write(memory, "sof\u200bt.md", "two")
    assert path_as_shown(memory, "notes/soft.md") is None
    assert "error" in memory.call_tool("memory_get", {"path": "notes/soft.md"})
    with pytest.raises(NotFoundError):
        memory.get("notes/soft.md")


def test_an_exact_path_comes_before_one_that_looks_like_it(memory):
    write(memory, "so\xadft.md", "one")
    write(memory, "soft.md", "two")
    assert "two" in memory.call_tool("memory_get", {"path": "notes/soft.md"})["content"]
    assert "one" in memory.call_tool("memory_get", {"path": "notes/so\xadft.md"})["content"]


def test_a_path_that_a_list_for_people_marks_is_understood(memory):
    for name in ("\u202ertl.md", "c\rr.md", "\x1b[31mred.md", "a\x7fb.md"):
        write(memory, name, "one")
        path = f"notes/{name}"
        assert path_as_shown(memory, one_line(path)) == path
        assert path_as_shown(memory, f"{visible(path)}:1-2") == f"{path}:1-2"


def test_what_is_shown_of_a_name_is_all_that_is_compared(memory):
    write(memory, "a:b#c\xad.md", "colons")
    assert path_as_shown(memory, "notes/a:b#c.md:1-2") == "notes/a:b#c\xad.md:1-2"
    assert path_as_shown(memory, "notes/plain.md") == "notes/plain.md"
    assert path_as_shown(memory, "notes/other.md") is None
    assert json.dumps(visible("notes/a:b#c\xad.md")) == '"notes/a:b#c.md"'
