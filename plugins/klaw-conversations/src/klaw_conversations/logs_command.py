"""``klaw logs``: print the messages of a chat from its journal, without the index."""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING

import click

from klaw_core.cli.kit import Settings, common_options, escaped_json, pass_settings, plain_lines
from klaw_core.cli.kit import since as parse_since

if TYPE_CHECKING:
    from klaw_conversations.journal import ChatFile, Journal, JournalLine
    from klaw_journals import Chat, Message

_DEFAULT_LIMIT = 50
_POLL_SECONDS = 0.5


@click.command("logs", short_help="Print the messages of a chat.")
@click.option(
    "--chat", "name", required=True, metavar="NAME", help="Name of the chat: CHANNEL_ID, e.g. telegram_123456."
)
@click.option("-f", "--follow", is_flag=True, help="Keep running and print new messages.")
@click.option("--since", metavar="WHEN", callback=parse_since, help="Only messages from WHEN on.")
@click.option(
    "-n", "--limit", type=click.IntRange(0), metavar="N", help="Print at most the last N messages. [default: 50]"
)
@common_options
@pass_settings
def command(settings: Settings, *, name: str, follow: bool, since: datetime | None, limit: int | None) -> None:
    """Print the last messages of a chat, oldest first. With --json, each message is a JSON object on its own line."""
    if limit == 0 and not follow:
        raise click.UsageError("--limit 0 prints nothing without --follow")
    from klaw_conversations.journal import Journal
    from klaw_journals.opening import open_journals

    with open_journals(settings) as journals:
        journal = Journal(journals.logs("conversations"))
        _print_chat(settings, journal, _chat(journal, name), since, limit, follow=follow)


def _chat(journal: Journal, name: str) -> Chat:
    """Return the chat with a name. Raise RecordError, with the chats that there are, if it is none."""
    from klaw_core import RecordError
    from klaw_journals import Chat

    try:
        return Chat.parse(name)
    except RecordError as error:
        error.hint = _known(journal) or error.hint
        raise


def _known(journal: Journal) -> str:
    known = ", ".join(chat.name for chat in journal.chats())
    return f"known: {known}" if known else ""


def _print_chat(
    settings: Settings, journal: Journal, chat: Chat, since: datetime | None, limit: int | None, *, follow: bool
) -> None:
    from klaw_core import NotFoundError

    files = journal.files(chat).files
    if not files and not follow:
        raise NotFoundError(f"no messages from chat {chat.name!r}", hint=_known(journal))
    ends = _end_offsets(files)
    _show(settings, _tracked(_last(journal, chat, since, limit), ends))
    while follow:
        _show(settings, _tracked(_new_lines(journal, chat, ends), ends), torn=False)
        time.sleep(_POLL_SECONDS)


def _last(journal: Journal, chat: Chat, since: datetime | None, limit: int | None) -> Iterable[JournalLine]:
    if since is None:
        return journal.tail(chat, _DEFAULT_LIMIT if limit is None else limit)
    lines = journal.read(chat, since)
    return lines if limit is None else deque(lines, maxlen=limit)


def _end_offsets(files: Iterable[ChatFile]) -> dict[str, int]:
    """Return the byte at which the last complete line of each file ends, by location."""
    last = {file.log.location: next(file.log.read_backwards(), None) for file in files}
    return {location: 0 if line is None else line.end for location, line in last.items()}


def _tracked(lines: Iterable[JournalLine], ends: dict[str, int]) -> Iterator[JournalLine]:
    """Yield the lines and record their ends, so that no line is shown twice."""
    from klaw_conversations.journal import JournalEntry

    for line in lines:
        yield line
        location = line.file.log.location if isinstance(line, JournalEntry) else line.location
        ends[location] = max(ends.get(location, 0), line.end)


def _new_lines(journal: Journal, chat: Chat, ends: dict[str, int]) -> Iterator[JournalLine]:
    """Yield the lines after ``ends``. A file that was cut or replaced is read from its start."""
    from klaw_journals import BadLine

    for file in journal.files(chat).files:
        lines = journal.read_file(file, ends.get(file.log.location, 0))
        first = next(lines, None)
        if isinstance(first, BadLine) and first.ends_reading:
            yield first
            ends[file.log.location] = 0  # after the yield, which has recorded the end of that line
            lines = journal.read_file(file)
            first = next(lines, None)
            if isinstance(first, BadLine) and first.ends_reading:  # it cannot be read at all
                continue
        if first is not None:
            yield first
        yield from lines


def _show(settings: Settings, lines: Iterable[JournalLine], *, torn: bool = True) -> None:
    """Print messages on stdout and broken lines on stderr.

    A torn (incomplete) line may be one that is being written; it is printed only with ``torn``.
    """
    from klaw_core.cli.kit import echo, notify
    from klaw_journals import BadLine

    for line in lines:
        if isinstance(line, BadLine):
            if torn or not line.torn:
                notify(settings, str(line))
        elif settings.json:
            echo(escaped_json(json.dumps(line.message.record(), ensure_ascii=False)))
        else:
            _print(line.message)


def _print(message: Message) -> None:
    from klaw_core.cli.kit import StyledText, data, shown_moment
    from klaw_journals.messages import SESSION_BREAK, speaker_of

    when = shown_moment(message.ts, seconds=True)
    if message.type == SESSION_BREAK:
        data().line(StyledText(f"{when}  a new session begins", "dim"))
        return
    tool = message.meta.get("tool")
    said_by = plain_lines(speaker_of(message.role, message.meta))
    who = f"{said_by} {tool}" if isinstance(tool, str) else said_by
    style = "bold cyan" if message.role == "user" else "bold"
    first, *more = plain_lines(message.content).split("\n")
    data().line(StyledText(when, "dim"), "  ", StyledText(who, style), f": {first}")
    if more:
        data().line("\n".join(more), indent=2)
