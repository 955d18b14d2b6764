"""Moments in the files that a person owns: ISO 8601 in UTC, in milliseconds."""

import time
from datetime import UTC, datetime

from klaw_core import RecordError, StoreError

_SHOWN = 40


def require_clock() -> None:
    """Raise StoreError if the clock shows a moment that Python cannot represent: no message could be logged."""
    try:
        time.time()
    except OverflowError as error:
        raise StoreError("the clock of this machine shows a year after 2262", hint="set its date") from error


def as_utc(moment: datetime) -> datetime:
    """Return a moment in UTC, truncated to milliseconds. Raise RecordError if it has no time zone."""
    if not isinstance(moment, datetime):
        raise RecordError(f"expected a datetime, got {shown(moment)}")
    if moment.tzinfo is None:
        raise RecordError(f"the time {moment.isoformat()} has no time zone", hint="add Z for UTC")
    try:
        moment = moment.astimezone(UTC)
    except OverflowError as error:
        raise RecordError(f"the time {moment.isoformat()} is out of range") from error
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def format_ts(moment: datetime) -> str:
    """Return an aware moment as ``2026-02-24T10:15:30.123Z``. Raise RecordError."""
    return as_utc(moment).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def parse_ts(text: object) -> datetime:
    """Parse an ISO 8601 text with a time zone; return the moment in UTC. Raise RecordError."""
    if not isinstance(text, str):
        raise RecordError(f"expected an ISO 8601 string, got {shown(text)}")
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise RecordError(f"the time {shown(text)} is not ISO 8601") from error
    return as_utc(moment)


def shown(value: object) -> str:
    """Return a value for an error message: a short text, or only its type."""
    if isinstance(value, str):
        from klaw_redaction import Redactor  # here, because few programs need it

        value = Redactor().text(value)  # before it is cut, because a part of a secret is not recognised
        return repr(value if len(value) <= _SHOWN else value[:_SHOWN] + "…")
    names = {dict: "an object", list: "an array", bool: "true or false", int: "a number", float: "a number"}
    return names.get(type(value), "null" if value is None else type(value).__name__)
