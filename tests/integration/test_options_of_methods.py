"""Every option of every public method has an effect, or is refused with an error that names it; so has every pair.

``CALLS`` lists, for each method, calls and other values for their arguments. A call is made with and without each of
them, in two equal memories, and anything that can be observed must differ: the result, the files, the rows, what was
read, what was embedded. Of a pair, each must make a difference when the other is given. An option that no call lists
is an error, so a new one needs an entry. The pairs are a sample unless ``--campaigns`` asks for all.
"""

from __future__ import annotations

import inspect
import os
import shutil
from collections.abc import Callable, Mapping
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from attrs import evolve, field, frozen
from worlds import CHAT, DAY, MOMENT, OTHER_CHAT, Case, World, document, make_template, observed, opened, problems

from klaw_core import (
    Agents,
    Filters,
    KlawError,
    Memory,
)
from klaw_core.plugins.discover import discover
from klaw_core.values.config import Config
from klaw_memories import CoreMemory
from klaw_watch import BackgroundIndexer

Conversations = import_module("klaw_conversations").Conversations
WorkspaceManager = import_module("klaw_notes.management").WorkspaceManager

#: Pairs of options that are tried without ``--campaigns``.
SAMPLE = 12


#: How an error names an option, if not by its own name.
SYNONYMS = {"name": "is the workspace", "importer": "is not JSON", "data_dir": "data directories"}


@frozen
class Call(Case):
    """A call of a method: its arguments, and other values for them. ``on`` returns the object from a memory."""

    method: str
    on: Callable[[Memory, World], Any]
    given: Mapping[str, Any]
    others: Mapping[str, Any]
    moot: Mapping[tuple[str, str], str] = field(factory=dict)

    def __str__(self) -> str:
        return f"{self.method}({', '.join(self.given)})"

    def run(self, world: World, options: Mapping[str, Any]) -> dict[str, Any] | str:
        with world.open() as memory:
            arguments = {name: _made(value, world) for name, value in {**self.given, **options}.items()}
            positional = arguments.pop("*", ())
            target = self.on(memory, world)
            opened.clear()
            try:
                result = getattr(target, self.method.partition(".")[2])(*positional, **arguments)
                return observed(world, memory, result)
            except KlawError as error:
                return f"{type(error).__name__}: {error}"

    def names(self, option: str) -> tuple[str, ...]:
        return tuple(name.rstrip("s") for name in (option, *self.given, *SYNONYMS.get(option, "").splitlines()))


@frozen
class Made:
    """A value that depends on the memory it is used in."""

    make: Callable[[World], Any]


def _made(value: Any, world: World) -> Any:
    return value.make(world) if isinstance(value, Made) else value


def itself(memory: Memory, _world: World) -> Memory:
    return memory


def conversations(memory: Memory, _world: World) -> Conversations:
    return memory.conversations


def core_with_user_md(memory: Memory, _world: World) -> CoreMemory:
    found: CoreMemory = memory.core
    found.init_from_user_md("Job: printer")
    return found


def core_with_history(memory: Memory, _world: World) -> CoreMemory:
    found: CoreMemory = memory.core
    for section, key in (("user", "job"), ("user", "town"), ("agent", "job")):
        found.update(section, key, "printer")
        found.update(section, key, "poet", trust="agent")
    return found


def core(memory: Memory, _world: World) -> CoreMemory:
    return memory.core


def workspaces(memory: Memory, _world: World) -> WorkspaceManager:
    return memory.workspaces


def opening(_memory: Memory, _world: World) -> Any:
    """Open another memory, and return what it is made of."""

    def open_memory(**options: Any) -> object:
        with Memory.open(**options) as memory:
            components = sorted(map(str, memory._assembly.registry.whole.offers))
            return memory.config, components, memory._assembly.replaced

    return SimpleNamespace(open=open_memory)


def damaged(memory: Memory, world: World) -> Any:
    """Open another memory, whose database was cut."""
    shutil.copytree(world.config.data_dir, _cut(world).data_dir)
    os.truncate(_cut(world).data_dir / "klaw.db", 5000)
    return opening(memory, world)


def _cut(world: World) -> Config:
    return evolve(world.config, data_dir=world.root / "data" / "cut")


def background(memory: Memory, world: World) -> Any:
    """Request a run, and wait for it."""

    def request(**options: Any) -> None:
        with BackgroundIndexer(memory, debounce_seconds=0, at_start=False, on_run=world.note) as indexer:
            indexer.request(**options)
            assert indexer.wait(300)

    return SimpleNamespace(request=request)


