"""Whatever is done to it, and whenever it dies, a memory in a file is what one in dictionaries is that never died.

Both are ``Memory`` objects over the same notes; the one is a SQLite file with FTS5 and vec0, the other Klaw's own
dictionaries. Every rule does the same to both and compares what they answer; after every rule they hold the same.
A crash is a copy of the data directory, taken at some moment, that takes the directory's place: what is left of a
process that was killed then. 8 lives by default, 200 with ``--hypothesis-profile=thorough``.
"""

import shutil
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import reduce
from itertools import count

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from klaw_core import KlawError
from klaw_core.values.search import NO_GOOD_MATCH
from klaw_journals.chats import Chat
from klaw_journals.messages import Message

MOMENT = datetime(2026, 2, 24, 12, 0, tzinfo=UTC)
CHATS = (Chat("telegram", "1"), Chat("telegram", "2"))
NAMES = ("a.md", "b.md", "sub/c.md")
WORDS = ("harbour", "lantern", "heron", "tide", "память", "quay")
EVERYTHING = 500  # more than there ever is
KINDS = {"sqlite-vec": "vectors", "cosine": "vectors", "fts5": "words"}  # what both memories' retrievers are

names = st.sampled_from(NAMES)
words = st.sampled_from(WORDS)
texts = st.lists(st.lists(words, min_size=1, max_size=4).map(" ".join), min_size=1, max_size=3).map(
    "\n\n# StyledText\n\n".join
)
hours = st.integers(0, 3)
embeddings = st.sampled_from([("counting", 48), ("counting", 24), ("other", 48)])
moments = st.integers(0, 12)
chats = st.sampled_from(CHATS)


class Lives(RuleBasedStateMachine):
    """``memories`` are the one in the file and the one in dictionaries, ``homes`` where they live."""

    def __init__(self, make_home, check, dump):
        super().__init__()
        self.check, self.dump = check, dump
        self.homes = [make_home(backend) for backend in ("sqlite", "memory")]
        self.embedding = ("counting", 48)
        self.memories = [self.open(home) for home in self.homes]
        self.said = 0
        self.known = False  # whether the notes were ever indexed

    def open(self, home):
        model, dimension = self.embedding
        return home.open(
            chunking={"type": "markdown", "max_tokens": 60, "overlap_tokens": 0},
            embedding={"type": "counting", "model": model, "dimension": dimension},
        )

    def both(self, action):
        """Do something with both; return what both answered, an error being an answer."""
        answers = [self.answer(action, memory, home) for memory, home in zip(self.memories, self.homes, strict=True)]
        assert answers[0] == answers[1]
        return answers[0]

    def answer(self, action, memory, home):
        try:
            return action(memory, home)
        except KlawError as error:
            return type(error), str(error).replace(str(home.root), "")

    # What a person does

    @rule(name=names, text=texts, hours=hours)
    def write(self, name, text, hours):
        for home in self.homes:
            home.write(name, text, hours=hours)

    @rule(name=names)
    def delete(self, name):
        for home in self.homes:
            (home.notes / name).unlink(missing_ok=True)

    @rule(force=st.booleans(), embed=st.booleans())
    def index(self, force, embed):
        self.both(lambda memory, home: run_report(memory.index(home.notes, force=force, embed=embed)))
        self.both(lambda memory, _: run_report(memory.index(embed=embed)))
        self.known = True

    @rule(limit=st.integers(0, 3))
    def embed(self, limit):
        self.both(lambda memory, _: run_report(memory.embed(limit=limit)))

    @rule(text=texts, hours=hours)
    def save(self, text, hours):
        self.both(lambda memory, _: memory.save(text, created_at=MOMENT + timedelta(hours=hours)))

    @rule(text=texts)
    def save_while_the_embedder_is_away(self, text):
        for home in self.homes:
            home.recorder.calls, home.recorder.fail_at = 0, 1
        self.both(lambda memory, _: memory.save(text, created_at=MOMENT))
        for home in self.homes:
            home.recorder.fail_at = None

    @rule(chat=chats, text=texts)
    def append(self, chat, text):
        self.said += 1
        message = Message("user", text, MOMENT + timedelta(minutes=self.said), meta=chat.meta)
        self.both(lambda memory, _: memory.conversations.append(message))

    @rule(chat=chats)
    def purge(self, chat):
        self.both(lambda memory, _: memory.conversations.purge(chat))

    @rule(data=st.data())
    def forget(self, data):
        paths = sorted({item.path for item in self.dump(self.memories[1])["chunks"]})
        if paths:
            path = data.draw(st.sampled_from([*paths, "notes/", "saved/none"]))
            self.both(lambda memory, _: memory.forget(path))
            self.known = self.known and path != "notes/"

    @rule(word=words)
    def ask_by_words(self, word):
        self.both(lambda memory, _: found(memory.search(word, EVERYTHING, mode="fts")))

    @rule(question=texts)
    def ask_by_vectors(self, question):
        answers = self.both(lambda memory, _: scores(memory.search(question, EVERYTHING, mode="vector")))
        assert isinstance(answers, tuple) or len(answers) <= EVERYTHING

    @rule(question=texts)
    def ask_both_ways(self, question):
        self.both(lambda memory, _: notices(memory.search(question, EVERYTHING)))

    # What happens to the model

    @rule(embedding=embeddings)
    def configure_another_embedder(self, embedding):
        """From now on words go on and vectors pause, until the index is built anew."""
        self.embedding = embedding
        self.restart()
        space = self.both(lambda memory, _: memory.status().space)
        if space is not None and (space.model, space.dimension) != embedding:
            kind, message = self.both(lambda memory, _: memory.search("tide", mode="vector"))
            assert kind.__name__ == "VectorSpaceError"
            assert "klaw reindex" in message

    @rule()
    def reindex(self):
        self.both(lambda memory, _: rebuild_report(memory.reindex()))
        assert (
            self.both(lambda memory, _: (memory.status().space.model, memory.status().space.dimension))
            == self.embedding
        )

    @rule(model=st.sampled_from(["counting", "other"]))
    def move(self, model):
        self.both(lambda memory, _: rebuild_report(memory.reindex(f"counting:{model}")))
        assert self.memories[0].config.embedding.options["model"] == model
        self.embedding = (model, self.memories[0].status().space.dimension)

    # What happens to the process

    @rule()
    def restart(self):
        for memory in self.memories:
            memory.close()
        self.memories = [self.open(home) for home in self.homes]

    @rule()
    def die(self):
        self.resurrect(self.copy())

    @precondition(lambda self: self.known)
    @rule(moment=moments, force=st.booleans())
    def die_in_an_index_run(self, moment, force):
        self.die_during(lambda memory, look: memory.index(force=force, on_progress=look), moment)

    @rule(moment=moments)
    def die_in_a_rebuild(self, moment):
        """The index in use is as it was. Only while it embeds: a later death leaves a beginning to go on from."""
        self.die_during(
            lambda memory, look: memory.reindex(on_progress=lambda now: now.stage == "ahead" and look(now)), moment
        )

    def die_during(self, run, moment):
        """Die as a run tells its caller something for the n-th time; the one in dictionaries breaks off there."""
        copies = [self.copy()]
        run(self.memories[0], lambda _: copies.append(self.copy()))
        moment = min(moment, len(copies) - 1)
        self.resurrect(copies[moment])
        if moment:
            calls = count(1)
            # It has not died before, so it may know that nothing has changed since its last run, and tell less.
            with suppress(_DeathError):
                run(self.memories[1], lambda _: die_at(moment, next(calls)))

    def copy(self):
        root = self.homes[0].root
        target = root / f"copy{len(list(root.iterdir()))}"
        shutil.copytree(root / "data", target)
        return target

    def resurrect(self, copy):
        """Let this process end, and be what another finds when it dies at the moment of the copy."""
        root = self.homes[0].root
        self.memories[0].close()
        shutil.rmtree(root / "data")
        copy.rename(root / "data")
        for other in root.glob("copy*"):
            shutil.rmtree(other)
        self.memories[0] = self.open(self.homes[0])

    # What must be true at any time

    @invariant()
    def both_hold_the_same(self):
        mine, theirs = map(self.dump, self.memories)
        assert mine == theirs
        for chat in CHATS:
            self.both(lambda memory, _, chat=chat: rows(memory, chat))
        lacking = self.both(lambda memory, _: max(missing(memory)))
        for memory in self.memories:
            space = memory.status().space
            if space is None or (space.model, space.dimension) == self.embedding:
                self.check(memory, embedded=not lacking)

    def teardown(self):
        self.both(lambda memory, home: memory.index(home.notes).notices)
        self.reindex()
        self.both_hold_the_same()
        assert self.memories[0].doctor().findings == ()
        for memory in self.memories:
            memory.close()


