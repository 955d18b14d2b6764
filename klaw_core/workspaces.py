"""Which directories of notes were indexed, by name: ``workspaces.json`` in the data directory.

It is kept beside klaw.db rather than in it, because klaw.db can be deleted and rebuilt from what this names.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import evolve, frozen

from klaw_core.builtin.workspace import Workspace
from klaw_core.errors import StoreCorruptError, WorkspaceError
from klaw_core.files import write_atomically

#: Names that documents of other origins use.
RESERVED = ("saved", "conversations")


@frozen
class Workspaces:
    """The remembered workspaces. Every change is written at once."""

    file: Path

    def all(self) -> dict[str, Workspace]:
        """Return every workspace by name. Raise StoreCorruptError if the file is not what Klaw wrote."""
        try:
            entries = json.loads(self.file.read_text("utf-8"))
            return {name: _workspace(name, entry) for name, entry in entries.items()}
        except FileNotFoundError:
            return {}
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise StoreCorruptError(
                f"{self.file} is not readable as a list of workspaces: {error}",
                hint="move it away, then `klaw index DIR` for each of your directories",
            ) from error

    def remember(self, directory: Path, name: str | None = None) -> Workspace:
        """Return the workspace of a directory, adding it if it is new.

        A directory inside a known workspace belongs to that one. Raise WorkspaceError if the directory does
        not exist, holds a known workspace, or the name is taken.
        """
        root = directory.expanduser().resolve()
        if not root.is_dir():
            problem = "is a file, not a directory" if root.exists() else "does not exist"
            hint = f"klaw index {root.parent}" if root.exists() else ""
            raise WorkspaceError(f"{directory} {problem}", hint=hint)
        known = self.all()
        for workspace in known.values():
            if root.is_relative_to(workspace.root):
                return workspace
            if workspace.root.is_relative_to(root):
                raise WorkspaceError(
                    f"{directory} contains the workspace {workspace.origin!r} ({workspace.root})",
                    hint=f"`klaw forget {workspace.origin}/` first, then index the whole",
                )
        workspace = Workspace(root, self._free_name(name or root.name or "root", known, chosen=name is not None))
        self._write({**known, workspace.origin: workspace})
        return workspace

    def forget(self, name: str) -> None:
        """Remove a workspace from the list; an unknown one is ignored."""
        known = self.all()
        if known.pop(name, None) is not None:
            self._write(known)

    def exclude(self, name: str, relative: str) -> None:
        """Never index this file of the workspace again."""
        known = self.all()
        workspace = known[name]
        if relative not in workspace.exclude:
            known[name] = evolve(workspace, exclude=(*workspace.exclude, relative))
            self._write(known)

    def _free_name(self, name: str, known: Mapping[str, Workspace], *, chosen: bool) -> str:
        if "/" in name or name.startswith("."):
            raise WorkspaceError(f"{name!r} cannot name a workspace", hint="choose another: klaw index DIR --name NAME")
        taken = {*known, *RESERVED}
        if name not in taken:
            return name
        if chosen:
            raise WorkspaceError(f"the name {name!r} is taken", hint="choose another: klaw index DIR --name NAME")
        return next(free for number in range(2, len(taken) + 3) if (free := f"{name}-{number}") not in taken)

    def _write(self, workspaces: Mapping[str, Workspace]) -> None:
        entries = {
            name: {"path": str(workspace.root), "exclude": list(workspace.exclude)}
            for name, workspace in sorted(workspaces.items())
        }
        write_atomically(self.file, json.dumps(entries, indent=2, ensure_ascii=False) + "\n")


def _workspace(name: str, entry: Mapping[str, Any]) -> Workspace:
    return Workspace(Path(entry["path"]), name, exclude=tuple(str(pattern) for pattern in entry.get("exclude", ())))
