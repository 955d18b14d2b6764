"""Klaw in a process that is like one on Windows: without the modules, functions and permissions of POSIX."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="it looks at open files as Linux shows them")
ROOT = Path(__file__).parents[2]
BEGIN = "import sys\nsys.path.insert(0, {plugins!r})\nimport like_windows\n"
RUN = """
from klaw_core.cli.program import cli
for arguments in {commands!r}:
    print("$", *arguments, flush=True)
    cli.main(arguments, prog_name="klaw", standalone_mode=False)
"""
CHATS = """
from datetime import UTC, datetime
from klaw_core import Chat, Memory, Message
talk = Chat("cli", "talk")
with Memory.open() as memory:
    chats = memory.conversations
    for n in range(4):
        said = Message("user", f"The lantern {n}.", datetime(2026, 1, 1, n, tzinfo=UTC), f"id{n}", meta=talk.meta)
        chats.append(said)
    assert chats.forget(talk, ["id1"]) == 1
    assert [entry.id for entry in chats.read(talk)] == ["id0", "id2", "id3"]
    memory.core.update("user", "habit", "rows at dawn")
    memory.core.delete("user", "habit")
    saved = memory.save("The boat is in Split.")
    memory.forget(saved.path)
    memory.index()
    memory.reindex()
    assert memory.search("lantern", mode="fts")
    assert memory.doctor().healthy
"""
MODELS = """
from pathlib import Path
from klaw_models.cache import ModelCache
import klaw_models.cache
klaw_models.cache.read_manifest = lambda place: None
def fill(place):
    (place / "model.json").write_text("{}")
    (place / "model.onnx").write_bytes(b"a graph")
cache = ModelCache(Path.cwd())
cache.put("mine", fill)
cache.put("mine", fill)
assert cache.names() == ["mine"]
cache.remove("mine")
assert cache.names() == []
assert [path.name for path in cache.directory.iterdir()] == [".lock"]
"""
LOCKS = """
import os
from pathlib import Path
from klaw_core import StoreLockedError, locked, try_lock
from klaw_core.files.atomic import open_regular, write_atomically
from klaw_core.files.held import Descriptor
from klaw_journals.rewriting import keep_ranges, write_new
here = Path.cwd()
with locked(here):
    try:
        with locked(here, limit_seconds=0):
            raise AssertionError("it was locked twice")
    except StoreLockedError as error:
        assert "another process" in str(error)
with locked(here, limit_seconds=0):
    pass
file = here / "file"
write_new(file, b"one two")
with Descriptor(file, os.O_RDONLY) as one, Descriptor(file, os.O_RDWR) as other:
    assert try_lock(one, "shared") and try_lock(other, "shared")
    assert not try_lock(one, "exclusive")
    assert try_lock(other, "none") and try_lock(one, "exclusive") and not try_lock(other, "shared")
with open_regular(file) as opened:  # it is replaced nevertheless
    keep_ranges(file, lambda descriptor: [(0, 3)])
    assert opened.read() == b"one two"
assert file.read_bytes() == b"one"
with file.open("rb"):
    try:
        write_atomically(file, "three")
        raise AssertionError("another program's open file was replaced")
    except Exception as error:
        assert "cannot be written" in str(error), error
assert file.read_bytes() == b"one"
assert [path.name for path in here.iterdir() if path.name.startswith(".klaw-f")] == []
"""


def like_windows(tmp_path: Path, program: str) -> str:
    """Return what a program prints in a process like one on Windows."""
    (tmp_path / "klaw.toml").touch()
    own = {"KLAW_DATA_DIR": str(tmp_path / "data"), "KLAW_CONFIG": str(tmp_path / "klaw.toml"), "KLAW_OFFLINE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", BEGIN.format(plugins=str(ROOT / "tests" / "plugins")) + program],
        cwd=tmp_path,
        env={**os.environ, **own, "XDG_CACHE_HOME": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.cold_start
def test_every_step_of_a_day_works(tmp_path):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "bees.md").write_text("# Bees\n\nHives are opened in April.\n")
    (tmp_path / "notes" / "tax.md").write_text("# Tax\n\nThe form is due in May.\n")
    commands = [
        ["index", "notes"],
        ["search", "--mode", "fts", "hives"],
        ["save", "The boat is in Split."],
        ["search", "--mode", "fts", "boat"],
        ["forget", "--yes", "notes/tax.md"],
        ["search", "--mode", "fts", "form"],
        ["doctor"],
    ]
    shown = like_windows(tmp_path, RUN.format(commands=commands))
    parts = dict(zip([" ".join(each) for each in commands], shown.split("$ ")[1:], strict=True))
    assert "notes/bees.md" in parts["search --mode fts hives"]
    assert "saved/" in parts["search --mode fts boat"]
    assert "tax" not in parts["search --mode fts form"].partition("\n")[2]
    assert "no problems" in parts["doctor"]


@pytest.mark.needs("klaw-conversations")
@pytest.mark.cold_start
def test_chats_are_kept_changed_and_rebuilt(tmp_path):
    like_windows(tmp_path, CHATS)


@pytest.mark.cold_start
def test_locks_and_replacements_are_those_of_windows(tmp_path):
    like_windows(tmp_path, LOCKS + MODELS)
