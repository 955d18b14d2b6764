"""Moments as the tables keep them."""

from datetime import MINYEAR, UTC, datetime

_FIRST = datetime.min.replace(tzinfo=UTC)
_LAST = datetime.max.replace(tzinfo=UTC)
#: Stands for a moment that cannot be read any more.
UNKNOWN = datetime(1970, 1, 1, tzinfo=UTC)


def to_text(moment: datetime) -> str:
    """Return a moment as UTC text of fixed width, so that text order is time order.

    A moment before the first there is in UTC, or after the last, becomes that one.
    """
    try:
        universal = moment.astimezone(UTC)
    except OverflowError:
        universal = _FIRST if moment.year == MINYEAR else _LAST
    return universal.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def from_text(text: str) -> datetime:
    """Return the moment that :func:`to_text` wrote."""
    return datetime.fromisoformat(text)
