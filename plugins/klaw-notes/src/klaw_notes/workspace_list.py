"""``workspaces.json`` in the data directory: the workspaces that ``klaw index DIR`` has added, by name.

The list is not in klaw.db, so that a deleted klaw.db can be rebuilt from it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from glob import escape
from pathlib import Path
from shlex import quote
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from attrs import evolve, field, frozen

from klaw_core import (
    NotFoundError,
    StoreCorruptError,
    StoreError,
    WorkspaceError,
    locked,
    operations,
    quoted,
    read_regular,
    write_atomically,
)
from klaw_core.values.metadata import TRUST_CLASSES
from klaw_notes.patterns import as_patterns, comparable
from klaw_notes.workspace import Workspace
from klaw_notes.workspace_options import DEFAULT_INCLUDE, can_name

if TYPE_CHECKING:
    from klaw_notes.converting import Converters

#: The name of the file in the data directory.
FILE_NAME = "workspaces.json"
_MAX_DESCRIPTION = 500  # characters


@frozen
class _Changes:
    """Changes to a workspace. None means no change; ``exclude`` adds patterns."""

    version: str | None = None
    include: Sequence[str] | None = None
    exclude: Sequence[str] = ()
    trust: str | None = None

    def applied(self, workspace: Workspace) -> Workspace:
        """Return the changed workspace."""
        return evolve(
            workspace,
            version=workspace.version if self.version is None else self.version,
            include=workspace.include if self.include is None else as_patterns(self.include),
            exclude=tuple(dict.fromkeys((*workspace.exclude, *as_patterns(self.exclude)))),
            trust=workspace.trust if self.trust is None else self.trust,
        )


@operations
@frozen
class Workspaces:
    """The workspaces in the list. Every change is written at once; concurrent changes of several processes are safe.

    A workspace cannot have a ``reserved`` name, because other sources use it as origin. ``converters`` turn files into
    text.
    """

    file: Path
    reserved: frozenset[str] = frozenset()
    converters: Converters | None = field(default=None, eq=False, repr=False)

    def all(self) -> dict[str, Workspace]:
        """Return every workspace by name. Raise StoreCorruptError if the file is invalid, StoreError."""
        try:
            entries = json.loads(read_regular(self.file))
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
        trust: str | None = None,
        configured: Mapping[str, Path] = MappingProxyType({}),
        elsewhere: Mapping[str, Collection[str]] = MappingProxyType({}),
    ) -> Workspace:
        """Return the workspace of a directory; add it if it is new.

        ``include`` replaces its file name patterns, ``version`` its version, ``trust`` the class of its files;
        ``exclude`` adds patterns of relative paths. A directory inside a known workspace belongs to that workspace. If
        ``name`` is a workspace whose directory no longer exists, that workspace moves to this directory and keeps its
        exclude patterns. ``elsewhere`` are the names that other machines use, each with the directories for which it is
        free.

        Raise WorkspaceError if the directory does not exist, contains a known workspace, overlaps a ``configured``
        one, or is known under another name or in another collection, if the name is taken, or the class is unknown.
        """
        if trust is not None and trust not in TRUST_CLASSES:
            raise WorkspaceError(f"unknown class {quoted(trust)}", hint=f"one of {', '.join(TRUST_CLASSES)}")
        root = _existing(directory)
        settled = {origin: directory.resolve() for origin, directory in configured.items()}
        with locked(self.file.parent):
            known = self.all()
            for workspace in known.values():
                if root.is_relative_to(workspace.root):
                    changes = _Changes(version, include, exclude, trust)
                    return self._known(workspace, known, name, collection, changes, root=root)
                if workspace.root.is_relative_to(root):
                    raise WorkspaceError(
                        f"{directory} contains the workspace {workspace.origin!r} ({workspace.root})",
                        hint=f"run `klaw forget {quote(workspace.origin)}/` first, then index the whole directory"
                        + _with_class(workspace),
                    )
            _refuse_overlap(root, settled)
            moved = known.get(name or "")
            if moved is not None and is_gone(moved.root) and collection in {"memory", moved.collection}:
                workspace = evolve(moved, root=root)
            else:
                others = {other for other, directories in elsewhere.items() if str(root) not in directories}
                taken = {*known, *settled, *self.reserved, *others}
                hint = "choose another name: klaw index DIR --name NAME"
                chosen = _free_name(name or root.name or "root", taken, chosen=name is not None, hint=hint)
                workspace = Workspace(root, chosen, collection=collection)
            workspace = _Changes(version, include, exclude, trust).applied(workspace)
            self._write({**known, workspace.origin: workspace})
        return workspace

    def _known(
        self,
        workspace: Workspace,
        known: Mapping[str, Workspace],
        name: str | None,
        collection: str,
        changes: _Changes,
        *,
        root: Path,
    ) -> Workspace:
        """Apply changes to the known workspace that contains ``root``; return it.

        Raise WorkspaceError if name or collection differ.
        """
        if name not in {None, workspace.origin} or collection != workspace.collection:
            is_below = f" is in {workspace.root}, which" if root != workspace.root else ""
            raise WorkspaceError(
                f"{root}{is_below} is the workspace {workspace.origin!r} of the collection {workspace.collection!r}",
                hint=f"run `klaw forget {quote(workspace.origin)}/` first, then index it again"
                + _with_class(workspace),
            )
        renewed = changes.applied(workspace)
        if renewed == workspace:
            return workspace
        if renewed.include != workspace.include and workspace.has_files() and not renewed.has_files():
            raise WorkspaceError(
                f"no file in {workspace.root} has a name that matches {' or '.join(map(repr, renewed.include))}",
                hint="a PATTERN matches file names, such as '*.md'; "
                f"`klaw forget {quote(workspace.origin)}/` removes all",
            )
        self._write({**known, workspace.origin: renewed})
        return renewed

    def merge(self, workspace: Workspace) -> bool:
        """Add a workspace whose directory need not exist; return whether the list has changed.

        A known workspace gets the other's exclude patterns. Raise WorkspaceError if the name belongs to another
        directory, or the directory to another name.
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
            elif _place_of(found) != _place_of(workspace):
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
        """Remove a workspace from the list; do nothing if it is unknown."""
        with locked(self.file.parent):
            known = self.all()
            if known.pop(name, None) is not None:
                self._write(known)

    def exclude(self, name: str, relative: str) -> None:
        """Exclude a file of the workspace from indexing; do nothing if the workspace is unknown."""
        pattern = escape(relative)
        with locked(self.file.parent):
            known = self.all()
            workspace = known.get(name)
            if workspace is not None and pattern not in workspace.exclude:
                known[name] = evolve(workspace, exclude=(*workspace.exclude, pattern))
                self._write(known)

    def change_patterns(self, name: str, *, add: Sequence[str] = (), remove: Sequence[str] = ()) -> Workspace:
        """Add and remove exclude patterns of a workspace, in any form of Unicode; return the workspace.

        Raise NotFoundError, WorkspaceError for an empty pattern.
        """
        add = as_patterns(add)
        with locked(self.file.parent):
            known = self.all()
            workspace = self._named(name, known)
            known_as, gone = set(map(comparable, workspace.exclude)), set(map(comparable, remove))
            if missing := [pattern for pattern in remove if comparable(pattern) not in known_as]:
                listed = ", ".join(map(repr, workspace.exclude)) or "nothing"
                raise NotFoundError(f"{name} does not exclude {missing[0]!r}", hint=f"it excludes {listed}")
            kept = (pattern for pattern in (*workspace.exclude, *add) if comparable(pattern) not in gone)
            changed = evolve(workspace, exclude=tuple(dict.fromkeys(kept)))
            if changed != workspace:
                self._write({**known, name: changed})
        return changed

    def change(self, change: Callable[[dict[str, Workspace]], None]) -> None:
        """Change several workspaces at once. Raise StoreError."""
        with locked(self.file.parent):
            known = self.all()
            changed = dict(known)
            change(changed)
            if changed != known:
                self._write(changed)

    def describe(self, name: str, relative: str, text: str | None) -> Workspace:
        """Set the description of a directory of a workspace, or (None) remove it; return the workspace.

        Raise NotFoundError, WorkspaceError for a directory that does not exist or has no description.
        """
        with locked(self.file.parent):
            known = self.all()
            workspace = self._named(name, known)
            described = dict(workspace.descriptions)
            place = f"{name}/{relative}".rstrip("/")
            if text is not None:
                if ".." in relative.split("/") or not (workspace.root / relative).is_dir():
                    raise WorkspaceError(f"{place} is not a directory", hint=f"it would be {workspace.root / relative}")
                described[relative] = text
            elif described.pop(relative, None) is None:
                raise NotFoundError(f"{place} has no description", hint=f"klaw workspace describe {quote(place)} TEXT")
            changed = evolve(workspace, descriptions=tuple(sorted(described.items())))
            self._write({**known, name: changed})
        return changed

    def rename(
        self, name: str, new: str, *, taken: Collection[str] = (), check: Callable[[], object] = lambda: None
    ) -> Workspace:
        """Rename a workspace; return it. Raise NotFoundError, WorkspaceError if the name is taken.

        ``check`` is called under the lock of the list, and may refuse by an error. The new name is not shared, also if
        the old one once was: what the machines agreed on about a workspace of the new name is not about this one.
        """
        with locked(self.file.parent):
            known = self.all()
            workspace = self._named(name, known)
            check()
            hint = f"choose another name: klaw workspace rename {name} NEW_NAME"
            _free_name(new, {*known, *taken, *self.reserved}, chosen=True, hint=hint)
            del known[name]
            earlier = tuple(each for each in (*workspace.earlier, name) if each != new)  # it may get its old name back
            renamed = evolve(workspace, origin=new, shared=False, earlier=earlier)
            self._write({**known, new: renamed})
        return renamed

    def forget_earlier(self, name: str) -> None:
        """Note that nothing is left in the index of a name that a workspace had before. Raise StoreError."""
        with locked(self.file.parent):
            known = self.all()
            if any(name in each.earlier for each in known.values()):
                left = {each: tuple(one for one in it.earlier if one != name) for each, it in known.items()}
                self._write({each: evolve(it, earlier=left[each]) for each, it in known.items()})

    def named(self, name: str) -> Workspace:
        """Return a workspace by name. Raise NotFoundError."""
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
        # Bytes that are not UTF-8 in a directory name are unpaired surrogates here; JSON writes them as `\udcff`.
        write_atomically(self.file, text.encode("utf-8", "backslashreplace").decode())


