"""A plugin that raises, exits, or returns nonsense, in every method of every kind: contained, and named."""

import os
import signal
import subprocess
import sys
import time
from importlib.metadata import EntryPoint, entry_points
from itertools import product
from pathlib import Path

import pytest

from klaw_core import KlawError, Memory
from klaw_core.config.load import load_config
from klaw_core.plugins.discover import discover

FAKES = Path(__file__).parents[1] / "packaging" / "fakes"
# The campaign tries them all, and the tests one of eight in turns.
ACTS = ("raise", "exit", "objects", "mute", "none", "text", "number")
POINTS = {
    "embedding": ("factory", "space", "embed_documents", "embed_query", "count_tokens"),
    "chunking": ("factory", "split", "heading", "span", "start"),
    "retrieval": ("factory", "joins", "needs_vectors", "search", "key", "score", "hit"),
    "index": ("factory", "joins", "migrations", "prepare", "reset", "add", "remove", "keys", "search"),
    "fusion": ("factory", "depth", "fuse"),
    "reranking": ("factory", "needs_vectors", "rerank"),
    "sources": ("factory", "origin", "scan", "entry", "read", "document text", "surrogate", "no zone"),
}
# What is never asked for here, or, as a tokenizer that fails, is done without.
UNHEARD = {"surrogate", "no zone", "reset", "remove", "count_tokens"}
WORDS = {"embedding": {"type": "none"}, "retrieval": [{"type": "fts5"}]}


@pytest.fixture
def notes(tmp_path):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.md").write_text("# Harbour\n\nThe harbour and its gulls.\n")
    return tmp_path / "notes"


@pytest.fixture(scope="module")
def registry():
    sys.path.append(str(FAKES / "klaw-saboteur"))
    yield discover(points=[*entry_points(group="klaw"), EntryPoint("saboteur", "klaw_saboteur", "klaw")])
    sys.path.remove(str(FAKES / "klaw-saboteur"))


def tables(kind, point, act):
    """Return a configuration with the saboteur in one place, beside parts that work."""
    chosen = {"type": "saboteur", "point": point, "act": act}
    if kind == "index":
        return {**WORDS, "retrieval": [{"type": "fts5"}, {**chosen, "type": "saboteur-index"}]}
    if kind == "retrieval":
        return {**WORDS, "retrieval": [{"type": "fts5"}, chosen]}
    if kind == "embedding":
        return {"embedding": chosen, "retrieval": [{"type": "sqlite-vec"}, {"type": "fts5"}]}
    return {**WORDS, kind: [chosen] if kind in {"reranking", "sources"} else chosen}


def live(config, registry, notes):
    """Do everything with a memory; return what was raised or noticed, and the paths that words found."""
    said, found = [], []

    def attempt(work):
        try:
            return work()
        except KlawError as error:
            said.append(str(error))
            return None

    memory = attempt(lambda: Memory.open(config, registry=registry))
    if memory is None:
        return said, found
    with memory:
        for work in (lambda: memory.index(notes), memory.index, memory.embed):
            report = attempt(work)
            said += [*report.notices, *(skipped.reason for skipped in report.skipped)] if report else []
        passage = attempt(lambda: memory.save("gulls at the harbour"))
        said += [passage.notice] if passage else []
        for mode in ("hybrid", "fts", "vector"):
            answer = attempt(lambda mode=mode: memory.search("harbour", mode=mode))
            said += answer.notices if answer else []
            found += [result.path for result in answer] if answer else []
        attempt(memory.reindex)
        said += [finding.what for finding in memory.doctor().findings]
        said += attempt(memory.status).problems
        if passage:
            attempt(lambda: memory.forget(passage.path))
    return said, found


@pytest.mark.parametrize("kind", POINTS)
def test_whatever_it_does_wherever_it_does_it(tmp_path, notes, registry, cases, kind):
    every = cases.every(8)
    tries = [*product(POINTS[kind], ACTS)][len(kind) % every :: every]
    assert tries
    for number, (point, act) in enumerate(tries):
        cases.add(1)
        config = load_config(
            data_dir=tmp_path / f"data{number}",
            environment={"KLAW_CONFIG": os.devnull},
            overrides={"memory": tables(kind, point, act)},
        )
        said, found = live(config, registry, notes)
        where = (kind, point, act, said)
        assert all("\n" not in line.strip() and len(line) < 2000 for line in said), where
        opened = (
            bool(found) or kind in {"chunking", "fusion", "sources"} or point in {"factory", "joins", "needs_vectors"}
        )
        assert opened or kind == "index", where
        if act in {"raise", "exit"} and point not in UNHEARD:
            assert any("saboteur" in line.lower() for line in said), where


def test_honest_it_is_no_trouble_at_all(tmp_path, notes, registry):
    for kind in POINTS:
        config = load_config(
            data_dir=tmp_path / kind,
            environment={"KLAW_CONFIG": os.devnull},
            overrides={"memory": tables(kind, "nowhere", "raise")},
        )
        said, found = live(config, registry, notes)
        assert "notes/a.md" in found, (kind, said)
        assert not any("Error" in line for line in said), (kind, said)


@pytest.mark.parametrize(
    "body",
    [
        "raise KeyboardInterrupt",
        "raise SystemExit(0)",
        "class P(BaseException): pass\nraise P('a panic')",
        "import nothing_of_that_name",
        "1 +",
        "\0",
    ],
)
def test_a_module_that_breaks_in_any_way_is_shown_with_its_reason(tmp_path, monkeypatch, body):
    (tmp_path / "klaw_breaks.py").write_text(body)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "klaw_breaks", raising=False)
    point = EntryPoint("breaks", "klaw_breaks", "klaw")
    if "KeyboardInterrupt" in body:
        with pytest.raises(KeyboardInterrupt) as caught:
            discover(points=[point])
        assert "KLAW_DISABLE_PLUGINS=klaw_breaks" in caught.value.__notes__[0]
    else:
        (plugin,) = discover(points=[point]).plugins
        assert plugin.problem
        assert "\n" not in plugin.problem


def test_one_that_hangs_at_its_import_is_named_when_it_is_interrupted_and_can_be_left_out(tmp_path):
    """Plugins are loaded in this process: nothing can stop one that hangs, but it can be named and switched off."""
    (tmp_path / "klaw_hangs.py").write_text("import time\nprint('loading', flush=True)\ntime.sleep(600)\n")
    info = tmp_path / "klaw_hangs-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: klaw-hangs\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[klaw]\nhangs = klaw_hangs\n")
    environment = {
        **os.environ,
        "PYTHONPATH": str(tmp_path),
        "HOME": str(tmp_path),
        "KLAW_DATA_DIR": str(tmp_path / "d"),
    }
    command = [sys.executable, "-m", "klaw_core", "plugins"]
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr.readline() == "loading\n"
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        said = process.stderr.read()
    assert process.returncode == 130
    assert "while loading klaw-hangs" in said
    assert "KLAW_DISABLE_PLUGINS=klaw-hangs" in said
    without = subprocess.run(
        command,
        env={**environment, "KLAW_DISABLE_PLUGINS": "klaw-hangs"},
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    assert "klaw-hangs" in without.stdout
