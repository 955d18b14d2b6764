"""The context of a prompt: the question, the items, the result, and what extensions may add to it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Literal, TypeAlias

from attrs import field, frozen

from klaw_core import Extension, Filters

#: ``stable`` parts stay equal from call to call, so that a provider's prompt cache can keep them; ``volatile`` parts
#: depend on the message.
ContextPart: TypeAlias = Literal["stable", "volatile"]


@frozen
class ContextQuestion:
    """The message that needs context. ``chat`` is the name of the chat that the message belongs to, if any.

    ``as_of`` asks for facts that were true at that moment, ``known_at`` for facts that were known; None means now.
    ``seen`` are the sources of items that the model already has. Only what passes ``filters`` is asked for. ``trust``
    is the lowest class of texts to take; None means the configured one.
    """

    message: str
    chat: str | None = None
    budget: int = 1000
    as_of: datetime | None = None
    known_at: datetime | None = None
    seen: frozenset[str] = frozenset()
    filters: Filters = Filters()  # noqa: RUF009  # frozen
    trust: str | None = None


@frozen
class ContextItem:
    """An item of the context: its text, its part, and its rank.

    The items of a part are added by ``priority``, lowest first (core memory has 0, facts 10, chunks 20); items with
    equal priority in the order in which they were offered. ``heading`` is the title of the group that the item appears
    under. ``source`` is its place for users: a path with lines. ``created_at`` is the time at which it was said or
    written, if known. ``newest_first``: the chosen items of a group are shown by that time, latest first. ``label`` is
    shown in brackets before the text, once for consecutive items with the same label; ``note`` after it.

    With a ``share``, a text that takes more than this share of its part's budget, and more than 80 tokens, is cut to
    the part that fits the message best, and so is a last text that does not fit completely. Without one it is never
    cut.

    ``filtered``: the item passes the filters of the question, or they do not concern it. If a question has filters, the
    other items are left out. ``trust`` is the class of its writer, or the lowest of several.
    """

    text: str
    part: ContextPart = "volatile"
    priority: int = 10
    heading: str = "Relevant memory"
    source: str = ""
    created_at: datetime | None = None
    newest_first: bool = False
    label: str = ""
    note: str = ""
    share: float | None = None
    filtered: bool = False
    trust: str = "owner"


@frozen
class ContextNotice:
    """A problem for the user, which an extension yields between its items: what it searched without, and why."""

    text: str


@frozen
class Context:
    """The text from memory for a model's prompt. ``tokens`` counts both parts and never exceeds the budget.

    ``notices`` name the searches that failed; the rest of the context is complete. ``declined`` is the reason if
    nothing was searched for.
    """

    stable: str = ""
    volatile: str = ""
    tokens: int = 0
    items: tuple[ContextItem, ...] = field(default=(), repr=False)
    notices: tuple[str, ...] = ()
    declined: str = ""

    def __str__(self) -> str:
        return "\n\n".join(part for part in (self.stable, self.volatile) if part)


class ContextExtension(Extension):
    """An extension that adds items to a model's prompt."""

    __slots__ = ()

    @abstractmethod
    def offer(self, question: ContextQuestion, /) -> Iterable[ContextItem | ContextNotice]:
        """Yield items for ``Memory.context``, best first, and notices for the user.

        Items that pass the filters of the question say so (``filtered``); with filters, the others are left out.
        """


class GatingExtension(Extension):
    """An extension that detects messages that need nothing from memory, such as "thanks"."""

    __slots__ = ()

    @abstractmethod
    def declines(self, question: ContextQuestion, /) -> str:
        """Return the reason for not searching memory for a message; empty to search."""


class ArrangingExtension(Extension):
    """An extension that edits the volatile items of a context: what every extension offered, and the chunks."""

    __slots__ = ()

    @abstractmethod
    def arrange(self, question: ContextQuestion, items: Sequence[ContextItem], /) -> Iterable[ContextItem]:
        """Yield the items that may be used: the given ones, marked, left out or with another priority.

        The result must not depend on the budget, so that a larger budget only adds items.
        """
