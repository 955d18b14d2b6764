"""Saved memories: texts in the journal ``saved``, from which klaw.db can be rebuilt."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any, Self

from attrs import field, frozen

from klaw_core import RecordError, quoted
from klaw_journals import format_ts, parse_ts
from klaw_journals.trust import OWNER, Trust, check_trust, lowest

#: The origin of saved memories, the first part of their paths, and the name of their journal.
SAVED = "saved"

_MAX_CHARACTERS = 1_000_000
_MAX_TAGS = 20
_MAX_TAG_CHARACTERS = 100
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
    """A saved memory. ``id`` is its path: ``saved/2026-02-24/`` and the hexadecimal digits of a hash.

    ``supersedes`` is the id of the memory that it replaces, which stays in the journal and is no longer found.
    ``trust`` is the class of its writer; records from before there were classes are the owner's.
    """

    id: str
    text: str = field(repr=False)
    source: str
    created_at: datetime = field(converter=as_utc)
    chat_id: str | None = None
    tags: tuple[str, ...] = ()
    supersedes: str | None = None
    trust: Trust = field(default=OWNER, converter=check_trust)

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
        tags, supersedes = record.get("tags", ()), record.get("supersedes")
        if isinstance(tags, str) or not isinstance(tags, Sequence) or not all(isinstance(tag, str) for tag in tags):
            raise RecordError("tags is not a list of strings")
        if not (supersedes is None or (isinstance(supersedes, str) and _is_id(supersedes))):
            raise RecordError("supersedes is not the id of a saved memory")
        moment, trust = parse_ts(record.get("created_at")), record.get("trust", OWNER)
        return cls(record["id"], record["text"], record["source"], moment, chat_id, tuple(tags), supersedes, trust)

    @classmethod
    def make(
        cls,
        text: str,
        source: str,
        chat_id: str | None,
        created_at: datetime | None,
        *,
        tags: Sequence[str] = (),
        supersedes: str | None = None,
        trust: str = OWNER,
        attempt: int = 0,
    ) -> Self:
        """Make a saved memory of a text, dated now by default. Raise RecordError if the text or a tag cannot be saved.

        Each ``attempt`` gives another id; use the next one if another text already has the id.
        """
        if not text.strip():
            raise RecordError("nothing to save: the text is empty")
        if not source.strip():
            raise RecordError("a saved memory needs a source", hint='the default is "manual"')
        try:
            "".join((text, source, chat_id or "", *tags)).encode()
        except UnicodeEncodeError as error:
            raise RecordError("the text cannot be saved: it is not valid Unicode (an unpaired surrogate)") from error
        if len(text) > _MAX_CHARACTERS:
            raise RecordError(
                f"the text has {len(text):,} characters; the limit is {_MAX_CHARACTERS:,}",
                hint="put it in a file and `klaw index` its directory",
            )
        tags = _checked(tags)
        moment = as_utc(created_at or datetime.now(UTC)).replace(microsecond=0)
        identity = (source, chat_id or "", text, *([str(attempt)] if attempt else []), *filter(None, [supersedes]))
        digest = text_hash("\0".join(identity))[:_DIGEST_CHARACTERS]
        path = f"{SAVED}/{moment.date().isoformat()}/{digest}"
        return cls(path, text, source, moment, chat_id, tags, supersedes, check_trust(trust))

    def record(self) -> dict[str, Any]:
        """Return the journal record. The id comes first, so that an incomplete line still shows it."""
        return {
            "id": self.id,
            "created_at": format_ts(self.created_at),
            "source": self.source,
            "chat_id": self.chat_id,
            **({"tags": list(self.tags)} if self.tags else {}),
            **({"supersedes": self.supersedes} if self.supersedes else {}),
            **({} if self.trust == OWNER else {"trust": self.trust}),
            "text": self.text,
        }


def _checked(tags: Sequence[str]) -> tuple[str, ...]:
    """Return tags without white space around them, each once. Raise RecordError for one that is not a tag."""
    kept = tuple(dict.fromkeys(tag.strip() for tag in ([tags] if isinstance(tags, str) else tags)))
    for tag in kept:
        if not tag or not tag.isprintable() or len(tag) > _MAX_TAG_CHARACTERS:
            hint = f"a tag is one line of 1 to {_MAX_TAG_CHARACTERS} characters"
            raise RecordError(f"{quoted(tag, _MAX_TAG_CHARACTERS)} is not a tag", hint=hint)
    if len(kept) > _MAX_TAGS:
        raise RecordError(f"a memory has at most {_MAX_TAGS} tags, got {len(kept)}", hint="save them as text")
    return kept


def _is_id(name: str) -> bool:
    """Return whether this is a valid id of a saved memory; it becomes a path and must not name another document."""
    found = _ID.fullmatch(name)
    try:
        return found is not None and bool(date.fromisoformat(found[1]))
    except ValueError:
        return False


def is_same(held: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Return whether two records are the same text, saved twice, the second time by nobody who is trusted more."""
    classes = (held.get("trust", OWNER), new.get("trust", OWNER))
    same = all(held.get(name) == new.get(name) for name in ("text", "source", "chat_id", "supersedes"))
    return same and lowest(classes) == classes[1]
