"""What a campaign of damage to klaw.db needs: a memory with everything in it, damage, and what must hold afterwards.

A case damages a copy of one good database: a page is zeroed, filled with other bytes or swapped with another page, a
bit or some bytes are changed, a byte of the header is changed, or the file is cut. Then a child opens it, asks for
everything, and rebuilds the index.
"""

from __future__ import annotations

import os
import random
import shutil
from contextlib import closing
from pathlib import Path
from typing import Any
from zlib import crc32

import apsw
import numpy as np
from attrs import define, field

from klaw_core import (
    Chat,
    DatabaseCorruptError,
    KlawError,
    LiveComponent,
    Memory,
    Message,
    NewDocument,
    VectorSpace,
    load_config,
)
from klaw_testing.values import MOMENT

PAGE = 4096
NOTES = 30
#: The kinds of damage; a case has one of them.
KINDS = ("zeroed page", "random page", "swapped pages", "cut", "flipped bit", "random bytes", "header byte")
CHAT = Chat("telegram", "1")


def _saved(number: int) -> str:
    return f"savedword{number} the lighthouse keeper said so"


def _added(number: int) -> str:
    return f"docword{number} a chart"


class HashingEmbedder:
    """Hashes words into 48 dimensions, and counts the texts."""

    max_tokens = 1_000_000
    space = VectorSpace("hashing", "1", 48)

    def __init__(self) -> None:
        self.texts = 0

    def embed_documents(self, texts: list[str], /) -> Any:
        self.texts += len(texts)
        return np.stack([self.embed_query(text) for text in texts])

    def embed_query(self, text: str, /) -> Any:
        vector = np.zeros(48, np.float32)
        for word in text.lower().split() or [""]:
            vector[crc32(word.encode()) % 48] += 1
        return vector / np.linalg.norm(vector)

    def count_tokens(self, texts: list[str], /) -> list[int]:
        return [len(text.split()) for text in texts]


@define
class World:
    """A memory with everything in it; ``klaw.db`` is the only file that a case changes."""

    root: Path
    embedder: HashingEmbedder = field(factory=HashingEmbedder)

    @property
    def database(self) -> Path:
        return self.root / "data" / "klaw.db"

    def open(self, **options: Any) -> Memory:
        environment = {"KLAW_CONFIG": os.devnull}
        tables = {"embedding": {"type": "hashing48"}}
        config = load_config(data_dir=self.root / "data", environment=environment, overrides={"memory": tables})
        live = [LiveComponent("embedder", "hashing48", self.embedder)]
        return Memory.open(config, components=live, **options)

    def fill(self) -> None:
        """Write the notes and all other data, and index them; the log is empty afterwards."""
        for number in range(NOTES):
            text = "".join(
                f"## Part {part}\n\nharbour word{number}x{part} {'ferry boat pier ' * 40}\n\n" for part in range(3)
            )
            path = self.root / "notes" / f"note{number}.md"
            path.parent.mkdir(exist_ok=True)
            path.write_text(f"---\ntags: [sea, n{number}]\n---\n# Note {number}\n\n{text}")
            os.utime(path, (MOMENT.timestamp() + number, MOMENT.timestamp() + number))
        with self.open() as memory:
            memory.index(self.root / "notes")
            for number in range(10):
                memory.save(_saved(number), created_at=MOMENT)
                memory.conversations.append(
                    Message("user", f"saidword{number} the tide is high", MOMENT, meta=CHAT.meta)
                )
            memory.conversations.add_summary(CHAT, "They spoke of the tide.")
            memory.add([NewDocument(f"doc{number}", _added(number)) for number in range(5)])
            memory.add([NewDocument("other", "elsewhere a compass")], collection="others")
            memory.index()

    def ask(self, memory: Memory) -> tuple[dict[str, Any], list[str]]:
        """Return everything that a reader can ask for, by question, and the notices and errors."""
        asked: dict[str, Any] = {}
        notices: list[str] = []

        def ask(name: str, question: Any) -> None:
            try:
                asked[name] = question()
            except KlawError as error:
                notices.append(str(error))
                asked[name] = "an error"

        def found(words: str, **options: Any) -> list[Any]:
            results = memory.search(words, 5, **options)
            notices.extend(results.notices)
            return [
                [
                    one.path,
                    one.content,
                    one.context,
                    one.start_line,
                    list(one.heading),
                    str(sorted(one.metadata.items())),
                    str(one.created_at),
                    one.source,
                ]
                for one in results
            ]

        words = [f"word{number}x{number % 3}" for number in range(NOTES)]
        words += [f"savedword{number}" for number in range(10)] + [f"docword{number}" for number in range(5)]
        for word in (*words, "harbour ferry", "the tide is high"):
            ask(f"words {word}", lambda word=word: found(word, mode="fts"))
        for text in (*(_saved(number) for number in range(10)), *(_added(number) for number in range(5))):
            ask(f"vectors {text}", lambda text=text: found(text, mode="vector")[:1])
        ask("others", lambda: found("compass", collection="others"))
        ask("tagged", lambda: [record.path for record in memory.documents(prefix="notes/")])
        ask(
            "recent",
            lambda: [[item.path, item.title, item.preview, str(item.created_at)] for item in memory.recent(50)],
        )
        ask("saved", lambda: sorted(memory.get(item.path).content for item in memory.documents(prefix="saved/")))
        ask("said", lambda: sorted(row.content for row in memory.conversations.search("tide", 50)))
        ask("all said", lambda: [line.content for line in memory.conversations.window(CHAT)])
        for number in range(0, NOTES, 7):
            ask(f"get {number}", lambda number=number: memory.get(f"notes/note{number}.md").content)
        ask("status", lambda: [sorted(memory.status().origins.items())])
        return asked, sorted(set(notices))


