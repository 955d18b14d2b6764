"""A memory with something of everything, for tests that call it in every way and compare what can be observed."""

from __future__ import annotations

import os
import re
import shutil
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import permutations
from pathlib import Path
from random import Random
from typing import Any
from zlib import crc32

import numpy as np
import pytest
from attrs import define, field

from klaw_core import Chat, LiveComponent, Memory, Message, NewDocument, VectorSpace, load_config
from klaw_core.cli.json_forms import to_json
from klaw_core.values.config import Config
from klaw_tools import ContextExtension, ContextItem

MOMENT = datetime(2026, 2, 24, 12, 0, tzinfo=UTC)
DAY = timedelta(days=1)
CHAT, OTHER_CHAT = Chat("telegram", "1"), Chat("telegram", "2")
SECRET = "password: correct-horse-7-battery"
ENVIRONMENT = {"KLAW_CONFIG": os.devnull}

opened: list[str] = []
sys.addaudithook(lambda event, values: opened.append(str(values[0])) if event == "open" else None)


@define
class Embedder:
    """Hashes words into dimensions; another model has other vectors. Notes how many texts each call had."""

    model: str = "words"
    calls: list[int] = field(factory=list)
    max_tokens = 1_000_000

    @property
    def space(self):
        return VectorSpace(self.model, "1", 32)

    def embed_documents(self, texts, /):
        self.calls.append(len(texts))
        return np.stack([self.embed_query(text) for text in texts])

    def embed_query(self, text, /):
        vector = np.zeros(32, np.float32)
        for word in text.lower().split() or [""]:
            vector[crc32(f"{self.model} {word}".encode()) % 32] += 1
        return vector / np.linalg.norm(vector)

    def count_tokens(self, texts, /):
        return [len(text.split()) for text in texts]


class Listening(ContextExtension):
    """Offers for a context what is known of its chat."""

    name = "listening"

    def offer(self, question, /):
        yield ContextItem(f"asked in {question.chat}", filtered=True)


@define
class World:
    """A memory with something of everything. Its data are made anew for each call; its notes are not changed by any."""

    root: Path
    embedder: Embedder = field(factory=Embedder)
    events: list[str] = field(factory=list)

    @property
    def notes(self) -> Path:
        return self.root / "notes"

    @property
    def config(self) -> Config:
        tables = {"embedding": {"type": "words"}}
        return load_config(data_dir=self.root / "data", environment=ENVIRONMENT, overrides={"memory": tables})

    def open(self) -> Memory:
        return Memory.open(self.config, components=self.components)

    @property
    def components(self) -> list[LiveComponent]:
        return [
            LiveComponent("embedder", "words", self.embedder),
            LiveComponent("embedder", "other", Embedder("other")),
            LiveComponent("extension", "listening", Listening()),
        ]

    def note(self, event: object) -> None:
        self.events.append(plain(event))


