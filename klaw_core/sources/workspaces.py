"""Which directories of notes were indexed, by name: ``workspaces.json`` in the data directory.

It is kept beside klaw.db rather than in it, because klaw.db can be deleted and rebuilt from what this names.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from fnmatch import fnmatch
from glob import escape
from pathlib import Path
from types import MappingProxyType
from typing import Any

from attrs import evolve, field, frozen

from klaw_core.builtin.workspace import DEFAULT_INCLUDE, Workspace, can_name
from klaw_core.errors import NotFoundError, StoreCorruptError, StoreError, WorkspaceError
from klaw_core.files.atomic import locked, write_atomically
from klaw_core.interfaces.converter import Converters
from klaw_core.values.documents import Document, Entry
from klaw_core.values.runs import SkippedEntry


@frozen(eq=False)
class RememberedWorkspace:
    """A workspace that ``klaw index DIR`` remembered, as a source: its notes can be forgotten, and so can all of it."""

    workspace: Workspace
    registry: Workspaces

    @property
    def origin(self) -> str:
        """The name of the workspace."""
        return self.workspace.origin

    @property
    def collection(self) -> str:
        """Where its documents belong."""
        return self.workspace.collection

    @property
    def version(self) -> str:
        """The version of the software that its notes describe."""
        return self.workspace.version

    @property
    def root(self) -> Path:
        """The directory."""
        return self.workspace.root

    @property
    def excluded(self) -> int:
        """How many notes were forgotten and are left out since."""
        return len(self.workspace.exclude)

    def scan(self) -> Iterable[Entry | SkippedEntry]:
        """Return what is there now. Raise WorkspaceError if the directory is gone."""
        return self.workspace.scan()

    def read(self, entry: Entry, /) -> Document | SkippedEntry:
        """Read one note."""
        return self.workspace.read(entry)

    def read_changed(self, entry: Entry, digest: str, /) -> Document | SkippedEntry | None:
        """Read one note, or return None if its bytes are those of a document's ``digest``."""
        return self.workspace.read_changed(entry, digest)

    def locate(self, path: str, /) -> str | None:
        """Return the document of the note at ``path`` in the file system."""
        return self.workspace.locate(path)

    def file_of(self, path: str, /) -> Path | None:
        """Return the file of a document."""
        return self.workspace.file_of(path)

    def file_text(self, path: str, /) -> str | SkippedEntry:
        """Return the text of a document's file as it is now."""
        return self.workspace.file_text(path)

    def why_left_out(self, path: str, /) -> str:
        """Return why a scan does not find the file of a document path, and what changes that; empty if it does."""
        relative = path.removeprefix(f"{self.origin}/")
        reason = self.workspace.why_left_out(path)
        pattern = next((item for item in self.workspace.exclude if fnmatch(relative, item)), None)
        if not reason or pattern is None:
            return reason
        if pattern == escape(relative):
            return f"was forgotten: `klaw restore {path}` restores it"
        return f"{reason}: `klaw workspace exclude {self.origin} --remove '{pattern}'` includes it again"

    def watch_paths(self) -> Sequence[Path]:
        """Return the directory."""
        return self.workspace.watch_paths()

    def forget(self, paths: Sequence[str], /) -> None:
        """Exclude notes from now on; their files stay. Raise StoreError."""
        for path in paths:
            self.registry.exclude(self.origin, path.removeprefix(f"{self.origin}/"))

    def forgotten(self, paths: Sequence[str], /) -> Sequence[str]:
        """Return the notes that were excluded since this object was made; all, if the workspace was forgotten."""
        current = self.registry.all().get(self.origin)
        if current is None:
            return list(paths)
        added = set(current.exclude) - set(self.workspace.exclude)
        if not added:
            return ()
        return [path for path in paths if any(fnmatch(path.partition("/")[2], pattern) for pattern in added)]

    def remove(self) -> None:
        """Take the workspace off the list; its directory stays. Raise StoreError."""
        self.registry.forget(self.origin)


