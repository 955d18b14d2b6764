"""More than 5,000 chunks: what runs long is killed in the middle, again and again; nothing acknowledged is lost.

Only a campaign: ``nox -s campaigns``. With so many chunks, words are packed and vectors are quantized by themselves.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from zlib import crc32

import apsw
import numpy as np
import pytest
from attrs import frozen

from klaw_core import LiveComponent, Memory, VectorSpace, load_config

NOTES, PARTS = 700, 8
#: How often each operation is killed.
KILLS = 5
WATCHED = 10
ENVIRONMENT = {"KLAW_CONFIG": os.devnull}


class Embedder:
    """Hashes words into 16 dimensions."""

    max_tokens = 1_000_000
    space = VectorSpace("hashing", "1", 16)

    def embed_documents(self, texts, /):
        return np.stack([self.embed_query(text) for text in texts])

    def embed_query(self, text, /):
        vector = np.zeros(16, np.float32)
        for word in text.lower().split() or [""]:
            vector[crc32(word.encode()) % 16] += 1
        return vector / np.linalg.norm(vector)

    def count_tokens(self, texts, /):
        return [len(text.split()) for text in texts]


@frozen
class Home:
    """A directory of notes, and a memory."""

    root: Path

    @property
    def notes(self) -> Path:
        return self.root / "notes"

    @property
    def data(self) -> Path:
        return self.root / "data"

    def open(self) -> Memory:
        tables = {"embedding": {"type": "words"}, "chunking": {"max_tokens": 60, "overlap_tokens": 0}}
        config = load_config(data_dir=self.data, environment=ENVIRONMENT, overrides={"memory": tables})
        return Memory.open(config, components=[LiveComponent("embedder", "words", Embedder())])

    def write(self, number: int, version: str = "") -> None:
        parts = [
            f"## Part {part}\n\nword{number}x{part}{version} {'the lantern hangs at the pier ' * 8}"
            for part in range(PARTS)
        ]
        (self.notes / f"{number}.md").write_text(f"# Note {number}\n\n" + "\n\n".join(parts) + "\n")

    def copy(self, target: Path) -> Home:
        shutil.copytree(self.data, target / "data")
        (target / "notes").symlink_to(self.notes)
        return Home(target)


@pytest.fixture(scope="module")
def whole(tmp_path_factory, request):
    if not request.config.option.campaigns:
        pytest.skip("a campaign")
    home = Home(tmp_path_factory.mktemp("large"))
    home.notes.mkdir()
    for number in range(NOTES):
        home.write(number)
    in_child(lambda _tell: home.open().index(home.notes))
    assert chunks(home) > 5_000
    return home


@pytest.fixture
def big(whole, tmp_path):
    return whole.copy(tmp_path)


def chunks(home):
    with closing(apsw.Connection(str(home.data / "klaw.db"))) as connection:
        return connection.execute("SELECT COUNT(*) FROM memory_chunks").get


def in_child(work, kill_after=None, chance=None):
    """Do some work in a child, which tells its steps; kill it after so many of them. Return the steps told."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(reading)
            work(lambda *_: os.write(writing, b"."))
            code = 0
        finally:
            os._exit(code)
    os.close(writing)
    steps = 0
    while some := os.read(reading, 1 if kill_after else 4096):
        steps += len(some)
        if kill_after and steps >= kill_after:
            time.sleep(chance.uniform(0, 0.2))
            os.kill(child, signal.SIGKILL)
            kill_after = 0
    os.close(reading)
    _, status = os.waitpid(child, 0)
    assert kill_after == 0 or status == 0, status
    return steps


def each_kill(name, steps, cases):
    """Yield after how many steps to kill, spread over all of them, with dice."""
    for number in range(KILLS):
        cases.add(1)
        chance = random.Random(f"{name} {number}")
        yield max(1, int(steps * (number + chance.random()) / KILLS)), chance


def check_whole(home, *, gone=()):
    """Check that everything is indexed and found but what is gone, and that no file has that."""

    def look(_tell):
        with home.open() as memory:
            assert [finding for finding in memory.doctor().findings if finding.severity == "error"] == []
            for number in random.Random("look").sample(range(NOTES), 25):
                for mode in ("fts", "hybrid"):
                    found = [result.path for result in memory.search(f"word{number}x3", mode=mode, limit=1)]
                    assert (f"notes/{number}.md" in found) == (number not in gone), (number, mode)
            assert len(memory.documents(limit=10_000)) == NOTES - len(gone)

    in_child(look)
    assert chunks(home) == (NOTES - len(gone)) * chunks_each(home)
    held = b"".join(path.read_bytes() for path in home.data.iterdir() if path.name.startswith("klaw.db"))
    assert [number for number in gone if f"word{number}x3".encode() in held] == []


def chunks_each(home):
    with closing(apsw.Connection(str(home.data / "klaw.db"))) as connection:
        counts = connection.execute("SELECT COUNT(*) FROM memory_chunks GROUP BY document_id").fetchall()
    (each,) = {count for (count,) in counts}  # no document is there in part
    return each


