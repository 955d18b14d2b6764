"""Moments as the tables keep them."""

from datetime import UTC, datetime


def to_text(moment: datetime) -> str:
    """Return a moment as UTC text of fixed width, so that text order is time order."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def from_text(text: str) -> datetime:
    """Return the moment that :func:`to_text` wrote."""
    return datetime.fromisoformat(text)
