"""Convert the lines of ``facts.jsonl``, one operation each, to values and back.

    {"id": "f-…", "op": "assert", "ts": "…", "text": "…", "quotes": […], …}
    {"id": "o-…", "op": "end", "ts": "…", "by": "rules", "fact": "f-…", "valid_to": "…", "by_fact": "f-…"}

The id of an ``assert`` is that of its fact; every other operation has an id that is derived from its content.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from attrs import evolve

from klaw_core import RecordError, check_metadata, quoted
from klaw_facts.values import PERSON, Batch, Digest, Fact, Quote, make_id
from klaw_journals import format_ts, parse_ts
from klaw_journals.trust import check_trust

#: Operations on one fact.
FACT_OPERATIONS = frozenset(
    {"confirm", "end", "reopen", "retract", "archive", "restore", "pin", "unpin", "edit", "link", "unquote", "propose"}
)
#: Operations on a person's facts that only a person may do.
GUARDED = frozenset({"end", "archive", "edit", "retract"})
#: Every operation.
OPERATIONS = FACT_OPERATIONS | {
    *("assert", "decide", "batch", "undo", "digest", "profile", "compact", "suppress", "merge")
}

MAX_TEXT_CHARACTERS = 10_000

_TEXTS = ("subject", "person", "category", "slot", "value", "precision", "verified", "source", "batch")
_MOMENTS = ("valid_from", "valid_to", "said_at", "affirmed_at")
_NO_BEGIN = frozenset({"by", "unknown"})
_EDITABLE = frozenset(
    {"text", "subject", "category", "slot", "value", "importance", "tags", "metadata", "valid_from", "valid_to"}
    | {"precision"}
)


def fact_record(fact: Fact, ts: datetime) -> dict[str, Any]:
    """Return the ``assert`` of a fact, without fields that have their default."""
    record: dict[str, Any] = {"id": fact.id, "op": "assert", "ts": format_ts(ts), "text": fact.text}
    plain = Fact(fact.id, fact.text, made_by=fact.made_by)
    for name in (*_TEXTS, "trust", "importance"):
        if getattr(fact, name) != getattr(plain, name):
            record[name] = getattr(fact, name)
    for name in _MOMENTS:
        if (moment := getattr(fact, name)) is not None:
            record[name] = format_ts(moment)
    if fact.tags:
        record["tags"] = list(fact.tags)
    if fact.metadata:
        record["metadata"] = _plain(fact.metadata)
    if fact.quotes:
        record["quotes"] = [quote.record() for quote in fact.quotes]
    if fact.is_pinned:
        record["pinned"] = True
    if fact.supersedes:
        record["supersedes"] = list(fact.supersedes)
    return {**record, "by": fact.made_by}


def parse_fact(record: Mapping[str, Any]) -> Fact:
    """Return the fact of an ``assert``. Raise RecordError."""
    text = _text(record, "text")
    if not text.strip() or len(text) > MAX_TEXT_CHARACTERS:
        raise RecordError(f"the text of a fact must have 1 to {MAX_TEXT_CHARACTERS:,} characters, got {len(text):,}")
    given: dict[str, Any] = {name: _text(record, name) for name in _TEXTS if record.get(name) is not None}
    given |= {name: parse_ts(record[name]) for name in _MOMENTS if record.get(name) is not None}
    importance = record.get("importance", 0.5)
    if isinstance(importance, bool) or not isinstance(importance, int | float) or not 0 <= importance <= 1:
        raise RecordError("importance must be a number from 0 to 1")
    if record.get("trust") is not None:
        given["trust"] = check_trust(record["trust"])
    recorded_at = parse_ts(record.get("ts"))
    if _is_begin_unknown(given, recorded_at):
        given["precision"] = "by"
    return Fact(
        _text(record, "id"),
        text,
        importance=float(importance),
        tags=_texts(record, "tags"),
        metadata=check_metadata(_object(record, "metadata")),
        quotes=parse_quotes(record.get("quotes", ())),
        recorded_at=recorded_at,
        made_by=_text(record, "by") if "by" in record else PERSON,
        is_pinned=record.get("pinned") is True,
        is_archived=record.get("archived") is True,
        supersedes=_texts(record, "supersedes"),
        **given,
    )


def _is_begin_unknown(given: Mapping[str, Any], recorded_at: datetime) -> bool:
    """Return whether the begin of a fact is only the moment when it was said: so earlier versions stored no begin."""
    begin = given.get("valid_from")
    if begin is None:
        return False
    return bool(begin == given.get("said_at") or (given.get("precision") == "moment" and begin == recorded_at))


def parse_quotes(value: object) -> tuple[Quote, ...]:
    """Return quotes. Raise RecordError."""
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise RecordError("quotes is not a list")
    return tuple(map(_quote, value))


def _quote(item: object) -> Quote:
    if not isinstance(item, Mapping):
        raise RecordError("a quote is not an object")
    start, end = item.get("start"), item.get("end")
    if not isinstance(start, int) or not isinstance(end, int) or not 0 <= start < end:
        raise RecordError("the start of a quote must be before its end")
    return Quote(_text(item, "chat"), _text(item, "message"), start, end)


def operation(op: str, ts: datetime, *, by: str = PERSON, **values: Any) -> dict[str, Any]:
    """Return an operation other than ``assert``. Its id is derived from its content and time."""
    told = {name: value for name, value in values.items() if value is not None}
    moment = format_ts(ts)
    name = make_id("o", op, moment, by, json.dumps(told, sort_keys=True, ensure_ascii=False))
    return {"id": name, "op": op, "ts": moment, "by": by, **told}


def batch_record(batch: Batch, ts: datetime) -> dict[str, Any]:
    """Return the line that says which messages of a chat were read."""
    counts = {
        name: value
        for name in ("facts", "confirmed", "refused", "tokens_in", "tokens_out", "calls", "error")
        if (value := getattr(batch, name))
    }
    return {
        "id": batch.id,
        "op": "batch",
        "ts": format_ts(ts),
        "chat": batch.chat,
        "after": batch.after,
        "through": batch.through,
        **({"ends": list(batch.ends)} if batch.ends else {}),
        "by": batch.by,
        "state": batch.state,
        **counts,
    }


def parse_batch(record: Mapping[str, Any]) -> Batch:
    """Return a batch. Raise RecordError."""
    state = _text(record, "state")
    if state not in {"done", "failed"}:
        raise RecordError("the state of a batch must be done or failed")
    names = ("facts", "confirmed", "refused", "tokens_in", "tokens_out", "calls")
    counts: dict[str, Any] = {name: value for name in names if isinstance(value := record.get(name, 0), int)}
    texts: list[Any] = [_text(record, name) for name in ("id", "chat", "after", "through", "by")]
    moment, error = parse_ts(record.get("ts")), str(record.get("error", ""))
    values: dict[str, Any] = {**counts, "error": error, "recorded_at": moment, "state": state}
    identity: dict[str, Any] = dict(zip(("id", "chat", "after", "through", "by"), texts, strict=True))
    return Batch(**identity, **values, ends=_texts(record, "ends"))


def digest_record(digest: Digest, ts: datetime) -> dict[str, Any]:
    """Return the line of a day's digest."""
    return {
        "id": digest.id,
        "op": "digest",
        "ts": format_ts(ts),
        "chat": digest.chat,
        "day": digest.day,
        "quotes": [quote.record() for quote in digest.quotes],
        "lines": list(digest.lines),
        "by": digest.made_by,
    }


