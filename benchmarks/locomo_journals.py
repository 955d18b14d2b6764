"""Real conversations as journals: convert LoCoMo, append, index, search, reindex, and rebuild klaw.db from the files.

    python benchmarks/locomo_journals.py PATH/locomo.json [--words] [--questions N] [--keep DIR]

Each conversation becomes a chat, each turn a message on the day that LoCoMo gives its session, with the turn's id and
with its speaker in ``meta.name``; a session break stands before each session. A question is asked within its own
chat; a passage counts for the session of its lines, sessions are deduplicated before the cut at k, and questions
without a readable gold id are left out and counted. any@k: one gold session is among the first k; frac@k: the part of
them that is. MRR is of the first. The database is then rebuilt beside itself, and deleted and made again: both dumps,
without keys, must equal the one before.

LoCoMo (Maharana et al., ACL 2024) is CC BY-NC 4.0: for measuring, and no part of this repository.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from attrs import evolve

from klaw_core import Filters, Memory, SearchResult
from klaw_core.config import Config, load_config
from klaw_core.conversations import SESSION_BREAK, Chat, Journal, JournalEntry, Message
from klaw_core.testing.messages import message_dump

_GOLD = re.compile(r"D:?(\d+):(\d+)")
_CUTS = (5, 10)
_DEPTH = 50  # passages asked for, so that ten distinct sessions are among them


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


def sessions_by_line(journal: Journal, chat: Chat) -> dict[tuple[str, int], str]:
    """Return the session of each line of each of a chat's files."""
    found = {}
    for file in journal.files(chat).files:
        for number, line in enumerate(journal.read_file(file), start=1):
            if isinstance(line, JournalEntry) and (match := _GOLD.match(line.message.id)):
                found[f"conversations/{chat.name}/{file.path.name}", number] = f"D{match[1]}"
    return found


def sessions_of(results: Iterator[SearchResult], lines: Mapping[tuple[str, int], str]) -> list[str]:
    """Return the sessions of results, each at its first appearance."""
    found: dict[str, None] = {}
    for result in results:
        for number in range(result.start_line, result.end_line + 1):
            if session := lines.get((result.path, number)):
                found.setdefault(session)
    return list(found)


def ask(memory: Memory, samples: list[Mapping[str, Any]], most: int) -> None:
    """Ask every question within its chat and print how often the right session was found."""
    names = [*(f"{measure}@{k}" for k in _CUTS for measure in ("any", "frac")), "MRR"]
    scores: dict[str, list[float]] = {name: [] for name in names}
    seconds, left_out = [], 0
    for sample in samples:
        chat = Chat("locomo", sample["sample_id"])
        lines = sessions_by_line(memory.conversations.journal, chat)
        for item in sample["qa"][:most]:
            gold = {f"D{match[0]}" for match in _GOLD.findall(" ".join(item.get("evidence", ())))}
            if not gold:
                left_out += 1
                continue
            begun = time.perf_counter()
            results = memory.search(item["question"], _DEPTH, filters=Filters(chat_id=chat.name))
            seconds.append(time.perf_counter() - begun)
            ranked = sessions_of(iter(results), lines)
            for k in _CUTS:
                hits = len(gold & set(ranked[:k]))
                scores[f"any@{k}"].append(float(hits > 0))
                scores[f"frac@{k}"].append(hits / len(gold))
            first = next((rank for rank, session in enumerate(ranked, start=1) if session in gold), None)
            scores["MRR"].append(0.0 if first is None else 1 / first)
    figures = ", ".join(f"{name} {statistics.mean(values):.3f}" for name, values in scores.items())
    print(f"search    {len(seconds):,} questions ({left_out} left out), sessions: {figures}")
    print(f"          median {1000 * statistics.median(seconds):.1f} ms a question")


def dump(memory: Memory) -> object:
    """Return everything that is derived, without keys."""
    with memory._parts.store.read() as snapshot:  # noqa: SLF001  # a dump is not public
        stored = snapshot.chunks("memory", snapshot.keys("memory").tolist())
        chunks = sorted((evolve(item, key=0) for item in stored), key=lambda item: (item.path, item.chunk.start))
        indexes = {
            name: len(index.keys(snapshot.resource, "memory"))
            for name, index in memory._parts.indexes()  # noqa: SLF001
        }
        return chunks, dict(snapshot.manifest("memory", "conversations")), indexes, message_dump(snapshot.messages)


def timed(name: str, memory: Memory, *, reindex: bool = False) -> None:
    """Index or reindex, and print what was done."""
    report = memory.reindex() if reindex else memory.index()
    documents = f"{report.added} added, {report.changed} changed, {report.unchanged} unchanged"
    chunks = f"{report.chunks:,} chunks, {report.embedded:,} embedded, {report.cached:,} cached"
    print(f"{name:<9} {report.seconds:.1f} s: {documents}, {chunks}, {len(report.skipped)} skipped")


def run(samples: list[Mapping[str, Any]], config: Config, most: int) -> None:
    """Do everything in turn and print it."""
    with Memory.open(config) as memory:
        begun = time.perf_counter()
        for sample in samples:
            memory.conversations.append_many(messages_of(sample))
        with memory._parts.store.read() as snapshot:  # noqa: SLF001  # a count is not public
            count, chats = snapshot.messages.count(), snapshot.messages.chats()
        print(f"append    {time.perf_counter() - begun:.1f} s: {count:,} rows of {len(chats)} chats")
        timed("index", memory)
        before = dump(memory)
        ask(memory, samples, most)
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
    parser.add_argument("--questions", type=int, default=10_000, help="of each conversation")
    parser.add_argument("--keep", type=Path, help="keep everything in this directory")
    arguments = parser.parse_args()
    samples = json.loads(arguments.data.read_text("utf-8"))
    words = {"memory": {"embedding": {"type": "none"}}} if arguments.words else None
    with tempfile.TemporaryDirectory() as work:
        run(samples, load_config(data_dir=arguments.keep or Path(work, "data"), overrides=words), arguments.questions)


if __name__ == "__main__":
    main()
