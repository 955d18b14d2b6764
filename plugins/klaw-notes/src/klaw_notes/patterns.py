"""Patterns of file names and paths, as people write them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from unicodedata import normalize

from klaw_core import WorkspaceError

# The first character of a set may be a bracket, also after an exclamation mark.
_SET = re.compile(r"(?s)\[!?+.[^]]*\]")
_HINT = "give a pattern such as '*.md' or 'drafts/*'; [[] stands for the character ["


def as_patterns(patterns: Sequence[str]) -> tuple[str, ...]:
    """Normalize patterns; a string counts as one pattern.

    Raise WorkspaceError for one that is empty or has a bracket without its end.
    """
    given = (patterns,) if isinstance(patterns, str) else patterns
    found = normalized(given)
    for pattern in found:
        if problem := problem_of(pattern):
            raise WorkspaceError(problem, hint=_HINT)
    return found


def normalized(patterns: Iterable[str]) -> tuple[str, ...]:
    """Return patterns relative to the directory: ``./drafts/`` and ``/drafts`` become ``drafts``."""
    return tuple(pattern.removeprefix("./").strip("/") for pattern in patterns)


def comparable(text: str) -> str:
    """Return a name or a pattern in composed characters: macOS and other systems write the same name in two forms."""
    return text if text.isascii() else normalize("NFC", text)


def forms(name: str) -> list[str]:
    """Return a name as it is, and in the two forms of Unicode in which systems write it; each once."""
    return list(dict.fromkeys((name, normalize("NFC", name), normalize("NFD", name))))


def problem_of(pattern: str) -> str:
    """Return why a pattern cannot be meant so; empty if it can. ``fnmatch`` takes a bracket with no end literally."""
    if not pattern:
        return "a file pattern is empty"
    if "[" in _SET.sub("", pattern):
        return f"the file pattern {pattern!r} has a bracket without its end"
    return ""


def unmatched_names(patterns: Iterable[str], names: Iterable[str]) -> list[str]:
    """Return the patterns that match none of these file names, in any case."""
    names = {comparable(name.lower()) for name in names}
    wanted = [(pattern, comparable(pattern.lower())) for pattern in patterns]
    return [pattern for pattern, lower in wanted if not any(fnmatchcase(name, lower) for name in names)]


def unmatched_paths(patterns: Iterable[str], paths: Iterable[str]) -> list[str]:
    """Return the patterns that match none of these relative paths, nor a directory above one."""
    every = {
        "/".join(parts[: depth + 1])
        for parts in (comparable(path).split("/") for path in paths)
        for depth in range(len(parts))
    }
    wanted = [(pattern, comparable(pattern)) for pattern in patterns]
    return [pattern for pattern, composed in wanted if not any(fnmatchcase(path, composed) for path in every)]
