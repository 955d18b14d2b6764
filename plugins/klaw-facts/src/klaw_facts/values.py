"""Facts, and what else the journal of facts holds, as values."""

from __future__ import annotations

import hashlib
import unicodedata
from base64 import b32encode
from collections.abc import Mapping
from datetime import datetime
from typing import Literal, TypeAlias

from attrs import field, frozen

from klaw_core import MetadataValue

#: How a fact was checked: a person said so; its text is the quote itself; its text says what the quotes say; it was
#: not checked.
Verification: TypeAlias = Literal["person", "quote", "paraphrase", "none"]
#: How exactly ``valid_from`` is known.
Precision: TypeAlias = Literal["moment", "day", "week", "month", "year", "unknown"]

#: Who makes a fact by hand: nothing that a rule or a model does ends, merges or rewrites it.
PERSON: Literal["person"] = "person"


@frozen(order=True)
class Quote:
    """Where something was said: characters ``start`` to ``end`` of a message of a chat."""

    chat: str
    message: str
    start: int
    end: int

    def record(self) -> dict[str, str | int]:
        """Return the object that the journal keeps."""
        return {"chat": self.chat, "message": self.message, "start": self.start, "end": self.end}


@frozen
class Fact:
    """A claim, where it was said, when it is true and when it was known.

    ``valid_from`` and ``valid_to`` say when it is true (None: unknown, and not ended); ``recorded_at``, ``ended_at``
    and ``retracted_at`` when Klaw learned of it, of its end, and that it was never true. ``made_by`` is ``person``,
    ``agent``, ``rules``, ``import`` or ``model:NAME``. ``source`` is the session or the file that it comes from.
    ``said_at`` is when the first of its quotes was said.
    ``ended_by`` is the fact that took its place, ``supersedes`` what it may take the place of.
    """

    id: str
    text: str
    subject: str = "user"
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
    is_pinned: bool = False
    is_archived: bool = False
    ended_by: str | None = None
    end_reason: str = ""
    supersedes: tuple[str, ...] = ()

    @property
    def content(self) -> str:
        """The text."""
        return self.text

    @property
    def created_at(self) -> datetime | None:
        """When it was said, or else recorded."""
        return self.said_at or self.recorded_at

    @property
    def is_by_person(self) -> bool:
        """Whether a person wrote it, or changed its text."""
        return PERSON in {self.made_by, self.verified}

    @property
    def is_bare_quotation(self) -> bool:
        """Whether this is a sentence that rules took, and nothing else: a chunk says the same and what is around."""
        return self.made_by == "rules" and self.slot is None and not self.is_pinned

    @property
    def is_trusted(self) -> bool:
        """Whether a model may be told it: somebody stated it, or it was checked against what was said."""
        return self.verified != "none" or not (self.made_by == "rules" or self.made_by.startswith("model:"))

    def is_valid_at(self, moment: datetime) -> bool:
        """Whether it is true at a moment, as far as is known."""
        begun = self.valid_from is None or self.valid_from <= moment
        return begun and (self.valid_to is None or self.valid_to > moment)

    def is_visible_at(self, moment: datetime) -> bool:
        """Whether lists and searches show it for a moment: it is true then, and neither retracted nor archived."""
        return self.retracted_at is None and not self.is_archived and self.is_valid_at(moment)


@frozen
class Proposal:
    """An end of a fact that a rule or a model proposes and a person decides on."""

    id: str
    fact: str
    by_fact: str
    valid_to: datetime | None
    reason: str
    recorded_at: datetime


@frozen
class Digest:
    """What was said in a chat on a day, in short: quotes in order, and a text where a model wrote one."""

    id: str
    chat: str
    day: str
    quotes: tuple[Quote, ...]
    lines: tuple[str, ...] = ()
    made_by: str = "rules"


@frozen
class Compaction:
    """A summary of the older messages of a chat, the ids of the messages that stay, and the ledger.

    The ledger are the numbers, paths, commands and decisions of what was summed up, as they were said.
    """

    chat: str
    summary: str
    to_summarize: tuple[str, ...]
    preserved: tuple[str, ...]
    ledger: tuple[str, ...] = ()


@frozen
class Batch:
    """One run of an extractor over the messages of a chat after ``after`` up to ``through``."""

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


def make_id(prefix: str, *parts: object) -> str:
    """Return an id derived from what it stands for: the same parts give the same id."""
    digest = hashlib.sha256("\0".join(map(str, parts)).encode("utf-8", "surrogatepass")).digest()
    return f"{prefix}-{b32encode(digest)[:16].decode().lower()}"


def normalised(text: str) -> str:
    """Return a text by which equal claims are recognised: compatible forms, lower case, single spaces, no end mark."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split()).rstrip(".!。！… ")
