"""Which plugins a checkout has: a feature is one directory, and a checkout without it is still a checkout.

A plugin that needs another, which is not there, cannot be installed; it is left out with all its tests.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from functools import cache
from pathlib import Path

_OURS = re.compile(r"klaw-[\w-]+|langchain-klaw")


def _required(project: Path) -> frozenset[str]:
    read = tomllib.loads((project / "pyproject.toml").read_text("utf-8"))
    return frozenset(_plugins(read["project"]["dependencies"]))


def _plugins(listed: Iterable[str]) -> set[str]:
    return {name[0] for name in map(_OURS.match, listed) if name}


@cache
def _requirements(root: Path) -> dict[str, frozenset[str]]:
    return {path.parent.name: _required(path.parent) for path in sorted(root.glob("plugins/*/pyproject.toml"))}


def left_out(root: Path) -> dict[str, set[str]]:
    """Return the plugins that cannot be installed: by name, those that they need and the checkout does not have."""
    requirements = _requirements(root)
    found: dict[str, set[str]] = {}
    while True:
        here = requirements.keys() - found.keys()
        more = {name: {*requirements[name]} - here for name in sorted(here) if requirements[name] - here}
        if not more:
            return found
        found |= more


def installable(root: Path) -> list[Path]:
    """Return the directories of the plugins that can be installed from a checkout, by name."""
    without = left_out(root)
    return [root / "plugins" / name for name in _requirements(root) if name not in without]


def with_requirements(root: Path, listed: Iterable[str]) -> list[Path]:
    """Return the directories of the plugins of a list that can be installed, and of the plugins that they need."""
    requirements = _requirements(root)
    wanted, waiting = set[str](), _plugins(listed)
    while waiting:
        wanted |= waiting
        waiting = {each for name in waiting for each in requirements.get(name, ())} - wanted
    return [path for path in installable(root) if path.name in wanted]


def is_here(root: Path, place: str) -> bool:
    """Tell whether a path is of the core, or of a plugin that can be installed."""
    first, name, *_ = place.split("/")
    return first != "plugins" or name in {path.name for path in installable(root)}