def sound(home):
    with closing(apsw.Connection(str(home.data / "klaw.db"))) as connection:
        assert connection.execute("PRAGMA integrity_check").get == "ok"


def test_an_index_run_that_is_killed_goes_on(whole, tmp_path, cases):
    def work(home):
        return lambda tell: home.open().index(home.notes, on_progress=tell)

    first = Home(tmp_path / "first")
    first.root.mkdir()
    first.notes.symlink_to(whole.notes)
    steps = in_child(work(first))
    home = Home(tmp_path / "killed")
    home.root.mkdir()
    home.notes.symlink_to(whole.notes)
    for after, chance in each_kill("index", steps, cases):
        shutil.rmtree(home.data, ignore_errors=True)
        in_child(work(home), after, chance)
        sound(home)
        if chunks(home):
            chunks_each(home)
        in_child(work(home))
        check_whole(home)


def test_a_reindex_that_is_killed_leaves_the_old_index_and_goes_on(big, cases):
    def work(tell):
        big.open().reindex(on_progress=tell)

    for after, chance in each_kill("reindex", in_child(work), cases):
        in_child(work, after, chance)
        sound(big)
        check_whole(big)
    in_child(work)
    check_whole(big)


def test_forgetting_that_is_killed_keeps_what_is_acknowledged(big, cases):
    gone = []
    for after, chance in each_kill("forget", 40, cases):
        names = [number for number in range(NOTES) if number not in gone][:60]

        def work(tell, names=names):
            with big.open() as memory:
                for number in names:
                    memory.forget(f"notes/{number}.md")
                    tell()

        acknowledged = in_child(work, after, chance)
        sound(big)
        held = {path for path in documents(big) if path.startswith("notes/")}
        assert not held & {f"notes/{number}.md" for number in names[:acknowledged]}
        in_child(lambda _tell: big.open().index())
        forgotten = [number for number in names if f"notes/{number}.md" not in documents(big)]
        assert forgotten in (names[:acknowledged], names[: acknowledged + 1])
        gone += forgotten
        check_whole(big, gone=gone)
    assert gone


def documents(home):
    with closing(apsw.Connection(str(home.data / "klaw.db"))) as connection:
        return [path for (path,) in connection.execute("SELECT path FROM documents")]


@pytest.mark.usefixtures("whole")
def test_an_import_that_is_killed_goes_on(tmp_path, cases):
    source = Home(tmp_path / "source")
    source.root.mkdir()
    count = 5_200
    export = tmp_path / "export.jsonl"

    def fill(_tell):
        from klaw_core import NewDocument

        with source.open() as memory:
            memory.add([NewDocument(f"d{number}", f"word{number}x3 the lantern") for number in range(count)])
            memory.export(export)

    in_child(fill)
    home = Home(tmp_path / "target")
    home.root.mkdir()

    def work(tell):
        with home.open() as memory:
            tell()
            memory.import_(export)
            tell()
            memory.index(on_progress=tell)

    steps = in_child(work)
    assert steps > 2
    for after, chance in each_kill("import", steps, cases):
        shutil.rmtree(home.data)
        in_child(work, after, chance)
        sound(home)
        in_child(work)
        assert chunks(home) == count
        assert len(documents(home)) == count

        def look(_tell):
            with home.open() as memory:
                assert [finding for finding in memory.doctor().findings if finding.severity == "error"] == []
                assert memory.search("word4711x3", limit=1)[0].path == "documents/d4711"

        in_child(look)


def test_a_watcher_that_is_killed_while_files_change_misses_nothing(whole, tmp_path, cases):
    home = Home(tmp_path)
    shutil.copytree(whole.notes, home.notes)
    source = f'[[memory.sources]]\ntype = "workspace"\npath = "{home.notes}"\n'
    (tmp_path / "config.toml").write_text(f'[memory.embedding]\ntype = "none"\n{source}')
    environment = {**os.environ, "KLAW_CONFIG": str(tmp_path / "config.toml"), "KLAW_DATA_DIR": str(home.data)}
    command = [sys.executable, "-m", "klaw_core", "watch"]
    latest = dict.fromkeys(range(NOTES), "")
    for number in range(WATCHED):
        cases.add(1)
        chance = random.Random(f"watch {number}")
        with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
            if number:  # the first is killed in its first run
                assert b"watching" in process.stderr.readline()
            for _ in range(30):
                note = chance.randrange(NOTES)
                latest[note] = f"v{number}"
                home.write(note, latest[note])
                time.sleep(chance.uniform(0, 0.1))
            process.kill()
    done = subprocess.run([*command[:3], "index", "--json"], env=environment, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    sound(home)
    with closing(apsw.Connection(str(home.data / "klaw.db"))) as connection:
        rows = connection.execute("SELECT path, content FROM memory_chunks, documents WHERE documents.id = document_id")
        held = {}
        for path, content in rows:
            held[path] = held.get(path, "") + content
    assert len(held) == NOTES
    wrong = [note for note, version in latest.items() if f"word{note}x3{version} " not in held[f"notes/{note}.md"]]
    assert wrong == []