@frozen
class _Changes:
    """What is to be different about a workspace; None, or nothing in ``exclude``, leaves it as it is."""

    version: str | None = None
    include: Sequence[str] | None = None
    exclude: Sequence[str] = ()

    def applied(self, workspace: Workspace) -> Workspace:
        """Return the workspace with the changes."""
        return evolve(
            workspace,
            version=workspace.version if self.version is None else self.version,
            include=workspace.include if self.include is None else as_patterns(self.include),
            exclude=tuple(dict.fromkeys((*workspace.exclude, *as_patterns(self.exclude)))),
        )


@frozen
class Workspaces:
    """The remembered workspaces. Every change is written at once; no two of them, in any process, lose each other.

    ``reserved`` are names that no workspace can have, because they are origins of other sources; ``converters`` turn
    files into text.
    """

    file: Path
    reserved: frozenset[str] = frozenset()
    converters: Converters | None = field(default=None, eq=False, repr=False)

    def all(self) -> dict[str, Workspace]:
        """Return every workspace by name. Raise StoreError, StoreCorruptError if the file is not what Klaw wrote."""
        try:
            entries = json.loads(self.file.read_text("utf-8"))
            found = {name: parse_workspace(name, entry) for name, entry in entries.items()}
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise StoreError(f"{self.file} cannot be read: {error.strerror}") from error
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise StoreCorruptError(
                f"{self.file} is not a valid list of workspaces: {error}",
                hint="move it away, then `klaw index DIR` for each of your directories",
            ) from error
        if self.converters is None:
            return found
        return {name: evolve(workspace, converters=self.converters) for name, workspace in found.items()}

    def remember(
        self,
        directory: str | Path,
        name: str | None = None,
        *,
        collection: str = "memory",
        version: str | None = None,
        include: Sequence[str] | None = None,
        exclude: Sequence[str] = (),
        configured: Mapping[str, Path] = MappingProxyType({}),
    ) -> Workspace:
        """Return the workspace of a directory, adding it if it is new.

        ``include`` takes the place of the patterns of file names it had, ``exclude`` adds to its patterns of relative
        paths. A directory inside a known workspace belongs to that one; a new ``version`` replaces the one it had. The
        name of a workspace whose directory is gone moves to this one, with what it excludes. Raise WorkspaceError if
        the directory does not exist, holds a known workspace or touches a ``configured`` one, the name is taken, or it
        is known under another name or in another collection.
        """
        root = _existing(directory)
        settled = {origin: directory.resolve() for origin, directory in configured.items()}
        with locked(self.file.parent):
            known = self.all()
            for workspace in known.values():
                if root.is_relative_to(workspace.root):
                    changes = _Changes(version, include, exclude)
                    return self._known(workspace, known, name, collection, changes)
                if workspace.root.is_relative_to(root):
                    raise WorkspaceError(
                        f"{directory} contains the workspace {workspace.origin!r} ({workspace.root})",
                        hint=f"run `klaw forget {workspace.origin}/` first, then index the whole directory",
                    )
            _refuse_settled(root, settled)
            moved = known.get(name or "")
            if moved is not None and is_gone(moved.root) and collection in {"memory", moved.collection}:
                workspace = evolve(moved, root=root)
            else:
                chosen = _free_name(
                    name or root.name or "root", {*known, *settled, *self.reserved}, chosen=name is not None
                )
                workspace = Workspace(root, chosen, collection=collection)
            workspace = _Changes(version, include, exclude).applied(workspace)
            self._write({**known, workspace.origin: workspace})
        return workspace

    def _known(
        self,
        workspace: Workspace,
        known: Mapping[str, Workspace],
        name: str | None,
        collection: str,
        changes: _Changes,
    ) -> Workspace:
        """Return a workspace that is remembered already, with what is changed, if that is what was meant."""
        if name not in {None, workspace.origin} or collection != workspace.collection:
            raise WorkspaceError(
                f"{workspace.root} is the workspace {workspace.origin!r} of the collection {workspace.collection!r}",
                hint=f"run `klaw forget {workspace.origin}/` first, then index it again",
            )
        renewed = changes.applied(workspace)
        if renewed == workspace:
            return workspace
        self._write({**known, workspace.origin: renewed})
        return renewed

    def merge(self, workspace: Workspace) -> bool:
        """Add a workspace as it is, though its directory may not be here; return whether anything changed.

        One that is known keeps its place and gains what the other excludes. Raise WorkspaceError if the name
        belongs to another directory, or the directory to another name.
        """
        with locked(self.file.parent):
            known = self.all()
            found = known.get(workspace.origin)
            if found is None:
                clash = _overlapping(workspace.root, known)
                if workspace.origin in self.reserved:
                    raise WorkspaceError(f"the name {workspace.origin!r} is already in use")
                if clash is not None:
                    raise WorkspaceError(f"{workspace.root} overlaps the workspace {clash!r}")
                merged = workspace
            elif evolve(found, exclude=(), include=()) != evolve(workspace, exclude=(), include=()):
                raise WorkspaceError(
                    f"the workspace {workspace.origin!r} has another directory ({found.root}), collection or version"
                )
            else:
                merged = evolve(found, exclude=tuple(dict.fromkeys((*found.exclude, *workspace.exclude))))
            if merged == found:
                return False
            self._write({**known, workspace.origin: merged})
        return True

    def forget(self, name: str) -> None:
        """Remove a workspace from the list; an unknown one is ignored."""
        with locked(self.file.parent):
            known = self.all()
            if known.pop(name, None) is not None:
                self._write(known)

    def exclude(self, name: str, relative: str) -> None:
        """Never index this file of the workspace again; one that another process has just forgotten is ignored."""
        pattern = escape(relative)
        with locked(self.file.parent):
            known = self.all()
            workspace = known.get(name)
            if workspace is not None and pattern not in workspace.exclude:
                known[name] = evolve(workspace, exclude=(*workspace.exclude, pattern))
                self._write(known)

    def change_patterns(self, name: str, *, add: Sequence[str] = (), remove: Sequence[str] = ()) -> Workspace:
        """Add patterns to what a workspace leaves out, and remove others; return it.

        Raise NotFoundError, WorkspaceError for an empty pattern.
        """
        add = as_patterns(add)
        with locked(self.file.parent):
            known = self.all()
            workspace = self._named(name, known)
            if missing := [pattern for pattern in remove if pattern not in workspace.exclude]:
                listed = ", ".join(map(repr, workspace.exclude)) or "nothing"
                raise NotFoundError(f"{name} does not exclude {missing[0]!r}", hint=f"it excludes {listed}")
            kept = (pattern for pattern in (*workspace.exclude, *add) if pattern not in remove)
            changed = evolve(workspace, exclude=tuple(dict.fromkeys(kept)))
            if changed != workspace:
                self._write({**known, name: changed})
        return changed

    def rename(self, name: str, new: str, *, taken: Collection[str] = ()) -> Workspace:
        """Rename a workspace; return it. Raise NotFoundError, WorkspaceError if the name is taken."""
        with locked(self.file.parent):
            known = self.all()
            workspace = self._named(name, known)
            _free_name(new, {*known, *taken, *self.reserved}, chosen=True)
            del known[name]
            renamed = evolve(workspace, origin=new)
            self._write({**known, new: renamed})
        return renamed

    def named(self, name: str) -> Workspace:
        """Return the workspace of a name. Raise NotFoundError."""
        return self._named(name, self.all())

    def _named(self, name: str, known: Mapping[str, Workspace]) -> Workspace:
        found = known.get(name)
        if found is None:
            names = ", ".join(known) or "none"
            raise NotFoundError(f"unknown workspace {name!r}", hint=f"known: {names}")
        return found

    def _write(self, workspaces: Mapping[str, Workspace]) -> None:
        entries = {name: workspace_entry(workspace) for name, workspace in sorted(workspaces.items())}
        text = json.dumps(entries, indent=2, ensure_ascii=False) + "\n"
        # What is not UTF-8 in a directory's name is a lone surrogate here; `\udcff` is JSON for it.
        write_atomically(self.file, text.encode("utf-8", "backslashreplace").decode())


