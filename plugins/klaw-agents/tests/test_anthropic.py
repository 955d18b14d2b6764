"""The memory tool of Anthropic's SDK: the documented commands, and paths that try to leave the directory."""

import asyncio
import os

import pytest
from anthropic.lib.tools import ToolError
from anthropic.tools.memory import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool, BetaLocalFilesystemMemoryTool

from klaw_agents.anthropic import KlawAsyncMemoryTool, KlawMemoryTool
from klaw_core import StoreError

BEES = "# Family\n\nAda keeps bees in Kiel.\n"


class Blocking:
    """The asynchronous tool behind blocking calls, so that both are held to the same tests."""

    def __init__(self, tool):
        self.tool = tool

    def call(self, given):
        return asyncio.run(self.tool.call(given))

    def clear_all_memory(self):
        return asyncio.run(self.tool.clear_all_memory())


@pytest.fixture(params=["blocking", "asynchronous"])
def tool(request, memory, tmp_path):
    base = tmp_path / "agent"
    return KlawMemoryTool(memory, base) if request.param == "blocking" else Blocking(KlawAsyncMemoryTool(memory, base))


@pytest.fixture
def root(tmp_path):
    return tmp_path / "agent" / "memories"


def do(tool, command, **arguments):
    return tool.call({"command": command, **arguments})


def create(tool, path="/memories/family.md", text=BEES):
    return do(tool, "create", path=path, file_text=text)


def found(memory, question):
    return [result.path for result in memory.search(question)]


def test_it_is_a_memory_tool_of_the_sdk(memory, tmp_path):
    assert isinstance(KlawMemoryTool(memory, tmp_path / "a"), BetaAbstractMemoryTool)
    assert isinstance(KlawAsyncMemoryTool(memory, tmp_path / "a"), BetaAsyncAbstractMemoryTool)
    assert KlawMemoryTool(memory, tmp_path / "a").to_dict() == {"type": "memory_20250818", "name": "memory"}


def test_a_created_file_is_a_note_and_is_found(tool, memory, root):
    assert create(tool) == "File created successfully at: /memories/family.md"
    assert (root / "family.md").read_text() == BEES
    (result,) = memory.search("who keeps bees")
    assert (result.path, result.heading) == ("memories/family.md", ("Family",))
    with pytest.raises(ToolError, match="already exists"):
        create(tool)


def test_view_shows_files_with_line_numbers_and_directories(tool):
    create(tool)
    create(tool, "/memories/trips/oslo.md", "Third of June.\n")
    listed = do(tool, "view", path="/memories")
    assert "/memories/family.md" in listed
    assert "/memories/trips/oslo.md" in listed
    shown = do(tool, "view", path="/memories/family.md")
    assert shown.startswith("Here's the content of /memories/family.md with line numbers:\n")
    assert "     3\tAda keeps bees in Kiel." in shown
    assert "     1\t" not in do(tool, "view", path="/memories/family.md", view_range=[3, 3])


def test_replaced_text_is_not_found(tool, memory):
    create(tool)
    do(tool, "str_replace", path="/memories/family.md", old_str="bees", new_str="goats")
    assert found(memory, "goats") == ["memories/family.md"]
    assert found(memory, "bees") == []
    with pytest.raises(ToolError, match="did not appear verbatim"):
        do(tool, "str_replace", path="/memories/family.md", old_str="bees", new_str="goats")


def test_inserted_text_is_found_at_its_line(tool, memory, root):
    create(tool)
    do(tool, "insert", path="/memories/family.md", insert_line=3, insert_text="\nBob sells honey.\n")
    assert (root / "family.md").read_text() == f"{BEES}\nBob sells honey.\n"
    assert found(memory, "honey") == ["memories/family.md"]
    with pytest.raises(ToolError, match="insert_line"):
        do(tool, "insert", path="/memories/family.md", insert_line=99, insert_text="x")


