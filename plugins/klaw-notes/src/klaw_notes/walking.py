"""Walk a workspace: visit every directory once, and read each file's status without opening the file."""

from __future__ import annotations

import errno
import os
import re
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from fnmatch import translate
from functools import lru_cache
from operator import attrgetter

from attrs import frozen

from klaw_core import Entry, SkippedEntry
from klaw_notes.ignore_files import IgnoreRules
from klaw_notes.patterns import comparable

# Two changes within this time may leave all times of a file equal. The coarsest clock of a file system in use (FAT)
# has ticks of two seconds; others have ticks of some milliseconds.
_TICK = 2_000_000_000  # nanoseconds
_LITERAL = re.compile(r"\[([*?[])\]")
_SPECIAL = re.compile(r"[*?[]")
_name_of = attrgetter("name")


@frozen
class Patterns:
    """Shell patterns, as in ``fnmatch``, of names in any form of Unicode. Those without wildcards are in a set."""

    patterns: tuple[str, ...]
    literals: frozenset[str]
    expression: re.Pattern[str] | None

    @classmethod
    def of(cls, patterns: Sequence[str]) -> Patterns:
        """Compile patterns."""
        return _compiled(tuple(patterns))

    def match(self, text: str) -> bool:
        """Return whether any pattern matches the whole text."""
        text = comparable(text)
        return text in self.literals or (self.expression is not None and self.expression.match(text) is not None)

    def first(self, text: str) -> str:
        """Return the first pattern that matches; empty if none does."""
        return next((pattern for pattern in self.patterns if Patterns.of((pattern,)).match(text)), "")


@lru_cache(maxsize=64)
def _compiled(patterns: tuple[str, ...]) -> Patterns:
    bare = {pattern: _LITERAL.sub("", pattern) for pattern in map(comparable, patterns)}
    literals = frozenset(_LITERAL.sub(r"\1", pattern) for pattern, rest in bare.items() if not _SPECIAL.search(rest))
    wild = [translate(pattern) for pattern, rest in bare.items() if _SPECIAL.search(rest)]
    return Patterns(patterns, literals, re.compile("|".join(wild)) if wild else None)


@frozen
class Linked:
    """A symbolic link to a file, and the real path of the file."""

    entry: Entry
    real: str


