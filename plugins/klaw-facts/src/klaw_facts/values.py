"""Values in the journal of facts."""

from __future__ import annotations

import hashlib
import unicodedata
from base64 import b32encode
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Literal, TypeAlias, overload

from attrs import evolve, field, frozen

from klaw_core import MetadataValue, SearchResult
from klaw_journals.trust import AGENT, FOREIGN
from klaw_journals.trust import OWNER as TRUSTED

#: How a fact was checked: a person stated it; its text is the quote; its text paraphrases the quotes; not checked.
Verification: TypeAlias = Literal["person", "quote", "paraphrase", "none"]
#: How exactly ``valid_from`` or ``valid_to`` is known. ``by``: then or at any time before.
Precision: TypeAlias = Literal["moment", "day", "week", "month", "year", "by", "unknown"]

#: The person whose memory it is. What nobody said in a chat was stated by this person, or for this person.
OWNER: Literal["owner"] = "owner"

#: Makers of facts by hand. Rules and models never end, merge or rewrite such facts.
PERSON: Literal["person"] = "person"


@frozen(order=True)
class Quote:
    """A quote: characters ``start`` to ``end`` of a message in a chat."""

    chat: str
    message: str
    start: int
    end: int

    def record(self) -> dict[str, str | int]:
        """Return the object for the journal."""
        return {"chat": self.chat, "message": self.message, "start": self.start, "end": self.end}


@frozen
class Fact:
    """A claim with its quotes, its time of validity, and the time when Klaw learned of it.

    It is true from ``valid_from`` (None: unknown) to ``valid_to`` (None: it has not ended); ``precision`` and
    ``end_precision`` say how exactly these are known. Klaw learned of the fact at ``recorded_at``, of its end at
    ``ended_at``, and that it was never true at ``retracted_at``. ``made_by`` is ``person``, ``agent``, ``rules``,
    ``import`` or ``model:NAME``. ``source`` is the session or file that it comes from. ``said_at`` is the time of its
    first quote; at ``affirmed_at`` it was said to be true, whenever it began. ``ended_by`` is the fact that replaced
    it, ``supersedes`` are the facts that it can replace. ``person`` identifies who said it: channel and
    sender's id, or chat and name. ``counts_as`` is the person that this one was merged into. ``trust`` is the lowest
    class of those who wrote its sources.
    """

    id: str
    text: str
    subject: str = "user"
    person: str = ""
    counts_as: str = ""
    category: str = "conversation"
    slot: str | None = None
    value: str | None = None
    importance: float = 0.5
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, MetadataValue] = field(factory=dict)
    quotes: tuple[Quote, ...] = ()
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    precision: Precision = "unknown"
    end_precision: Precision = "moment"
    recorded_at: datetime | None = None
    ended_at: datetime | None = None
    retracted_at: datetime | None = None
    confirmed_at: datetime | None = None
    confirmations: int = 1
    verified: Verification = "none"
    made_by: str = PERSON
    batch: str | None = None
    source: str = ""
    said_at: datetime | None = None
    affirmed_at: datetime | None = None
    is_pinned: bool = False
    is_archived: bool = False
    ended_by: str | None = None
    end_reason: str = ""
    supersedes: tuple[str, ...] = ()
    trust: str = field()

    @trust.default
    def _trust_of_maker(self) -> str:
        return AGENT if self.made_by in {"agent", "import"} else TRUSTED

    @property
    def is_foreign(self) -> bool:
        """Whether others wrote it, so that no context shows it unless it is asked for."""
        return self.trust == FOREIGN

    @property
    def content(self) -> str:
        """The text."""
        return self.text

    @property
    def created_at(self) -> datetime | None:
        """The time when it was said; if unknown, when it was recorded."""
        return self.said_at or self.recorded_at

    @property
    def is_by_person(self) -> bool:
        """Whether a person wrote it, or changed its text."""
        return PERSON in {self.made_by, self.verified}

    @property
    def is_bare_quotation(self) -> bool:
        """Whether this is just a sentence that rules extracted. A chunk has the same text with its surroundings."""
        return self.made_by == "rules" and self.slot is None and not self.is_pinned

    @property
    def is_trusted(self) -> bool:
        """Whether it may be part of a prompt: somebody stated it, or it was verified against its quotes."""
        return self.verified != "none" or not (self.made_by == "rules" or self.made_by.startswith("model:"))

    def is_valid_at(self, moment: datetime) -> bool:
        """Whether it is true at a moment."""
        begun = self.valid_from is None or self.valid_from <= moment
        return begun and (self.valid_to is None or self.valid_to > moment)

    @property
    def identity(self) -> str:
        """Who said it, as it was recorded. If nobody said it in a chat: the owner, or whom the owner spoke of."""
        return self.person or (OWNER if self.subject in {"user", ""} else f"{OWNER}/{self.subject}")

    @property
    def who(self) -> str:
        """The person whose fact it is: ``identity``, or the person that this one was merged into."""
        return self.counts_as or self.identity

    @property
    def is_of_unnamed(self) -> bool:
        """Whether it was said with neither a name nor a sender's id, so that only the chat tells who said it."""
        chat, _, name = self.person.rpartition("/")
        return bool(chat) and name == "user" and not {":", "/"} & set(chat)

    def with_person(self) -> Fact:
        """Return it with the person who said it: lines of earlier versions name none, but quote who said it first."""
        return self if self.person or not self.quotes else evolve(self, person=f"{self.quotes[0].chat}/{self.subject}")

    @property
    def is_hidden(self) -> bool:
        """Whether it was retracted or archived: only commands that ask for every fact show it, and no search does."""
        return self.retracted_at is not None or self.is_archived

    def is_visible_at(self, moment: datetime) -> bool:
        """Whether lists and searches for a moment show it: it is true then, and neither retracted nor archived."""
        return not self.is_hidden and self.is_valid_at(moment)


