"""Call every public method of a memory while the system refuses something, each in a process of its own.

Run as a program with a directory, the name of a fault and of how many calls one is made; prints a line of JSON for
each call that raised anything but a KlawError, and one with all calls. The processes are forked from this one, which
has loaded only what opening a memory loads: so what a method imports at its first call is imported while the system
refuses it.
"""

from __future__ import annotations

import errno
import json
import os
import resource
import shutil
import sys
import traceback
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cached_property
from inspect import isfunction
from pathlib import Path
from typing import Any

from attrs import frozen

from klaw_core import Chat, KlawError, Memory, Message, NewDocument, SearchRequest, load_config
from klaw_memories import ReplacedFact

MOMENT = datetime(2026, 2, 24, 12, tzinfo=UTC)
CHAT = Chat("telegram", "1")
PARTS = ("conversations", "core", "workspaces")
REPLACED = ReplacedFact("user", "name", "Ada", "owner", "agent", "2026-11-28T00:00:00+00:00")


def _unshare(memory: Memory, _: Values) -> object:
    memory.workspaces.share("notes")
    return memory.workspaces.unshare("notes")


@frozen
class Values:
    """Arguments of the calls, made before the system refuses anything."""

    root: Path
    message: Message
    document: NewDocument


#: The public methods and properties of ``Memory`` and its parts that take arguments.
CALLS: dict[str, Callable[[Memory, Values], object]] = {
    "add": lambda m, values: m.add([values.document]),
    "call_tool": lambda m, _: m.call_tool("memory_search", {"query": "lantern"}),
    "context": lambda m, _: m.context("where is the lantern?"),
    "delete": lambda m, _: m.delete(["boat"]),
    "doctor": lambda m, _: m.doctor(fix=True),
    "export": lambda m, values: m.export(values.root / "out.jsonl"),
    "extension": lambda m, _: m.extension("saved"),
    "forget": lambda m, _: m.forget("notes/a.md"),
    "get": lambda m, _: m.get("notes/a.md"),
    "get_by_ids": lambda m, _: m.get_by_ids(["boat"]),
    "import_": lambda m, values: m.import_(values.root / "export.jsonl"),
    "nearest": lambda m, _: m.nearest("lantern", ["the lantern"]),
    "on_change": lambda m, _: m.on_change(lambda _event: None),
    "open": lambda m, _: Memory.open(m.config).close(),
    "restore": lambda m, _: m.restore("notes/a.md"),
    "save": lambda m, _: m.save("the walrus"),
    "search": lambda m, _: m.search("lantern"),
    "search_for": lambda m, _: m.search_for(SearchRequest("lantern")),
    "conversations.add_summary": lambda m, _: m.conversations.add_summary(CHAT, "they spoke"),
    "conversations.append": lambda m, values: m.conversations.append(values.message),
    "conversations.append_many": lambda m, values: m.conversations.append_many([values.message]),
    "conversations.find": lambda m, _: m.conversations.find(CHAT, "m1"),
    "conversations.forget": lambda m, _: m.conversations.forget(CHAT, "m1"),
    "conversations.purge": lambda m, _: m.conversations.purge(CHAT),
    "conversations.read": lambda m, _: list(m.conversations.read(CHAT)),
    "conversations.remove": lambda m, _: m.conversations.remove(CHAT, ["m1"]),
    "conversations.search": lambda m, _: m.conversations.search("ferry"),
    "conversations.session": lambda m, _: m.conversations.session(CHAT),
    "conversations.session_break": lambda m, _: m.conversations.session_break(CHAT),
    "conversations.summaries": lambda m, _: m.conversations.summaries(CHAT),
    "conversations.tail": lambda m, _: m.conversations.tail(CHAT, 3),
    "conversations.window": lambda m, _: m.conversations.window(CHAT),
    "core.add_history": lambda m, _: m.core.add_history([REPLACED]),
    "core.delete": lambda m, _: m.core.delete("user", "city"),
    "core.init_from_user_md": lambda m, _: m.core.init_from_user_md("# Ada"),
    "core.update": lambda m, _: m.core.update("user", "name", "Ada"),
    "core.update_all": lambda m, _: m.core.update_all([("user", "name", "Ada")]),
    "workspaces.describe": lambda m, _: m.workspaces.describe("notes", "what I know"),
    "workspaces.exclude": lambda m, _: m.workspaces.exclude("notes", "b.md"),
    "workspaces.kinds": lambda m, _: m.workspaces.kinds("notes"),
    "workspaces.remove": lambda m, _: m.workspaces.remove("notes"),
    "workspaces.rename": lambda m, _: m.workspaces.rename("notes", "other"),
    "workspaces.restore": lambda m, _: m.workspaces.restore("notes/a.md"),
    "workspaces.share": lambda m, _: m.workspaces.share("notes"),
    "workspaces.unmatched": lambda m, _: m.workspaces.unmatched("notes", ["*.md"], ["sub"]),
    "workspaces.unshare": _unshare,
    "workspaces.unread": lambda m, _: m.workspaces.unread("notes"),
}


