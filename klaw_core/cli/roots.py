"""Where the indexed directories are, for links and for the names of runs."""

from __future__ import annotations

from pathlib import Path

from klaw_core.sources.workspaces import Workspaces


def workspace_roots(data_dir: Path) -> dict[str, Path]:
    """Return the directory of every indexed workspace by name."""
    return {name: workspace.root for name, workspace in Workspaces(data_dir / "workspaces.json").all().items()}


def workspace_of(data_dir: Path, directory: str) -> str:
    """Return the name under which a directory was indexed: its own, the one given, or that of the one around it."""
    root = Path(directory).expanduser().resolve()
    return next((name for name, known in workspace_roots(data_dir).items() if root.is_relative_to(known)), directory)
