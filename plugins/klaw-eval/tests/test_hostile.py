"""Whatever a file holds, reading it ends in a test set or in a DatasetError: never in another exception."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from klaw_eval.datasets import read_dataset, read_questions, recognise
from klaw_eval.errors import DatasetError
from klaw_eval.metrics import METRICS, score
from klaw_eval.notes import as_note
from klaw_eval.values import Page

KEYS = (
    *("data", "paragraphs", "context", "qas", "question", "id", "title", "sample_id", "conversation", "qa", "evidence"),
    *("session_1", "session_1_date_time", "speaker", "dia_id", "text", "_id", "path", "category", "session_²"),
)
TEXTS = st.sampled_from(("D1:1", "D:" + "9" * 5_000 + ":1", "1:56 pm on 8 May, 2023", "why", "", " ")) | st.text(
    max_size=8
)
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | TEXTS
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner), max_leaves=24
)
PLAIN = st.sampled_from(
    (".I 1", ".T", ".W", "<DOC>", "</DOC>", "<DOCNO>a</DOCNO>", "<top>", "</top>", "<num> 1", "1 0 a 1")
)


def read_or_reject(read, path):
    """Read a test set, which then has documents and questions, or is refused with a reason; return its questions."""
    try:
        dataset = read(path)
    except DatasetError as error:
        assert error.message.strip()  # noqa: PT017  # any other exception is a failure
        return []
    asked = list(dataset.questions())
    assert asked
    assert all(question.gold for question in asked)
    assert dataset.own or all(corpus.pages or corpus.talks for corpus in dataset.corpora)
    return asked


@settings(deadline=None)
@given(value=VALUES)
@pytest.mark.parametrize("form", ["locomo", "squad", "questions"])
def test_any_json_is_read_or_rejected(form, value):
    with TemporaryDirectory() as directory:
        path = Path(directory, "set.json")
        path.write_text(json.dumps(value), "utf-8")
        read_or_reject(read_questions if form == "questions" else partial(read_dataset, form=form), path)


SAID = st.fixed_dictionaries({"speaker": TEXTS, "text": TEXTS, "dia_id": TEXTS})
SESSIONS = st.dictionaries(
    st.sampled_from(("session_1", "session_01", "session_\u0663", "session_" + "1" * 5_000)), st.lists(SAID, max_size=2)
)
ASKED = st.fixed_dictionaries(
    {"question": TEXTS, "evidence": st.lists(TEXTS, max_size=2), "category": st.integers(0, 6)}
)


@settings(deadline=None)
@given(sessions=SESSIONS, asked=st.lists(ASKED, max_size=3), date=TEXTS, name=TEXTS)
def test_a_conversation_of_the_right_form_is_read_or_rejected(sessions, asked, date, name):
    conversation = {**sessions, **{f"{key}_date_time": date for key in sessions}}
    with TemporaryDirectory() as directory:
        path = Path(directory, "set.json")
        path.write_text(json.dumps([{"sample_id": name, "conversation": conversation, "qa": asked}]), "utf-8")
        for unit in ("session", "turn"):
            asked_of = read_or_reject(partial(read_dataset, form="locomo", unit=unit), path)
            assert len(asked_of) <= len(asked)


@settings(deadline=None)
@given(content=st.binary(max_size=64))
def test_any_bytes_are_read_or_rejected(content):
    with TemporaryDirectory() as directory:
        path = Path(directory, "set.json")
        path.write_bytes(content)
        read_or_reject(lambda path: read_dataset(path, recognise(path)), path)


@settings(deadline=None)
@given(files=st.lists(st.lists(PLAIN | st.text(max_size=6), max_size=8), max_size=4))
def test_any_folder_is_read_or_rejected(files):
    with TemporaryDirectory() as directory:
        for number, rows in enumerate(files):
            Path(directory, ("a", "b.qry", "c", "d")[number]).write_text("\n".join(rows), "utf-8", "surrogatepass")
        read_or_reject(lambda path: read_dataset(path, recognise(path)), Path(directory))


@given(title=st.text(), text=st.text())
def test_any_page_becomes_a_valid_note(title, text):
    note = as_note(Page("1", text, title))
    assert note.encode("utf-8").decode() == note
    assert "\0" not in note
    assert note.split() == ["#"] * note.startswith("# ") + note.removeprefix("# ").split()


@given(
    ranked=st.lists(st.integers(0, 30), unique=True, max_size=20),
    gold=st.dictionaries(st.integers(0, 30), st.floats(0.1, 9), min_size=1, max_size=20),
)
def test_every_metric_is_between_zero_and_the_best_order(ranked, gold):
    names = [str(name) for name in ranked]
    wanted = {str(name): grade for name, grade in gold.items()}
    best = score(sorted(wanted, key=wanted.__getitem__, reverse=True), wanted)
    found = score(names, wanted)

    assert all(0 <= value <= 1 + 1e-12 for value in found)
    assert best[METRICS.index("ndcg@10")] == pytest.approx(1)
    assert found[METRICS.index("ndcg@10")] <= best[METRICS.index("ndcg@10")] + 1e-12
