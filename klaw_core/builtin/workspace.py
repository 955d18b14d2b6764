"""The source ``workspace``: a directory of notes, Markdown and plain text.

Everything odd that a directory can hold is a named, counted :class:`SkippedEntry`, never an exception and never
a way out of the directory: links that lead outside, FIFOs, devices, loops, unreadable, binary and huge files.
"""

import codecs
import errno
import os
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, time
from hashlib import sha256
from operator import attrgetter
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from attrs import evolve, field, frozen, validators

from klaw_core.builtin.front_matter import read_front_matter, written_date
from klaw_core.builtin.ignore_files import IgnoreRules
from klaw_core.builtin.titles import note_title
from klaw_core.builtin.unreadable import blank_unreadable
from klaw_core.builtin.walking import Linked, Patterns, Walk, is_below, is_hidden, real_path
from klaw_core.errors import ConversionError, PluginError, WorkspaceError
from klaw_core.values.days import leading_day
from klaw_core.values.documents import Document, Entry
from klaw_core.values.metadata import Metadata
from klaw_core.values.runs import VANISHED, SkippedEntry
from klaw_core.values.text import DEFAULT_FORMAT, PLAIN_FORMAT, text_hash

if TYPE_CHECKING:
    from klaw_core.interfaces.converter import Converters

# The two files that agents' memory conventions read first.
_FIRST = ("MEMORY.md", "memory.md")


#: The names of files that are read unless others are chosen.
DEFAULT_INCLUDE = ("*.md", "*.markdown", "*.txt")
# What the configured chunker cuts; files of other names are cut as plain text.
_MARKDOWN = (".md", ".markdown", ".mdown", ".mkd", ".mdx", ".qmd", ".rmd")

# Part of what an index run remembers of a note: raise it whenever `read` makes another document of the same bytes.
_READING = 1
_DIGEST_CHARACTERS = 32  # 128 bits
_RECIPE_CHARACTERS = 8  # it tells a converter's version from those that were there before
_NOTES = (*_MARKDOWN, ".txt")  # which no converter reads

#: The reason of a file without text.
EMPTY = "is empty"


def can_name(name: str) -> bool:
    """Return whether documents can be named after a workspace of this name: ``NAME/relative/path.md``."""
    return bool(name) and "/" not in name and not name.startswith(".") and name.isprintable()


def _absolute(_options: object, attribute: Any, value: str) -> None:
    if not value.startswith(("/", "~")):  # another directory in each place that Klaw is started from
        raise ValueError(f"{attribute.name}: expected an absolute path, or one that begins with ~, got {value!r}")


def _sound(options: "WorkspaceOptions", attribute: Any, _value: str) -> None:
    if not can_name(options.origin):
        raise ValueError(f"{attribute.name}: {options.origin!r} is not a valid workspace name")


@frozen
class WorkspaceOptions:
    """Options of ``[[memory.sources]] type = "workspace"``."""

    path: str = field(validator=_absolute)
    name: str = field(default="", validator=_sound)  # default: the directory's own name
    include: tuple[str, ...] = DEFAULT_INCLUDE
    exclude: tuple[str, ...] = ()
    max_bytes: int = field(default=10 * 1024 * 1024, validator=validators.ge(1))

    @property
    def root(self) -> Path:
        """The directory."""
        return Path(self.path).expanduser().absolute()

    @property
    def origin(self) -> str:
        """The name that paths of its documents begin with."""
        return self.name or self.root.name or "root"


