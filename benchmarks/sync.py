"""One memory on two machines: many records from one to the other, a change, and a run that finds nothing to do.

    python benchmarks/sync.py [--records 100000] [--idle 200] [--directory DIR]

Two data directories synchronise through a folder on the same disk, without an index: what is measured is reading and
writing journals, ``sync/state.db`` and segments. A tenth of the records are messages of ten chats, a tenth documents,
and the others saved memories of 40 random words. ``idle`` is one of many runs inside of a running process, as in `klaw
serve` and `klaw watch`. Figures are those of one run.
"""

from __future__ import annotations

import argparse
import random
import resource
import tempfile
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from measuring import Cost, figure, table, timed

from klaw_journals import FileJournals, format_ts
from klaw_sync import Folder, MemoryKey, Sync

_START = datetime(2026, 1, 1, tzinfo=UTC)
_CHATS = 10
_BATCH = 20_000


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--idle", type=int, default=200, help="runs that find nothing to do")
    parser.add_argument("--directory", type=Path, help="where the data directories are made; a temporary one")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(dir=given.directory) as place:
        rows = list(_measured(Path(place), given.records, given.idle))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    print(table(["", "wall s", "CPU s"], rows))
    print(f"{given.records:,} records; at most {memory:,} MiB of memory")


def _measured(root: Path, records: int, idle: int) -> Iterator[list[str]]:
    key, folder = MemoryKey.new(), Folder(root / "folder")
    one, other = (_machine(root / name, key) for name in ("one", "other"))
    fill(one.root, records)
    yield _row("the first sends all records", timed(lambda: _run(one, folder)))
    yield _row("the other receives them", timed(lambda: _run(other, folder)))
    FileJournals(other.root).records("documents").append([{"id": "memory/new", "text": "a text"}])
    yield _row("the other sends one more", timed(lambda: _run(other, folder)))
    yield _row("the first receives it", timed(lambda: _run(one, folder)))
    FileJournals(one.root).records("documents").forget(["memory/new"])
    yield _row("the first forgets it", timed(lambda: _run(one, folder)))
    yield _row("the other forgets it", timed(lambda: _run(other, folder)))
    _run(one, folder)
    total = timed(lambda: [_run(one, folder) for _ in range(idle)])
    yield _row("idle, one of many runs", Cost(total.cpu / idle, total.wall / idle))


def _machine(root: Path, key: MemoryKey) -> Sync:
    (root / "sync").mkdir(parents=True)
    key.save(root / "sync" / "key")
    return Sync(root, host=root.name)


def _run(machine: Sync, folder: Folder) -> None:
    report = machine.run([folder])
    if report.problems or report.waiting:
        raise SystemExit("\n".join((*report.problems, *report.waiting)))


def fill(root: Path, records: int) -> None:
    """Write records of three kinds into the journals of a data directory."""
    chance, journals = random.Random(1), FileJournals(root)
    words = [f"{chance.getrandbits(40):x}" for _ in range(20_000)]
    saved, documents, said = [], [], [list[dict[str, Any]]() for _ in range(_CHATS)]
    for number in range(records):
        text, moment = " ".join(chance.choices(words, k=40)), format_ts(_START + timedelta(seconds=number))
        if number % 10 == 0:
            said[number // 10 % _CHATS].append({"id": f"m{number}", "ts": moment, "role": "user", "content": text})
        elif number % 10 == 1:
            documents.append({"id": f"memory/{number}", "collection": "memory", "document": f"{number}", "text": text})
        else:
            record = {"id": f"saved/2026-01-01/{number:012x}", "created_at": moment, "source": "test", "text": text}
            saved.append({**record, "chat_id": None})
    for name, rows in (("saved", saved), ("documents", documents)):
        for start in range(0, len(rows), _BATCH):
            journals.records(name).append(rows[start : start + _BATCH])
    for chat, messages in enumerate(said):
        if messages:
            journals.logs("conversations").log(f"test_{chat}", "2026-01-01").append(*messages)


def _row(name: str, cost: Cost) -> list[str]:
    return [name, figure(cost.wall), figure(cost.cpu)]


if __name__ == "__main__":
    main()
