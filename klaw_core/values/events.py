"""Events, which listening extensions and callbacks of ``Memory.on_change`` receive.

An event is sent after the change is durable, in the thread that caused it, and only within this process.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal, TypeAlias

from attrs import field, frozen

from klaw_core.values.runs import IndexReport
from klaw_core.values.search import CloseEvent, SearchEvent


@frozen
class MessageEvent:
    """A message was appended to a conversation. ``chat`` is the chat's name, as in ``telegram_123456``."""

    chat: str
    id: str
    role: str
    content: str = field(repr=False)
    created_at: datetime
    type: str | None = None
    metadata: Mapping[str, Any] = field(factory=dict, repr=False)


@frozen
class IndexEvent:
    """An index run ended. ``origins`` are the sources that it scanned.

    ``trigger`` is ``search`` for a run before a search, ``forced`` for one that split everything again.
    """

    report: IndexReport
    origins: tuple[str, ...]
    trigger: Literal["", "search", "forced"] = ""


@frozen
class ForgetEvent:
    """Documents were removed from the index and from their source. An extension that fails has to forget them later."""

    paths: tuple[str, ...]


#: Any event.
Event: TypeAlias = MessageEvent | IndexEvent | SearchEvent | ForgetEvent | CloseEvent
