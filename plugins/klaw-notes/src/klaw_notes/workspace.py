"""The source ``workspace``: a directory of notes, Markdown and plain text.

Everything unusual becomes a :class:`SkippedEntry` with a reason, and never an exception or a way out of the directory:
links that lead outside, FIFOs, devices, loops, and files that are unreadable, binary or too large.
"""

import codecs
import errno
import os
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, time
from hashlib import sha256
from itertools import islice
from operator import attrgetter
from pathlib import Path, PurePosixPath
from shlex import quote
from typing import TYPE_CHECKING

from attrs import evolve, field, frozen

from klaw_core import (
    ConversionError,
    Descriptor,
    Document,
    Entry,
    Folder,
    Metadata,
    PluginError,
    SkippedEntry,
    Source,
    WorkspaceError,
)
from klaw_core.values.runs import EMPTY, VANISHED
from klaw_core.values.text import DEFAULT_FORMAT, PLAIN_FORMAT, text_hash
from klaw_notes.front_matter import read_front_matter, written_date
from klaw_notes.ignore_files import IgnoreRules
from klaw_notes.patterns import unmatched_names, unmatched_paths
from klaw_notes.tags import with_tags_of
from klaw_notes.text_kinds import markup_of
from klaw_notes.titles import leading_day, note_title
from klaw_notes.unreadable import blank_unreadable
from klaw_notes.walking import Linked, Patterns, Walk, is_below, is_hidden, real_path
from klaw_notes.workspace_options import DEFAULT_INCLUDE

if TYPE_CHECKING:
    from klaw_notes.converting import Converters

# The two files that agents read first by convention.
_FIRST = ("MEMORY.md", "memory.md")

# Files for the configured chunker; other files are split as plain text.
_MARKDOWN = (".md", ".markdown", ".mdown", ".mkd", ".mdx", ".qmd", ".rmd")

# Part of a note's fingerprint. Increase it whenever `read` returns another document for the same bytes.
_READING = 5
_DIGEST_CHARACTERS = 32  # 128 bits
_RECIPE_CHARACTERS = 8  # enough to distinguish a converter's version from earlier ones
_NOTES = (*_MARKDOWN, ".txt")  # these are never converted


