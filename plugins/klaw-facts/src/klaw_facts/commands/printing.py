"""Print facts: one per line for people, all fields for JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from klaw_core.cli.kit import Listing, Settings, StyledText, counted, data, notify, print_json, shown_moment

if TYPE_CHECKING:
    from klaw_core import SearchResult
    from klaw_facts.runs import CompressionRun, Undone
    from klaw_facts.values import Fact, FactResults, Proposal

_COLUMNS = ("id", "validity", "subject", "slot", "value", "text", "category", "made_by")


def fact_json(fact: Fact) -> dict[str, Any]:
    """Return every field of a fact, and whether it is visible now."""
    from klaw_core import to_json
    from klaw_facts.validity import validity

    shown = {"current": fact.is_visible_at(datetime.now(UTC)), "validity": validity(fact)}
    return {**to_json(fact), **shown}


def listing_of(facts: Iterable[Fact], empty: str) -> Listing:
    """Return facts as a list."""
    return Listing([fact_json(fact) for fact in facts], _COLUMNS, "id", _cells, empty)


def listing_of_found(found: FactResults, empty: str) -> Listing:
    """Return the facts that a search found as a list, each with what the search says of it."""
    rows = [{**fact_json(fact), **_found_json(result)} for fact, result in zip(found, found.results, strict=True)]
    return Listing(rows, (*_COLUMNS, "score", "relevance", "is_weak"), "id", _found_cells, empty)


def _found_json(result: SearchResult | None) -> dict[str, Any]:
    from klaw_core import to_json

    if result is None:  # a fact of an earlier state
        return {"score": None, "relevance": None, "is_weak": False, "explain": []}
    explain = [to_json(part) for part in result.explain]
    return {"score": result.score, "relevance": result.relevance, "is_weak": result.is_weak, "explain": explain}


def _found_cells(row: Mapping[str, Any]) -> Sequence[StyledText | str]:
    relevance = row.get("relevance")
    said = "" if relevance is None else f"{relevance:.2f}" + (" weak match" if row["is_weak"] else "")
    return [*_cells(row), StyledText(said, "dim")]


def _cells(row: Mapping[str, Any]) -> Sequence[StyledText | str]:
    who = "" if row["subject"] in {"user", ""} else f"{row['subject']}: "
    text = " ".join(row["text"].split())
    value = f"{row['slot']} = {row['value']}" if row["slot"] and row["value"] else ""
    return [
        StyledText(row["id"], "bold cyan"),
        StyledText(row["validity"], "dim"),
        StyledText(f"{who}{text}", "" if row["current"] else "strike"),
        StyledText("; ".join(part for part in (value, state_of(row)) if part), "dim"),
    ]


def state_of(row: Mapping[str, Any]) -> str:
    """Return why a fact is not visible now; empty if it is."""
    if row["retracted_at"]:
        return "retracted"
    if row["is_archived"]:
        return "archived"
    if row["current"]:
        return "pinned" if row["is_pinned"] else ""
    return "ended" if row["valid_to"] else "not yet"


def show_change(settings: Settings, fact: Fact, what: str) -> None:
    """Print the change of a fact."""
    if settings.json:
        print_json(fact_json(fact))
    elif not settings.quiet:
        data().line(f"{what} ", StyledText(fact.id, "bold cyan"), f": {' '.join(fact.text.split())}")


def split_slot(_context: click.Context, _parameter: click.Parameter, given: str | None) -> tuple[str, str] | None:
    """Parse ``NAME=VALUE`` (a click callback)."""
    if given is None:
        return None
    name, equals, value = given.partition("=")
    if not equals or not name.strip() or not value.strip():
        raise click.BadParameter(f"expected NAME=VALUE, such as home=Lyon; got {given!r}")
    return name.strip(), value.strip()


def tell_ends(settings: Settings, fact: Fact, facts: Iterable[Fact], proposals: Iterable[Proposal]) -> None:
    """Report the values that a new fact has ended, and how many ends wait for a decision."""
    from klaw_facts.validity import validity

    for old in facts:
        if old.ended_by == fact.id:
            said = old.value or " ".join(old.text.split())
            notify(settings, f"ended {old.id} ({validity(old)}): {said}")
    if waiting := [each for each in proposals if each.by_fact == fact.id]:
        notify(settings, f"{counted(len(waiting), 'earlier value')} may have ended: klaw facts review")


def show_undone(settings: Settings, done: Undone) -> None:
    """Print what was reversed."""
    from klaw_core import to_json

    if settings.json:
        print_json(to_json(done))
    elif not settings.quiet:
        more = [counted(done.digests, "digest")] if done.digests else []
        more += [f"{counted(done.summaries, 'summary', 'summaries')} of chats"] if done.summaries else []
        more += ["the profile"] if done.profile else []
        data().line(", ".join([f"reversed the changes to {counted(done.facts, 'fact')}", *more]))


def show_runs(settings: Settings, found: Sequence[CompressionRun]) -> None:
    """Print what each run of compression did, the oldest first."""
    from klaw_core import to_json

    if settings.json:
        print_json(to_json(found))
        return
    if not found:
        notify(settings, "no run of compression has changed anything")
    out = data()
    for run in found:
        state = ", undone" if run.is_undone else ""
        out.line(StyledText(run.id, "bold cyan"), f"  {shown_moment(run.at)}{state}")
        parts = {"digest": run.days, "archived": run.archived, "merged": run.merged, "profile": run.profile}
        for name, items in {**parts, "summary": run.chats}.items():
            for item in items:
                out.line(StyledText(name, "dim"), f"  {item}", indent=4)
    if any(not run.is_undone for run in found):
        notify(settings, "to undo the last one: klaw facts undo last")
