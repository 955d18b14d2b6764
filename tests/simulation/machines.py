"""A second machine of the same person: a data directory of its own, and a folder that carries segments between both.

The folder is not a disk of Klaw's: what it carries may come late, twice, under the name of a copy, or not at all.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from random import Random

from attrs import evolve
from scenes import Home

from klaw_core import Memory
from klaw_journals import Chat
from klaw_journals.record_journal import FileJournal
from klaw_sync import Folder
from klaw_sync.extension import SyncExtension
from klaw_sync.keys import MemoryKey
from klaw_sync.segments import read as read_segment

#: Where the second machine says something: a chat that nobody purges, as a purge also ends what it has not seen.
FAR_CHAT = Chat("telegram", "555")
#: What a folder does to a segment.
TRICKS = ("", "", "late", "copy", "lost")


def folder_of(home: Home) -> Path:
    """Return the folder that both machines use."""
    return home.root / "folder"


def second_of(home: Home) -> Home:
    """Return the home of the second machine."""
    return evolve(home, root=home.root / "second", private=False, opened=[])


def is_shared(home: Home) -> bool:
    """Return whether both machines take part."""
    return all((each.data / "sync" / "key").exists() for each in (home, second_of(home)))


def share(home: Home, memory: Memory, second: Memory) -> None:
    """Let both machines take part, unless they do."""
    remote = Folder(folder_of(home))
    mine, other = (each.extension(SyncExtension).sync for each in (memory, second))
    if not (home.data / "sync" / "key").exists():
        mine.init(remote)
    if not (second_of(home).data / "sync" / "key").exists():
        mine.run([remote])  # marks the folder, if a crash has prevented it
        other.join(remote, mine.key.code)


def open_second(home: Home) -> Memory:
    """Open the memory of the second machine."""
    second = second_of(home)
    second.data.mkdir(parents=True, exist_ok=True)
    return second.open()


def synchronise(home: Home, memory: Memory) -> tuple[str, ...]:
    """Synchronise one machine with the folder; return the problems."""
    return memory.extension(SyncExtension).run([str(folder_of(home))]).problems


class Trick:
    """Does something to one segment of the folder during a block."""

    def __init__(self, home: Home, kind: str, dice: Random) -> None:
        found = sorted(folder_of(home).glob("*/*.kseg"))
        self._path = dice.choice(found) if found and kind else None
        self._kind, self._aside = kind, home.root / "late.kseg"

    def __enter__(self) -> None:
        if self._path is None:
            return
        if self._kind == "copy":
            shutil.copy(self._path, self._path.with_name(f"{self._path.stem} (conflicted copy){self._path.suffix}"))
        else:
            self._path.replace(self._aside)

    def __exit__(self, *_: object) -> None:
        if self._path is not None and self._kind == "late":
            self._aside.replace(self._path)


def names_in(home: Home) -> set[str]:
    """Return the ids of the saved memories in the journal of a machine."""
    return set(FileJournal(home.data / "saved.jsonl").replay().records)


def meet(home: Home, memory: Memory, second: Memory) -> Iterator[str]:
    """Synchronise until both have told everything; yield problems."""
    for each in (memory, second, memory, second, memory):
        problems = synchronise(home, each)
    yield from (f"sync: {problem.rpartition(': ')[2]}" for problem in problems)


def carried(home: Home) -> str:
    """Return everything that the folder carries, in clear."""
    key = MemoryKey.load(home.data / "sync" / "key")
    remote = Folder(folder_of(home))
    assert key is not None
    return "".join(repr(read_segment(key, remote.get(name))) for name in remote.names())


def dump(memory: Memory, path: Path) -> list[str]:
    """Return what both machines must have alike, in order."""
    memory.export(path)
    lines = path.read_text("utf-8").splitlines()
    path.unlink()
    own = {"core_history", "workspace", "header", "end"}
    return sorted(line for line in lines if json.loads(line).get("kind") not in own)
