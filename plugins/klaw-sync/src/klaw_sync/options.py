"""The table ``[extensions.sync]``."""

from __future__ import annotations

from attrs import field, frozen, validators

from klaw_sync.values import KINDS

# What the memory of an agent inherits from the owner's configuration: not the folders, which hold the owner's memory.
_INHERITED = {"agents": True}
_OWN = {"agents": ()}


@frozen
class SyncOptions:
    """Options of the extension ``sync``.

    ``remotes``: the folders with which `klaw sync` synchronises if it is given none. ``encrypt``: without it, files are
    only authenticated, and messages and their summaries stay on this machine, because they contain the secrets that
    were said. ``journals``: what this machine exchanges. ``machine``: its name for people; empty is the host's.
    ``interval_seconds``: how often `klaw serve`, `klaw watch` and `klaw sync run --again` synchronise; with 0 only the
    last one does.
    """

    remotes: tuple[str, ...] = field(default=(), metadata=_OWN)
    encrypt: bool = field(default=True, metadata=_OWN)
    journals: tuple[str, ...] = field(
        default=tuple(KINDS),
        validator=validators.deep_iterable(validators.in_(tuple(KINDS))),
        metadata=_INHERITED,
    )
    machine: str = field(default="", metadata=_INHERITED)
    interval_seconds: int = field(default=60, validator=[validators.ge(0), validators.lt(2**31)], metadata=_INHERITED)
