"""Moments in the form of the tables."""

from datetime import MINYEAR, UTC, datetime

from klaw_core import quoted

_FIRST = datetime.min.replace(tzinfo=UTC)
_LAST = datetime.max.replace(tzinfo=UTC)
#: The value for an unreadable moment.
UNKNOWN = datetime(1970, 1, 1, tzinfo=UTC)


def to_text(moment: datetime) -> str:
    """Return a moment as UTC text of fixed width, so that the order of texts is the order of times.

    A moment outside the range of datetime in UTC becomes the first or last moment of that range.
    """
    try:
        universal = moment.astimezone(UTC)
    except OverflowError:
        universal = _FIRST if moment.year == MINYEAR else _LAST
    return universal.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def from_text(text: str) -> datetime:
    """Parse the text of :func:`to_text`. Raise ValueError for anything else."""
    if not isinstance(text, str):
        raise ValueError(f"{quoted(text)} is not the text of a moment")  # noqa: TRY004  # a damaged row, not a defect
    return datetime.fromisoformat(text)