NOTES = Made(lambda world: world.notes)
OTHER_NOTES = Made(lambda world: world.root / "other notes")
A_FILE = Made(lambda world: [world.notes / "note1.md"])
PROGRESS = Made(lambda world: world.note)

_OF_DIRECTORY = {
    "name": "renamed",
    "collection": "charts",
    "version": "2",
    "include": ["pier.*", "later.md"],
    "exclude": ["draft*", "note1*"],
    "trust": "foreign",
}
_OF_RUN = {"force": True, "embed": False, "on_progress": PROGRESS}
_READ = {
    **dict.fromkeys([("verify", other) for other in ("force", "version", "include")], "every file is read anyway"),
    ("verify", "origin"): "it has no files",
}
_INDEX = {**_OF_DIRECTORY, **_OF_RUN, "verify": True}
_SEARCH = {
    "limit": 1,
    "mode": "vector",
    "filters": Filters(path="notes/"),
    "collection": "charts",
    "min_score": 0.018,
    "min_relevance": 0.9,
    "vector": np.eye(32, dtype=np.float32)[3],
    "duplicates": "keep",
}
_NARROWED = dict.fromkeys(
    [
        *(("min_score", other) for other in ("limit", "collection", "min_relevance")),
        *(("min_relevance", other) for other in ("limit", "collection")),
        ("duplicates", "limit"),
    ],
    "both leave the same results",
)
_LISTED = {"collection": "charts", "prefix": "n", "after": "notes/note0.md", "limit": 2}
_RECENT = {"limit": 2, "since": MOMENT + 3 * DAY, "origin": "notes", "collection": "charts"}
_NO_CHUNK = dict.fromkeys(
    [(name, "min_relevance") for name in ("seen", "budget", "filters", "trust")], "no chunk is left"
)
_CONTEXT = {
    "chat": "telegram_1",
    "budget": 500,
    "as_of": MOMENT + DAY,
    "known_at": MOMENT,
    "seen": ["notes/note0.md:4-12", "notes/note1.md:4-12"],
    "part": "volatile",
    "filters": Filters(since=MOMENT + DAY / 2),
    "min_relevance": 0.9,
    "trust": "foreign",
}
_OPEN = {
    "config": Made(lambda world: world.root / "data" / "elsewhere"),
    "data_dir": Made(lambda world: world.root / "data" / "another"),
    "components": Made(lambda world: world.components[:1]),
    "registry": Made(lambda _: discover(disabled=["facts"])),
}

_OPENED = {"config": Made(lambda world: world.config), "components": Made(lambda world: world.components)}

