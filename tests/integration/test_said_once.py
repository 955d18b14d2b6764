"""What the journals have is acknowledged: whoever reads that nothing was changed tries again, and would say it twice.

The store refuses everything from one of its transactions on, as on a full disk, or while another process has the lock.
Each call then either returns, and the journals have its record; or it raises, and they are unchanged. What forgets may
raise later too, and the next index run completes it.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen

from klaw_core import (
    Chat,
    KlawError,
    Memory,
    Message,
    NewDocument,
    RetryableStoreError,
    StoreCorruptError,
    StoreFullError,
    StoreLockedError,
    StoreReadOnlyError,
    load_config,
)
from klaw_facts import Fact, Facts
from klaw_facts.keeper import FactKeeper

CHAT = Chat("telegram", "1")
MOMENT = datetime(2026, 2, 24, 12, tzinfo=UTC)
REFUSED = "the database cannot be used; nothing was changed"


@frozen
class Refusal:
    """The error with which the store refuses transactions, and which: with a sound database one can read."""

    error: type[KlawError]
    doors: Sequence[str] = ("write",)


FAULTS = [
    pytest.param(Refusal(StoreFullError), id="full"),
    *(
        pytest.param(refusal, id=name, marks=pytest.mark.one_of(3))
        for name, refusal in (
            ("locked", Refusal(StoreLockedError)),
            ("read-only", Refusal(StoreReadOnlyError)),
            ("overtaken", Refusal(RetryableStoreError)),
            ("corrupt", Refusal(StoreCorruptError, ("read", "write"))),
        )
    ),
]


@frozen
class World:
    """A memory with a record of each kind, in a directory with the export of another one."""

    memory: Memory
    root: Path

    @property
    def facts(self) -> Facts:
        found = self.memory.extension("facts")
        assert isinstance(found, Facts)
        return found

    @property
    def keeper(self) -> FactKeeper:
        return self.facts.keeper

    @property
    def fact(self) -> str:
        return self.facts.list()[0].id

    @property
    def saved(self) -> str:
        return next(each.path for each in self.memory.documents() if each.path.startswith("saved/2"))

    def records(self) -> list[str]:
        """Return the records of all journals, as an export has them."""
        place = self.root / "now.jsonl"
        self.memory.export(place)
        return sorted(place.read_text("utf-8").splitlines()[1:])

    def texts(self, query: str) -> list[str]:
        """Return the texts with a word."""
        found = self.memory.search(query, mode="fts", collection=["memory", "facts"])
        return [result.content for result in found if query in result.content]


def said(text: str, **more: Any) -> Message:
    return Message("user", text, MOMENT, meta=CHAT.meta, **more)


def opened(root: Path) -> Memory:
    given = {"memory": {"embedding": {"type": "none"}}}
    return Memory.open(load_config(data_dir=root / "data", environment={"KLAW_CONFIG": "/dev/null"}, overrides=given))


def written(world: World, word: str) -> None:
    """Write a record of each kind."""
    world.memory.save(f"{word} saved", created_at=MOMENT)
    world.memory.add([NewDocument(f"{word}d", f"{word} document")])
    world.memory.conversations.append(said(f"{word} message", id=f"{word}m"))
    world.memory.conversations.add_summary(CHAT, f"{word} summary")
    world.memory.core.update("user", f"{word}k", f"{word} key")
    world.facts.remember(f"{word} fact is red")


#: What adds or changes a record; and what a search then finds, if it finds anything new.
ADDING: Mapping[str, tuple[Callable[[World], object], str]] = {
    "save": (lambda world: world.memory.save("a lantern", created_at=MOMENT), "lantern"),
    "save a version": (lambda world: world.memory.save("a lantern", supersedes=world.saved), "lantern"),
    "tool": (lambda world: world.memory.call_tool("memory_save", {"content": "a lantern"}), "lantern"),
    "add": (lambda world: world.memory.add([NewDocument("new", "a lantern")]), "lantern"),
    "add again": (lambda world: world.memory.add([NewDocument("oldd", "a lantern")]), "lantern"),
    "append": (lambda world: world.memory.conversations.append(said("a lantern")), "lantern"),
    "append with an id": (lambda world: world.memory.conversations.append(said("a lantern", id="oldm")), "lantern"),
    "append many": (lambda world: world.memory.conversations.append_many([said("a lantern")] * 2), "lantern"),
    "break": (lambda world: world.memory.conversations.session_break(CHAT), ""),
    "summary": (lambda world: world.memory.conversations.add_summary(CHAT, "a lantern"), "lantern"),
    "core": (lambda world: world.memory.core.update("user", "lamp", "a lantern"), ""),
    "remember": (lambda world: world.facts.remember("The lantern is green"), "lantern"),
    "remember a value": (lambda world: world.facts.remember("I moved to Lyon", slot="home", value="Lyon"), "Lyon"),
    "remember again": (lambda world: world.facts.remember("old fact is red", tags=["lamp"]), ""),
    "edit": (lambda world: world.keeper.edit(world.fact, text="The lantern is green"), "lantern"),
    "end": (lambda world: world.keeper.end(world.fact), ""),
    "retract": (lambda world: world.keeper.retract(world.fact), ""),
    "pin": (lambda world: world.keeper.pin(world.fact), ""),
    "archive": (lambda world: world.keeper.archive(world.fact), ""),
    "store of facts": (lambda world: world.facts.store.index([Fact("f-new", "The lantern is green")]), "lantern"),
    "import facts": (lambda world: world.facts.import_facts([Fact("f-new", "The lantern is green")]), "lantern"),
    "import": (lambda world: world.memory.import_(world.root / "other.jsonl"), "other"),
}
#: What forgets a record; and the end of its text.
FORGETTING: Mapping[str, tuple[Callable[[World], object], str]] = {
    "saved": (lambda world: world.memory.forget(world.saved), "saved"),
    "document": (lambda world: world.memory.delete(["oldd"]), "document"),
    "message": (lambda world: world.memory.forget(f"{CHAT.name}/oldm"), "message"),
    "chat": (lambda world: world.memory.conversations.purge(CHAT), "message"),
    "summary": (lambda world: world.memory.conversations.purge(CHAT), "summary"),
    "fact": (lambda world: world.memory.forget(f"facts/{world.fact}"), "fact is red"),
    "facts": (lambda world: world.facts.forget([world.fact]), "fact is red"),
}


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a memory, and with an export of another one."""
    root, other = tmp_path_factory.mktemp("scene"), tmp_path_factory.mktemp("other")
    with opened(root) as memory:
        world = World(memory, root)
        written(world, "old")
        memory.index()
        found = world.texts("old")
    for _, word in FORGETTING.values():
        assert [text for text in found if text.endswith(word)] != []
    with opened(other) as memory:
        written(World(memory, other), "other")
        memory.export(root / "other.jsonl")
    return root