@frozen
class FactResults(Sequence[Fact]):
    """The facts that a search found, best first, and notices for the user, as of ``SearchResults``.

    ``results`` have the score, the relevance and the explanation of each fact; None for a fact of an earlier state that
    is not in the index any more. ``hints`` are the notices that report no failure.
    """

    facts: tuple[Fact, ...] = ()
    results: tuple[SearchResult | None, ...] = ()
    notices: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()

    @property
    def nothing_fits(self) -> bool:
        """Whether there are facts, but all are weak, so that most likely none answers the question."""
        return bool(self.results) and all(result is not None and result.is_weak for result in self.results)

    @property
    def failures(self) -> tuple[str, ...]:
        """The notices that report what the search had to do without."""
        return tuple(notice for notice in self.notices if notice not in self.hints)

    @overload
    def __getitem__(self, index: int) -> Fact: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Fact, ...]: ...
    def __getitem__(self, index: int | slice) -> Fact | tuple[Fact, ...]:
        return self.facts[index]

    def __len__(self) -> int:
        return len(self.facts)


@frozen
class Proposal:
    """An end of a fact, proposed by a rule or a model for a person to decide."""

    id: str
    fact: str
    by_fact: str
    valid_to: datetime | None
    reason: str
    recorded_at: datetime
    precision: Precision = "moment"


@frozen
class Digest:
    """A digest of one day of a chat: quotes in order, and a text if a model wrote one."""

    id: str
    chat: str
    day: str
    quotes: tuple[Quote, ...]
    lines: tuple[str, ...] = ()
    made_by: str = "rules"


@frozen
class Compaction:
    """A summary of the older messages of a chat, the ids of the remaining messages, and the ledger.

    The ledger lists numbers, paths, commands and decisions of the summarised messages, word for word.
    """

    chat: str
    summary: str
    to_summarize: tuple[str, ...]
    preserved: tuple[str, ...]
    ledger: tuple[str, ...] = ()


@frozen
class Batch:
    """One run of an extractor over unread messages of a chat; ``after`` is the last one of the run before.

    ``through`` is its last message, and ``ends`` are the last of each day; an older version wrote none.
    """

    id: str
    chat: str
    after: str
    through: str
    by: str
    state: Literal["done", "failed", "undone"]
    facts: int = 0
    confirmed: int = 0
    refused: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    calls: int = 0
    error: str = ""
    recorded_at: datetime | None = None
    ends: tuple[str, ...] = ()


def make_id(prefix: str, *parts: object) -> str:
    """Return an id derived from ``parts``: equal parts give equal ids."""
    digest = hashlib.sha256("\0".join(map(str, parts)).encode("utf-8", "surrogatepass")).digest()
    return f"{prefix}-{b32encode(digest)[:16].decode().lower()}"


def normalised(text: str) -> str:
    """Normalise a claim for comparison: compatibility forms, lower case, single spaces, no final punctuation."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split()).rstrip(".!。！… ")
