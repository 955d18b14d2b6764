"""Shared workspaces: which notes several machines index under one name, agreed on in ``workspaces.jsonl``.

The notes themselves are files, which other programs carry. The journal has a record of each shared workspace, and one
of each pattern, so that two machines that exclude different notes at the same time lose neither pattern. `klaw sync`
exchanges these records. A record that only this machine uses has the patterns as they were at the last exchange: what
differs from them in the list of workspaces was changed here since then.

A workspace of the list that takes part is marked there. One that was removed and added again, or a list that was lost,
lacks the mark: its missing patterns are not told to the others, who would index what was forgotten.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from glob import escape
from shlex import quote
from typing import TYPE_CHECKING, Any

from attrs import evolve, frozen

from klaw_core import NotFoundError, RecordError, WorkspaceError, operations
from klaw_journals import FileJournals
from klaw_notes.patterns import forms
from klaw_notes.workspace_options import can_name

if TYPE_CHECKING:
    from klaw_notes.workspace import Workspace
    from klaw_notes.workspace_list import Workspaces

#: The name of the journal.
JOURNAL = "workspaces"
_MAX_CHARACTERS = 4_000
_VALUES = (("shared", "private"), ("excluded", "included"))  # of a workspace, and of a pattern

_Records = dict[str, Mapping[str, Any]]


@frozen
class SharedWorkspace:
    """What the machines agreed on. ``is_here``: this machine takes part with a workspace of this name."""

    name: str
    collection: str
    include: tuple[str, ...]
    exclude: tuple[str, ...]
    is_here: bool


@operations
@frozen
class Sharing:
    """The shared workspaces of a data directory."""

    registry: Workspaces

    def shared(self) -> dict[str, SharedWorkspace]:
        """Return the shared workspaces by name, also those that this machine does not have. Raise StoreError."""
        records, known = dict(self._journal.replay().records), self.registry.all()
        return {
            name: SharedWorkspace(
                name,
                record["collection"],
                tuple(record["include"]),
                _agreed(records, name),
                _own(records, name) is not None and _is_marked(known, name),
            )
            for name, record in sorted(records.items())
            if _is_shared(records, name)
        }

    def share(self, name: str) -> bool:
        """Share a workspace, or take part in one that another machine shares; return whether it was shared already.

        What is excluded on one of the machines is excluded on all. Raise NotFoundError, WorkspaceError if the
        other machines have the workspace in another collection.
        """
        workspace, joined = self.registry.named(name), False

        def change(records: _Records) -> None:
            nonlocal joined
            joined = _is_shared(records, name)
            if not joined:
                records[name] = _declaration(workspace)
                for pattern in _seen(records, name, workspace) & set(_agreed(records, name)) - set(workspace.exclude):
                    _put(records, name, pattern, "included")
            elif (theirs := records[name]["collection"]) != workspace.collection:
                raise WorkspaceError(
                    f"the other machines have {name!r} in the collection {theirs!r}, not {workspace.collection!r}",
                    hint=f"klaw workspace remove {quote(name)}; then index it again with --collection",
                )
            for pattern in workspace.exclude:
                _put(records, name, pattern, "excluded")
            records[f"/{name}"] = _joined(name, workspace.exclude, workspace.include)

        def mark(known: dict[str, Workspace]) -> None:
            if name in known:
                known[name] = evolve(known[name], shared=True)

        self._change(change)
        self.registry.change(mark)
        self.registry.named(name)  # or it was renamed or removed meanwhile, and takes no part
        return joined

    def refuse_shared(self, name: str) -> None:
        """Raise WorkspaceError if this machine shares a workspace of this name."""
        if (shared := self.shared().get(name)) is not None and shared.is_here:
            message = f"{name!r} is shared, and has the same name on all machines"
            raise WorkspaceError(message, hint=f"first klaw workspace unshare {quote(name)}")

    def unshare(self, name: str) -> None:
        """Make a workspace private, on all machines. Each keeps its notes and patterns. Raise NotFoundError."""

        def change(records: _Records) -> None:
            if not _is_shared(records, name):
                raise NotFoundError(f"{name!r} is not shared", hint=f"klaw workspace share {quote(name)}")
            records[name] = {**records[name], "value": "private"}
            records[f"/{name}"] = _left(records, name)

        self._change(change)

    def publish(self) -> None:
        """Write what was changed in the list of workspaces into the journal. Raise StoreError."""
        if not self._journal.exists:
            return

        def change(records: _Records) -> None:
            known = self.registry.all()
            for name in _joined_names(records):
                workspace, own = known.get(name), _own(records, name) or {}
                if workspace is None or not workspace.shared:  # it was removed here; the others keep it
                    records[f"/{name}"] = {"id": f"/{name}", "op": "left"}
                    continue
                if not _is_shared(records, name):
                    continue
                before, now, agreed = set(own["exclude"]), set(workspace.exclude), set(_agreed(records, name))
                # What has arrived but was not followed, because a run was killed, stays unknown here.
                told = {pattern for pattern in now ^ before if (pattern in now) != (pattern in agreed)}
                for pattern in told:
                    _put(records, name, pattern, "excluded" if pattern in now else "included")
                if own["include"] != list(workspace.include):
                    records[name] = _declaration(workspace)
                records[f"/{name}"] = _joined(name, sorted(before ^ told), workspace.include)

        self._change(change)

    def adopt(self, follow: Callable[[Mapping[str, Sequence[str]]], object] = len) -> dict[str, tuple[str, ...]]:
        """Change the list of workspaces to what the machines agreed on.

        Return the patterns that the others have excluded since the last time, for each workspace that they changed.
        ``follow`` forgets the notes that match them: if it raises, or the process is killed, the next call returns the
        patterns again. Raise StoreError.
        """
        changed: dict[str, tuple[str, ...]] = {}
        if not self._journal.exists:
            return changed
        records = dict(self._journal.replay().records)
        left = [name for name in _joined_names(records) if not _is_shared(records, name)]
        taken = [name for name in _joined_names(records) if name not in left]

        def change(known: dict[str, Workspace]) -> None:
            for name in taken:
                if _is_marked(known, name):
                    new, before = _adopted(known[name], records), (_own(records, name) or {})["exclude"]
                    if new != known[name] or set(before) != set(_agreed(records, name)):
                        changed[name] = tuple(sorted(set(_agreed(records, name)) - set(before)))
                        known[name] = new

        self.registry.change(change)
        follow(changed)

        def note(held: _Records) -> None:
            for name in left:
                held[f"/{name}"] = _left(held, name)
            for name in taken:
                held[f"/{name}"] = _joined(name, _agreed(records, name), records[name]["include"])

        self._change(note)
        return changed

    @property
    def _journal(self) -> Any:
        return FileJournals(self.registry.file.parent).records(JOURNAL)

    def _change(self, change: Callable[[_Records], None]) -> None:
        def settle(held: list[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
            records = {str(record["id"]): record for record in held}
            change(records)
            return list(records.values())

        self._journal.settle(settle)


def forgotten_notes(name: str, patterns: Sequence[str]) -> list[str]:
    """Return the paths of the notes of a workspace that were excluded by forgetting them.

    A path is there in each form of Unicode, because the machine that forgot it may write names in another one.
    """
    paths = [(pattern, re.sub(r"\[([*?[])\]", r"\1", pattern)) for pattern in patterns]
    meant = [f"{name}/{path}" for pattern, path in paths if escape(path) == pattern]
    return [form for path in meant for form in forms(path)]


def check_declaration(record: Mapping[str, Any]) -> None:
    """Raise RecordError unless another machine may have written this record."""
    name, slash, pattern = str(record.get("id")).partition("/")
    listed = record.get("include", [])
    texts = [record.get("id"), record.get("collection", ""), *(listed if isinstance(listed, list) else [None])]
    if not all(isinstance(text, str) and len(text) <= _MAX_CHARACTERS and "\0" not in text for text in texts):
        raise RecordError("not a shared workspace: a field is no text, or is too long")
    if not can_name(name) or bool(slash) != bool(pattern) or record.get("value") not in _VALUES[bool(slash)]:
        raise RecordError(f"not a shared workspace: {name!r}")
    if not slash and not (record.get("collection") and listed):
        raise RecordError(f"the shared workspace {name!r} has no collection or no patterns of names")


def _declaration(workspace: Workspace) -> Mapping[str, Any]:
    include = list(workspace.include)
    return {"id": workspace.origin, "value": "shared", "collection": workspace.collection, "include": include}


def _joined(name: str, exclude: Sequence[str], include: Sequence[str]) -> Mapping[str, Any]:
    return {"id": f"/{name}", "op": "joined", "exclude": sorted(exclude), "include": list(include)}


def _own(records: _Records, name: str) -> Mapping[str, Any] | None:
    """Return this machine's own record of a workspace, if it takes part. A damaged one is none."""
    found = records.get(f"/{name}", {})
    is_sound = all(isinstance(found.get(key), list) for key in ("exclude", "include"))
    return found if found.get("op") == "joined" and is_sound else None