@frozen
class Workspace(Source, Folder):
    """The notes below ``root``, named ``origin/relative/path.md``.

    ``include`` are patterns of file names, matched in any case; ``exclude`` are patterns of relative paths. Hidden
    files and directories, ``node_modules``, and paths in ``.gitignore`` and ``.klawignore`` are never entered. Files
    over ``max_bytes`` are skipped. ``collection`` is the collection of the documents, ``version`` the version of the
    software that they describe. ``converters`` turn other files into text; with the default ``include`` the files that
    they can read are included. ``trust`` is the class of all files: ``owner``, ``agent`` or ``foreign``.
    ``descriptions`` say what directories are: pairs of a path below the root (empty for the root) and a text.
    ``shared``: these notes were shared with other machines at least once; see :mod:`klaw_notes.sharing`. ``earlier``
    are names under which a renaming that did not finish may have left the notes in the index.
    """

    root: Path
    origin: str
    include: tuple[str, ...] = DEFAULT_INCLUDE
    exclude: tuple[str, ...] = ()
    max_bytes: int = 10 * 1024 * 1024
    collection: str = "memory"
    version: str = ""
    converters: "Converters | None" = field(default=None, eq=False, repr=False)
    trust: str = "owner"
    descriptions: tuple[tuple[str, str], ...] = ()
    shared: bool = False
    earlier: tuple[str, ...] = ()

    def scan(self) -> Iterable[Entry | SkippedEntry]:
        """Return MEMORY.md, memory.md, then every other note by path. Raise WorkspaceError if the root is gone."""
        if not self.root.is_dir():
            problem = "is not a directory" if self.root.exists() else "does not exist"
            hint = f"mount or restore it; or `klaw forget {quote(self.origin)}/` removes its documents from the index"
            raise WorkspaceError(f"{self.root} {problem}", hint=hint)
        walk = self._walk()
        found = list(walk)
        linked = {item.entry: item.real for item in found if isinstance(item, Linked)}
        files = sorted([*(item for item in found if isinstance(item, Entry)), *linked], key=attrgetter("path"))
        early = {f"{self.origin}/{name}": number for number, name in enumerate(_FIRST)}
        first = sorted((entry for entry in files if entry.path in early), key=lambda entry: early[entry.path])
        if first:
            files = [*first, *(entry for entry in files if entry.path not in early)]
        if linked:
            # If a file has several names, the first in this order is used: MEMORY.md before all, even if it is a link.
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
        """Read one note as :meth:`read` does, or return None if its bytes have the given digest."""
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
            whole, guessed = decoded(data)
        except _NotANoteError as error:
            return SkippedEntry(path, str(error), keep=False)
        relative = path.removeprefix(f"{self.origin}/")
        if (markup := self._markup_of(relative, whole)) and self.converters is not None:
            return self._converted(self.converters, path, data, modified, markup)
        metadata, text = read_front_matter(whole)
        if guessed:
            metadata = {**metadata, "encoding": guessed}
        is_markdown = relative.lower().endswith(_MARKDOWN)
        if is_markdown:
            metadata = with_tags_of(text, metadata)
        if not _has_words(text):  # a note that is only properties is found by them
            text = whole if metadata else ""
        written = _written_at(relative, metadata)
        dated, undated = self._digests(path, data, modified)
        return Document(
            path,
            blank_unreadable(text),
            relative,
            self.origin,
            written or modified,
            version=self.version,
            format=DEFAULT_FORMAT if is_markdown else PLAIN_FORMAT,
            metadata=metadata,
            title=note_title(relative, metadata),
            is_note=True,
            trust=self.trust,
            digest=dated if written else undated,
        )

    def _markup_of(self, relative: str, text: str) -> str:
        """Return the suffix of files like this ``.txt`` file that a converter reads; empty if there is none."""
        if self.converters is None or not relative.lower().endswith(".txt"):
            return ""
        markup = markup_of(text)
        return markup if markup and self.converters.reads(f"file{markup}") else ""

    def _converted(
        self, converters: "Converters", path: str, data: bytes, modified: datetime, markup: str = ""
    ) -> Document | SkippedEntry:
        """Convert a file, which has the ``markup`` of files with another suffix; return its document."""
        try:
            made = converters.convert(path + markup, data)
        except ConversionError as error:
            return SkippedEntry(path, str(error), keep=error.keep)
        except PluginError as error:  # affects only this file
            return SkippedEntry(path, str(error), keep=True)
        relative = path.removeprefix(f"{self.origin}/")
        written = _written_at(relative, made.metadata) or made.created_at
        dated, undated = self._digests(path, data, modified)
        return Document(
            path,
            blank_unreadable(made.text),
            relative,
            self.origin,
            written or modified,
            version=self.version,
            format=made.format,
            metadata=made.metadata,
            title=note_title(relative, made.metadata),
            is_note=True,
            trust=self.trust,
            digest=dated if written else undated,
        )

    def file_text(self, path: str, /) -> str | SkippedEntry:
        """Return the present text of a note's file, including front matter, or the text that it is converted to."""
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
        """Return the bytes of a note's file, and its time of modification."""
        try:
            return self._bytes(self.root / path.removeprefix(f"{self.origin}/"))
        except OSError as error:
            gone = error.errno in {errno.ENOENT, errno.ENOTDIR}
            return SkippedEntry(path, VANISHED if gone else f"cannot be read: {error.strerror}", keep=True)
        except _NotANoteError as error:
            return SkippedEntry(path, str(error), keep=False)

    def holds(self, relative: str) -> bool:
        """Return whether a scan would find the note at this relative path: it is neither hidden nor outside."""
        if self._left_out(relative):
            return False
        path = self.root / relative
        try:
            return path.is_file() and self._contains(path)
        except (OSError, ValueError):  # the name is too long, or contains a NUL
            return False

    def has_files(self) -> bool:
        """Return whether a scan finds any file."""
        return any(isinstance(found, Entry | Linked) for found in self._walk())

    def unmatched(self, include: Sequence[str], exclude: Sequence[str]) -> tuple[list[str], list[str]]:
        """Return those of the patterns of file names, and of paths, that match nothing that a scan could find."""
        found = evolve(self, include=("*",), exclude=())._walk()  # noqa: SLF001  # of the same class
        entries = (item.entry if isinstance(item, Linked) else item for item in found)
        paths = [entry.path.removeprefix(f"{self.origin}/") for entry in entries if isinstance(entry, Entry)]
        names = (PurePosixPath(path).name for path in paths)
        return unmatched_names(include, names), unmatched_paths(exclude, paths)

    def unread(self, most: int | None = None) -> Mapping[str, int]:
        """Count the files that are not read because of their kind, by suffix, most frequent first.

        With ``most``, only the first of all files are looked at.
        """
        return count_kinds(PurePosixPath(path).name for path in self.unread_paths(most))

    def unread_paths(self, most: int | None = None) -> Iterator[str]:
        """Yield the document paths that the files would have that are not read because of their kind."""
        found = islice(evolve(self, include=("*",))._walk(), most)  # noqa: SLF001  # of the same class
        entries = (item.entry if isinstance(item, Linked) else item for item in found)
        paths = (entry.path for entry in entries if isinstance(entry, Entry))
        return (path for path in paths if not self._includes(PurePosixPath(path).name))

    def why_left_out(self, path: str) -> str:
        """Return why a scan leaves out the file of a document path, and what to change; empty if it does not.

        It is also empty if the file does not exist.
        """
        relative = path.removeprefix(f"{self.origin}/")
        try:
            there = (self.root / relative).is_file()
        except (OSError, ValueError):  # the name is too long, or contains a NUL
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
        """Return the document path of the file at ``path``; None if the file does not belong to this workspace."""
        try:
            named = Path(path).expanduser().absolute()
            places = (named, named.resolve())
        except (OSError, ValueError, RuntimeError):  # an unknown user, a loop of links, a NUL
            return None
        below = (place.relative_to(self.root).as_posix() for place in places if place.is_relative_to(self.root))
        return next((f"{self.origin}/{relative}" for relative in below if self.holds(relative)), None)

    def file_of(self, path: str, /) -> Path | None:
        """Return the file of a document; None if a scan would not find it."""
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
        opened = Descriptor(path, os.O_RDONLY)  # which does not wait if it has become a FIFO since the scan
        with opened as descriptor:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise _NotANoteError("is not a regular file")
            _, most = self._kind_of(path.name)
            with opened.into_file() as file:  # a file that is too large is not read
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
        """Return the converters if they read this file (name or path); None for a note, which is read directly."""
        if self.converters is None or name.lower().endswith(_NOTES):
            return None
        return self.converters if self.converters.reads(PurePosixPath(name).name) else None

    def _kind_of(self, name: str) -> tuple[str, int]:
        """Return, for a name or path, what the document depends on besides its file, and the file's maximum size."""
        if (converters := self._converters_of(name)) is None:
            return self._reading, self.max_bytes
        name = PurePosixPath(name).name
        recipe = text_hash(converters.recipe(name))[:_RECIPE_CHARACTERS]
        return f"{self._reading}{recipe}.", max(self.max_bytes, converters.max_bytes(name))

    @property
    def _reading(self) -> str:
        """A string for everything that a note depends on besides its file."""
        version = f"{text_hash(self.version)[:8]}." if self.version else ""
        return f"{_READING}.{version}" if self.trust == "owner" else f"{_READING}.{version}{self.trust}."

    def _digests(self, path: str, data: bytes, modified: datetime) -> tuple[str, str]:
        """Return two digests of a note's bytes: for a note that states its own date, and for any other."""
        digest = f"{self._kind_of(path)[0]}{sha256(data).hexdigest()[:_DIGEST_CHARACTERS]}"
        return digest, f"{digest}.{int(modified.timestamp()):x}"

    def _includes(self, name: str) -> bool:
        return self._includes_of()(name)

    def _includes_of(self) -> Callable[[str], bool]:
        """Return a function that says whether a file of a given name is read."""
        include = Patterns.of(tuple(pattern.lower() for pattern in self.include))
        converters = self.converters if self.include == DEFAULT_INCLUDE else None
        if converters is None:
            return lambda name: include.match(name.lower())
        return lambda name: include.match(name.lower()) or converters.reads(name, requested=False)

    def _excluded_by(self, relative: str) -> str:
        return Patterns.of(self.exclude).first(relative)


