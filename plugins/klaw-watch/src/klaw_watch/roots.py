"""What is watched: the files and directories of every source, as they are now."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from attrs import frozen

from klaw_core import Memory

# Of these nothing is ever a document; rules of what is left out change what is.
_NEVER = ("node_modules", "__pycache__")
_RULES = (".gitignore", ".klawignore")

#: What tells whether a path is still the same file or directory: device and inode.
Identity = tuple[int, int]


@frozen
class Root:
    """A file or directory of a source, and which it was when it was looked at; None if there was none."""

    origin: str
    path: Path
    identity: Identity | None
    is_conversation: bool = False

    def relative(self, path: Path) -> Path | None:
        """Return where a path lies below this one, None if it does not, or if nothing there can be a document."""
        try:
            inside = path.relative_to(self.path)
        except ValueError:
            return None
        hidden = any(part in _NEVER or part.startswith(".") for part in inside.parts[:-1])
        named = inside.name in _NEVER or (inside.name.startswith(".") and inside.name not in _RULES)
        return None if hidden or named else inside


def roots_of(memory: Memory) -> tuple[Root, ...]:
    """Return what the sources of a memory want to be watched. Raise KlawError if that cannot be said."""
    directories = {source.origin for source in memory.sources() if source.root is not None}
    return tuple(
        Root(origin, path, identity_of(path), is_conversation=origin not in directories)
        for origin, paths in memory.watch_paths().items()
        for path in paths
    )


def identity_of(path: Path) -> Identity | None:
    """Return which file or directory a path is now, None if it is none that can be looked at."""
    try:
        status = path.stat()
    except OSError:
        return None
    return (status.st_dev, status.st_ino)


def changes_rules(path: Path) -> bool:
    """Return whether a file says what else is left out."""
    return path.name in _RULES


def files_below(directory: Path, most: int) -> list[Path] | None:
    """Return the files below a directory, None if there are more than ``most``."""
    found: list[Path] = []
    for file in _walk(directory):
        found.append(file)
        if len(found) > most:
            return None
    return found


def _walk(directory: Path) -> Iterator[Path]:
    try:
        children = list(directory.iterdir())
    except OSError:  # gone again, or not to be read: an index run says so
        return
    for child in children:
        if child.name in _NEVER or child.name.startswith("."):
            continue
        if child.is_dir() and not child.is_symlink():
            yield from _walk(child)
        else:
            yield child
