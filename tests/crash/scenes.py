"""What the process is doing when it dies: scenes, and the home they play in.

A scene's ``prepare`` makes what was there before, in a process that is never killed but ends without closing anything.
``act`` is what dies. Both say what they begin and what they have done; only what is done is promised.
"""

import logging
import os
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zlib import crc32

import numpy as np
from attrs import evolve, field, frozen

from klaw_core import API, Agents, Component, Memory, Progress, VectorSpace, estimate_tokens
from klaw_core.config.load import load_config
from klaw_core.plugins.discover import discover
from klaw_core.plugins.registry import Offer
from klaw_journals import BadLine
from klaw_journals.chats import Chat
from klaw_journals.messages import SESSION_BREAK, Message
from klaw_watch import BackgroundIndexer

NOON = datetime(2026, 2, 24, 12, tzinfo=UTC)
CHAT = Chat("telegram", "123456")
#: What is exported, and what is to be imported, below the root of the home.
EXPORTED, IMPORTED = "exported.jsonl", "import.jsonl"

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
    #: Postings packed and vectors quantized from the first chunk on, as they are by default beyond 5,000 chunks.
    compact: bool = False
    #: The agent whose memory it is, if there are several.
    agent: str = ""
    #: Facts are taken from conversations.
    facts: bool = False
    #: The configuration names a source of the owner's: the directory ``private``.
    private: bool = False
    opened: list[Memory] = field(factory=list)  # referred to, or they would be closed as they are forgotten

    @property
    def data(self) -> Path:
        return self.root / "agents" / self.agent if self.agent else self.root / "data"

    @property
    def notes(self) -> Path:
        return self.root / "notes"

    @property
    def swapped(self) -> Path:
        """The file that says the embedder's dimension, if somebody has changed it."""
        return self.root / "dimension"

    def config(self, directory: Path, dimension: int = 16):
        dimension = int(self.swapped.read_text()) if self.swapped.exists() else dimension
        vectors, words = ({"search": "quantized"}, {"search": "packed"}) if self.compact else ({}, {})
        tables = {
            "store": {"type": "sqlite"},
            "retrieval": [{"type": "sqlite-vec", "weight": 0.5, **vectors}, {"type": "fts5", **words}],
            "embedding": {"type": "hashing", "dimension": dimension},
            "chunking": {"type": "markdown", "max_tokens": 60, "overlap_tokens": 0},
        }
        if self.private:
            tables["sources"] = [{"type": "workspace", "path": str(self.root / "private")}]
        environment = {"KLAW_CONFIG": os.devnull}
        extensions = {"facts": {"extractor": "rules"}} if self.facts else {}
        overrides = {"memory": tables, "extensions": extensions}
        return load_config(data_dir=directory, environment=environment, overrides=overrides)

    def open(self, dimension: int = 16) -> Memory:
        memory = Memory.open(self.config(self.data, dimension), registry=self.registry)
        self.opened.append(memory)
        return memory

    def write(self, name: str, text: str) -> None:
        self.notes.mkdir(exist_ok=True)
        (self.notes / name).write_text(text)


@frozen
class Scene:
    """Something that Klaw does, and that a crash may interrupt. ``dimension`` is the embedder's while it acts.

    ``steady``: it makes the same calls each time. ``compact``, ``agent`` and ``facts`` are those of the :class:`Home`.
    """

    name: str
    prepare: Callable[[Home, Say], None]
    act: Callable[[Memory, Home, Say], None]
    dimension: int = 16
    steady: bool = True
    compact: bool = False
    agent: str = ""
    facts: bool = False


def word(kind: str, number: int) -> str:
    """Return a word that stands in one text only, and long enough that its bytes are found in no other place."""
    return f"{kind}{number}" + "xylophonequartz"[number % 5 :]


def _save(memory: Memory, say: Say, number: int) -> None:
    text = f"{word('saved', number)} is a thing to keep, number {number}"
    say("begin", "save", "", text)
    passage = memory.save(text, created_at=NOON + timedelta(hours=number))
    if passage.notice:  # first, because another thread may end the process in between
        say("done", "notice", passage.path, text)
    say("done", "save", passage.path, text)


def go_on(memory: Memory, say: Say) -> None:
    """Do what must be possible after anything went wrong."""
    _save(memory, say, 40)