def parse_digest(record: Mapping[str, Any]) -> Digest:
    """Return a digest. Raise RecordError."""
    name, chat, day, by = (_text(record, key) for key in ("id", "chat", "day", "by"))
    return Digest(name, chat, day, parse_quotes(record.get("quotes", ())), _texts(record, "lines"), by)


def check_operation(record: Mapping[str, Any]) -> None:
    """Raise RecordError unless this is a valid line of the journal."""
    op = _text(record, "op")
    if op not in OPERATIONS:
        raise RecordError(f"unknown operation {quoted(op, 40)}")
    if not _text(record, "id"):
        raise RecordError("id is empty")
    for name in ("batch", "by"):
        if record.get(name) is not None:
            _text(record, name)
    parse_ts(record.get("ts"))
    if op in _CHECKS:
        _CHECKS[op](record)
    elif op in FACT_OPERATIONS:
        _text(record, "fact")
        _check_details(record)


def _check_profile(record: Mapping[str, Any]) -> None:
    for name in ("facts", "lines"):
        _texts(record, name)
    _text({"basis": "", **record}, "basis")


def _check_merge(record: Mapping[str, Any]) -> None:
    _text(record, "batch")
    people = _texts(record, "people")
    if len(set(people)) < 2 or not all(people):  # noqa: PLR2004  # one is nobody else
        raise RecordError("a merge needs two people or more")