@frozen
class Workspace:
    """The notes below ``root``, named ``origin/relative/path.md``.

    ``include`` are patterns of file names, in any case; ``exclude`` patterns of relative paths. Hidden files and
    directories, ``node_modules``, and what ``.gitignore`` and ``.klawignore`` name are never entered. Files over
    ``max_bytes`` are skipped. ``collection`` is where the documents belong, ``version`` that of the software which
    documentation describes. ``converters`` turn files into text that are not notes; with the default ``include`` those
    that they read are included.
    """

    root: Path
    origin: str
    include: tuple[str, ...] = DEFAULT_INCLUDE
    exclude: tuple[str, ...] = ()
    max_bytes: int = 10 * 1024 * 1024
    collection: str = "memory"
    version: str = ""
    converters: "Converters | None" = field(default=None, eq=False, repr=False)

    def scan(self) -> Iterable[Entry | SkippedEntry]:
        """Return MEMORY.md, memory.md, then every other note by path. Raise WorkspaceError if the root is gone."""
        if not self.root.is_dir():
            problem = "is not a directory" if self.root.exists() else "does not exist"
            raise WorkspaceError(
                f"{self.root} {problem}", hint=f"`klaw forget {self.origin}/` removes its documents from the index"
            )
        walk = self._walk()
        found = list(walk)
        linked = {item.entry: item.real for item in found if isinstance(item, Linked)}
        files = sorted([*(item for item in found if isinstance(item, Entry)), *linked], key=attrgetter("path"))
        early = {f"{self.origin}/{name}": number for number, name in enumerate(_FIRST)}
        first = sorted((entry for entry in files if entry.path in early), key=lambda entry: early[entry.path])
        if first:
            files = [*first, *(entry for entry in files if entry.path not in early)]
        if linked:
            # Of several names of one file the first in this order stands for it: MEMORY.md, though a link, before all.
            top = real_path(walk.root).rstrip("/")
            distinct: dict[str, Entry] = {}
            for entry in files:
                distinct.setdefault(linked.get(entry) or top + entry.path.removeprefix(self.origin), entry)
            files = list(distinct.values())
        return [*files, *(item for item in found if isinstance(item, SkippedEntry))]

    def read(self, entry: Entry, /) -> Document | SkippedEntry:
        """Read one note, or another file; return a SkippedEntry with the reason if it cannot be read as text."""
        found = self._loaded(entry.path)
        return found if isinstance(found, SkippedEntry) else self._document(entry.path, *found)

    def read_changed(self, entry: Entry, digest: str, /) -> Document | SkippedEntry | None:
        """Read one note, as :meth:`read` does, or return None if its bytes are those of a document's ``digest``."""
        found = self._loaded(entry.path)
        if isinstance(found, SkippedEntry):
            return found
        if digest in self._digests(entry.path, *found):
            return None
        return self._document(entry.path, *found)

    def _document(self, path: str, data: bytes, modified: datetime) -> Document | SkippedEntry:
        if (converters := self._converters_of(path)) is not None:
            return self._converted(converters, path, data, modified)
        try:
            metadata, text = read_front_matter(decode(data))
        except _NotANoteError as error:
            return SkippedEntry(path, str(error), keep=False)
        relative = path.removeprefix(f"{self.origin}/")
        written = _written_at(relative, metadata)
        dated, undated = self._digests(path, data, modified)
        return Document(
            path,
            blank_unreadable(text),
            relative,
            self.origin,
            written or modified,
            version=self.version,
            format=DEFAULT_FORMAT if relative.lower().endswith(_MARKDOWN) else PLAIN_FORMAT,
            metadata=metadata,
            title=note_title(relative, metadata),
            is_note=True,
            digest=dated if written else undated,
        )

    def _converted(
        self, converters: "Converters", path: str, data: bytes, modified: datetime
    ) -> Document | SkippedEntry:
        """Return the document that a converter makes of a file."""
        try:
            made = converters.convert(path, data)
        except ConversionError as error:
            return SkippedEntry(path, str(error), keep=error.keep)
        except PluginError as error:  # this file's alone: the others can be read
            return SkippedEntry(path, str(error), keep=True)
        relative = path.removeprefix(f"{self.origin}/")
        dated, undated = self._digests(path, data, modified)
        return Document(
            path,
            blank_unreadable(made.text),
            relative,
            self.origin,
            made.created_at or modified,
            version=self.version,
            format=made.format,
            metadata=made.metadata,
            title=note_title(relative, made.metadata),
            is_note=True,
            digest=dated if made.created_at else undated,
        )

    def file_text(self, path: str, /) -> str | SkippedEntry:
        """Return the text of a note's file as it is now, front matter and all, or the text it is converted to."""
        found = self._loaded(path)
        if isinstance(found, SkippedEntry):
            return found
        if (converters := self._converters_of(path)) is not None:
            try:
                return converters.convert(path, found[0]).text
            except (ConversionError, PluginError) as error:
                return SkippedEntry(path, str(error), keep=False)
        try:
            return decode(found[0])
        except _NotANoteError as error:
            return SkippedEntry(path, str(error), keep=False)

    def _loaded(self, path: str) -> tuple[bytes, datetime] | SkippedEntry:
        """Return the bytes of a note's file, and when it was modified."""
        try:
            return self._bytes(self.root / path.removeprefix(f"{self.origin}/"))
        except OSError as error:
            gone = error.errno in {errno.ENOENT, errno.ENOTDIR}
            return SkippedEntry(path, VANISHED if gone else f"cannot be read: {error.strerror}", keep=True)
        except _NotANoteError as error:
            return SkippedEntry(path, str(error), keep=False)

    def holds(self, relative: str) -> bool:
        """Return whether this is the relative path of a note that a scan would find: not hidden, not outside."""
        if self._left_out(relative):
            return False
        path = self.root / relative
        try:
            return path.is_file() and self._contains(path)
        except (OSError, ValueError):  # a name too long, or with a NUL
            return False

    def unread(self) -> Mapping[str, int]:
        """Count the files of other kinds than those that are read, by the ending of their names, the most first."""
        found = evolve(self, include=("*",))._walk()  # noqa: SLF001  # of the same class
        entries = (item.entry if isinstance(item, Linked) else item for item in found)
        names = (PurePosixPath(entry.path).name for entry in entries if isinstance(entry, Entry))
        return count_kinds(name for name in names if not self._includes(name))

    def why_left_out(self, path: str) -> str:
        """Return why a scan does not find the file of a document path, and what changes that; empty if it does.

        A file that is not there at all is left out for no reason.
        """
        relative = path.removeprefix(f"{self.origin}/")
        try:
            there = (self.root / relative).is_file()
        except (OSError, ValueError):  # a name too long, or with a NUL
            there = False
        return self._left_out(relative) if there else ""

    def _left_out(self, relative: str) -> str:
        parts = relative.split("/")
        below = ["/".join(parts[: depth + 1]) for depth in range(len(parts))]
        if any(map(is_hidden, parts)):
            return "is never read: it is hidden, or in a hidden directory or node_modules"
        if pattern := next(filter(None, map(self._excluded_by, below)), ""):
            return f"is excluded by the pattern {pattern!r}"
        if not self._includes(parts[-1]):
            return f"does not match {' or '.join(self.include)}"
        if IgnoreRules(self.root).ignores_file(relative):
            return "is ignored by a .gitignore or .klawignore file"
        return ""

    def locate(self, path: str, /) -> str | None:
        """Return the document of the note at ``path`` in the file system, None if it is none of this workspace."""
        try:
            named = Path(path).expanduser().absolute()
            places = (named, named.resolve())
        except (OSError, ValueError, RuntimeError):  # no such user, a loop of links, a NUL
            return None
        below = (place.relative_to(self.root).as_posix() for place in places if place.is_relative_to(self.root))
        return next((f"{self.origin}/{relative}" for relative in below if self.holds(relative)), None)

    def file_of(self, path: str, /) -> Path | None:
        """Return the file of a document, None if a scan would not find it."""
        origin, _, relative = path.partition("/")
        return self.root / relative if origin == self.origin and self.holds(relative) else None

    def watch_paths(self) -> Sequence[Path]:
        """Return the directory."""
        return (self.root,)

    def why_not_forgotten(self, path: str) -> tuple[str, str]:
        """Return why a note cannot be forgotten, and what to do instead."""
        relative = path.removeprefix(f"{self.origin}/")
        return (
            f"{path} comes from a source in the configuration, so the next `klaw index` would add it again",
            f'add "{relative}" to exclude in its [[memory.sources]] table, then `klaw index`',
        )

    def _bytes(self, path: Path) -> tuple[bytes, datetime]:
        """Return a file's bytes and when it was modified, to the second. Raise OSError or _NotANoteError."""
        if not self._contains(path):
            raise _NotANoteError("points outside the workspace")
        # Not blocking: between scan and read a file may have become a FIFO that nobody writes to.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        with open(descriptor, "rb") as file:  # noqa: PTH123  # a descriptor, not a path
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise _NotANoteError("is not a regular file")
            _, most = self._kind_of(path.name)
            # Of a file that is too large nothing is read.
            data = b"" if status.st_size > most else file.read(most + 1)
        if max(len(data), status.st_size) > most:
            raise _NotANoteError(f"is larger than {most:,} bytes ({status.st_size:,})")
        return data, _moment(status.st_mtime)

    def _contains(self, path: Path) -> bool:
        try:
            return is_below(os.path.realpath(path), os.path.realpath(self.root))
        except (OSError, ValueError):  # a NUL
            return False

    def _walk(self) -> Walk:
        return Walk(
            str(self.root),
            self.origin,
            self._includes_of(),
            Patterns.of(self.exclude),
            self.max_bytes,
            self._reading,
            None if self.converters is None else self._kind_of,
        )

    def _converters_of(self, name: str) -> "Converters | None":
        """Return what converts a file, given its name or its path; None for a note, which is read as it is."""
        if self.converters is None or name.lower().endswith(_NOTES):
            return None
        return self.converters if self.converters.reads(PurePosixPath(name).name) else None

    def _kind_of(self, name: str) -> tuple[str, int]:
        """Return what a document depends on besides its file, given its name or its path, and its largest size."""
        if (converters := self._converters_of(name)) is None:
            return self._reading, self.max_bytes
        name = PurePosixPath(name).name
        recipe = text_hash(converters.recipe(name))[:_RECIPE_CHARACTERS]
        return f"{self._reading}{recipe}.", max(self.max_bytes, converters.max_bytes(name))

    @property
    def _reading(self) -> str:
        """What a document depends on besides its file."""
        return f"{_READING}.{text_hash(self.version)[:8]}." if self.version else f"{_READING}."

    def _digests(self, path: str, data: bytes, modified: datetime) -> tuple[str, str]:
        """Return what tells a note's bytes from others: of one that says its date itself, and of any other."""
        digest = f"{self._kind_of(path)[0]}{sha256(data).hexdigest()[:_DIGEST_CHARACTERS]}"
        return digest, f"{digest}.{int(modified.timestamp()):x}"

    def _includes(self, name: str) -> bool:
        return self._includes_of()(name)

    def _includes_of(self) -> Callable[[str], bool]:
        """Return what tells by its name whether a file is read."""
        include = Patterns.of(tuple(pattern.lower() for pattern in self.include))
        converters = self.converters if self.include == DEFAULT_INCLUDE else None
        if converters is None:
            return lambda name: include.match(name.lower())
        return lambda name: include.match(name.lower()) or converters.reads(name, requested=False)

    def _excluded_by(self, relative: str) -> str:
        return Patterns.of(self.exclude).first(relative)


