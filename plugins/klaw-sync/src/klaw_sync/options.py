"""The table ``[extensions.sync]``."""

from __future__ import annotations

from attrs import field, frozen, validators

from klaw_sync.values import KINDS


@frozen
class SyncOptions:
    """Options of the extension ``sync``.

    ``remotes``: the folders with which `klaw sync` synchronises if it is given none. ``encrypt``: without it, files are
    only authenticated, and messages and their summaries stay on this machine, because they contain the secrets that
    were said. ``journals``: what this machine exchanges. ``machine``: its name for people; empty is the host's.
    ``interval_seconds``: how often a server, or `klaw sync run --again`, synchronises; a server never does with 0.
    """

    remotes: tuple[str, ...] = ()
    encrypt: bool = True
    journals: tuple[str, ...] = field(
        default=tuple(KINDS), validator=validators.deep_iterable(validators.in_(tuple(KINDS)))
    )
    machine: str = ""
    interval_seconds: int = field(default=60, validator=[validators.ge(0), validators.lt(2**31)])