def names_of_calls(memory: Memory) -> list[str]:
    """Return the names of all public methods and properties; what a part is made of (attributes) is none."""
    parts = [(f"{part}.", type(getattr(memory, part))) for part in PARTS]
    return [prefix + name for prefix, kind in [("", Memory), *parts] for name in sorted(_public(kind))]


def _public(kind: type) -> set[str]:
    methods = (property, cached_property, classmethod)
    defined = [(name, value) for each in kind.__mro__ for name, value in vars(each).items()]
    return {
        name
        for name, value in defined
        if not name.startswith("_") and (isfunction(value) or isinstance(value, methods))
    }


def call(name: str, memory: Memory, values: Values) -> None:
    """Make a call: an entry of ``CALLS``, a method without arguments, or a property."""
    if name in CALLS:
        CALLS[name](memory, values)
        return
    part, _, attribute = name.rpartition(".")
    found = getattr(getattr(memory, part) if part else memory, attribute)
    if callable(found) and attribute not in PARTS:
        found()


# -- what the system refuses


def _no_descriptor() -> None:
    """Let no file be opened any more: every descriptor below the limit is in use."""
    highest = max(int(entry.name) for entry in Path("/proc/self/fd").iterdir())
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 1, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    while True:
        try:
            os.open(os.devnull, os.O_RDONLY)
        except OSError:
            return


def _no_import() -> None:
    def refuse(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "import":
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), str(arguments[0]))

    sys.addaudithook(refuse)


def _no_stat() -> None:
    def refuse(path: Any, *_arguments: Any, **_options: Any) -> Any:
        raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))

    os.stat = os.lstat = os.scandir = os.listdir = refuse


FAULTS = {"no descriptor": _no_descriptor, "no import": _no_import, "no stat": _no_stat}


# -- processes


def _in_child(function: Callable[[], str]) -> str:
    """Return what a function returned in a forked process; its traceback if it raised anything."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            answer = function()
        except BaseException:  # noqa: BLE001  # reported
            answer = traceback.format_exc()[-3000:]
        os.write(writing, answer.encode("utf-8", "replace"))
        os._exit(0)
    os.close(writing)
    with open(reading, "rb") as stream:  # noqa: PTH123  # a descriptor
        answer = stream.read().decode("utf-8", "replace")
    os.waitpid(child, 0)
    return answer


def _open(data: Path) -> Memory:
    return Memory.open(load_config(data_dir=data, environment={"KLAW_CONFIG": os.devnull, "KLAW_EMBEDDER": "none"}))


def _prepare(root: Path) -> str:
    """Fill a data directory with something of every kind; return the names of the calls."""
    notes = root / "notes"
    notes.mkdir(parents=True)
    (notes / "a.md").write_text("the lantern", "utf-8")
    (notes / "b.md").write_text("the pier", "utf-8")
    with _open(root / "data") as memory:
        memory.index(notes)
        memory.save("the boat")
        memory.add([NewDocument("boat", "the boat")])
        memory.conversations.append(Message("user", "the kiln", MOMENT, "m1", meta=CHAT.meta))
        memory.core.update("user", "city", "Split")
        memory.index()
        memory.export(root / "export.jsonl")
        return json.dumps(names_of_calls(memory))


def _refused(name: str, fault: str, root: Path) -> str:
    """Make a call while the system refuses something; return what is wrong with its error."""
    message = Message("user", "the ferry leaves", MOMENT, meta=CHAT.meta)
    values = Values(root, message, NewDocument("crane", "the crane"))
    memory = _open(root / "copy")
    if part := name.rpartition(".")[0]:
        getattr(memory, part)
    FAULTS[fault]()
    try:
        call(name, memory, values)
    except KlawError as error:
        return f"several lines: {error}" if "\n" in str(error) else ""
    return ""


def main(root: Path, fault: str, every: int) -> None:
    """Make each call with a fault, or one of so many, from one that the fault says."""
    names = json.loads(_in_child(lambda: _prepare(root)))
    _open(root / "data").close()  # what opening loads is loaded once, for all children
    for name in names[len(fault) % every :: every]:
        shutil.rmtree(root / "copy", ignore_errors=True)
        shutil.copytree(root / "data", root / "copy")
        if problem := _in_child(lambda name=name: _refused(name, fault, root)):
            print(json.dumps({"call": name, "problem": problem}), flush=True)  # noqa: T201
    print(json.dumps({"calls": names}))  # noqa: T201


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
