"""Facts from elsewhere: bullets of a MEMORY.md, and the JSON of mem0's ``get_all``. Importing again adds nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from klaw_core import NotFoundError, RecordError, check_metadata
from klaw_facts.extracting.rules import category_of, importance_of
from klaw_facts.extracting.slots import slot_of
from klaw_facts.values import PERSON, Fact, make_id, normalised

#: What imported facts say they come from.
SOURCE = "migration"
_BULLET = re.compile(r"^\s*[-*+]\s+(?:\[[ xX]\]\s+)?(?P<text>\S.*?)\s*$")
_HEADING = re.compile(r"^#{1,6}\s+(?P<title>.+?)\s*#*$")
_FENCE = re.compile(r"^\s*(?:```|~~~)")


def read_facts(path: Path) -> list[Fact]:
    """Return the facts of a file. Raise NotFoundError, RecordError."""
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError as error:
        raise NotFoundError(f"{path} is not there") from error
    except (OSError, UnicodeDecodeError) as error:
        raise RecordError(f"{path} cannot be read: {error}") from error
    found = list(_from_json(text, path) if path.suffix == ".json" else _from_markdown(text, path))
    return list({fact.id: fact for fact in found}.values())


def _from_markdown(text: str, path: Path) -> Iterator[Fact]:
    title, fenced = "", False
    for number, line in enumerate(text.splitlines(), start=1):
        if _FENCE.match(line):
            fenced = not fenced
        elif fenced:
            continue
        elif heading := _HEADING.match(line):
            title = heading["title"]
        elif bullet := _BULLET.match(line):
            tags = (title,) if title else ()
            yield _fact(bullet["text"], tags=tags, metadata={"path": path.name, "line": number})


def _from_json(text: str, path: Path) -> Iterator[Fact]:
    try:
        value: Any = json.loads(text)
    except ValueError as error:
        raise RecordError(f"{path} is not JSON: {error}") from error
    items = value.get("results", value.get("memories")) if isinstance(value, dict) else value
    if not isinstance(items, list):
        raise RecordError(f"{path} holds no list of memories", hint="export it with mem0's get_all()")
    for item in items:
        if not isinstance(item, dict) or not isinstance(item.get("memory"), str) or not item["memory"].strip():
            continue
        found: Any = item.get("metadata")
        given: dict[str, Any] = found if isinstance(found, dict) else {}
        plain = {key: value for key, value in given.items() if isinstance(value, str | int | float | bool)}
        if isinstance(item.get("id"), str):
            plain["mem0"] = item["id"]
        subject = item.get("user_id") if isinstance(item.get("user_id"), str) else "user"
        yield _fact(item["memory"], subject=subject or "user", metadata=plain, said_at=_moment(item.get("created_at")))


def _fact(
    text: str,
    *,
    subject: str = "user",
    tags: tuple[str, ...] = (),
    metadata: dict[str, Any] | None = None,
    said_at: datetime | None = None,
) -> Fact:
    slot, value = slot_of(text) or (None, None)
    category = category_of(text)
    return Fact(
        make_id("f", SOURCE, subject, normalised(text)),
        text,
        subject=subject,
        category=category,
        slot=slot,
        value=value,
        importance=importance_of(category),
        tags=tags,
        metadata=check_metadata(metadata or {}),
        verified="person",
        made_by=PERSON,
        source=SOURCE,
        said_at=said_at,
    )


def _moment(value: object) -> datetime | None:
    if not isinstance(value, str):
        return None
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
