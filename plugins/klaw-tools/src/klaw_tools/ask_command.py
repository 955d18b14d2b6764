"""``klaw ask``: answer a question from memory, with sources, by the configured language model."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import click

from klaw_core.cli.kit import (
    FreeText,
    Settings,
    StyledText,
    common_options,
    data,
    notify,
    pass_settings,
    print_json,
    since,
    until,
)
from klaw_core.values.metadata import TRUST_CLASSES


@click.command("ask", short_help="Answer a question from memory, with its sources.")
@click.argument("question", nargs=-1, type=FreeText(), required=True)
@click.option("--path", "path", metavar="PREFIX", help="Only paths that start with PREFIX, e.g. notes/2026/.")
@click.option("--since", metavar="WHEN", callback=since, help="Only from WHEN on: 2026-02-24, 2026-02, 7d.")
@click.option("--until", metavar="WHEN", callback=until, help="Only up to WHEN; the day itself is included.")
@click.option(
    "--trust",
    type=click.Choice(TRUST_CLASSES),
    metavar="CLASS",
    help="Take what the owner, an agent or foreign writers wrote: owner, agent or foreign. [default: agent]",
)
@common_options
@pass_settings
def command(
    settings: Settings,
    *,
    question: tuple[str, ...],
    path: str | None,
    since: datetime | None,
    until: datetime | None,
    trust: str | None,
) -> None:
    """Answer QUESTION from memory by the language model of the configuration, and print the sources of the answer.

    Each source was checked: it has the passage that is printed with it. If nothing in memory fits the question, the
    model is not called; if the sources do not answer it, there is no answer.
    """
    from klaw_core import Filters, to_json

    with settings.open_memory() as memory:
        asking: Any = memory.extension("ask")
        answer = asking.ask(" ".join(question), filters=Filters(path=path, since=since, until=until), trust=trust)
    notify(settings, *answer.notices)
    if settings.json:
        print_json(to_json(answer))
        return
    if answer.refused:
        notify(settings, f"no answer: {answer.refused}")
        return
    out = data()
    for line in answer.text.split("\n"):
        out.line(line)
    out.line()
    for source in answer.sources:
        place = f"{source.path}:{source.start_line}-{source.end_line}"
        by = f"  {source.trust}" if source.trust == "foreign" else ""
        out.line(
            f"[{source.number}] ", StyledText(place, "bold cyan"), StyledText(f"{by}  “{source.quotation}”", "dim")
        )