def _with_class(workspace: Workspace) -> str:
    """Return how a hint says that files keep their class when they are indexed again."""
    return "" if workspace.trust == "owner" else f" with --trust {workspace.trust}"


def _place_of(workspace: Workspace) -> Workspace:
    return evolve(workspace, exclude=(), include=(), trust="owner", descriptions=(), shared=False)


def workspaces_in(data_dir: Path) -> Workspaces:
    """Return the list of workspaces of a data directory, for commands that need no database."""
    return Workspaces(data_dir / FILE_NAME)


def workspace_entry(workspace: Workspace) -> dict[str, Any]:
    """Return the JSON object of a workspace; default values are omitted."""
    entry: dict[str, Any] = {"path": str(workspace.root), "exclude": list(workspace.exclude)}
    if workspace.include != DEFAULT_INCLUDE:
        entry["include"] = list(workspace.include)
    if workspace.descriptions:
        entry["descriptions"] = dict(workspace.descriptions)
    if workspace.shared:
        entry["shared"] = True
    if workspace.earlier:
        entry["earlier"] = list(workspace.earlier)
    chosen = {"collection": workspace.collection, "version": workspace.version, "trust": workspace.trust}
    return entry | {key: value for key, value in chosen.items() if value not in {"", "memory", "owner"}}


