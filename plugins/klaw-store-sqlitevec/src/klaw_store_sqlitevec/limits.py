"""Limits of SQLite's integers."""

_MAX_INTEGER = 2**63 - 1


def clamp(limit: int) -> int:
    """Return an equivalent limit in SQLite's range. SQLite reads a negative limit as no limit."""
    return min(max(limit, 0), _MAX_INTEGER)