def _say_message(memory: Memory, say: Say, number: int, *, days: int = 0) -> None:
    text = f"{word('said', number)} was said, number {number}"
    moment = NOON + timedelta(days=days, minutes=number)
    _acknowledged(memory, say, Message("user", text, moment, meta=CHAT.meta))


def _acknowledged(memory: Memory, say: Say, message: Message) -> None:
    """Append a message, and say whether the caller was warned that it is found only after the next index run."""
    warnings: list[str] = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: warnings.append(record.getMessage())
    logging.getLogger("klaw").addHandler(handler)
    try:
        written = memory.conversations.append(message)
    finally:
        logging.getLogger("klaw").removeHandler(handler)
    if any("after the next `klaw index`" in warning for warning in warnings):
        say("done", "notice", written.id, message.content)
    say("done", "append", written.id, message.content)


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
    _acknowledged(memory, say, Message("system", "", NOON + timedelta(hours=1), type=SESSION_BREAK, meta=CHAT.meta))
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


def _act_forget_after_reindex(memory: Memory, home: Home, say: Say) -> None:
    """Forget what a rebuild has just copied into its file, which is deleted."""
    _act_reindex(memory, home, say)
    _act_forget(memory, home, say)
    _act_purge(memory, home, say)
    _save(memory, say, 20)


def _said_left_over(home: Home, say: Say) -> None:
    """Make what :func:`_left_over` makes, with summaries of what was said."""
    _left_over(home, say)
    memory = home.open()
    first, second, _ = messages_of(memory)
    for message in (first, second):
        place = {"from_message_id": message.id, "to_message_id": message.id}
        memory.conversations.add_summary(CHAT, f"of {message.content}", created_at=NOON, **place)
    memory.index()


def messages_of(memory: Memory) -> list[Message]:
    """Return what was said, in order."""
    return [line.message for line in memory.conversations.read(CHAT) if not isinstance(line, BadLine)]


def _act_forget_messages(memory: Memory, _home: Home, say: Say) -> None:
    """Forget one message in each of two ways, with another one said in between."""
    first, second, _ = messages_of(memory)
    for message, forget in (
        (first, lambda: memory.forget(f"{CHAT.name}/{first.id}")),
        (second, lambda: memory.conversations.forget(CHAT, [second.id])),
    ):
        say("begin", "forget", f"{CHAT.name}/{message.id}", message.content)
        forget()
        say("done", "forget", f"{CHAT.name}/{message.id}", message.content)
        _say_message(memory, say, 20 + (message is second))


def _act_purge(memory: Memory, _home: Home, say: Say) -> None:
    said = messages_of(memory)
    for message in said:
        say("begin", "forget", f"{CHAT.name}/{message.id}", message.content)
    memory.conversations.purge(CHAT)
    for message in said:
        say("done", "forget", f"{CHAT.name}/{message.id}", message.content)


def _act_reindex(memory: Memory, _home: Home, say: Say) -> None:
    say("begin", "reindex", "", "")
    memory.reindex()
    say("done", "reindex", "", "")


def _many(home: Home, say: Say) -> None:
    """Make enough chunks that packed postings have several segments, then what :func:`_edited` makes."""
    for part in range(6):
        firsts = [f"# Part {number}\n\n{word(f'many{part}x', number)} stands here." for number in range(40)]
        home.write(f"many{part}.md", "\n\n".join(firsts))
        home.open().index(home.notes)
    _edited(home, say)


def _act_in_background(memory: Memory, home: Home, say: Say) -> None:
    """Save and write notes while an indexer works in a thread of its own."""
    say("begin", "index", "", "")
    with BackgroundIndexer(memory, debounce_seconds=0.0) as indexer:
        for number in range(20, 24):
            _save(memory, say, number)
            _note(home, number)
            indexer.request()
            _say_message(memory, say, number)
            indexer.request("conversations")
        indexer.wait()
    memory.index()
    say("done", "index", "", "")


def _act_as_agents(_memory: Memory, home: Home, say: Say) -> None:
    """Let two agents save in turns; what is looked at is the memory of one."""
    with Agents(home.config(home.root), registry=home.registry) as agents:
        for number in range(20, 23):
            other, own = agents.memory("other"), agents.memory(home.agent)
            other.save(f"{word('other', number)} is another's", created_at=NOON)
            _save(own, say, number)
            _say_message(own, say, number)