def as_patterns(patterns: Sequence[str]) -> tuple[str, ...]:
    """Return patterns as they are kept; a lone string is one. ``./drafts/`` and ``/drafts`` mean ``drafts``.

    Raise WorkspaceError for an empty one.
    """
    given = (patterns,) if isinstance(patterns, str) else patterns
    found = tuple(pattern.removeprefix("./").strip("/") for pattern in given)
    if not all(found):
        raise WorkspaceError("a file pattern is empty", hint="give a pattern such as '*.md' or 'drafts/*'")
    return found


def workspace_entry(workspace: Workspace) -> dict[str, Any]:
    """Return the object that stands for a workspace in the file; what has its usual value is left out."""
    entry: dict[str, Any] = {"path": str(workspace.root), "exclude": list(workspace.exclude)}
    if workspace.include != DEFAULT_INCLUDE:
        entry["include"] = list(workspace.include)
    chosen = {"collection": workspace.collection, "version": workspace.version}
    return entry | {key: value for key, value in chosen.items() if value not in {"", "memory"}}


def parse_workspace(name: str, entry: Mapping[str, Any]) -> Workspace:
    """Return the workspace of a name. Raise TypeError, KeyError or ValueError for an entry that Klaw did not write."""
    return Workspace(
        Path(entry["path"]),
        name,
        include=tuple(str(pattern) for pattern in entry.get("include", DEFAULT_INCLUDE)),
        exclude=tuple(str(pattern) for pattern in entry.get("exclude", ())),
        collection=str(entry.get("collection", "memory")),
        version=str(entry.get("version", "")),
    )