def test_a_deleted_file_is_not_found_and_leaves_no_bytes(tool, memory):
    create(tool, text="The code of the safe is xylophone.\n")
    assert found(memory, "xylophone")
    assert do(tool, "delete", path="/memories/family.md") == "Successfully deleted /memories/family.md"
    assert found(memory, "xylophone") == []
    with pytest.raises(ToolError, match="does not exist"):
        do(tool, "view", path="/memories/family.md")


def test_a_directory_is_deleted_and_renamed_with_its_files(tool, memory):
    create(tool, "/memories/a/one.md", "The ferry leaves at seven.\n")
    create(tool, "/memories/a/b/two.md", "Ada keeps bees.\n")
    do(tool, "rename", old_path="/memories/a", new_path="/memories/c")
    assert found(memory, "ferry") == ["memories/c/one.md"]
    assert found(memory, "bees") == ["memories/c/b/two.md"]
    do(tool, "delete", path="/memories/c")
    assert found(memory, "ferry bees") == []


def test_renaming_overwrites_nothing(tool, root):
    create(tool)
    create(tool, "/memories/other.md", "Other.\n")
    with pytest.raises(ToolError, match="already exists"):
        do(tool, "rename", old_path="/memories/family.md", new_path="/memories/other.md")
    with pytest.raises(ToolError, match="does not exist"):
        do(tool, "rename", old_path="/memories/nobody.md", new_path="/memories/new.md")
    assert (root / "other.md").read_text() == "Other.\n"


def test_clearing_deletes_everything(tool, memory, root):
    create(tool)
    assert tool.clear_all_memory() == "All memory cleared"
    assert list(root.iterdir()) == []
    assert found(memory, "bees") == []


def test_the_notes_are_there_in_a_later_process_and_for_a_person(memory, open_memory, tmp_path):
    create(KlawMemoryTool(memory, tmp_path / "agent"))
    (tmp_path / "agent" / "memories" / "mine.md").write_text("A person wrote of goats.\n")
    later = open_memory()
    tool = KlawMemoryTool(later, tmp_path / "agent")
    assert "Ada keeps bees" in do(tool, "view", path="/memories/family.md")
    assert found(later, "goats") == ["memories/mine.md"]


def test_by_default_the_notes_are_in_the_data_directory(memory):
    create(KlawMemoryTool(memory))
    assert (memory.config.data_dir / "memories" / "family.md").read_text() == BEES
    assert found(memory, "bees") == ["memories/family.md"]


OUTSIDE = [
    "/etc/passwd",
    "memories/x.md",
    "",
    "/",
    "/memories/../secret.md",
    "/memories/../../secret.md",
    "/memories/a/../../secret.md",
    "/memories/..",
    "/memories/./../secret.md",
    "/memories//../secret.md",
    "/memories/link/secret.md",
    "/memories/link",
    "/memories/file-link.md",
    "/memories/a\0b",
    "/memories/" + "x" * 300,
    "/memories/" + "x/" * 3000,
    "/memories/\ud800.md",
    "/memories/loop/x.md",
]