def count_kinds(names: Iterable[str]) -> Mapping[str, int]:
    """Count files by lower-case suffix, most frequent first."""
    counts = Counter(PurePosixPath(name).suffix.lower() or name for name in names)
    return dict(sorted(counts.items(), key=lambda kind: (-kind[1], kind[0])))


_WESTERN = "windows-1252"


class _NotANoteError(Exception):
    """The file contains nothing to index; the message is the reason."""


def decode(data: bytes) -> str:
    """Decode a note as :func:`decoded` does, and return its text."""
    return decoded(data)[0]


def decoded(data: bytes) -> tuple[str, str]:
    """Decode a note: UTF-8, UTF-16 or UTF-32 with a byte order mark, or what editors wrote before UTF-8.

    Return the text, and the encoding if it is a guess. Raise _NotANoteError for anything else.
    """
    if data.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        encoding = "utf-32"
    elif data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encoding = "utf-16"
    elif b"\0" in data[:8192]:
        raise _NotANoteError("is binary")
    else:
        encoding = "utf-8-sig"
    guessed = ""
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        if encoding in {"utf-16", "utf-32"} or not _looks_western(data):
            name = encoding.removesuffix("-sig").upper()
            raise _NotANoteError(f"is not valid {name} (byte {error.start:,})") from error
        guessed = _WESTERN
        text = data.decode(guessed)
    if not text.strip():
        raise _NotANoteError(EMPTY)
    return text, guessed


