"""The table ``[extensions.warm]``."""

from __future__ import annotations

from attrs import field, frozen, validators

_OWN = {"agents": ()}  # the memory of an agent has no helper
_MINUTES = [validators.ge(1), validators.le(24 * 60)]


@frozen
class WarmOptions:
    """Options of the extension ``warm``.

    ``enabled``: a ``klaw search`` leaves a helper behind, which answers the next ones. It ends after ``idle_minutes``
    without a search, 1 to 1440.
    """

    enabled: bool = field(default=False, metadata=_OWN)
    idle_minutes: int = field(default=10, validator=_MINUTES, metadata=_OWN)