def fill(world: World) -> None:
    """Write notes, texts, documents and messages, index them, and leave something to index, embed and fix."""
    write_notes(world)
    with world.open() as memory:
        memory.index(world.notes)
        for number in range(3):
            memory.save(f"the harbour is deep, saved{number}", created_at=MOMENT + DAY * number)
        memory.add([document("one", "the harbour chart one"), document("two", "the harbour chart two")])
        memory.add([document("two again", "the harbour chart two")])
        for name in ("three", "two", "two again"):
            memory.add([document(name, f"the harbour chart {name.split()[0]}")], collection="charts")
        memory.add([document("four", "the harbour pilot book")], collection="docs")
        for number in range(6):
            moment = MOMENT + DAY * (number // 2) + timedelta(minutes=number)
            memory.conversations.append(
                Message("user", f"the harbour was said{number}", moment, f"m{number}", meta=CHAT.meta)
            )
            memory.conversations.append(
                Message("user", f"the harbour in another chat{number}", moment, f"x{number}", meta=OTHER_CHAT.meta)
            )
        memory.core.update("user", "name", "Ada")
        facts: Any = memory.extension("facts")
        facts.remember("Ada's harbour is Hamburg", slot="harbour", value="Hamburg", valid_from=MOMENT)
        facts.remember("Ada's harbour is Bremen", slot="harbour", value="Bremen", valid_from=MOMENT + DAY * 20)
        memory.index()
        memory.forget("notes/note3.md")
        memory.add([document("elsewhere", "a chart that only the export has")])
        memory.export(world.root / "export.jsonl")
        memory.delete(["elsewhere"])
        memory.save("only here", created_at=MOMENT)
        (world.notes / "later.md").write_text(
            f"# Later\n\n{'boat ' * 300}\n\n## More\n\n{'pier ' * 300}\n\n## Most\n\n{'quay ' * 300}\n\n{SECRET}\n"
        )
        memory.index(embed=False)
    export = world.root / "export.jsonl"
    export.write_text(export.read_text().replace("saved0", "savedelsewhere").replace("note3.md", "note2.md"))
    (world.root / "data" / "klaw.db").chmod(0o644)  # for the doctor


def document(name: str, text: str) -> NewDocument:
    return NewDocument(name, text, created_at=MOMENT)


def write_notes(world: World) -> None:
    world.notes.mkdir()
    (world.root / "other notes").mkdir()
    (world.root / "other notes" / "pier.md").write_text("# Pier\n\nthe pier of the harbour\n")
    (world.root / "other notes" / "pier.rst").write_text("Pier\n\nthe pier in another format\n")
    (world.root / "other notes" / "draft.md").write_text("# Draft\n\na draft of the pier\n")
    for number in range(8):
        parts = [f"## Part {n}\n\nthe harbour of note{number}, part{n} {'boat ' * 150}" for n in range(2 + number % 2)]
        if number in {0, 2}:
            parts.append(f"## The same\n\nthe harbour chart again {'same ' * 200}")
        text = "\n\n".join(parts)
        path = world.notes / f"note{number}.md"
        path.write_text(f"---\nkind: {'log' if number % 2 else 'plan'}\n---\n# Note {number}\n\n{text}\n")
        os.utime(path, ((MOMENT + DAY * number).timestamp(),) * 2)


def observed(world: World, memory: Memory, result: object) -> dict[str, Any]:
    """Return everything that can be told apart, without times that a clock gives."""
    rows: dict[str, Any] = {}
    with memory._assembly.store.read() as snapshot:
        for name in snapshot.collections():
            keys = snapshot.keys(name).tolist()
            held = {label: index.keys(snapshot.resource, name).tolist() for label, index in memory._assembly.indexes()}
            rows[name] = ([plain(chunk) for chunk in snapshot.chunks(name, keys)], held)
    files = {}
    for path in sorted((world.root / "data").rglob("*")):
        if path.is_file() and not path.name.startswith("klaw.db"):
            files[path.relative_to(world.root).as_posix()] = without_now(path.read_bytes().decode(errors="replace"))
    return {
        "result": plain(result),
        "rows": rows,
        "files": files,
        "read": sorted({name for name in opened if name.startswith(str(world.root)) and name.endswith(".md")}),
        "calls": world.embedder.calls,
        "events": world.events,
        "mode": (world.root / "data" / "klaw.db").stat().st_mode,
    }


def plain(value: object) -> str:
    """Return a value as text, without seconds, times of now and addresses."""
    if isinstance(value, Iterator):
        value = list(value)
    try:
        text = repr(to_json(value))
    except TypeError:
        text = repr(value)
    return without_now(text)


def without_now(text: str) -> str:
    today = datetime.now(UTC).date()
    text = re.sub(r"(seconds'?[=:] ?)[0-9.e-]+|0x[0-9a-f]+", r"\1", text)
    as_code = rf"datetime\({today.year}, {today.month}, {today.day},[^)]*\)"
    return re.sub(rf"saved/{today}/\w+|{today}[T0-9:.+Z]*|{as_code}", "now", text)


#: What was observed: each case is run with none of its options, and with each of them, more than once.
_seen: dict[tuple[str, ...], dict[str, Any] | str] = {}


class Case(ABC):
    """A call, and options for it. An option next to another one must have an effect, or be refused by name."""

    #: The options, and the values that are tried.
    others: Mapping[str, Any]
    #: The options of which the first makes no difference if the second is given, with the reason.
    moot: Mapping[tuple[str, str], str]

    @abstractmethod
    def run(self, world: World, options: Mapping[str, Any]) -> dict[str, Any] | str:
        """Make the call with these options; return what was observed, or the refusal."""

    @abstractmethod
    def names(self, option: str) -> tuple[str, ...]:
        """Return how a refusal may name an option."""

    def check(self, template: Path, option: str, beside: str | None = None) -> str:
        """Return what is wrong with an option, next to another one; empty if it has an effect or is refused."""
        before = {beside: self.others[beside]} if beside else {}
        without = self._run(template, before)
        # The option is the first, because the last of two may win.
        seen = self._run(template, {option: self.others[option], **before})
        place = f"{self}: {option}" + (f" next to {beside}" if beside else "")
        if isinstance(seen, str):
            is_named = any(name in seen for one in (option, beside) if one for name in self.names(one))
            return "" if is_named else f"{place}: refused without its name: {seen}"
        return f"{place} is ignored" if seen == without and (option, beside) not in self.moot else ""

    def _run(self, template: Path, options: Mapping[str, Any]) -> dict[str, Any] | str:
        key = (str(template), str(self), *options)
        if key not in _seen:
            world = World(template.parent)
            shutil.copytree(template, world.root / "data")
            try:
                _seen[key] = self.run(world, options)
            finally:
                shutil.rmtree(world.root / "data")
        return _seen[key]

    def pairs(self) -> list[tuple[Case, str, str]]:
        """Return all pairs of options."""
        return [(self, *pair) for pair in permutations(self.others, 2)]


def problems(pairs: Sequence[tuple[Case, str, str]], template: Path, cases: Any, sample: int) -> list[str]:
    """Return what is wrong with pairs of options, of which a sample is tried unless the whole campaign runs."""
    if not cases.whole:
        pairs = Random("pairs").sample(pairs, min(sample, len(pairs)))
    found = [problem for case, *pair in pairs if (problem := case.check(template, *pair))]
    cases.add(len(pairs), len(found))
    return found


def make_template(root: Path, more: Callable[[Memory], None] = lambda _memory: None) -> Iterator[Path]:
    """Fill a memory in a directory, and call ``more``; yield what a case copies to ``data`` in that directory.

    Until the end, the notes count as written long ago: those written in this moment would be read by every run.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("klaw_notes.walking._TICK", -(10**11))
        fill(World(root))
        with World(root).open() as memory:
            more(memory)
        yield (root / "data").rename(root / "template")
