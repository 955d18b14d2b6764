"""Convert conversations and memories of other programs to records of an export."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from attrs import evolve, frozen

from klaw_core import RecordError, SkippedEntry, metadata_part
from klaw_journals import Chat, Message, NewDocument, Record, parse_ts
from klaw_redaction import Redactor

_MEMORY = "memory"
_MAX_NAME = 200
_MILLISECONDS_FROM = 100_000_000_000  # as seconds, this would be the year 5138


@frozen
class ImportedMessage:
    """One message of another program; ``moment`` may be unknown. ``sender_id`` identifies who wrote it, if known."""

    id: str
    role: str
    text: str
    moment: datetime | None
    model: str = ""
    sender_id: str = ""


def conversation(
    program: str, name: str, title: str, started: datetime | None, messages: Iterable[ImportedMessage]
) -> Iterator[Record | SkippedEntry]:
    """Yield the messages of a conversation by day. A message without a date has the date of the previous one.

    A conversation whose id no chat can have is skipped.
    """
    try:
        chat = Chat(program, whole_characters(name))
    except RecordError as error:
        yield skipped(f"the conversation {name!a}", error.message)
        return
    moment = started or datetime.fromtimestamp(0, UTC)
    dated = []
    for number, item in enumerate(messages):
        moment = item.moment or moment
        dated.append(evolve(item, moment=moment, id=item.id or f"{name}-{number}"))
    dated.sort(key=lambda item: item.moment or moment)
    if len(title) > _MAX_NAME:
        title = Redactor().text(title)[:_MAX_NAME]  # before it is cut: a part of a secret is not recognised
    meta = {**chat.meta, **({"title": title} if title else {})}
    for item in dated:
        told = {"model": item.model, "sender_id": item.sender_id}
        own = {**meta, **{key: value for key, value in told.items() if value}}
        message = Message(item.role, item.text, item.moment or moment, item.id, meta=own)
        value = message.record()
        yield Record("message", {"chat": chat.name, "day": str(value["ts"])[:10], "value": value})


def document(
    program: str,
    name: str,
    text: str,
    moment: datetime | None,
    metadata: Mapping[str, Any],
    *,
    format: str = "markdown",  # noqa: A002  # the field's name
) -> Record | SkippedEntry:
    """Return a memory or a page as a document with the id of its source; a SkippedEntry if no document can be so."""
    try:
        kept = {key: value for key, value in metadata_part(metadata).items() if value not in ("", ())}
        begun = moment or datetime.fromtimestamp(0, UTC)
        made = NewDocument(f"{program}/{whole_characters(name)}", whole_characters(text), kept, program, begun, format)
    except RecordError as error:
        return skipped(f"the document {program}/{name!a}", error.message)
    return Record("document", {"value": made.record(_MEMORY)})


def moment_of(value: Any) -> datetime | None:
    """Return the time of an ISO 8601 string, or of seconds or milliseconds since 1970; None for other values."""
    if isinstance(value, str) and value:
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            try:
                return parse_ts(value)
            except RecordError:
                return None
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value <= 0:
        return None
    try:
        return datetime.fromtimestamp(value / 1000 if value >= _MILLISECONDS_FROM else value, UTC)
    except (OverflowError, ValueError, OSError):
        return None


def whole_characters(text: str) -> str:
    """Return a text with a replacement for each half of a character, as JavaScript leaves it where it cuts a text."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def skipped(where: str, reason: str) -> SkippedEntry:
    """Return an entry that could not be read, with the reason."""
    return SkippedEntry(where[:_MAX_NAME], reason, keep=True)


def as_string(value: Any) -> str:
    """Return a string unchanged, and an empty string for other values."""
    return value if isinstance(value, str) else ""


def objects(value: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the objects of a list; nothing for other values."""
    if isinstance(value, list):
        yield from (item for item in value if isinstance(item, Mapping))
