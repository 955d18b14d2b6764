"""Klaw source ``workspace``, extension ``workspaces``, and the chunkers ``markdown`` and ``transcript``.

``workspace`` reads a directory: ``walking`` finds its files, ``ignore_files`` leaves some out, ``front_matter``,
``titles`` and ``unreadable`` read a note. ``workspace_list`` is the list of directories that ``klaw index DIR``
remembers, ``extension`` and ``management`` what a memory does with it. ``converting`` turns other files into text,
``chunking`` splits texts.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from klaw_notes.converting import Converters
    from klaw_notes.management import ListedWorkspace, WorkspaceManager
    from klaw_notes.workspace import Workspace

_MODULES = {
    "Converters": "converting",
    "ListedWorkspace": "management",
    "Workspace": "workspace",
    "WorkspaceManager": "management",
}
__all__ = ["Converters", "ListedWorkspace", "Workspace", "WorkspaceManager"]


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"klaw_notes.{_MODULES[name]}"), name)
