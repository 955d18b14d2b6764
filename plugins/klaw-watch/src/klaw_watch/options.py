"""The table ``[extensions.watch]``."""

from __future__ import annotations

from attrs import field, frozen, validators

# What the memory of an agent inherits from the owner's configuration.
_INHERITED = {"agents": True}
# Python's locks overflow at 2**31.
_TIMER = [validators.ge(0), validators.lt(2**31)]


@frozen
class WatchOptions:
    """Options of the extension ``watch``: when a watcher updates the index.

    ``on_start``: update everything when it starts. ``watch``: update a file ``debounce_ms`` after its last change. New
    messages are indexed once there are ``conversation_messages`` of them or they have ``conversation_bytes``;
    immediately if both are 0. ``interval_minutes``: update everything at this interval; 0 is never.
    """

    on_start: bool = field(default=True, metadata=_INHERITED)
    watch: bool = field(default=True, metadata=_INHERITED)
    debounce_ms: int = field(default=1500, validator=_TIMER, metadata=_INHERITED)
    conversation_messages: int = field(default=0, validator=validators.ge(0), metadata=_INHERITED)
    conversation_bytes: int = field(default=0, validator=validators.ge(0), metadata=_INHERITED)
    interval_minutes: int = field(default=60, validator=_TIMER, metadata=_INHERITED)
