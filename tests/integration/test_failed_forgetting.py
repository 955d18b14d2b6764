"""An extension cannot forget: everything else is forgotten, and whoever forgets is told, through every door."""

import ast
from datetime import UTC, datetime
from pathlib import Path

import pytest

from klaw_core import ForgetEvent, LiveComponent, Memory, NewDocument, StoreError
from klaw_core.interfaces.extension import ListeningExtension
from klaw_facts import Facts, FactsOptions
from klaw_facts.plugin import FactChunker
from klaw_journals import Chat, Message
from klaw_notes.sharing import Sharing

ROOT = Path(__file__).parents[2]
META = {"channel": "telegram", "chat_id": "1"}
CHAT = Chat.of(META)
WORD = "xylophonium"
#: The calls whose answer is the failure of listeners.
ANSWERS = {"remove_documents", "forget_removed_text", "mirror_again", "on_removed", "emit"}


class Keeping(ListeningExtension):
    """An extension that keeps a copy, which it cannot forget."""

    name = "keeping"

    def __init__(self):
        self.told = []

    def on(self, event, /):
        self.told += event.paths
        raise OSError("the copy cannot be opened")


def said(memory):
    return memory.conversations.append(
        Message("user", f"the {WORD} is here", datetime(2026, 2, 23, tzinfo=UTC), meta=META)
    )


def a_note(memory, home):
    home.write("a.md", f"The {WORD}.\n")
    memory.index(home.notes)
    return "notes/a.md"


#: How each thing comes, and the calls that forget it.
DOORS = {
    "a saved text": (lambda memory, _: memory.save(WORD).path, lambda memory, name: memory.forget(name)),
    "a note": (a_note, lambda memory, name: memory.forget(name)),
    "a workspace": (a_note, lambda memory, _: memory.forget("notes/")),
    "a workspace by its name": (a_note, lambda memory, _: memory.workspaces.remove("notes")),
    "a message as a part": (
        lambda memory, _: said(memory).id,
        lambda memory, name: memory.forget(f"{CHAT.name}/{name}"),
    ),
    "a message": (lambda memory, _: said(memory).id, lambda memory, name: memory.conversations.forget(CHAT, name)),
    "messages": (lambda memory, _: said(memory).id, lambda memory, name: memory.conversations.remove(CHAT, [name])),
    "a chat": (lambda memory, _: said(memory).id, lambda memory, _: memory.conversations.purge(CHAT)),
    "a document": (
        lambda memory, _: memory.add([NewDocument("x", WORD)]) and "x",
        lambda memory, name: memory.delete([name]),
    ),
    "a fact": (
        lambda memory, _: memory.extension(Facts).remember(f"I own a {WORD}").id,
        lambda memory, name: memory.extension(Facts).forget([name]),
    ),
    "a fact by its path": (
        lambda memory, _: memory.extension(Facts).remember(f"I own a {WORD}").id,
        lambda memory, name: memory.forget(f"facts/{name}"),
    ),
}


@pytest.fixture
def keeping(home):
    """Return a memory with an extension that cannot forget, and the extension."""
    extension, config = Keeping(), home.config()
    live = [
        LiveComponent("extension", "keeping", extension, listens=(ForgetEvent,)),
        LiveComponent("extension", "facts", Facts(FactsOptions(), config.data_dir), listens=(ForgetEvent,)),
        LiveComponent("chunker", "fact", FactChunker()),
    ]
    with Memory.open(config, registry=home.registry(), components=live) as memory:
        yield memory, extension


@pytest.mark.parametrize("door", DOORS)
def test_whoever_forgets_is_told_that_an_extension_could_not(keeping, home, door):
    memory, extension = keeping
    make, forget = DOORS[door]
    name = make(memory, home)
    memory.index()
    with pytest.raises(StoreError, match=r"the extension 'keeping' failed: .*the copy cannot be opened"):
        forget(memory, name)
    assert extension.told
    for collection in memory.collections():
        assert not memory.search(WORD, mode="fts", collection=collection), collection
    if memory.sources():
        memory.index()
    assert not memory.search(WORD, mode="fts")


def test_a_memory_that_replaces_another_says_that_an_extension_keeps_the_old_one(keeping):
    memory, _ = keeping
    old = memory.save(f"the {WORD} is in the hall").path
    saved = memory.save("the organ is in the hall", supersedes=old)
    assert "the extension 'keeping' failed" in saved.notice
    assert not memory.search(WORD, mode="fts")


def test_an_index_run_reports_it_and_completes_the_rows_of_every_chat(keeping):
    memory, _ = keeping
    for number in ("1", "2"):
        meta = {**META, "chat_id": number}
        memory.conversations.append(Message("user", f"the {WORD}", datetime(2026, 2, 23, tzinfo=UTC), meta=meta))
    memory.index()
    for number in ("1", "2"):
        chat = Chat.of({**META, "chat_id": number})
        (line,) = [line.message for line in memory.conversations.read(chat)]
        memory.conversations.journal.remove(chat, [line.id])
    report = memory.index()
    assert sum("the extension 'keeping' failed" in item.reason for item in report.skipped) >= 2
    assert not memory.search(WORD, mode="fts")
    assert not [item for item in memory.index().skipped if "keeping" in item.reason]


def test_whoever_follows_another_machine_is_told_that_an_extension_could_not_forget(keeping, home, monkeypatch):
    memory, extension = keeping
    path = a_note(memory, home)
    monkeypatch.setattr(Sharing, "share", lambda *_: True)
    monkeypatch.setattr(Sharing, "adopt", lambda _, follow: follow({"notes": ("a.md",)}))
    notices = memory.workspaces.share("notes").notices
    assert extension.told == [path]
    assert [notice for notice in notices if "the extension 'keeping' failed" in notice] != []


def ignored(path):
    """Yield the calls of a file that do not look at whether listeners failed to forget."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Expr) and isinstance(call := node.value, ast.Call):
            name = getattr(call.func, "attr", "")
            told = ast.unparse(call)  # an indexer sends no event
            is_run = name == "remove" and "get_runs()" in told
            is_other = "indexer(" in told or (name == "emit" and "ForgetEvent" not in told)
            if is_run or (name in ANSWERS and not is_other):
                yield f"{path.name}:{node.lineno}: {told}"


def test_no_call_ignores_that_a_listener_could_not_forget(tmp_path):
    files = [*(ROOT / "klaw_core").rglob("*.py"), *(ROOT / "plugins").glob("*/src/**/*.py")]
    assert [found for path in files for found in ignored(path)] == []
    bad = tmp_path / "bad.py"
    bad.write_text("host.remove_documents([], 'x')\nhost.emit(ForgetEvent(()))\nself.get_runs().remove([])\n")
    assert len(list(ignored(bad))) == 3