@pytest.mark.parametrize("path", OUTSIDE)
@pytest.mark.parametrize("command", ["view", "create", "str_replace", "insert", "delete", "rename to", "rename from"])
def test_no_command_leaves_the_directory(tool, memory, root, command, path):
    tmp_path = root.parents[1]
    outside = tmp_path / "agent" / "secret.md"
    outside.write_text("The code of the safe is xylophone.\n")
    (tmp_path / "secret.md").write_text("Also xylophone.\n")
    (root / "link").symlink_to(tmp_path / "agent", target_is_directory=True)
    (root / "file-link.md").symlink_to(outside)
    (root / "loop").symlink_to(root / "loop")
    create(tool, "/memories/own.md", "Own.\n")
    before = {name: name.read_bytes() for name in tmp_path.glob("**/*.md") if root not in name.parents}
    more = {
        "view": {"path": path},
        "create": {"path": path, "file_text": "x"},
        "str_replace": {"path": path, "old_str": "safe", "new_str": "x"},
        "insert": {"path": path, "insert_line": 0, "insert_text": "x"},
        "delete": {"path": path},
        "rename to": {"old_path": "/memories/own.md", "new_path": path},
        "rename from": {"old_path": path, "new_path": "/memories/new.md"},
    }[command]
    with pytest.raises(ToolError) as refused:
        do(tool, command.split()[0], **more)
    assert "xylophone" not in str(refused.value)
    assert str(tmp_path) not in str(refused.value)
    assert {name: name.read_bytes() for name in tmp_path.glob("**/*.md") if root not in name.parents} == before
    memory.index()
    assert found(memory, "xylophone") == []
    assert (root / "own.md").read_text() == "Own.\n"


@pytest.mark.parametrize("path", ["/memories/%2e%2e/secret.md", "/memories/..%2fsecret.md", "/memories/..\\secret.md"])
def test_unusual_spellings_of_a_parent_are_ordinary_names(tool, root, tmp_path, path):
    create(tool, path)
    assert not (tmp_path / "agent" / "secret.md").exists()
    assert BEES in [file.read_text() for file in root.rglob("*") if file.is_file()]


@pytest.mark.parametrize("path", ["/memories", "/memories/", "/memories/a/.."])
def test_the_root_directory_cannot_be_deleted(tool, root, path):
    create(tool, "/memories/a/one.md")
    for command, more in (("delete", {"path": path}), ("rename", {"old_path": path, "new_path": "/memories/new"})):
        with pytest.raises(ToolError):
            do(tool, command, **more)
    assert (root / "a" / "one.md").exists()


@pytest.mark.parametrize(
    "given",
    [{}, {"command": "sing"}, {"command": "view"}, {"command": "create", "path": "/memories/a.md"}, {"path": 3}],
)
def test_an_invalid_command_is_a_tool_error(tool, given):
    with pytest.raises(ToolError):
        tool.call(given)


def test_files_are_private(tool, root):
    before = os.umask(0)
    try:
        create(tool, "/memories/a/one.md")
    finally:
        os.umask(before)
    assert (root / "a").stat().st_mode & 0o077 == 0
    assert (root / "a" / "one.md").stat().st_mode & 0o077 == 0


def test_a_failing_index_loses_no_note(tool, memory, root, monkeypatch, caplog):
    def fail(*_arguments, **_options):
        raise StoreError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(memory, "index", fail)
        create(tool)
    assert "the disk is full" in caplog.text
    assert (root / "family.md").read_text() == BEES
    memory.index()
    assert found(memory, "bees") == ["memories/family.md"]


def test_answers_equal_those_of_the_sdks_tool(tool, tmp_path):
    own = BetaLocalFilesystemMemoryTool(str(tmp_path / "own"))
    commands = [
        {"command": "create", "path": "/memories/a.md", "file_text": "one\ntwo\ntwo\n"},
        {"command": "view", "path": "/memories"},
        {"command": "view", "path": "/memories/a.md"},
        {"command": "view", "path": "/memories/nobody.md"},
        {"command": "str_replace", "path": "/memories/a.md", "old_str": "two", "new_str": "three"},
        {"command": "str_replace", "path": "/memories/a.md", "old_str": "one", "new_str": "three"},
        {"command": "insert", "path": "/memories/a.md", "insert_line": 1, "insert_text": "x"},
        {"command": "rename", "old_path": "/memories/a.md", "new_path": "/memories/b/c.md"},
        {"command": "delete", "path": "/memories/b"},
        {"command": "delete", "path": "/memories"},
    ]

    def answer(each, command):
        try:
            return each.call(command)
        except ToolError as error:
            return ("error", str(error))

    for command in commands:
        assert answer(tool, command) == answer(own, command)
