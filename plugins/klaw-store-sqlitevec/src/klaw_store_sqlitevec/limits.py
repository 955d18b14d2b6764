"""Numbers that SQLite can take."""

_LARGEST = 2**63 - 1


def clamp(limit: int) -> int:
    """Return a limit that SQLite can take and that says the same; below zero it would be none."""
    return min(max(limit, 0), _LARGEST)
