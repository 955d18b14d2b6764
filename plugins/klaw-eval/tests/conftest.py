"""Tiny test sets of each form, written by hand, and ``klaw eval`` run on them without a model."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from klaw_core.cli.program import cli

Klaw = Callable[..., Result]
Write = Callable[[str, Any], Path]

WORDS_ONLY = '[memory.embedding]\ntype = "none"\n'

KILN = "The kiln is fired to twelve hundred degrees before the glaze goes on."
BOAT = "The boat lies in the harbour of Split until the storm is over."
BREAD = "Rye bread wants sour dough, a long night and a hot stone."


@pytest.fixture
def klaw(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Klaw:
    """Run ``klaw`` as a terminal does, in an empty directory, words alone."""
    (tmp_path / "words.toml").write_text(WORDS_ONLY, "utf-8")
    monkeypatch.setenv("KLAW_CONFIG", str(tmp_path / "words.toml"))
    monkeypatch.setenv("KLAW_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: CliRunner().invoke(cli, [str(argument) for argument in arguments])


@pytest.fixture
def write_json(tmp_path: Path) -> Write:
    """Write a file of JSON and return its path."""

    def write(name: str, value: Any) -> Path:
        (tmp_path / name).write_text(json.dumps(value), "utf-8")
        return tmp_path / name

    return write


@pytest.fixture
def write_lines(tmp_path: Path) -> Write:
    """Write a file with a line of JSON for each record and return its path."""

    def write(name: str, records: Any) -> Path:
        (tmp_path / name).write_text("".join(json.dumps(record) + "\n" for record in records), "utf-8")
        return tmp_path / name

    return write


@pytest.fixture
def squad(write_json: Write) -> Path:
    paragraphs = [
        {"context": KILN, "qas": [{"id": "q1", "question": "How hot is the kiln?", "answers": []}]},
        {"context": BOAT, "qas": [{"id": "q2", "question": "Where does the boat lie?", "answers": []}]},
        {"context": BREAD, "qas": [{"id": "q3", "question": "What does rye bread want?", "answers": []}]},
    ]
    return write_json("crafts.json", {"data": [{"title": "Crafts", "paragraphs": paragraphs}]})


@pytest.fixture
def beir(tmp_path: Path, write_lines: Write) -> Path:
    folder = tmp_path / "trades"
    (folder / "qrels").mkdir(parents=True)
    documents = [("kiln", "Pottery", KILN), ("boat", "", BOAT), ("bread", None, BREAD)]
    write_lines("trades/corpus.jsonl", ({"_id": name, "title": title, "text": text} for name, title, text in documents))
    asked = [("1", "kiln and glaze"), ("2", "storm in the harbour"), ("3", "unjudged"), ("4", "sour dough")]
    write_lines("trades/queries.jsonl", ({"_id": name, "text": text, "metadata": {}} for name, text in asked))
    head = "query-id\tcorpus-id\tscore\n"
    (folder / "qrels" / "test.tsv").write_text(f"{head}1\tkiln\t2\n1\tbread\t0\n2\tboat\t1\n4\tkiln\t0\n", "utf-8")
    (folder / "qrels" / "dev.tsv").write_text(f"{head}4\tbread\t1\n", "utf-8")
    return folder


@pytest.fixture
def smart(tmp_path: Path) -> Path:
    """Like Cranfield: the questions' numbers are not the ones that are judged, and a text repeats its title."""
    folder = tmp_path / "cran"
    folder.mkdir()
    documents = f".I 1\n.T\nthe kiln\n.A\nsmith,j.\n.W\nthe kiln\n{KILN}\n.I 2\n.T\nthe boat\n.W\n{BOAT}\n"
    (folder / "cran.all").write_text(documents, "latin-1", newline="\r\n")
    (folder / "cran.qry").write_text(".I 001\n.W\nhow hot is\nthe kiln\n.I 004\n.W\nwhich harbour\n", "latin-1")
    (folder / "rel.txt").write_text("1 0 1 1\n2 0 2 1\n2 0 1 -1\n\n", "latin-1")
    (folder / "readme").write_text("A collection of two documents.\n", "latin-1")
    return folder


@pytest.fixture
def locomo(write_json: Write) -> Path:
    """Two conversations: two sessions on one day, an evidence that holds two ids, and one that holds none."""

    def said(session: int, *texts: str) -> list[dict[str, str]]:
        return [
            {"speaker": ("Ann", "Bob")[number % 2], "dia_id": f"D{session}:{number}", "text": text}
            for number, text in enumerate(texts, start=1)
        ]

    first = {
        "speaker_a": "Bob",
        "speaker_b": "Ann",
        "session_1": said(1, "The kiln broke on Monday.", "Oh no, not the kiln!"),
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_2": said(2, "I sold the boat.", "To whom did the boat go?"),
        "session_2_date_time": "6:05 pm on 8 May, 2023",
        "session_3_date_time": "6:05 pm on 9 May, 2023",
    }
    second = {
        "speaker_a": "Bob",
        "speaker_b": "Ann",
        "session_1": said(1, "I bake rye bread now.", "Rye bread is the best bread."),
        "session_1_date_time": "9:00 am on 1 June, 2023",
    }
    asked = [
        {"question": "What broke on Monday?", "evidence": ["D1:1; D1:2"], "category": 4, "answer": "the kiln"},
        {"question": "When was the boat sold?", "evidence": ["D:2:01"], "category": 2, "answer": 2023},
        {"question": "What did nobody say?", "evidence": [], "category": 5},
        {"question": "Did Bob buy a boat?", "evidence": ["D2:1"], "category": 5},
    ]
    bread = [{"question": "Who bakes bread?", "evidence": ["D1:1"], "category": 4}]
    samples = [
        {"sample_id": "conv-1", "conversation": first, "qa": asked},
        {"sample_id": "conv-2", "conversation": second, "qa": bread},
    ]
    return write_json("talks.json", samples)