def _act_export(memory: Memory, home: Home, say: Say) -> None:
    for _ in range(2):  # the second over the first
        memory.export(home.root / EXPORTED)
        say("done", "export", "", "")
        _save(memory, say, 20)


def _to_import(home: Home, say: Say) -> None:
    """Write an export of another memory, next to one that has lived."""
    _lived(home, say)
    other = evolve(home, root=home.root / "elsewhere", agent="")
    other.data.mkdir(parents=True)
    with other.open() as memory:
        for number in range(60, 66):
            memory.save(f"{word('imported', number)} is a thing to bring, number {number}", created_at=NOON)
            memory.core.update("user", f"key {number}", "a fact")
            memory.conversations.append(Message("user", f"said elsewhere {number}", NOON, meta=CHAT.meta))
        memory.export(home.root / IMPORTED)


def _act_import(memory: Memory, home: Home, say: Say) -> None:
    say("begin", "import", "", "")
    memory.import_(home.root / IMPORTED)
    say("done", "import", "", "")


def _remember(memory: Memory, say: Say, number: int) -> None:
    text = f"{word('fact', number)} is what I live for"
    say("begin", "fact", "", text)
    fact = memory.extension("facts").remember(text, slot="home", value=f"place {number}", by="agent")
    say("done", "fact", fact.id, text)


def _tell(memory: Memory, number: int) -> None:
    """Say something that rules take for a fact."""
    text = f"My name is {word('told', number).capitalize()} since 2024."
    memory.conversations.append(Message("user", text, NOON + timedelta(minutes=number), meta=CHAT.meta))


def _told(home: Home, say: Say) -> None:
    """Begin with facts, and with messages from which none were taken yet."""
    _lived(home, say)
    memory = home.open()
    for number in range(2):
        _remember(memory, say, number)
    for number in range(10, 14):
        _tell(memory, number)


def _extracted(home: Home, say: Say) -> None:
    """Begin with facts that were taken from messages."""
    _told(home, say)
    home.open().index()


def _act_remember(memory: Memory, _home: Home, say: Say) -> None:
    for number in range(20, 23):
        _remember(memory, say, number)
    facts = memory.extension("facts")
    (current,) = facts.list()
    facts.keeper.pin(current.id)
    facts.keeper.end(current.id)


def _act_extract(memory: Memory, _home: Home, say: Say) -> None:
    facts = memory.extension("facts")
    facts.extract(limit=3)
    facts.extract()
    memory.index()
    say("done", "index", "", "")


def _act_forget_facts(memory: Memory, _home: Home, say: Say) -> None:
    facts = memory.extension("facts")
    for fact in [fact for fact in facts.list(everything=True) if fact.made_by == "agent"]:
        say("begin", "forget", f"facts/{fact.id}", fact.text)
        memory.forget(f"facts/{fact.id}")
        say("done", "forget", f"facts/{fact.id}", fact.text)


def _act_compress(memory: Memory, _home: Home, _say: Say) -> None:
    facts = memory.extension("facts")
    facts.compress()
    facts.compact(CHAT.name, keep=2)
    facts.keeper.undo(next(iter(facts.state().batches)))


SCENES = {
    scene.name: scene
    for scene in (
        Scene("first-save", _nothing, _act_save),
        Scene("save", _lived, _act_save),
        Scene("append", _lived, _act_append),
        Scene("index", _edited, _act_index),
        Scene("forget", _left_over, _act_forget),
        Scene("forget-messages", _said_left_over, _act_forget_messages),
        Scene("purge", _said_left_over, _act_purge),
        Scene("reindex", _edited, _act_reindex),
        Scene("move", _lived, _act_reindex, dimension=24),
        Scene("forget-after-reindex", _lived, _act_forget_after_reindex),
        Scene("compact-index", _many, _act_index, compact=True),
        Scene("compact-save", _many, _act_save, compact=True),
        Scene("compact-forget", _left_over, _act_forget, compact=True),
        Scene("compact-reindex", _many, _act_reindex, compact=True),
        Scene("background", _lived, _act_in_background, steady=False),
        Scene("agents", _lived, _act_as_agents, agent="one"),
        Scene("export", _lived, _act_export),
        Scene("import", _to_import, _act_import),
        Scene("remember", _told, _act_remember, facts=True),
        Scene("extract", _told, _act_extract, facts=True),
        Scene("forget-facts", _extracted, _act_forget_facts, facts=True),
        Scene("compress", _extracted, _act_compress, facts=True),
    )
}
