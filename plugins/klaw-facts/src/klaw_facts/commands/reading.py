"""``klaw facts list``, ``search``, ``show``, ``history`` and ``stats``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from klaw_core import quoted
from klaw_core.cli.kit import (
    FreeText,
    Settings,
    StyledText,
    as_of,
    chosen_format,
    common_options,
    counted,
    data,
    format_option,
    notify,
    pass_settings,
    print_json,
    shown_moment,
    tilde,
    write_file,
)
from klaw_core.cli.kit import show as show_listing
from klaw_facts.commands.opening import open_facts
from klaw_facts.commands.printing import fact_json, listing_of, listing_of_found

if TYPE_CHECKING:
    from klaw_core import Condition
    from klaw_facts.pointers import Place
    from klaw_facts.values import Fact

Decorated = TypeVar("Decorated", bound=Callable[..., Any])
_FILTERS = ("subject", "category", "slot", "project")
_AROUND = 160  # characters of a message before and after a quote


def time_options(function: Decorated) -> Decorated:
    """Add ``--as-of`` and ``--known-at``."""
    for flag, what in (
        ("--known-at", "Facts that were known then."),
        ("--as-of", "Facts that were true then. [default: now]"),
    ):
        function = click.option(flag, metavar="WHEN", callback=as_of, help=what)(function)
    return function


def filter_options(function: Decorated) -> Decorated:
    """Add the options that filter facts."""
    function = click.option("--where", multiple=True, metavar="COND", help="Only matching metadata: tags=work.")(
        function
    )
    for name in reversed(_FILTERS):
        help_text = f"Only this {name}."
        function = click.option(f"--{name}", metavar="NAME", help=help_text)(function)
    return function


def _conditions(where: Sequence[str], given: dict[str, str | None]) -> list[Condition]:
    from klaw_core import Condition, parse_condition

    chosen = [Condition(name, "=", value) for name, value in given.items() if value is not None]
    return [*chosen, *map(parse_condition, where)]


@click.command("list", short_help="List the facts that are true.")
@filter_options
@time_options
@click.option("--all", "everything", is_flag=True, help="Also ended, retracted and archived facts.")
@click.option("-n", "--limit", type=click.IntRange(min=1), metavar="N", help="Only the last N. [default: all]")
@format_option
@common_options
@pass_settings
def list_command(
    settings: Settings,
    /,
    *,
    as_of: datetime | None = None,
    known_at: datetime | None = None,
    everything: bool = False,
    limit: int | None = None,
    form: str | None = None,
    where: tuple[str, ...] = (),
    **given: str | None,
) -> None:
    """List the facts that are true now, or were true at a moment, by the time they were said."""
    form = chosen_format(settings, form)
    with open_facts(settings) as facts:
        conditions = _conditions(where, given)
        found = facts.list(as_of=as_of, known_at=known_at, conditions=conditions, everything=everything)
    shown = found if limit is None else found[-limit:]
    said = " and ".join(f"{each.key} {each.operator} {quoted(each.value)}" for each in conditions)
    empty = f"no facts found with {said}" if said else "no facts found; to add one: klaw remember TEXT"
    show_listing(settings, listing_of(shown, empty), form)


@click.command("search", short_help="Find facts that match a question.")
@click.argument("query", nargs=-1, type=FreeText(), required=True)
@filter_options
@time_options
@click.option(
    "-n", "--limit", type=click.IntRange(min=1), default=10, show_default=True, metavar="N", help="At most N."
)
@format_option
@common_options
@pass_settings
def search(
    settings: Settings,
    /,
    *,
    query: tuple[str, ...],
    as_of: datetime | None,
    known_at: datetime | None,
    limit: int,
    form: str | None,
    where: tuple[str, ...],
    **given: str | None,
) -> None:
    """Find facts that match QUERY and are true now, or were true at a moment, best first."""
    form = chosen_format(settings, form)
    with open_facts(settings) as facts:
        conditions = _conditions(where, given)
        found = facts.search(" ".join(query), limit, as_of=as_of, known_at=known_at, conditions=conditions)
    notify(settings, *found.notices)
    show_listing(settings, listing_of_found(found, "no matching facts"), form)


@click.command("show", short_help="Show a fact and the messages that it quotes.")
@click.argument("name", metavar="ID")
@common_options
@pass_settings
def show(settings: Settings, *, name: str) -> None:
    """Show the fact ID, the facts that it replaced, and every message that it quotes."""
    with open_facts(settings) as facts:
        fact = facts.get(name)
        places = [place for quote in fact.quotes if (place := facts.pointers.place(quote)) is not None]
        earlier = [old for old in facts.state().facts.values() if old.ended_by == fact.id]
    if settings.json:
        replaced = [old.id for old in earlier]
        print_json({**fact_json(fact), "replaced": replaced, "places": [_place_json(place) for place in places]})
        return
    _show_fact(fact, earlier)
    for place in places:
        _show_place(place)
    if len(places) < len(fact.quotes):
        notify(settings, f"{counted(len(fact.quotes) - len(places), 'quoted message')} cannot be read")


def _place_json(place: Place) -> dict[str, Any]:
    from klaw_core import to_json

    return {
        "path": place.path,
        "line": place.line,
        "message": to_json(place.message.record()),
        "start": place.start,
        "end": place.end,
        "text": place.text,
    }


def _show_fact(fact: Fact, earlier: Sequence[Fact]) -> None:
    from klaw_facts.validity import told_end, validity

    row = listing_of([fact], "").cells(fact_json(fact))
    out = data()
    out.rows([row])
    how = {
        "person": "stated by a person",
        "quote": "word for word",
        "paraphrase": "checked against the quote",
        "none": "not checked",
    }
    batch = f", batch {fact.batch}" if fact.batch else ""
    lines = [("category", fact.category), ("made by", f"{fact.made_by} ({how[fact.verified]}){batch}")]
    if fact.trust != "owner":
        lines.append(("trust", fact.trust))
    if fact.source:
        lines.append(("source", fact.source))
    lines += [("replaced", f"{old.id}: {old.value or old.text} ({validity(old)})") for old in earlier]
    if fact.valid_to is not None:
        why = f", replaced by {fact.ended_by}" if fact.ended_by else ""
        lines.append(("until", f"{told_end(fact)}{why}"))
    out.rows([[StyledText(label, "dim"), text] for label, text in lines], indent=4)


def _show_place(place: Place) -> None:
    from klaw_journals.messages import speaker_of

    out, message = data(), place.message
    out.line()
    who = speaker_of(message.role, message.meta)
    when = shown_moment(message.ts)
    out.line(StyledText(f"{place.path}:{place.line}", "cyan"), f"  {who}, {when}")
    before = message.content[max(place.start - _AROUND, 0) : place.start]
    after = message.content[place.end : place.end + _AROUND]
    mark = "" if out.is_terminal else "**"
    out.line(
        StyledText(("…" if place.start > _AROUND else "") + before, "dim"),
        StyledText(f"{mark}{place.text}{mark}", "bold"),
        StyledText(after + ("…" if place.end + _AROUND < len(message.content) else ""), "dim"),
        indent=4,
    )


@click.command("history", short_help="Show the values that a slot has had.")
@click.argument("name", metavar="[SLOT|ID]", required=False)
@click.option("--subject", metavar="NAME", help="Only this subject.")
@click.option("--plot", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Draw a timeline (SVG).")
@format_option
@common_options
@pass_settings
def history(settings: Settings, *, name: str | None, subject: str | None, plot: Path | None, form: str | None) -> None:
    """Show every value of SLOT, or of the slot of the fact ID, oldest first; without either, all slots that changed."""
    form = chosen_format(settings, form)
    with open_facts(settings) as facts:
        found = [fact for fact in facts.history(name) if subject in {None, fact.subject}]
    if plot is not None:
        from klaw_facts.timeline import draw_timeline

        if plot.suffix != ".svg":
            raise click.UsageError(f"{plot.name} does not end in .svg; use {plot.stem}.svg")
        write_file(plot, draw_timeline(found).encode())
        notify(settings, f"timeline written to {tilde(plot)}")
    of = "" if subject is None else f" of {quoted(subject)}"
    show_listing(
        settings,
        listing_of(found, f"{name or 'no slot'} has {'changed its value' if name is None else 'no value'}{of}"),
        form,
    )


@click.command("stats", short_help="Count facts, batches and calls of the model.")
@common_options
@pass_settings
def stats(settings: Settings) -> None:
    """Count facts by state, category and maker, and what extraction did, today and in total."""
    with open_facts(settings) as facts:
        statistics = facts.stats()
    from klaw_core import to_json

    if settings.json:
        print_json(to_json(statistics))
        return
    rows = []
    for label, amount in to_json(statistics).items():
        told = ", ".join(f"{key} {count:,}" for key, count in amount.items()) if isinstance(amount, dict) else amount
        rows.append([StyledText(label.replace("_", " "), "dim"), f"{told:,}" if isinstance(told, int) else told])
    data().rows([row for row in rows if row[1]])