def count_kinds(names: Iterable[str]) -> Mapping[str, int]:
    """Count files by the ending of their names, in small letters, the most first."""
    counts = Counter(PurePosixPath(name).suffix.lower() or name for name in names)
    return dict(sorted(counts.items(), key=lambda kind: (-kind[1], kind[0])))


class _NotANoteError(Exception):
    """The file holds nothing that can be indexed; the message says why."""


def decode(data: bytes) -> str:
    """Decode a note: UTF-8, or UTF-16 or -32 where a byte order mark says so. Raise _NotANoteError otherwise."""
    if data.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        encoding = "utf-32"
    elif data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encoding = "utf-16"
    elif b"\0" in data[:8192]:
        raise _NotANoteError("is binary")
    else:
        encoding = "utf-8-sig"
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        name = encoding.removesuffix("-sig").upper()
        raise _NotANoteError(f"is not valid {name} (byte {error.start:,})") from error
    if not text.strip():
        raise _NotANoteError(EMPTY)
    return text


def _moment(seconds: float) -> datetime:
    """Return when a file was modified, to the second; the epoch where the file system says what no calendar does."""
    try:
        return datetime.fromtimestamp(int(seconds), UTC)
    except (OverflowError, ValueError, OSError):
        return datetime.fromtimestamp(0, UTC)


def _written_at(relative: str, metadata: Metadata) -> datetime | None:
    """Return when a note says that it was written: its ``date``, the day in its name, or when it was created.

    A note of a day may well have been created on another. A clone or a copy resets the file's own times.
    """
    if (moment := written_date(metadata, ("date",))) is not None:
        return moment
    day = leading_day(Path(relative).name)
    return written_date(metadata) if day is None else datetime.combine(day, time(), UTC)
