"""The vectors of questions: computed once, and never waited for without end."""

import gc
import sys
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from traceback import walk_stack

import numpy as np
import pytest

from klaw_core import EmbedderUnavailableError, EmbeddingError, SpaceRecord, VectorSpace, VectorSpaceError
from klaw_core.embedding.query_vectors import LOADING_SECONDS, REMOTE_SECONDS, QueryVectors

SPACE = VectorSpace("slow", "1", 2)
VECTOR = np.array([1, 0], np.float32)
RECORD = SpaceRecord(SPACE, VECTOR)


class Slow:
    """Answers once it is let."""

    space = SPACE

    def __init__(self):
        self.asked = []
        self.entered = threading.Event()
        self.go = threading.Event()

    def embed_query(self, text, /):
        self.asked.append(text)
        self.entered.set()
        assert self.go.wait(300)
        return VECTOR


def threads():
    """Return the frames of the threads that serve questions."""
    outermost = [[frame for frame, _ in walk_stack(frame)][-1] for frame in sys._current_frames().values()]
    return [frame for frame in outermost if frame.f_code is QueryVectors._serve.__code__]


def wait_for_their_end():
    deadline = time.monotonic() + 300
    while threads() and time.monotonic() < deadline:
        time.sleep(0.005)
    assert threads() == [], "no thread outlives its answer for long"


@pytest.fixture
def slow(monkeypatch):
    monkeypatch.setattr("klaw_core.embedding.query_vectors.IDLE_SECONDS", 0.05)
    embedder = Slow()
    yield embedder
    embedder.go.set()
    wait_for_their_end()


def test_a_question_is_embedded_once_per_space(slow):
    slow.go.set()
    questions = QueryVectors()
    for _ in range(3):
        assert questions.embed("where", slow, RECORD, "memory") is VECTOR
    assert slow.asked == ["where"]
    slow.space = VectorSpace("slow", "2", 2)
    questions.embed("where", slow, SpaceRecord(slow.space, VECTOR), "memory")
    assert slow.asked == ["where", "where"]


def test_a_question_is_embedded_again_after_the_weights_changed(slow):
    slow.go.set()
    questions = QueryVectors()
    questions.embed("where", slow, RECORD, "memory")
    questions.embed("where", slow, SpaceRecord(SPACE, VECTOR[::-1]), "memory")
    assert slow.asked == ["where", "where"]


def test_a_hanging_call_is_abandoned_and_its_late_answer_is_cached(slow):
    questions = QueryVectors((0.02, 0.02, 0.02))
    with pytest.raises(EmbedderUnavailableError, match=r"within 0\.02 seconds"):
        questions.embed("where", slow, RECORD, "memory")
    slow.go.set()
    wait_for_their_end()
    assert questions.embed("where", slow, RECORD, "memory") is VECTOR
    assert slow.asked == ["where"]


def test_equal_concurrent_questions_share_one_call(slow):
    questions = QueryVectors()
    with ThreadPoolExecutor(4) as executor:
        waiting = [executor.submit(questions.embed, "where", slow, RECORD, "memory") for _ in range(4)]
        assert slow.entered.wait(300)
        slow.go.set()
        assert all(future.result(300) is VECTOR for future in waiting)
    assert slow.asked == ["where"]


def test_the_number_of_hanging_threads_is_limited(slow):
    questions = QueryVectors((0.01, 0.01, 0.01))
    for number in range(20):
        with pytest.raises(EmbedderUnavailableError):
            questions.embed(f"question {number}", slow, RECORD, "memory")
    assert len(threads()) == 8
    with pytest.raises(EmbedderUnavailableError, match="8 earlier questions"):
        questions.embed("one more", slow, RECORD, "memory")


def test_an_exception_of_the_embedder_is_raised_and_not_cached(slow):
    questions = QueryVectors()
    slow.go.set()
    failing = Slow()
    failing.embed_query = lambda _text: (_ for _ in ()).throw(EmbeddingError("not now"))
    with pytest.raises(EmbeddingError, match="not now"):
        questions.embed("where", failing, RECORD, "memory")
    assert questions.embed("where", slow, RECORD, "memory") is VECTOR


def test_a_vector_of_another_space_is_rejected(slow):
    other = SpaceRecord(VectorSpace("other", "1", 2), VECTOR)
    with pytest.raises(VectorSpaceError, match="other"):
        QueryVectors().embed("where", slow, other, "memory")
    assert slow.asked == []


def test_the_number_of_cached_vectors_is_limited(slow):
    slow.go.set()
    questions = QueryVectors()
    for number in range(300):
        questions.embed(str(number), slow, RECORD, "memory")
    questions.embed("299", slow, RECORD, "memory")
    assert len(slow.asked) == 300
    questions.embed("0", slow, RECORD, "memory")
    assert len(slow.asked) == 301


def test_a_server_has_one_minute_and_a_loading_model_five(slow):
    questions = QueryVectors()
    assert questions._limit(slow) == LOADING_SECONDS == 300
    slow.remote = True
    assert questions._limit(slow) == REMOTE_SECONDS == 60
    slow.remote = False
    slow.go.set()
    questions.embed("where", slow, RECORD, "memory")
    assert questions._limit(slow) == 60


def test_consecutive_questions_use_one_thread(slow, monkeypatch):
    monkeypatch.setattr("klaw_core.embedding.query_vectors.IDLE_SECONDS", 2)
    slow.go.set()
    questions = QueryVectors()
    served = set()
    slow.embed_query = lambda _text: served.add(threading.get_ident()) or VECTOR
    for number in range(20):
        questions.embed(str(number), slow, RECORD, "memory")
    assert len(served) <= 2, "the second may be asked for before the first waits"
    assert len(threads()) <= 2


def test_a_question_that_arrives_while_a_thread_ends_is_answered(slow, monkeypatch):
    monkeypatch.setattr("klaw_core.embedding.query_vectors.IDLE_SECONDS", 0.0001)
    slow.go.set()
    questions = QueryVectors()
    for number in range(300):
        questions.embed(str(number), slow, RECORD, "memory")
    assert len(slow.asked) == 300


def test_a_forked_process_does_not_wait_for_threads_of_its_parent(slow, monkeypatch):
    slow.go.set()
    questions = QueryVectors((5, 5, 5))
    questions.embed("in the parent", slow, RECORD, "memory")
    monkeypatch.setattr("os.getpid", lambda: 0)
    assert questions.embed("in the child", slow, RECORD, "memory") is VECTOR


def test_a_question_whose_thread_cannot_start_does_not_block_the_next_one(slow, monkeypatch):
    def refuse(*_arguments):
        raise RuntimeError("can't start new thread")

    slow.go.set()
    questions = QueryVectors((5, 5, 5))
    with monkeypatch.context() as full:
        full.setattr("klaw_core.embedding.query_vectors.start_new_thread", refuse)
        for number in range(10):
            with pytest.raises(RuntimeError, match="start new thread"):
                questions.embed(str(number), slow, RECORD, "memory")
    assert questions.embed("0", slow, RECORD, "memory") is VECTOR


def test_an_idle_thread_does_not_keep_the_embedder_alive(monkeypatch):
    monkeypatch.setattr("klaw_core.embedding.query_vectors.IDLE_SECONDS", 2)
    embedder, questions = Slow(), QueryVectors()
    embedder.go.set()
    for number in range(2):  # the thread's first, and one that it waited for
        questions.embed(str(number), embedder, RECORD, "memory")
        while not questions._idle:
            threading.Event().wait(0.001)
    kept = weakref.ref(embedder)
    del embedder
    gc.collect()
    assert kept() is None
    wait_for_their_end()