@contextmanager
def refusing(monkeypatch: pytest.MonkeyPatch, memory: Memory, refusal: Refusal, first: int) -> Iterator[list[int]]:
    """Let the store refuse transactions from one on; yield the numbers of those that it has refused."""
    kind: Any = type(memory._assembly.store)
    asked, refused = count(1), list[int]()

    def refusing_from_first(begin: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def begun(store: Any) -> Any:
            number = next(asked)
            if number < first:
                return begin(store)
            refused.append(number)
            raise refusal.error(REFUSED)

        return begun

    with monkeypatch.context() as patched:
        for name in refusal.doors:
            patched.setattr(kind, name, refusing_from_first(getattr(kind, name)))
        yield refused


@frozen
class Attempt:
    """A call of which the store has refused some transactions: what it told, and the records before and after it."""

    world: World
    refused: Sequence[int]
    told: str
    before: Sequence[str]
    after: Sequence[str]


def attempts(
    scene: Path, place: Path, monkeypatch: pytest.MonkeyPatch, refusal: Refusal, call: Callable[[World], object]
) -> Iterator[Attempt]:
    """Refuse the transactions of a call from the first one on, then from the second one on, until none is refused."""
    for first in count(1):
        root = place / str(first)
        shutil.copytree(scene, root)
        with opened(root) as memory:
            world, told = World(memory, root), ""
            before = world.records()
            with refusing(monkeypatch, memory, refusal, first) as refused:
                try:
                    call(world)
                except KlawError as raised:
                    told = raised.message
            yield Attempt(world, refused, told, before, world.records())
        if not refused:
            return


@pytest.mark.parametrize("refusal", FAULTS)
@pytest.mark.parametrize("call", ADDING)
def test_a_call_that_raises_has_changed_no_journal(scene, tmp_path, monkeypatch, call, refusal):
    add, word = ADDING[call]
    for tried in attempts(scene, tmp_path, monkeypatch, refusal, add):
        is_changed = tried.after != tried.before
        assert tried.told == ("" if is_changed else REFUSED)
        tried.world.memory.index()
        assert not word or bool(tried.world.texts(word)) == is_changed


@pytest.mark.parametrize("refusal", FAULTS)
@pytest.mark.parametrize("call", FORGETTING)
def test_what_the_store_refuses_to_forget_goes_with_the_next_index_run(scene, tmp_path, monkeypatch, call, refusal):
    forget, word = FORGETTING[call]
    for tried in attempts(scene, tmp_path, monkeypatch, refusal, forget):
        assert tried.told or tried.after != tried.before
        tried.world.memory.index()
        assert tried.world.records() == tried.after
        is_left = any(f"old {word}" in line for line in tried.after)
        assert any(text.endswith(word) for text in tried.world.texts("old")) == is_left
        assert tried.refused or (tried.told, is_left) == ("", False)
