"""The first-party distributions: what each provides, and how to install it.

It is for hints, never to find plugins. A new distribution is a row in ``catalogue.json``, and a directory.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from pathlib import Path

from attrs import frozen


@frozen
class FirstParty:
    """A distribution. ``extras`` of ``klaw`` install it; ``components`` are (kind, name), ``commands`` name: summary.

    ``default``: its extra is part of ``klaw[default]``. ``reads``: the suffixes of files that it can read.
    """

    distribution: str
    extras: tuple[str, ...]
    components: tuple[tuple[str, str], ...] = ()
    commands: Mapping[str, str] = {}
    default: bool = False
    reads: frozenset[str] = frozenset()


CATALOGUE: tuple[FirstParty, ...] = tuple(
    FirstParty(
        distribution,
        tuple(row["extras"]),
        tuple((kind, name) for kind, names in row.get("components", {}).items() for name in names),
        row.get("commands", {}),
        default="default" in row,
        reads=frozenset(row.get("reads", ())),
    )
    for distribution, row in json.loads(Path(__file__).with_name("catalogue.json").read_text("utf-8")).items()
)

#: The extras in ``klaw[default]``.
DEFAULT_EXTRAS = frozenset(extra for row in CATALOGUE if row.default for extra in row.extras)

#: Those of them whose components the default configuration selects; the others add features.
_SELECTED_EXTRAS = frozenset(
    extra
    for row in CATALOGUE
    if row.default and {kind for kind, _ in row.components} & {"store", "chunker", "embedder", "retriever"}
    for extra in row.extras
)


def provider_of(kind: str, name: str) -> FirstParty | None:
    """Return the first-party distribution that provides a component; None if there is none."""
    return next((row for row in CATALOGUE if (kind, name) in row.components), None)


def provided_names(kind: str) -> list[str]:
    """Return the names of the components of a kind that first-party distributions provide."""
    return [name for row in CATALOGUE for offered, name in row.components if offered == kind]


def install_command(extras: Collection[str]) -> str:
    """Return the command that installs these extras of ``klaw``: ``default`` for all that a configuration needs."""
    if set(extras) >= _SELECTED_EXTRAS:
        extras = ["default", *(extra for extra in extras if extra not in DEFAULT_EXTRAS)]
    from klaw_core.plugins.installing import install_extras  # imported here because hints are rare

    return install_extras(extras)
