"""Runs of compression: what each one did, what was undone, and how to undo all of it.

Every operation of a run has the run as its batch. A merge of facts is a batch of its own, so that it can be undone
alone, and names its run. What was undone is not done again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from shlex import quote
from typing import TYPE_CHECKING, Any

from attrs import frozen

from klaw_core import NotFoundError
from klaw_facts.journal import FactsJournal
from klaw_journals import Chat, LogRecord, parse_ts

if TYPE_CHECKING:
    from klaw_conversations import Conversations

Operation = Mapping[str, Any]
_PREFIX = "r-"


@frozen
class CompressionRun:
    """What a run did: the digested days, the archived and merged facts, the profile, the summarised chats."""

    id: str
    at: datetime
    days: tuple[str, ...] = ()
    archived: tuple[str, ...] = ()
    merged: tuple[str, ...] = ()
    profile: tuple[str, ...] = ()
    chats: tuple[str, ...] = ()
    is_undone: bool = False


@frozen
class Undone:
    """The numbers of facts, digests and summaries that are as they were before; ``profile``: so is the profile."""

    facts: int = 0
    digests: int = 0
    summaries: int = 0
    profile: bool = False


def _run_of(line: Operation) -> str:
    name = str(line.get("run") or line.get("batch") or "")
    return name if name.startswith(_PREFIX) else ""


def _undone_lines(journal: FactsJournal) -> Iterator[Operation]:
    lines = journal.operations()
    undone = {line["batch"] for line in lines if line["op"] == "undo"}
    return (line for line in lines if line["op"] != "undo" and line.get("batch") in undone and _run_of(line))


def undone_days(journal: FactsJournal) -> set[tuple[str, str]]:
    """Return the chats and days whose digests were undone."""
    return {(line["chat"], line["day"]) for line in _undone_lines(journal) if line["op"] == "digest"}


def undone_facts(journal: FactsJournal) -> set[str]:
    """Return the facts whose archiving was undone."""
    return {line["fact"] for line in _undone_lines(journal) if line["op"] == "archive"}


def undone_profiles(journal: FactsJournal) -> list[tuple[list[str], list[str]]]:
    """Return the facts and lines of the profiles that were undone."""
    found = (line for line in _undone_lines(journal) if line["op"] == "profile")
    return [(list(line["facts"]), list(line["lines"])) for line in found]


def undone_chats(journal: FactsJournal) -> set[str]:
    """Return the chats whose summary was undone."""
    return {line["chat"] for line in _undone_lines(journal) if line["op"] == "compact"}


def own_summaries(journal: FactsJournal) -> set[tuple[str, str]]:
    """Return the chats and times of the summaries that runs have made."""
    return {(line["chat"], line["at"]) for line in journal.operations() if line["op"] == "compact"}


def runs(journal: FactsJournal) -> Sequence[CompressionRun]:
    """Return every run that changed something, the oldest first."""
    lines = journal.operations()
    undone = {line["batch"] for line in lines if line["op"] == "undo"}
    by_run: dict[str, list[Operation]] = {}
    for line in lines:
        if line["op"] != "undo" and (name := _run_of(line)):
            by_run.setdefault(name, []).append(line)
    return [_run(name, own, undone) for name, own in by_run.items()]


def _run(name: str, lines: Sequence[Operation], undone: set[str]) -> CompressionRun:
    return CompressionRun(
        name,
        parse_ts(lines[0]["ts"]),
        tuple(f"{line['chat']} {line['day']}" for line in lines if line["op"] == "digest"),
        tuple(line["fact"] for line in lines if line["op"] == "archive" and "by_fact" not in line),
        tuple(line["fact"] for line in lines if line["op"] == "archive" and "by_fact" in line),
        tuple(text for line in lines if line["op"] == "profile" for text in line["lines"]),
        tuple(line["chat"] for line in lines if line["op"] == "compact"),
        is_undone={line["batch"] for line in lines} <= undone,
    )


def batches_of(journal: FactsJournal, name: str) -> tuple[str, list[str]]:
    """Return the id of a run, given the beginning of it or ``last``, and its batches. Raise NotFoundError."""
    known = [run for run in runs(journal) if not run.is_undone]
    found = known[-1:] if name == "last" else [run for run in known if run.id.startswith(name)]
    if len(found) != 1:
        lines = journal.operations()
        undone = {line["batch"] for line in lines if line["op"] == "undo"}
        batches = [line["batch"] for line in lines if line.get("batch") and line["batch"] not in undone]
        others = name == "last" and batches
        hint = (
            f"klaw facts undo {quote(batches[-1])} reverses the last other batch" if others else "klaw compress --list"
        )
        raise NotFoundError(f"there is no run {name!r} of klaw compress to undo", hint=hint)
    own = (line["batch"] for line in journal.operations() if _run_of(line) == found[0].id and line["op"] != "undo")
    return found[0].id, list(dict.fromkeys(own))


def is_run(name: str) -> bool:
    """Return whether this names a run, and not another batch."""
    return name == "last" or name.startswith(_PREFIX)


def undo_run(journal: FactsJournal, name: str, undo: Callable[[str], int], conversations: Conversations) -> Undone:
    """Undo everything that a run did, and remove the summaries that it made. Raise NotFoundError, StoreError."""
    run, batches = batches_of(journal, name)
    lines = [line for line in journal.operations() if _run_of(line) == run and line["op"] != "undo"]
    summaries = sum(_removed(conversations, line["chat"], line["at"]) for line in lines if line["op"] == "compact")
    for batch in batches:
        undo(batch)
    facts = {line["fact"] for line in lines if line["op"] == "archive"}
    digests = sum(line["op"] == "digest" for line in lines)
    return Undone(len(facts), digests, summaries, any(line["op"] == "profile" for line in lines))


def _removed(conversations: Conversations, name: str, at: str) -> int:
    """Remove the summary of a chat that was made at a moment; return how many there were."""
    chat = Chat.parse(name)

    def was_made(record: LogRecord) -> bool:
        return record.value.get("ts") == at

    log = conversations.row_sync.summaries.log(chat)
    count: int = log.remove(was_made) if log.exists else 0
    conversations.row_sync.sync_summaries(chat)
    return count
