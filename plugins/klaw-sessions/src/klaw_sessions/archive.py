"""Agents that keep sessions in another form than lines, and their sessions as a source: one document a session.

Such files are written again, not only appended to: a database, an object, a page of Markdown with many sessions.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatch
from glob import escape
from pathlib import Path
from typing import Self

import msgspec
from attrs import define, evolve, field, frozen

from klaw_core import Document, Entry, Located, SkippedEntry, Source, WorkspaceError, read_regular
from klaw_sessions.agent import Message, WorkingDirectory
from klaw_sessions.content import Content
from klaw_sessions.options import SessionOptions

# Part of each digest; a change of a reader that changes documents raises it.
_READER = 2


class UnreadableError(Exception):
    """A file with sessions cannot be read; ``reason`` says why, without the file's name."""

    def __init__(self, file: Path, reason: str) -> None:
        super().__init__(f"{file} {reason}")
        self.reason = reason


@frozen(eq=False)
class Session:
    """A session. ``name`` is its path below the agent's name, ``version`` differs after it has changed.

    ``read`` returns its messages for some roles. It raises OSError, ValueError or UnreadableError.
    """

    name: str
    file: Path
    size: int
    version: str
    read: Callable[[Collection[str]], Iterable[Message | WorkingDirectory]]


@frozen(eq=False)
class Archive:
    """An agent that keeps sessions.

    ``get_roots`` returns where it keeps them; none if the user has to say it, for which ``hint`` is the reason.
    ``find`` yields the sessions below one of these directories, and raises OSError, ValueError, or UnreadableError,
    which names the file.
    """

    name: str
    get_roots: Callable[[], Sequence[Path]]
    find: Callable[[Path], Iterable[Session]]
    hint: str = ""


@define(eq=False)
class SessionSource(Source, Located):
    """The sessions of one agent. klaw_core redacts secrets in them, as in all sources except notes."""

    archive: Archive
    directories: Sequence[Path]
    roles: tuple[str, ...]
    exclude: tuple[str, ...] = ()
    collection: str = "memory"
    _known: Mapping[str, Session] = field(factory=dict, init=False)

    @classmethod
    def of(cls, archive: Archive, options: SessionOptions) -> Self:
        """Return the source with these options."""
        named = (Path(options.path).expanduser(),) if options.path else archive.get_roots()
        return cls(
            archive, tuple(place.absolute() for place in named), options.roles, options.exclude, options.collection
        )

    @property
    def origin(self) -> str:
        """The agent's name."""
        return self.archive.name

    def scan(self) -> Iterable[Entry | SkippedEntry]:
        """Yield every session. Raise WorkspaceError if no directory of the agent exists."""
        found = [place for place in self.directories if place.is_dir()]
        if not found:
            places = " or ".join(map(str, self.directories))
            raise WorkspaceError(
                f"{places} does not exist: {self.origin} has stored no sessions there" if places else self.archive.hint,
                hint=f"set `path` of the source {self.origin} in the configuration",
            )
        known: dict[str, Session] = {}
        for place in found:
            try:
                known |= {session.name: session for session in self.archive.find(place)}
            except UnreadableError as error:
                yield SkippedEntry(self.origin, str(error), keep=True)
            except (OSError, ValueError) as error:
                yield SkippedEntry(self.origin, f"{place} cannot be read: {error}", keep=True)
        self._known = {name: session for name, session in known.items() if not self._is_excluded(name)}
        for name, session in sorted(self._known.items()):
            yield Entry(f"{self.origin}/{name}", session.size)

    def read(self, entry: Entry, /) -> Document | SkippedEntry:
        """Return the messages of a session, one per line."""
        session = self._session(entry.path)
        if session is None:
            return SkippedEntry(entry.path, "is not a session", keep=False)
        try:
            content = Content.of(session.read(self.roles))
        except FileNotFoundError:
            return SkippedEntry(entry.path, "vanished", keep=False)
        except UnreadableError as error:
            return SkippedEntry(entry.path, error.reason, keep=True)
        except (OSError, ValueError, msgspec.MsgspecError) as error:
            return SkippedEntry(entry.path, f"cannot be read: {error}", keep=True)
        if not content.messages:
            return SkippedEntry(entry.path, content.why_empty(self.origin), keep=not content.is_known)
        document = content.document(entry.path, self.origin, session.name, session.file)
        return evolve(document, digest=self._digest(session))

    def read_changed(self, entry: Entry, digest: str, /) -> Document | SkippedEntry | None:
        """Return the messages of a session; None if it has not changed."""
        session = self._session(entry.path)
        return None if session is not None and self._digest(session) == digest else self.read(entry)

    def locate(self, path: str, /) -> str | None:
        """Return the first session of a file; None if it is no file of the agent."""
        return next(iter(self.documents_of(path)), None)

    def documents_of(self, path: str, /) -> Sequence[str]:
        """Return the sessions in a file; none if it is no file of the agent."""
        try:
            file = Path(path).expanduser().absolute()
        except RuntimeError:
            return ()
        if not any(file.is_relative_to(place) for place in self.directories):
            return ()
        self._scan_again()
        return tuple(f"{self.origin}/{name}" for name, session in sorted(self._known.items()) if session.file == file)

    def file_of(self, path: str, /) -> Path | None:
        """Return the file that has a session."""
        session = self._session(path)
        return session.file if session is not None and session.file.is_file() else None

    def file_text(self, path: str, /) -> str | SkippedEntry:
        """Return the messages of a session, to which the line numbers of results refer."""
        document = self.read(Entry(path))
        return document if isinstance(document, SkippedEntry) else document.text

    def watch_paths(self) -> Sequence[Path]:
        """Return the directories of the sessions."""
        return self.directories

    def why_not_forgotten(self, path: str) -> tuple[str, str]:
        """Return why a session cannot be forgotten, and what the user can do instead."""
        name = path.removeprefix(f"{self.origin}/")
        return (
            f"{path} is a session of {self.origin}, so the next index run would add it again",
            f"add {escape(name)!r} to `exclude` of the source {self.origin} in the configuration, then `klaw index`",
        )

    def _session(self, path: str) -> Session | None:
        origin, _, name = path.partition("/")
        if origin == self.origin and name not in self._known:
            self._scan_again()
        return self._known.get(name) if origin == self.origin else None

    def _scan_again(self) -> None:
        if any(place.is_dir() for place in self.directories):
            for _ in self.scan():
                pass

    def _is_excluded(self, name: str) -> bool:
        places = [name, *(str(place) for place in Path(name).parents)]
        return any(fnmatch(place, pattern) for pattern in self.exclude for place in places)

    def _digest(self, session: Session) -> str:
        return f"{_READER}/{','.join(self.roles)}/{session.version}"


def read_json(file: Path) -> object:
    """Return the value in a file. Raise OSError, ValueError."""
    return json.loads(read_regular(file))


def version_of(file: Path) -> tuple[int, str]:
    """Return the size of a file, and a text that differs after it was written. Raise OSError."""
    status = file.stat()
    return status.st_size, f"{status.st_mtime_ns}/{status.st_size}"


def objects(value: object) -> Iterator[dict[str, object]]:
    """Yield the objects in a list; nothing for another value."""
    if isinstance(value, list):
        yield from (item for item in value if isinstance(item, dict))
