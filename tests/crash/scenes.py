"""What the process is doing when it dies: scenes, and the home they play in.

A scene's ``prepare`` makes what was there before, in a process that is never killed but ends without closing anything.
``act`` is what dies. Both say what they begin and what they have done; only what is done is promised.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zlib import crc32

import numpy as np
from attrs import evolve, field, frozen

from klaw_core import API, Component, Memory, Progress, VectorSpace, estimate_tokens
from klaw_core.config.load import load_config
from klaw_core.conversations.chat import Chat
from klaw_core.conversations.message import Message
from klaw_core.plugins.discover import discover
from klaw_core.plugins.registry import Offer

NOON = datetime(2026, 2, 24, 12, tzinfo=UTC)
CHAT = Chat("telegram", "123456")

#: ``say("begin" or "done", what, name, text)``
Say = Callable[[str, str, str, str], None]


@frozen
class EmbedderOptions:
    dimension: int = 16


@frozen
class HashingEmbedder:
    """Hashes words into dimensions: no model has to be loaded, and equal texts have equal vectors."""

    options: EmbedderOptions
    max_tokens = 1_000_000

    @property
    def space(self):
        return VectorSpace("hashing", "1", self.options.dimension)

    def embed_documents(self, texts, /):
        return np.stack([self.embed_query(text) for text in texts])

    def embed_query(self, text, /):
        vector = np.zeros(self.options.dimension, np.float32)
        for word in text.lower().split() or [""]:
            vector[crc32(word.encode()) % self.options.dimension] += 1
        return vector / np.linalg.norm(vector)

    def count_tokens(self, texts, /):
        return estimate_tokens(texts)


def make_registry():
    """Return the installed plugins and the hashing embedder."""
    installed = discover()
    component = Component("hashing", EmbedderOptions, lambda options, _place: HashingEmbedder(options), API)
    return evolve(installed, offers={**installed.offers, ("embedder", "hashing"): [Offer(component, "tests")]})


@frozen
class Home:
    """A data directory and a directory of notes below ``root``, which is the same for every run: paths are stored."""

    root: Path
    registry: object
    opened: list[Memory] = field(factory=list)  # referred to, or they would be closed as they are forgotten

    @property
    def data(self) -> Path:
        return self.root / "data"

    @property
    def notes(self) -> Path:
        return self.root / "notes"

    def open(self, dimension: int = 16) -> Memory:
        tables = {
            "store": {"type": "sqlite"},
            "retrieval": [{"type": "sqlite-vec", "weight": 0.5}, {"type": "fts5"}],
            "embedding": {"type": "hashing", "dimension": dimension},
            "chunking": {"type": "markdown", "max_tokens": 60, "overlap_tokens": 0},
        }
        config = load_config(data_dir=self.data, environment={"KLAW_CONFIG": os.devnull}, overrides={"memory": tables})
        memory = Memory.open(config, registry=self.registry)
        self.opened.append(memory)
        return memory

    def write(self, name: str, text: str) -> None:
        self.notes.mkdir(exist_ok=True)
        (self.notes / name).write_text(text)


@frozen
class Scene:
    """Something that Klaw does, and that a crash may interrupt. ``dimension`` is the embedder's while it acts."""

    name: str
    prepare: Callable[[Home, Say], None]
    act: Callable[[Memory, Home, Say], None]
    dimension: int = 16


def word(kind: str, number: int) -> str:
    """Return a word that stands in one text only, and long enough that its bytes are found in no other place."""
    return f"{kind}{number}" + "xylophonequartz"[number % 5 :]


def _save(memory: Memory, say: Say, number: int) -> None:
    text = f"{word('saved', number)} is a thing to keep, number {number}"
    say("begin", "save", "", text)
    passage = memory.save(text, created_at=NOON + timedelta(hours=number))
    say("done", "save", passage.path, text)
    if passage.notice:
        say("done", "notice", passage.path, text)


def go_on(memory: Memory, say: Say) -> None:
    """Do what must be possible after anything went wrong."""
    _save(memory, say, 40)


def _say_message(memory: Memory, say: Say, number: int, *, days: int = 0) -> None:
    text = f"{word('said', number)} was said, number {number}"
    moment = NOON + timedelta(days=days, minutes=number)
    written = memory.conversations.append(Message("user", text, moment, meta=CHAT.meta))
    say("done", "append", written.id, text)


def _note(home: Home, number: int, kind: str = "note") -> None:
    firsts = [f"# StyledText {part}\n\n{word(kind, number * 10 + part)} stands here. " for part in range(2)]
    home.write(f"{number}.md", "\n\n".join(first + "filling words " * 20 for first in firsts))


def _nothing(_home: Home, _say: Say) -> None:
    """Begin with a directory that holds nothing: the database is made as well."""


def _lived(home: Home, say: Say) -> None:
    """Make notes, saved memories and messages, all of them indexed."""
    for number in range(4):
        _note(home, number)
    memory = home.open()
    for number in range(3):
        _save(memory, say, number)
    for number in range(3):
        _say_message(memory, say, number)
    memory.index(home.notes)
    say("done", "index", "", "")


def _left_over(home: Home, say: Say) -> None:
    """Interrupt a rebuild, so that what it has copied lies beside the database."""
    _lived(home, say)

    def stop(_progress: Progress) -> None:
        if any(word("saved", 2).encode() in path.read_bytes() for path in home.data.glob("klaw.db.rebuild*")):
            raise _StoppedError

    with suppress(_StoppedError):
        home.open().reindex(on_progress=stop)
    assert list(home.data.glob("klaw.db.rebuild*"))


class _StoppedError(Exception):
    """Ends a rebuild."""


def _edited(home: Home, say: Say) -> None:
    """Change one note, remove one, add one, after all were indexed."""
    _lived(home, say)
    _note(home, 1, "changed")
    (home.notes / "2.md").unlink()
    _note(home, 7)
    say("begin", "index", "", "")


def _act_save(memory: Memory, _home: Home, say: Say) -> None:
    for number in range(20, 22):
        _save(memory, say, number)


def _act_append(memory: Memory, _home: Home, say: Say) -> None:
    for number in range(20, 23):
        _say_message(memory, say, number)
    say("done", "append", memory.conversations.session_break(CHAT, NOON + timedelta(hours=1)).id, "")
    _say_message(memory, say, 23, days=1)


def _act_index(memory: Memory, home: Home, say: Say) -> None:
    memory.index()
    say("done", "index", "", "")
    del home


def _act_forget(memory: Memory, _home: Home, say: Say) -> None:
    for result in [memory.search(word("saved", number), 1)[0] for number in (0, 2)]:
        say("begin", "forget", result.path, result.content)
        memory.forget(result.path)
        say("done", "forget", result.path, result.content)
    say("begin", "exclude", "notes/3.md", word("note", 30))
    memory.forget("notes/3.md")
    say("done", "exclude", "notes/3.md", word("note", 30))


def _act_reindex(memory: Memory, _home: Home, say: Say) -> None:
    say("begin", "reindex", "", "")
    memory.reindex()
    say("done", "reindex", "", "")


SCENES = {
    scene.name: scene
    for scene in (
        Scene("first-save", _nothing, _act_save),
        Scene("save", _lived, _act_save),
        Scene("append", _lived, _act_append),
        Scene("index", _edited, _act_index),
        Scene("forget", _left_over, _act_forget),
        Scene("reindex", _edited, _act_reindex),
        Scene("move", _lived, _act_reindex, dimension=24),
    )
}
