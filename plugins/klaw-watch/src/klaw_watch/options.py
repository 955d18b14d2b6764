"""The table ``[extensions.watch]``."""

from __future__ import annotations

import re
from datetime import time

from attrs import field, frozen, validators

_HOURS = re.compile(r"(?P<first>(?:[01]\d|2[0-3]):[0-5]\d)-(?P<last>(?:[01]\d|2[0-3]):[0-5]\d)")


def hours_of(text: str) -> tuple[time, time] | None:
    """Return the begin and the end of hours such as ``02:00-05:00``; None if the text has another form."""
    found = _HOURS.fullmatch(text)
    return None if found is None else (time.fromisoformat(found["first"]), time.fromisoformat(found["last"]))


def _hours(_instance: object, _attribute: object, value: str) -> None:
    if value and hours_of(value) is None:
        raise ValueError(f"consolidate: expected hours such as '02:00-05:00', or '' for never, got {value!r}")


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
    ``consolidate``: the hours (local time) in which extensions condense their records, once a night, when nothing has
    been searched or changed for ``idle_minutes`` and the machine is neither busy nor on battery; empty is never.
    """

    on_start: bool = field(default=True, metadata=_INHERITED)
    watch: bool = field(default=True, metadata=_INHERITED)
    debounce_ms: int = field(default=1500, validator=_TIMER, metadata=_INHERITED)
    conversation_messages: int = field(default=0, validator=validators.ge(0), metadata=_INHERITED)
    conversation_bytes: int = field(default=0, validator=validators.ge(0), metadata=_INHERITED)
    interval_minutes: int = field(default=60, validator=_TIMER, metadata=_INHERITED)
    consolidate: str = field(default="02:00-05:00", validator=_hours, metadata=_INHERITED)
    idle_minutes: int = field(default=15, validator=_TIMER, metadata=_INHERITED)
