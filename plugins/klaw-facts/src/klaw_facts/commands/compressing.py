"""``klaw compress`` and ``klaw compact``: digests of days, the profile, and summaries of long chats."""

from __future__ import annotations

import click

from klaw_core.cli.kit import Settings, StyledText, common_options, counted, data, pass_settings, print_json
from klaw_facts.commands.opening import open_facts
from klaw_facts.commands.printing import show_runs


@click.command("compress", short_help="Write digests of days, archive faded facts, update the profile.")
@click.option("--daily", is_flag=True, help="Only the digests of days.")
@click.option("--weekly", is_flag=True, help="Only merges, the archive and the profile.")
@click.option("--dry-run", is_flag=True, help="Report what would be done; change nothing.")
@click.option("--list", "lists", is_flag=True, help="List what earlier runs did; change nothing.")
@common_options
@pass_settings
def compress(settings: Settings, *, daily: bool, weekly: bool, dry_run: bool, lists: bool) -> None:
    """Make a digest of every day before today, archive facts that were not used for long, and update the profile.

    With `[extensions.facts] compressor = "model"` the language model writes digests and the profile, and merges
    similar facts. Nothing is deleted: digests point to messages, `klaw facts undo` takes back a merge, and
    `klaw facts reopen` restores an archived fact. If the model fails, the exit status is 1, and the next run tries
    again.
    """
    if lists:
        if daily or weekly or dry_run:
            raise click.UsageError("--list changes nothing; leave out the other options")
        with open_facts(settings) as facts:
            found = facts.runs()
        show_runs(settings, found)
        return
    both = daily == weekly
    with open_facts(settings) as facts:
        report = facts.compress(daily=daily or both, weekly=weekly or both, dry_run=dry_run)
    if settings.json:
        from klaw_core import to_json

        print_json(to_json(report))
    elif not settings.quiet:
        told = [counted(report.days, "new digest"), f"{counted(report.archived, 'fact')} archived"]
        changed = "changed" if report.profile_changed else "unchanged"
        told.append(f"profile of {counted(report.profile, 'line')}, {changed}")
        shown = told[: 1 if daily and not weekly else 3][1 if weekly and not daily else 0 :]
        if report.merged:
            shown.append(f"{counted(report.merged, 'fact')} merged")
        if report.refused:
            shown.append(f"{report.refused:,} refused")
        if report.calls:
            shown.append(f"{counted(report.calls, 'call')} with {report.tokens_in + report.tokens_out:,} tokens")
        data().line("; ".join(shown))
    if report.problem:
        from klaw_core import LanguageModelError

        raise LanguageModelError(
            f"not everything was compressed: {report.problem}",
            hint="`klaw compress` continues there, when the language model answers",
        )


@click.command("compact", short_help="Summarise the older messages of a chat.")
@click.option("--chat", required=True, metavar="NAME", help="The chat: CHANNEL_ID, as in telegram_123456.")
@click.option(
    "--keep", type=click.IntRange(min=0), default=10, show_default=True, metavar="N", help="Messages to keep."
)
@common_options
@pass_settings
def compact(settings: Settings, *, chat: str, keep: int) -> None:
    """Summarise all but the last messages of a chat, and list numbers, paths, commands and decisions word for word.

    The summary is stored with the chat. No message is deleted.
    """
    with open_facts(settings) as facts:
        result = facts.compact(chat, keep)
    if settings.json:
        from klaw_core import to_json

        print_json(to_json(result))
        return
    out = data()
    count, stay = len(result.to_summarize), len(result.preserved)
    out.line(StyledText(f"{counted(count, 'message')} summarised, {stay:,} kept", "dim"))
    if result.summary:
        out.block(result.summary)
    if result.ledger:
        out.line()
        out.line(StyledText("Word for word:", "bold"))
        for line in result.ledger:
            out.line(f"- {line}")