_CHECKS: Mapping[str, Callable[[Mapping[str, Any]], object]] = {
    "assert": parse_fact,
    "batch": parse_batch,
    "digest": parse_digest,
    "profile": _check_profile,
    "undo": lambda record: _text(record, "batch"),
    "decide": lambda record: _text(record, "proposal"),
    "suppress": lambda record: _text(record, "key"),
    "merge": _check_merge,
}


def _check_details(record: Mapping[str, Any]) -> None:
    """Raise RecordError unless the fields of an operation on a fact are valid."""
    if record["op"] == "edit":
        if "changes" not in record:
            raise RecordError("changes is missing")
        changes = _object(record, "changes")
        if unknown := changes.keys() - _EDITABLE:
            raise RecordError(f"an edit cannot change {', '.join(sorted(unknown))}")
        apply_changes(Fact("f", "x"), changes)
    for name in ("valid_to", "affirmed_at"):
        if record.get(name) is not None:
            parse_ts(record[name])
    if "quotes" in record:
        parse_quotes(record["quotes"])
    for name in ("by_fact", "other", "chat", "message", "reason", "precision"):
        if record.get(name) is not None:
            _text(record, name)


def apply_changes(fact: Fact, changes: Mapping[str, Any]) -> Fact:
    """Return a fact with changes applied; None clears an optional field. Raise RecordError."""
    before = fact_record(fact, fact.recorded_at or parse_ts("1970-01-01T00:00:00Z"))
    merged = {name: value for name, value in {**before, **changes}.items() if value is not None}
    edited = parse_fact(merged)
    values = {name: getattr(edited, name) for name in changes}
    if "valid_from" in changes and "precision" not in changes:
        unsaid = edited.valid_from is None
        values["precision"] = "unknown" if unsaid else "day" if fact.precision in _NO_BEGIN else fact.precision
    if "valid_to" in changes:
        values["end_precision"] = "day"
    return evolve(fact, **values)


def _plain(metadata: Mapping[str, Any]) -> dict[str, Any]:
    return {key: list(value) if isinstance(value, tuple) else value for key, value in metadata.items()}


def _text(record: Mapping[str, Any], name: str) -> str:
    value = record.get(name)
    if not isinstance(value, str):
        raise RecordError(f"{name} is {'not a string' if name in record else 'missing'}")
    return value


def _texts(record: Mapping[str, Any], name: str) -> tuple[str, ...]:
    value = record.get(name, ())
    if isinstance(value, str) or not isinstance(value, Sequence) or not all(isinstance(item, str) for item in value):
        raise RecordError(f"{name} is not a list of strings")
    return tuple(value)


def _object(record: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = record.get(name, {})
    if not isinstance(value, Mapping):
        raise RecordError(f"{name} is not an object")
    return value
