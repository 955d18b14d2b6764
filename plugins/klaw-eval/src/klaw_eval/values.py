"""A test set as one frozen value, whatever form it was read from."""

from collections.abc import Iterator, Mapping
from datetime import datetime

from attrs import Factory, evolve, field, frozen


@frozen
class Page:
    """A document: it becomes a note. ``title`` is its heading, if it has one."""

    id: str
    text: str = field(repr=False)
    title: str = ""


@frozen
class Turn:
    """What one person said: it becomes a message. ``session`` is the id of the session it belongs to."""

    id: str
    session: str
    role: str
    speaker: str
    text: str = field(repr=False)
    ts: datetime


@frozen
class Talk:
    """A conversation, its turns in order: it becomes a chat's journal."""

    name: str
    turns: tuple[Turn, ...] = field(repr=False)


@frozen
class Question:
    """A question and what answers it.

    ``gold`` gives the ids that are relevant, and how much (above 0). ``side`` decides which half of the questions it
    belongs to: its id, or what it shares with questions that must stay together. ``group`` names its conversation.
    ``contains``: where ids are not known, the texts of which a chunk must hold one; each is then a gold id too.
    ``answer`` is the answer in words, where a text can be looked through for them. ``current`` and ``outdated`` are the
    gold ids of what is true now, and of what it replaced.
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
    """What one index is made of, and the questions that are asked of it."""

    name: str
    pages: tuple[Page, ...] = field(default=(), repr=False)
    talks: tuple[Talk, ...] = field(default=(), repr=False)
    questions: tuple[Question, ...] = field(default=(), repr=False)


@frozen
class Dataset:
    """A test set, and the terms under which its figures may be compared.

    ``unit`` is what ids name (``document``, ``turn``, ``session``, ``chunk``); ``setting`` says what one index
    holds; ``left_out`` counts the questions that cannot be asked, by reason; ``combined`` names several categories
    that are also reported together; ``available`` counts the questions before some of them were chosen. ``own``:
    nothing is indexed, the questions are asked of the index that the configuration names.
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
        """Return the test set with the questions of these ids; an index of which nothing is asked is left out."""
        corpora = (
            evolve(corpus, questions=tuple(question for question in corpus.questions if question.id in ids))
            for corpus in self.corpora
        )
        return evolve(self, corpora=tuple(corpus for corpus in corpora if corpus.questions))