def parse_workspace(name: str, entry: Mapping[str, Any]) -> Workspace:
    """Return the workspace of a JSON object. Raise TypeError, KeyError or ValueError if the object is invalid."""
    return Workspace(
        Path(entry["path"]),
        name,
        include=tuple(str(pattern) for pattern in entry.get("include", DEFAULT_INCLUDE)),
        exclude=tuple(str(pattern) for pattern in entry.get("exclude", ())),
        collection=str(entry.get("collection", "memory")),
        version=str(entry.get("version", "")),
        trust=_class_of(entry),
        descriptions=tuple(sorted(_descriptions(entry))),
        shared=entry.get("shared") is True,
        earlier=tuple(str(name) for name in entry.get("earlier", ())),
    )


def _descriptions(entry: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for path, text in entry.get("descriptions", {}).items():
        if problem := problem_of_description(str(text)):
            raise ValueError(problem)
        yield str(path), str(text)


def problem_of_description(text: str) -> str:
    """Return what is wrong with the description of a directory; empty if nothing is."""
    if len(text) > _MAX_DESCRIPTION:
        return f"a description has at most {_MAX_DESCRIPTION} characters, not {len(text):,}"
    if not text.strip():
        return "the description is empty"
    return "" if text.isprintable() else "the description is not one line of readable text"


def _class_of(entry: Mapping[str, Any]) -> str:
    trust = entry.get("trust", "owner")
    if trust not in TRUST_CLASSES:
        raise ValueError(f"unknown class {quoted(trust)}")
    return str(trust)


def is_gone(directory: Path) -> bool:
    """Return whether a directory is known not to exist; False if it cannot be accessed."""
    try:
        directory.stat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:  # no permission, or a server that does not respond
        return False
    return False


def _refuse_overlap(root: Path, settled: Mapping[str, Path]) -> None:
    """Raise WorkspaceError if a directory overlaps a configured one."""
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
    """Return the name of a workspace that overlaps a directory, or None."""
    others = (
        name for name, other in known.items() if root.is_relative_to(other.root) or other.root.is_relative_to(root)
    )
    return next(others, None)


def _existing(directory: str | Path) -> Path:
    """Return the resolved path of a directory. Raise WorkspaceError if it does not exist."""
    if not str(directory):  # an empty path would mean the current directory
        raise WorkspaceError("the directory's name is empty", hint="klaw index DIR")
    try:
        root = Path(directory).expanduser().resolve()
        is_directory, exists = root.is_dir(), root.exists()
    except (OSError, ValueError, RuntimeError) as error:  # a link loop, a NUL, a name that is too long, an unknown user
        raise WorkspaceError(f"{str(directory)!r} is not a directory that can be opened: {error}") from error
    if not is_directory:
        problem = "is a file, not a directory" if exists else "does not exist"
        hint = f"name its directory: klaw index {quote(str(root.parent))} --include {quote(root.name)}"
        raise WorkspaceError(f"{directory} {problem}", hint=hint if exists else "klaw index DIR")
    return root


def _free_name(name: str, known: Collection[str], *, chosen: bool, hint: str) -> str:
    """Return ``name`` if it is free, or ``NAME-2`` … if the user has not chosen it.

    ``hint`` is that of an error: the command that takes another name. Raise WorkspaceError.
    """
    if not can_name(name):
        raise WorkspaceError(f"{name!r} is not a valid workspace name", hint=hint)
    taken = set(known)
    if name not in taken:
        return name
    if chosen:
        raise WorkspaceError(f"the name {name!r} is already in use", hint=hint)
    return next(free for number in range(2, len(taken) + 3) if (free := f"{name}-{number}") not in taken)
