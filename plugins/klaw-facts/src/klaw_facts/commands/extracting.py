"""``klaw facts extract``, ``retry`` and ``import``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from klaw_core.cli.kit import Settings, common_options, counted, data, notify, pass_settings, print_json
from klaw_facts.commands.opening import open_facts
from klaw_facts.commands.printing import fact_json, listing_of

if TYPE_CHECKING:
    from klaw_facts.extracting.extraction import ExtractionReport


@click.command("extract", short_help="Extract facts from new messages.")
@click.option("--chat", metavar="NAME", help="Only this chat: CHANNEL_ID. [default: all]")
@click.option("-n", "--limit", type=click.IntRange(min=1), metavar="N", help="Read at most N messages.")
@click.option("--dry-run", is_flag=True, help="Show the facts; store nothing.")
@common_options
@pass_settings
def extract(settings: Settings, *, chat: str | None, limit: int | None, dry_run: bool) -> None:
    """Extract facts from the messages since the last run.

    `[extensions.facts] extractor` selects rules or the language model; with "none" this command uses the rules. The
    exit status is 1 if the model failed and messages wait for the next run.
    """
    with settings.open_memory() as memory:
        from klaw_core import NotFoundError
        from klaw_facts.facts import Facts
        from klaw_journals import Chat

        if chat is not None and not memory.conversations.journal.files(Chat.parse(chat)).files:
            raise NotFoundError(f"the chat {chat!r} has no messages", hint="klaw list --chats")
        report = memory.extension(Facts).extract(chat, limit, dry_run=dry_run)
    _show_report(settings, report, dry_run=dry_run)


@click.command("retry", short_help="Read the messages that failed again.")
@common_options
@pass_settings
def retry(settings: Settings) -> None:
    """Read the messages that the model could not read, and the messages after them, again."""
    with open_facts(settings) as facts:
        report = facts.retry()
    _show_report(settings, report, dry_run=False)


def _show_report(settings: Settings, report: ExtractionReport, *, dry_run: bool) -> None:
    """Print a report. Raise LanguageModelError if messages wait because the model failed."""
    from attrs import evolve

    from klaw_core import LanguageModelError, to_json

    if settings.json:
        found = [fact_json(fact) for fact in report.found]
        print_json({**to_json(evolve(report, found=())), "found": found})
    else:
        if dry_run or settings.verbose:
            listing = listing_of(report.found, "")
            data().rows([listing.cells(row) for row in listing.rows])
        if not settings.quiet:
            data().line(_summary(report, dry_run=dry_run))
    if report.skipped:
        skipped = counted(report.skipped, "message")
        notify(settings, f"the model could not read {skipped}; `klaw facts retry` reads what was skipped again")
    if report.problem:
        raise LanguageModelError(
            f"{counted(report.waiting, 'message')} not read: {report.problem}",
            hint="`klaw facts extract` continues there, when the language model answers",
        )


def _summary(report: ExtractionReport, *, dry_run: bool) -> str:
    would = "would be " if dry_run else ""
    told = [f"{counted(report.facts, 'fact')} {would}extracted from {counted(report.messages, 'message')}"]
    told += [f"{count:,} {what}" for what in ("confirmed", "refused", "waiting") if (count := getattr(report, what))]
    if report.calls:
        told.append(f"{counted(report.calls, 'call')} with {report.tokens_in + report.tokens_out:,} tokens")
    return "; ".join(told)


@click.command("import", short_help="Import facts from MEMORY.md, day journals or mem0.")
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option(
    "--from", "kind", type=click.Choice(("memory-md", "mem0")), help="Format of the files. [default: by name]"
)
@click.option("--dry-run", is_flag=True, help="Count the facts; store nothing.")
@common_options
@pass_settings
def import_command(settings: Settings, *, files: tuple[Path, ...], kind: str | None, dry_run: bool) -> None:
    """Import the facts in FILES. A second import adds nothing.

    A .md file is a MEMORY.md or, if named for a day (2026-02-24.md), a day journal: each list item and each paragraph
    is a fact. A .json file is the output of mem0's get_all. A directory stands for the .md files in it.
    """
    from klaw_facts.importing import read_files

    read = list(read_files(files, kind))
    with open_facts(settings) as facts:
        counts = facts.import_facts(read, dry_run=dry_run)
    if settings.json:
        from klaw_core import to_json

        print_json(to_json(counts))
    elif not settings.quiet:
        would = "would be " if dry_run else ""
        here = f"; {counts.present:,} already stored" if counts.present else ""
        data().line(f"{counted(counts.added, 'fact')} {would}added{here}")
    notify(settings, *(f"not imported: {reason}" for reason in counts.kept))
