"""Saved memories: texts in the journal ``saved``, from which klaw.db can be rebuilt."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Any, Self

from attrs import field, frozen

from klaw_core import RecordError, quoted
from klaw_journals import format_ts, parse_ts

#: The origin of saved memories, the first part of their paths, and the name of their journal.
SAVED = "saved"

_MAX_CHARACTERS = 1_000_000
_DIGEST_CHARACTERS = 32  # 128 bits; earlier versions used 48 bits, and two texts got the same id
_ID = re.compile(rf"{SAVED}/(\d{{4}}-\d\d-\d\d)/[0-9a-f]{{12,64}}", re.ASCII)


def as_utc(moment: datetime) -> datetime:
    """Return a moment in UTC, truncated to milliseconds. Raise RecordError if it has no time zone."""
    return parse_ts(format_ts(moment))


def text_hash(text: str) -> str:
    """Return the SHA-256 of a text in UTF-8, in hex."""
    from hashlib import sha256

    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


@frozen
class Saved:
    """A saved memory. ``id`` is its path: ``saved/2026-02-24/`` and the hexadecimal digits of a hash."""

    id: str
    text: str = field(repr=False)
    source: str
    created_at: datetime = field(converter=as_utc)
    chat_id: str | None = None

    @classmethod
    def parse(cls, record: Mapping[str, Any]) -> Self:
        """Return the saved memory of a journal record. Raise RecordError if the record is invalid."""
        for name in ("id", "text", "source"):
            if not isinstance(record.get(name), str):
                raise RecordError(f"{name} is not a string" if name in record else f"{name} is missing")
            if not record[name] and name != "source":
                raise RecordError(f"{name} is empty")
        if not _is_id(record["id"]):
            raise RecordError(f"{quoted(record['id'])} is not the id of a saved memory")
        chat_id = record.get("chat_id")
        if not (chat_id is None or isinstance(chat_id, str)):
            raise RecordError("chat_id is not a string")
        return cls(record["id"], record["text"], record["source"], parse_ts(record.get("created_at")), chat_id)

    @classmethod
    def make(
        cls, text: str, source: str, chat_id: str | None, created_at: datetime | None, *, attempt: int = 0
    ) -> Self:
        """Make a saved memory of a text, dated now by default. Raise RecordError if the text cannot be saved.

        Each ``attempt`` gives another id; use the next one if another text already has the id.
        """
        if not text.strip():
            raise RecordError("nothing to save: the text is empty")
        if not source.strip():
            raise RecordError("a saved memory needs a source", hint='the default is "manual"')
        try:
            "".join((text, source, chat_id or "")).encode()
        except UnicodeEncodeError as error:
            raise RecordError("the text cannot be saved: it is not valid Unicode (an unpaired surrogate)") from error
        if len(text) > _MAX_CHARACTERS:
            raise RecordError(
                f"the text has {len(text):,} characters; the limit is {_MAX_CHARACTERS:,}",
                hint="put it in a file and `klaw index` its directory",
            )
        moment = as_utc(created_at or datetime.now(UTC)).replace(microsecond=0)
        identity = (source, chat_id or "", text, *([str(attempt)] if attempt else []))
        digest = text_hash("\0".join(identity))[:_DIGEST_CHARACTERS]
        return cls(f"{SAVED}/{moment.date().isoformat()}/{digest}", text, source, moment, chat_id)

    def record(self) -> dict[str, Any]:
        """Return the journal record. The id comes first, so that an incomplete line still shows it."""
        return {
            "id": self.id,
            "created_at": format_ts(self.created_at),
            "source": self.source,
            "chat_id": self.chat_id,
            "text": self.text,
        }


def _is_id(name: str) -> bool:
    """Return whether this is a valid id of a saved memory; it becomes a path and must not name another document."""
    found = _ID.fullmatch(name)
    try:
        return found is not None and bool(date.fromisoformat(found[1]))
    except ValueError:
        return False


def is_same(held: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Return whether two records are the same text, saved twice."""
    return all(held.get(name) == new.get(name) for name in ("text", "source", "chat_id"))
