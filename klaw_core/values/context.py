"""What ``Memory.context`` is asked, what extensions offer for it, and the block that comes out."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, TypeAlias

from attrs import field, frozen

#: ``stable`` parts stay equal from call to call, so that a provider's prompt cache can keep them; ``volatile`` parts
#: depend on the message.
ContextPart: TypeAlias = Literal["stable", "volatile"]


@frozen
class ContextQuestion:
    """What context is wanted for. ``chat`` is the name of the chat that the message belongs to, if any.

    ``as_of`` asks for what was true then, ``known_at`` for what was known then; None is now. ``seen`` are the sources
    of the items that the model was given before.
    """

    message: str
    chat: str | None = None
    budget: int = 1000
    as_of: datetime | None = None
    known_at: datetime | None = None
    seen: frozenset[str] = frozenset()


@frozen
class ContextItem:
    """Something for the context: its text, its part, and how it ranks.

    Items of a part are taken in order of ``priority``, lowest first (core memory has 0, facts 10, chunks 20), and of
    those with one priority in the order in which they were offered. ``heading`` is the title of the group that the
    item appears under. ``source`` says where it comes from, for people: a path with lines. ``created_at`` says when it
    was said or written, where that is known. ``newest_first``: the items of a group that were taken are shown by that
    time, the latest first, whatever their order was. ``label`` stands in brackets before the text, once for items that
    follow each other and share it.
    """

    text: str
    part: ContextPart = "volatile"
    priority: int = 10
    heading: str = "Relevant memory"
    source: str = ""
    created_at: datetime | None = None
    newest_first: bool = False
    label: str = ""


@frozen
class Context:
    """What to put into a model's prompt. ``tokens`` counts both parts; it never exceeds the budget that was asked.

    ``notices`` say what could not be looked up; the rest of the context stands all the same. ``declined`` says why
    nothing was looked up for the message, if nothing was.
    """

    stable: str = ""
    volatile: str = ""
    tokens: int = 0
    items: tuple[ContextItem, ...] = field(default=(), repr=False)
    notices: tuple[str, ...] = ()
    declined: str = ""

    def __str__(self) -> str:
        return "\n\n".join(part for part in (self.stable, self.volatile) if part)