@frozen
class Walk:
    """The files below a directory whose name ``includes`` accepts, and the entries that cannot be read as files.

    Paths begin with ``origin``. ``excludes`` are patterns of paths relative to ``root``. The entry of a file up to
    ``max_bytes`` has a fingerprint that begins with ``reading``, unless the file was changed just now. ``kind_of``
    returns both for a file name, if they differ between files.
    """

    root: str
    origin: str
    includes: Callable[[str], object]
    excludes: Patterns
    max_bytes: int
    reading: str = ""
    kind_of: Callable[[str], tuple[str, int]] | None = None

    def __iter__(self) -> Iterator[Entry | Linked | SkippedEntry]:
        """Walk the directories, each real one once even if several links lead to it; yield links last."""
        top = real_path(self.root)
        pending, links = [("", top)], list[tuple[str, str]]()
        seen: set[str] = set()
        rules = IgnoreRules(self.root)
        while pending or links:
            is_linked = not pending
            relative, real = links.pop() if is_linked else pending.pop()
            if real in seen:
                continue
            seen.add(real)
            try:
                with os.scandir(f"{self.root}/{relative}") as listing:
                    children = sorted(listing, key=_name_of, reverse=True)
            except OSError as error:
                yield SkippedEntry(self._name(relative), f"cannot be read: {error.strerror}", keep=True)
                continue
            now = time.time_ns()  # before the status of any file is read
            for child, path, is_directory in self._children(children, relative, rules):
                is_link = child.is_symlink()
                if not (is_link or is_directory or is_linked):
                    yield self._file(child, path, now)
                    continue
                # Only links can lead outside; the children of a real directory are inside.
                place = real_path(child.path) if is_link else f"{real.rstrip('/')}/{child.name}"
                if is_link and not is_below(place, top):
                    yield self._outside(child, path)
                elif is_directory:
                    (links if is_link or is_linked else pending).append((path, place))
                else:
                    entry = self._file(child, path, now)
                    yield Linked(entry, place) if isinstance(entry, Entry) else entry
            yield from (SkippedEntry(self._name(name), reason, keep=False) for name, reason in rules.problems())

    def _children(
        self, children: Sequence[os.DirEntry[str]], directory: str, rules: IgnoreRules
    ) -> Iterator[tuple[os.DirEntry[str], str, bool]]:
        """Yield the children of a directory that belong to the workspace: entry, relative path, is it a directory."""
        ignores = rules.below(directory)
        excludes = self.excludes.match if self.excludes.patterns else None
        above = f"{directory}/" if directory else ""
        for child in children:
            name = child.name
            is_directory = _is_directory(child)
            if is_hidden(name) or not (is_directory or self.includes(name)):
                continue
            path = above + name
            if (excludes is not None and excludes(path)) or (ignores is not None and ignores(path, is_directory)):
                continue
            yield child, path, is_directory

    def _outside(self, child: os.DirEntry[str], relative: str) -> SkippedEntry:
        """Return the reason for skipping a link: it leads outside the workspace, or to nothing."""
        return self._unusable(child, relative) or SkippedEntry(
            self._name(relative), "points outside the workspace", keep=False
        )

    def _unusable(self, child: os.DirEntry[str], relative: str) -> SkippedEntry | None:
        if _is_directory(child):
            return None
        name = self._name(relative)
        if name != f"{self.origin}/{relative}":
            return SkippedEntry(name, "has a name that is not valid UTF-8", keep=False)
        try:
            child.stat()
        except OSError as error:
            reason = "is a broken link" if error.errno == errno.ENOENT else f"cannot be read: {error.strerror}"
            return SkippedEntry(name, reason, keep=error.errno != errno.ENOENT)
        return None

    def _file(self, child: os.DirEntry[str], relative: str, now: int) -> Entry | SkippedEntry:
        name = f"{self.origin}/{relative}"
        if (problem := None if relative.isascii() else self._unusable(child, relative)) is not None:
            return problem
        try:
            status = child.stat()
        except OSError:
            return self._unusable(child, relative) or SkippedEntry(name, "cannot be read", keep=True)
        if not stat.S_ISREG(status.st_mode):
            return SkippedEntry(name, "is not a regular file", keep=False)
        reading, most = (self.reading, self.max_bytes) if self.kind_of is None else self.kind_of(child.name)
        if status.st_size > most or not (state := file_state(status, now)):
            return Entry(name, status.st_size)
        return Entry(name, status.st_size, reading + state)

    def _name(self, relative: str) -> str:
        r"""Return the document path of a file; bytes that are not UTF-8 become ``\udcff``, so that it can be shown."""
        shown = relative.encode("utf-8", "backslashreplace").decode()
        return f"{self.origin}/{shown}" if relative else self.origin


def file_state(status: os.stat_result, now: int) -> str:
    """Return a string, computed from a file's status, that changes whenever its bytes change.

    It is empty if the file was changed so shortly before ``now`` (nanoseconds, read before ``status``) that another
    change could leave the same status.
    """
    modified, changed = status.st_mtime_ns, status.st_ctime_ns
    settled = now - _TICK
    if modified > settled or changed > settled:
        return ""
    return f"{status.st_ino:x}.{status.st_size:x}.{modified:x}.{changed - modified:x}"


def is_hidden(name: str) -> bool:
    """Return whether files and directories of this name are never entered."""
    return name.startswith(".") or name == "node_modules"


def real_path(path: str) -> str:
    """Resolve a path; return it unchanged if that fails, for example because a file was just replaced by a link."""
    try:
        return os.path.realpath(path)
    except OSError:
        return path


def is_below(real: str, root: str) -> bool:
    """Return whether a resolved path is another resolved path or lies below it, and is not a loop of links."""
    return (real == root or real.startswith(root.rstrip("/") + "/")) and not _loops(real)


def _loops(real: str) -> bool:
    """Return whether a resolved path is a loop of links, which resolving does not change."""
    try:
        os.stat(real)  # noqa: PTH116  # a fraction of the time
    except OSError as error:
        return error.errno == errno.ELOOP
    return False


def _is_directory(child: os.DirEntry[str]) -> bool:
    try:
        return child.is_dir()
    except OSError:  # a loop of links cannot be entered
        return False