def damage(data: bytes, kind: str, dice: random.Random) -> bytes:
    """Return a database with damage of a kind in a random place."""
    raw = bytearray(data)
    pages = len(raw) // PAGE
    page = dice.randrange(pages) * PAGE
    match kind:
        case "zeroed page":
            raw[page : page + PAGE] = bytes(PAGE)
        case "random page":
            raw[page : page + PAGE] = dice.randbytes(PAGE)
        case "swapped pages":
            other = dice.randrange(pages) * PAGE
            raw[page : page + PAGE], raw[other : other + PAGE] = raw[other : other + PAGE], raw[page : page + PAGE]
        case "cut":
            del raw[dice.choice([page or PAGE, dice.randrange(len(raw))]) :]
        case "flipped bit":
            raw[dice.randrange(len(raw))] ^= 1 << dice.randrange(8)
        case "random bytes":
            start = dice.randrange(len(raw))
            raw[start : start + 64] = dice.randbytes(min(64, len(raw) - start))
        case "header byte":
            raw[dice.randrange(100)] = dice.randrange(256)
    return bytes(raw)


def copy_of(world: World, root: Path) -> World:
    """Return a copy of a memory."""
    shutil.copytree(world.root, root)
    workspaces = root / "data" / "workspaces.json"
    workspaces.write_text(workspaces.read_text().replace(str(world.root), str(root)))
    return World(root)


def copy_damaged(good: World, root: Path, kind: str, dice: random.Random) -> World:
    """Return a copy of a memory with a damaged database."""
    world = copy_of(good, root)
    world.database.write_bytes(damage(good.database.read_bytes(), kind, dice))
    return world


def look(world: World, expected: dict[str, Any]) -> dict[str, Any]:
    """Ask everything, rebuild the index, ask everything again; return what was seen, for :func:`verdict`."""
    seen: dict[str, Any] = {"wrong": [], "notices": [], "doctor": [], "refused": ""}
    try:
        with world.open() as memory:
            seen["wrong"], seen["notices"] = _differences(world, memory, expected)
            seen["doctor"] = _problems(memory)
    except DatabaseCorruptError as error:
        seen["refused"] = str(error)
    world.embedder.texts = 0
    with world.open(replace_damaged=True) as memory:
        memory.reindex()
        seen["embedded"] = world.embedder.texts
        left, notices = _differences(world, memory, expected)
        seen["left"] = [*left, *notices, *_problems(memory)]
    with closing(apsw.Connection(str(world.database))) as connection:
        seen["left"] += [row for (row,) in connection.execute("PRAGMA integrity_check") if row != "ok"]
    return seen


def verdict(seen: dict[str, Any]) -> str:
    """Return what is wrong with what was seen; empty if the damage was noticed or harmless, and is repaired."""
    if seen["refused"] and "(klaw reindex)" not in seen["refused"]:
        return f"refused with another hint: {seen['refused']}"
    if seen["wrong"] and not seen["notices"] and not seen["doctor"]:
        return f"wrong without a word: {seen['wrong']}"
    return f"not repaired: {seen['left']}" if seen["left"] else ""


def _differences(world: World, memory: Memory, expected: dict[str, Any]) -> tuple[list[str], list[str]]:
    """Return the questions with other answers than expected, and the notices."""
    answers, notices = world.ask(memory)
    return [name for name, answer in expected.items() if answers[name] != answer], notices


def _problems(memory: Memory) -> list[str]:
    found = memory.doctor().findings
    return [f"{finding.check}: {finding.what} → {finding.hint}" for finding in found if finding.severity != "note"]
