"""Everything that Klaw makes is its owner's alone, also under umask 000, and also while it is there for a moment."""

import hashlib
import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("private.py")
# What must have been seen for the test to mean anything: the database and its companions, temporary files by their
# beginnings, and everything that a person owns.
EXPECTED = {
    "klaw.db",
    "klaw.db-wal",
    "klaw.db-shm",
    "saved.jsonl",
    "workspaces.json",
    "core_memory.json",
    "config.toml",
    "export.jsonl",
    "export2.jsonl",
    "summaries.jsonl",
    "2026-02-24.jsonl",
    "model.json",
}
BEGINNINGS = (".klaw-workspaces.json-", ".klaw-core_memory.json-", ".klaw-config.toml-", "core_memory.json.broken-")


def write_model(directory: Path) -> None:
    directory.mkdir()
    files = {}
    for name in ("model.onnx", "tokenizer.json"):
        (directory / name).write_bytes(name.encode())
        files[name] = {"sha256": hashlib.sha256(name.encode()).hexdigest(), "size": len(name)}
    spec = find_spec("klaw_model_minilm")
    assert spec is not None
    installed = json.loads((Path(str(spec.origin)).parent / "model.json").read_text("utf-8"))
    del installed["weight_only"]  # a file that this model does not have
    content = {**installed, "name": "mine", "files": files}
    (directory / "model.json").write_text(json.dumps(content))


@pytest.mark.needs("klaw-conversations")
@pytest.mark.cold_start  # what an import writes or opens counts too
def test_nothing_is_ever_anybody_elses(tmp_path):
    home = tmp_path.resolve()
    (home / "notes").mkdir()
    (home / "notes" / "a.md").write_text("# Harbour\n\nThe harbour and its gulls.\n")
    write_model(home / "model")
    own = home / "own"
    places = {f"XDG_{name}_HOME": str(own / "xdg" / name.lower()) for name in ("CONFIG", "DATA", "CACHE")}
    (own / "tmp").mkdir(parents=True)
    (own / "tmp").chmod(0o700)
    own.chmod(0o700)
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(home)],
        env={**os.environ, **places, "HOME": str(home), "TMPDIR": str(own / "tmp")},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout.splitlines()[-1])
    seen = set(answer["seen"])
    assert EXPECTED - seen == set()
    for beginning in BEGINNINGS:
        assert any(name.startswith(beginning) for name in seen), (beginning, sorted(seen))
    assert any("rebuil" in name or "new" in name for name in seen), sorted(seen)
    assert answer["found"] == {}