def _looks_western(data: bytes) -> bool:
    """Return whether bytes are probably text in Windows-1252, of which Latin-1 is a part.

    Text that is mostly UTF-8 is damaged, and would become unreadable.
    """
    with suppress(UnicodeDecodeError):
        text = data.decode(_WESTERN)
        is_text = all(character.isprintable() or character in "\n\r\t\f\xa0\xad" for character in text)
        has_letters = any(map(str.isalnum, text.encode("ascii", "ignore").decode()))
        return is_text and has_letters and data.decode("utf-8", "ignore").isascii()
    return False


def _has_words(text: str) -> bool:
    """Return whether a text has a letter, a digit or a picture, unlike the empty bullet of a new page."""
    return any(character.isalnum() or character > "\u2fff" for character in text)


def _moment(seconds: float) -> datetime:
    """Return a time of modification in whole seconds; the epoch if it is outside the range of datetime."""
    try:
        return datetime.fromtimestamp(int(seconds), UTC)
    except (OverflowError, ValueError, OSError):
        return datetime.fromtimestamp(0, UTC)


def _written_at(relative: str, metadata: Metadata) -> datetime | None:
    """Return when a note was written according to itself: its ``date``, the day in its name, or its ``created``.

    The day in the name comes before ``created``, because the note of a day may be created on another day. The file's
    own times are not used, because a clone or a copy resets them.
    """
    if (moment := written_date(metadata, ("date",))) is not None:
        return moment
    found = leading_day(Path(relative).name)
    return written_date(metadata) if found is None else datetime.combine(found[0], time(), UTC)