def is_gone(directory: Path) -> bool:
    """Return whether a directory is not there; one that cannot be looked at may be."""
    try:
        directory.stat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:  # another user's, or of a server that does not answer
        return False
    return False


def _refuse_settled(root: Path, settled: Mapping[str, Path]) -> None:
    """Raise WorkspaceError if a directory is, holds, or lies in one that the configuration indexes."""
    for name, other in settled.items():
        if root.is_relative_to(other):
            problem = f"{root} belongs to the configured source {name!r}"
            raise WorkspaceError(problem, hint="`klaw index` indexes it")
        if other.is_relative_to(root):
            problem = f"{root} contains {other}, the configured source {name!r}"
            raise WorkspaceError(
                problem, hint="remove its [[memory.sources]] table first, then index the whole directory"
            )


def _overlapping(root: Path, known: Mapping[str, Workspace]) -> str | None:
    """Return the name of a workspace that is, holds, or lies in a directory."""
    others = (
        name for name, other in known.items() if root.is_relative_to(other.root) or other.root.is_relative_to(root)
    )
    return next(others, None)


def _existing(directory: str | Path) -> Path:
    """Return the real path of a directory. Raise WorkspaceError if there is none."""
    if not str(directory):  # a path of it would be that of the current directory
        raise WorkspaceError("the directory's name is empty", hint="klaw index DIR")
    try:
        root = Path(directory).expanduser().resolve()
        is_directory, exists = root.is_dir(), root.exists()
    except (OSError, ValueError, RuntimeError) as error:  # a loop of links, a NUL, a name too long, no such user
        raise WorkspaceError(f"{str(directory)!r} is not a directory that can be opened: {error}") from error
    if not is_directory:
        problem = "is a file, not a directory" if exists else "does not exist"
        raise WorkspaceError(f"{directory} {problem}", hint=f"klaw index {root.parent}" if exists else "")
    return root


def _free_name(name: str, known: Collection[str], *, chosen: bool) -> str:
    """Return ``name``, or one like it that is free if it was not chosen by a person. Raise WorkspaceError."""
    hint = "choose another name: klaw index DIR --name NAME"
    if not can_name(name):
        raise WorkspaceError(f"{name!r} is not a valid workspace name", hint=hint)
    taken = set(known)
    if name not in taken:
        return name
    if chosen:
        raise WorkspaceError(f"the name {name!r} is already in use", hint=hint)
    return next(free for number in range(2, len(taken) + 3) if (free := f"{name}-{number}") not in taken)