def _is_shared(records: _Records, name: str) -> bool:
    """Return whether the machines share a workspace. A damaged record of it counts as none."""
    with suppress(RecordError):
        check_declaration(records.get(name, {}))
        return bool(records[name]["value"] == "shared")
    return False


def _left(records: _Records, name: str) -> Mapping[str, Any]:
    """Return the record of a machine that takes no part any more, with the patterns that it knew then."""
    return {"id": f"/{name}", "op": "left", "exclude": (_own(records, name) or {}).get("exclude", [])}


def _seen(records: _Records, name: str, workspace: Workspace) -> set[str]:
    """Return the patterns that these notes had when they were no longer shared."""
    return set(records.get(f"/{name}", {}).get("exclude", ())) if workspace.shared else set()


def _is_marked(known: Mapping[str, Workspace], name: str) -> bool:
    return name in known and known[name].shared


def _joined_names(records: _Records) -> list[str]:
    return [name[1:] for name in records if name.startswith("/") and _own(records, name[1:]) is not None]


def _agreed(records: _Records, name: str) -> tuple[str, ...]:
    """Return the patterns that all machines exclude."""
    start = f"{name}/"
    return tuple(
        key.removeprefix(start)
        for key, record in records.items()
        if key.startswith(start) and record.get("value") == "excluded"
    )


def _put(records: _Records, name: str, pattern: str, value: str) -> None:
    key = f"{name}/{pattern}"
    records[key] = {"id": key, "value": value}


def _adopted(workspace: Workspace, records: _Records) -> Workspace:
    """Return a workspace with what the others changed, and with what was changed here since the last exchange."""
    own, agreed = _own(records, workspace.origin) or {}, _agreed(records, workspace.origin)
    before, here = own["exclude"], workspace.exclude
    kept = [pattern for pattern in here if pattern in agreed or pattern not in before]
    new = [pattern for pattern in agreed if pattern not in here and pattern not in before]
    include = workspace.include
    if list(include) == own["include"]:
        include = tuple(records[workspace.origin]["include"])
    return evolve(workspace, include=include, exclude=(*kept, *new))
