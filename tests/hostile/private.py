"""Do everything that writes, with umask 000, and print what others could have used: a program of its own.

An audit hook looks at what is renamed, linked or removed while it still has its name; a walk looks at the rest.
"""

import io
import json
import os
import stat
import sys
from pathlib import Path

home = Path(sys.argv[1])
os.umask(0)
found: dict[str, str] = {}
seen: set[str] = set()


def look(path: object) -> None:
    """Note a path below the home that others than its owner may use."""
    try:
        place = Path(os.fsdecode(path)).absolute()  # type: ignore[arg-type]  # whatever the event names
        mode = place.lstat().st_mode
    except (OSError, TypeError, ValueError):
        return
    if not place.is_relative_to(home / "own") or stat.S_ISLNK(mode):
        return
    seen.add(place.name)
    if stat.S_IMODE(mode) & 0o077:
        found[str(place.relative_to(home))] = oct(stat.S_IMODE(mode))


def walk() -> None:
    for path in (home / "own").rglob("*"):
        look(path)


def watch(event: str, arguments: tuple[object, ...]) -> None:
    if event in {"os.rename", "os.remove", "os.link", "os.rmdir"}:
        look(arguments[0])


sys.addaudithook(watch)

from klaw_core import Memory  # noqa: E402  # after the hook, so that nothing escapes it
from klaw_core.cli.program import cli  # noqa: E402
from klaw_core.config.load import load_config  # noqa: E402
from klaw_journals.chats import Chat  # noqa: E402
from klaw_journals.messages import Message  # noqa: E402

DAY = "2026-02-24T10:00:00+00:00"


def klaw(*arguments: str) -> None:
    try:
        cli(list(arguments), prog_name="klaw")
    except SystemExit as end:
        if end.code:
            raise
    walk()


def live() -> None:
    from datetime import datetime

    chat = Chat("telegram", "1")
    with Memory.open(load_config()) as memory:
        memory.index(home / "notes")
        walk()
        path = memory.save("the harbour at dawn").path
        memory.save("the gulls", chat_id="x")
        memory.core.update("user", "name", "Anna")
        walk()
        memory.conversations.append(Message("user", "hello", datetime.fromisoformat(DAY), meta=chat.meta))
        memory.conversations.add_summary(chat, "they said hello")
        memory.reindex(on_progress=lambda _: walk())
        walk()
        (home / "own" / "deep").mkdir(mode=0o700)
        memory.export(home / "own" / "deep" / "export.jsonl")
        memory.export(io.BytesIO())
        memory.import_(home / "own" / "deep" / "export.jsonl", workspaces=True)
        memory.forget(path)
        memory.doctor(fix=True)
        walk()
        memory.conversations.purge(chat)
        (memory.config.data_dir / "core_memory.json").write_text("{")  # by hand: its copy is ours
        memory.doctor()
    (load_config().data_dir / "core_memory.json").unlink()
    walk()


klaw("init")
klaw("config", "set", "memory.embedding.type", "none")
live()
klaw("reindex")
klaw("export", str(home / "own" / "export2.jsonl"))
klaw("models", "add", "mine", "--from", str(home / "model"))
sys.stdout.write("\n" + json.dumps({"found": found, "seen": sorted(seen)}) + "\n")