CALLS = [
    Call("Memory.index", itself, {"directory": OTHER_NOTES}, {"directory": NOTES, **_OF_DIRECTORY, **_OF_RUN}),
    Call("Memory.index", itself, {"directory": NOTES}, {**_OF_DIRECTORY, **_OF_RUN, "verify": True}, _READ),
    Call("Memory.index", itself, {"origin": "notes"}, {**_INDEX, "origin": "saved", "directory": NOTES}, _READ),
    Call("Memory.index", itself, {"paths": A_FILE}, {**_INDEX, "origin": "notes"}),
    Call("Memory.index", itself, {}, {**_INDEX, "directory": NOTES, "origin": "notes", "paths": A_FILE}, _READ),
    Call("Memory.embed", itself, {}, {"limit": 2, "texts_per_call": 1, "on_progress": PROGRESS}),
    Call("Memory.reindex", itself, {}, {"embedding": "other", "on_progress": PROGRESS}),
    Call("Memory.search", itself, {"query": "the harbour chart"}, {**_SEARCH, "query": "the pier"}, _NARROWED),
    Call("Memory.search", itself, {"query": "boat", "limit": 8}, {"per_document": 1, "limit": 2}),
    Call(
        "Memory.context",
        itself,
        {"message": "Ada's harbour boat"},
        _CONTEXT,
        {("as_of", "known_at"): "nothing was known then", **_NO_CHUNK},
    ),
    Call(
        "Memory.add",
        itself,
        {"documents": [document("five", "a text")]},
        {"collection": "charts"},
    ),
    Call("Memory.delete", itself, {"ids": ["two", "nine"]}, {"collection": "charts", "missing_ok": True}),
    Call("Memory.get_by_ids", itself, {"ids": ["one"]}, {"collection": "charts"}),
    Call("Memory.documents", itself, {}, _LISTED),
    Call("Memory.recent", itself, {}, _RECENT, {("since", "limit"): "both leave the newest"}),
    Call("Memory.get", itself, {"path": "notes/note1.md"}, {"first_line": 2, "lines": 1}),
    Call("Memory.get", itself, {"path": "notes/later.md"}, {"first_line": 5, "redact": True}),
    Call(
        "Memory.save",
        itself,
        {"text": "news"},
        {
            "source": "agent",
            "chat_id": "telegram_1",
            "created_at": MOMENT,
            "tags": ["home"],
            "supersedes": "saved/2026-02-25",
        },
    ),
    Call("Memory.collections", itself, {}, {"searched": True}),
    Call("Memory.doctor", itself, {}, {"fix": True}),
    Call("Memory.tools", itself, {}, {"allow": ["memory_forget"]}),
    Call("Memory.toolbox", itself, {}, {"allow": ["memory_forget"]}),
    Call(
        "Memory.call_tool",
        itself,
        {"name": "memory_forget", "arguments": {"path": "notes/note1.md"}},
        {"allow": ["memory_forget"]},
    ),
    Call(
        "Memory.import_",
        itself,
        {"source": Made(lambda world: world.root / "export.jsonl")},
        {"importer": "chatgpt", "workspaces": True, "dry_run": True, "trust": "owner"},
    ),
    Call("Memory.open", opening, _OPENED, _OPEN),
    Call("Memory.open", damaged, {**_OPENED, "config": Made(_cut)}, {"replace_damaged": True}),
    Call(
        "Conversations.add_summary",
        conversations,
        {"chat": CHAT, "content": "They spoke."},
        {"from_message_id": "m1", "to_message_id": "m2", "created_at": MOMENT},
    ),
    Call("CoreMemory.history", core_with_history, {}, {"section": "user", "key": "Job"}),
    Call("CoreMemory.delete", core_with_history, {"section": "user", "key": "job"}, {"trust": "agent"}),
    Call("CoreMemory.update", core, {"section": "user", "key": "name", "value": "Bo"}, {"trust": "agent"}),
    Call("CoreMemory.init_from_user_md", core_with_user_md, {"text": "Town: Lyon"}, {"again": True}),
    Call("CoreMemory.update_all", core, {"facts": [("user", "name", "Bo")]}, {"trust": "foreign"}),
    Call("Conversations.read", conversations, {"chat": CHAT}, {"since": MOMENT + DAY, "until": MOMENT + 2 * DAY}),
    Call("Conversations.search", conversations, {"text": "harbour"}, {"limit": 2, "chat": OTHER_CHAT}),
    Call("Conversations.session_break", conversations, {"chat": CHAT}, {"ts": MOMENT + 5 * DAY}),
    Call("Conversations.window", conversations, {"chat": CHAT}, {"limit": 2}),
    Call(
        "WorkspaceManager.exclude",
        workspaces,
        {"*": ("notes", "note0*")},
        {"*": ("notes", "note1*"), "remove": ["note3.md"], "on_progress": PROGRESS},
    ),
    Call("WorkspaceManager.kinds", workspaces, {"name": "notes"}, {"whole": True}),
    Call("WorkspaceManager.rename", workspaces, {"name": "notes", "new": "renamed"}, {"on_progress": PROGRESS}),
    Call(
        "BackgroundIndexer.request",
        background,
        {},
        {"origin": "notes", "paths": A_FILE, "force": True, "reason": "because"},
    ),
]


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    yield from make_template(tmp_path_factory.mktemp("options"))


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_every_option_alone_has_an_effect_or_is_refused(call, template):
    assert [problem for option in call.others if (problem := call.check(template, option))] == []


def test_every_option_next_to_another_has_an_effect_or_is_refused(template, cases):
    assert problems([pair for call in CALLS for pair in call.pairs()], template, cases, SAMPLE) == []


PARTS = (Memory, Conversations, CoreMemory, WorkspaceManager, BackgroundIndexer, Agents)
#: Options that change how long a call waits, or need another program or machine.
NOT_SEEN = {
    ("BackgroundIndexer.close", "timeout_seconds"),
    ("BackgroundIndexer.wait", "timeout_seconds"),
    ("WorkspaceManager.share", "on_progress"),
}


def test_every_option_of_every_method_is_listed():
    listed = {(call.method, name) for call in CALLS for name in (*call.given, *call.others)} | NOT_SEEN
    missing = [
        f"{kind.__name__}.{name}({option})"
        for kind in PARTS
        for name, method in inspect.getmembers(kind, callable)
        if not name.startswith("_")
        for option, parameter in inspect.signature(method).parameters.items()
        if parameter.default is not parameter.empty and (f"{kind.__name__}.{name}", option) not in listed
    ]
    assert missing == []
