"""A test set as one frozen value, independent of its file format."""

from collections.abc import Iterator, Mapping
from datetime import datetime

from attrs import Factory, evolve, field, frozen


@frozen
class Page:
    """A document, which becomes a note. ``title`` is its heading, if it has one."""

    id: str
    text: str = field(repr=False)
    title: str = ""


@frozen
class Turn:
    """An utterance, which becomes a message. ``session`` is the id of its session."""

    id: str
    session: str
    role: str
    speaker: str
    text: str = field(repr=False)
    ts: datetime


@frozen
class Conversation:
    """A conversation with its turns in order, which becomes the journal of a chat."""

    name: str
    turns: tuple[Turn, ...] = field(repr=False)


@frozen
class Question:
    """A question and its right answers.

    ``gold`` has the relevant ids and their relevance (above 0). ``side`` determines the half of the question: it is its
    id, or a value that it shares with questions that must stay in the same half. ``group`` is the name of its
    conversation. ``contains`` has texts of which a chunk must contain one, if ids are unknown; each is then also a gold
    id. ``answer`` is the answer in words, for texts that can be searched for them. ``current`` and ``outdated`` are the
    gold ids of the current statement and of those that it replaced.
    """

    id: str
    text: str
    gold: Mapping[str, float]
    category: str = ""
    group: str = ""
    contains: tuple[str, ...] = ()
    side: str = field(default=Factory(lambda question: question.id, takes_self=True), repr=False)
    answer: str = field(default="", repr=False)
    current: tuple[str, ...] = ()
    outdated: tuple[str, ...] = ()


@frozen
class Corpus:
    """The contents of one index, and the questions for it."""

    name: str
    pages: tuple[Page, ...] = field(default=(), repr=False)
    talks: tuple[Conversation, ...] = field(default=(), repr=False)
    questions: tuple[Question, ...] = field(default=(), repr=False)


@frozen
class Dataset:
    """A test set, and the conditions under which its figures are comparable.

    ``unit`` is what ids refer to (``document``, ``turn``, ``session``, ``chunk``); ``setting`` describes the contents
    of one index; ``left_out`` counts the questions that cannot be asked, by reason; ``combined`` names categories that
    are also reported together; ``available`` is the number of questions before the selection. ``own``: nothing is
    indexed, and the questions are for the index in the configuration.
    """

    name: str
    unit: str
    setting: str
    corpora: tuple[Corpus, ...]
    left_out: Mapping[str, int] = field(factory=dict)
    combined: Mapping[str, tuple[str, ...]] = field(factory=dict)
    own: bool = False
    available: int = field(default=Factory(lambda dataset: sum(1 for _ in dataset.questions()), takes_self=True))

    def questions(self) -> Iterator[Question]:
        """Yield the questions of every corpus."""
        for corpus in self.corpora:
            yield from corpus.questions

    def only(self, ids: set[str]) -> "Dataset":
        """Return the test set with only the questions of these ids, without indexes that have no questions."""
        corpora = (
            evolve(corpus, questions=tuple(question for question in corpus.questions if question.id in ids))
            for corpus in self.corpora
        )
        return evolve(self, corpora=tuple(corpus for corpus in corpora if corpus.questions))
