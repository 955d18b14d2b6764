"""Real conversations as journals: convert LoCoMo, append, index, reindex, and rebuild klaw.db from the files.

    python benchmarks/locomo_journals.py PATH/locomo.json [--words] [--keep DIR]

Each conversation becomes a chat, each turn a message on the day that LoCoMo gives its session, with the turn's id and
with its speaker in ``meta.name``; a session break stands before each session. Printed are how many texts are embedded
for all of it and for one message more, and how large the database is. It is then rebuilt beside itself, and deleted
and made again: both dumps, without keys, must equal the one before. What is found is measured by `klaw eval`.

LoCoMo (Maharana et al., ACL 2024) is CC BY-NC 4.0: for measuring, and no part of this repository.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from attrs import evolve

from klaw_core import Memory
from klaw_core.config.load import load_config
from klaw_core.values.config import Config
from klaw_journals.chats import Chat
from klaw_journals.messages import SESSION_BREAK, Message
from klaw_testing.messages import message_dump


def messages_of(sample: Mapping[str, Any]) -> Iterator[Message]:
    """Yield a conversation's turns, half a minute apart, with a break before each session."""
    chat, talk = Chat("locomo", sample["sample_id"]), sample["conversation"]
    for number in range(1, 100):
        if not talk.get(f"session_{number}"):
            continue
        start = datetime.strptime(talk[f"session_{number}_date_time"], "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
        yield Message("system", "", start, id=f"break-{number}", type=SESSION_BREAK, meta=chat.meta)
        for index, turn in enumerate(talk[f"session_{number}"]):
            role = "user" if turn["speaker"] == talk["speaker_a"] else "assistant"
            meta = {**chat.meta, "name": turn["speaker"]}
            yield Message(role, turn["text"], start + timedelta(seconds=30 * index), id=turn["dia_id"], meta=meta)


def dump(memory: Memory) -> object:
    """Return everything that is derived, without keys."""
    with memory._assembly.store.read() as snapshot:  # noqa: SLF001  # a dump is not public
        stored = snapshot.chunks("memory", snapshot.keys("memory").tolist())
        chunks = sorted((evolve(item, key=0) for item in stored), key=lambda item: (item.path, item.chunk.start))
        indexes = {
            name: len(index.keys(snapshot.resource, "memory"))
            for name, index in memory._assembly.indexes()  # noqa: SLF001
        }
        return chunks, dict(snapshot.manifest("memory", "conversations")), indexes, message_dump(snapshot.messages)


def timed(name: str, memory: Memory, *, reindex: bool = False) -> None:
    """Index or reindex, and print what was done."""
    report = memory.reindex() if reindex else memory.index()
    documents = f"{report.added} added, {report.changed} changed, {report.unchanged} unchanged"
    chunks = f"{report.chunks:,} chunks, {report.embedded:,} embedded, {report.cached:,} cached"
    print(f"{name:<9} {report.seconds:.1f} s: {documents}, {chunks}, {len(report.skipped)} skipped")


def run(samples: list[Mapping[str, Any]], config: Config) -> None:
    """Do everything in turn and print it."""
    with Memory.open(config) as memory:
        begun = time.perf_counter()
        for sample in samples:
            memory.conversations.append_many(messages_of(sample))
        with memory._assembly.store.read() as snapshot:  # noqa: SLF001  # rows are not public
            chats = snapshot.messages.chats()
            count = sum(len(snapshot.messages.all(chat)) for chat in chats)
        print(f"append    {time.perf_counter() - begun:.1f} s: {count:,} rows of {len(chats)} chats")
        timed("index", memory)
        print(f"          klaw.db: {memory.status().statistics.get('database_bytes', 0):,} bytes")
        before = dump(memory)
        last = list(messages_of(samples[0]))[-1]
        memory.conversations.append(evolve(last, id="", content="One more thing: the kiln is cold.", ts=last.ts))
        timed("one more", memory)
        after = dump(memory)
        timed("reindex", memory, reindex=True)
        print(f"          equal: {dump(memory) == after}; differs from before the message: {after != before}")
    for path in config.data_dir.glob("klaw.db*"):
        path.unlink()
    with Memory.open(config) as memory:
        timed("anew", memory)
        print(f"          equal: {dump(memory) == after}")


def main() -> None:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--words", action="store_true", help="without embedding")
    parser.add_argument("--keep", type=Path, help="keep everything in this directory")
    arguments = parser.parse_args()
    samples = json.loads(arguments.data.read_text("utf-8"))
    words = {"memory": {"embedding": {"type": "none"}}} if arguments.words else None
    with tempfile.TemporaryDirectory() as work:
        run(samples, load_config(data_dir=arguments.keep or Path(work, "data"), overrides=words))


if __name__ == "__main__":
    main()
