"""Conversations and memories of other programs as records of an export."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from attrs import evolve, frozen

from klaw_core import Chat, Message, NewDocument, Record, RecordError, SkippedEntry, metadata_part, parse_ts

_MEMORY = "memory"
_MAX_NAME = 200
_MILLISECONDS_FROM = 100_000_000_000  # seconds would be the year 5138


@frozen
class Said:
    """One message as another program kept it; ``moment`` may be unknown."""

    id: str
    role: str
    text: str
    moment: datetime | None
    model: str = ""


def conversation(program: str, name: str, title: str, begun: datetime | None, said: Iterable[Said]) -> Iterator[Record]:
    """Yield the messages of a conversation by day. A message without a moment has that of the one before it."""
    chat = Chat(program, name)
    moment = begun or datetime.fromtimestamp(0, UTC)
    dated = []
    for number, item in enumerate(said):
        moment = item.moment or moment
        dated.append(evolve(item, moment=moment, id=item.id or f"{name}-{number}"))
    dated.sort(key=lambda item: item.moment or moment)
    meta = {**chat.meta, **({"title": title[:_MAX_NAME]} if title else {})}
    for item in dated:
        own = {**meta, **({"model": item.model} if item.model else {})}
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
) -> Record:
    """Return a memory or a page as a document with its source's own id. Raise RecordError."""
    kept = {key: value for key, value in metadata_part(metadata).items() if value not in ("", ())}
    made = NewDocument(f"{program}/{name}", text, kept, program, moment or datetime.fromtimestamp(0, UTC), format)
    return Record("document", {"value": made.record(_MEMORY)})


def moment_of(value: Any) -> datetime | None:
    """Return the time that ISO 8601, or seconds or milliseconds since 1970, mean; None for anything else."""
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


def skipped(where: str, reason: str) -> SkippedEntry:
    """Return what could not be read, and why."""
    return SkippedEntry(where[:_MAX_NAME], reason, keep=True)


def a_string(value: Any) -> str:
    """Return a string as it is and anything else as an empty one."""
    return value if isinstance(value, str) else ""


def objects(value: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the objects of a list; nothing if it is none."""
    if isinstance(value, list):
        yield from (item for item in value if isinstance(item, Mapping))
