"""The tools for models: remember a fact, look up facts, and get the context for a message."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, Literal, Protocol

from klaw_core import QueryError, Tool, parse_moment, quoted
from klaw_facts.keeper import FactKeeper
from klaw_facts.recall import line_of
from klaw_facts.values import FactResults


class FactSearch(Protocol):
    """The search over facts, as :meth:`klaw_facts.facts.Facts.search`."""

    def __call__(self, query: str, limit: int, /, *, as_of: datetime | None) -> FactResults:
        """Return the facts that fit a question and are true at a moment, best first, with notices. Raise QueryError."""
        ...


def moment(text: str | None, *, day: Literal["begin", "last"] = "begin") -> datetime | None:
    """Parse a day or a time from a model. Raise QueryError."""
    if not text:
        return None
    try:
        return parse_moment(text, datetime.now(UTC), day=day)
    except ValueError as error:
        raise QueryError(f"{quoted(text, 40)} is not a date", hint=str(error)) from error


def make_tools(
    keeper: FactKeeper, search: FactSearch, notices: Callable[[], Sequence[str]] = tuple
) -> tuple[Tool, ...]:
    """Return the tools. None of them deletes anything. ``notices`` returns what the index could not do last."""

    def text(description: str, most: int) -> dict[str, Any]:
        return {"type": "string", "description": description, "minLength": 1, "maxLength": most, "pattern": r"\S"}

    def remember(arguments: dict[str, Any]) -> dict[str, Any]:
        slot, _, value = arguments.get("slot", "").partition("=")
        fact = keeper.remember(
            arguments["fact"],
            slot=slot or None,
            value=value or None,
            valid_from=moment(arguments.get("valid_from")),
            by="agent",
        )
        ended = [item.id for item in keeper.journal.state().facts.values() if item.ended_by == fact.id]
        review = [item.fact for item in keeper.review() if item.by_fact == fact.id]
        answer: dict[str, Any] = {"remembered": fact.id, "ended": ended, "for_review": review}
        return answer | ({"notices": list(told)} if (told := notices()) else {})

    def look_up(arguments: dict[str, Any]) -> dict[str, Any]:
        as_of = moment(arguments.get("as_of"), day="last")
        state = keeper.journal.state()
        found = search(arguments["query"], int(arguments.get("limit", 5)), as_of=as_of)
        when = as_of or datetime.now(UTC)
        kept = [
            f"[foreign] {line_of(fact, state, when)}" if fact.is_foreign else line_of(fact, state, when)
            for fact, result in zip(found, found.results, strict=True)
            if not (result and result.is_weak)
        ]
        answer: dict[str, Any] = {"facts": kept}
        return answer | ({"notices": list(found.notices)} if found.notices else {})

    day = text("Such as 2026-02-24.", 40)
    return (
        Tool(
            "memory_remember",
            "Store one fact as a sentence. A new value of a slot (home, deadline) ends the old one, which stays in the "
            "history.",
            {
                "fact": text("The fact, in one sentence.", 2_000),
                "slot": {**text("Slot and value: home=Lyon.", 200), "pattern": r"^\S[^=]*=\s*\S"},
                "valid_from": day,
            },
            remember,
            ("fact",),
        ),
        Tool(
            "memory_facts",
            "Search facts: what is true, since when, and what it replaced.",
            {
                "query": text("In plain words.", 4_000),
                "as_of": text("True on this day: 2026-02-24.", 40),
                "limit": {
                    "type": "integer",
                    "description": "At most this many; default 5.",
                    "minimum": 1,
                    "maximum": 50,
                },
            },
            look_up,
            ("query",),
            read_only=True,
        ),
    )