class _DeathError(Exception):
    """Ends a run."""


def die_at(moment, now):
    if now == moment:
        raise _DeathError


def run_report(report):
    """Return what both must agree on; what was cached, one that died may have to compute again."""
    return (
        report.added,
        report.changed,
        report.unchanged,
        report.removed,
        report.skipped,
        report.lacking,
        report.notices,
    )


def rebuild_report(report):
    """Return what both must agree on; one that died has some of it done already."""
    return report.added + report.changed + report.unchanged, report.skipped, report.lacking, report.notices


def found(results):
    """Return the texts that were found. Of two documents with one text, either may stand for both."""
    return sorted({result.content for result in results}), notices(results)


def notices(results):
    """Return what was said, with the retrievers by what they do."""
    return [
        reduce(lambda said, retriever: said.replace(retriever, KINDS[retriever]), KINDS, notice)
        for notice in results.notices
        if notice != NO_GOOD_MATCH  # either of two equal texts may be the one that is judged
    ]


def scores(results):
    return {result.content: pytest.approx(result.explain[0].raw, abs=1e-3) for result in results}


def rows(memory, chat):
    with memory._assembly.store.read() as snapshot:
        return list(snapshot.messages.all(chat.name)), snapshot.messages.session(chat.name)


def missing(memory):
    with memory._assembly.store.read() as snapshot:
        keys = snapshot.keys("memory").size
        return [keys - index.keys(snapshot.resource, "memory").size for _, index in memory._assembly.indexes()]


def test_a_memory_with_crashes_equals_one_without(make_home, check, dump):
    run_state_machine_as_test(
        lambda: Lives(make_home, check, dump),
        settings=settings(
            max_examples=200 if settings().max_examples > 100 else 8,
            stateful_step_count=20,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
