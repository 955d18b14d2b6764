"""The watched paths: the current files and directories of every source."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from attrs import frozen

from klaw_core import Memory

# Directories that never contain documents, and files with rules that exclude documents.
_NEVER = ("node_modules", "__pycache__")
_RULES = (".gitignore", ".klawignore")

#: Device and inode, which identify a file or directory.
Identity = tuple[int, int]


@frozen
class Root:
    """A file or directory of a source, and its identity at the last look; None if it did not exist."""

    origin: str
    path: Path
    identity: Identity | None
    is_conversation: bool = False

    def relative(self, path: Path) -> Path | None:
        """Return a path relative to this one; None if it is outside, or cannot contain documents."""
        try:
            inside = path.relative_to(self.path)
        except ValueError:
            return None
        hidden = any(part in _NEVER or part.startswith(".") for part in inside.parts[:-1])
        named = inside.name in _NEVER or (inside.name.startswith(".") and inside.name not in _RULES)
        return None if hidden or named else inside


def roots_of(memory: Memory) -> tuple[Root, ...]:
    """Return the paths that the sources of a memory want to be watched. Raise KlawError if a source cannot tell."""
    directories = {source.origin for source in memory.sources() if source.root is not None}
    return tuple(
        Root(origin, path, identity_of(path), is_conversation=origin not in directories)
        for origin, paths in memory.watch_paths().items()
        for path in paths
    )


def identity_of(path: Path) -> Identity | None:
    """Return the identity of the file or directory at a path; None if it does not exist or cannot be read."""
    try:
        status = path.stat()
    except OSError:
        return None
    return (status.st_dev, status.st_ino)


def changes_rules(path: Path) -> bool:
    """Return whether a file contains rules that exclude other files."""
    return path.name in _RULES


def files_below(directory: Path, most: int) -> list[Path] | None:
    """Return the files below a directory; None if there are more than ``most``."""
    found: list[Path] = []
    for file in _walk(directory):
        found.append(file)
        if len(found) > most:
            return None
    return found


def _walk(directory: Path) -> Iterator[Path]:
    try:
        children = list(directory.iterdir())
    except OSError:  # deleted or not readable, which an index run reports
        return
    for child in children:
        if child.name in _NEVER or child.name.startswith("."):
            continue
        if child.is_dir() and not child.is_symlink():
            yield from _walk(child)
        else:
            yield child
