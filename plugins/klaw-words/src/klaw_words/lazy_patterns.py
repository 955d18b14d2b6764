"""Regular expressions that are compiled when they are first used.

A module with many of them is imported in a fraction of the time, and a process compiles only those that it needs.
"""

from __future__ import annotations

import re
from typing import Any, cast


class _LazyPattern:
    """Stands for a pattern: its attributes are those of the compiled one."""

    def __init__(self, pattern: str, flags: int) -> None:
        self._given = pattern, flags

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the compiled pattern, and keep it, so that the next use takes no time."""
        found = self.__dict__[name] = getattr(re.compile(*self._given), name)
        return found


def lazy_pattern(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """Return what can be used as ``re.compile(pattern, flags)`` by its methods; ``re.error`` comes with the first."""
    return cast("re.Pattern[str]", _LazyPattern(pattern, flags))
