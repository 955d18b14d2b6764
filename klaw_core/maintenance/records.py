"""The lines of an export: a header, then one object a line, then an end that says how many there were.

Without its end an export was cut off on its way, and is refused.
"""

from collections.abc import Callable, Mapping
from datetime import date
from pathlib import Path
from typing import Any, TypeAlias

from attrs import field, frozen

from klaw_core.builtin.workspace import Workspace, can_name
from klaw_core.conversations.chat import Chat
from klaw_core.conversations.message import Message
from klaw_core.conversations.summaries import SummaryFiles
from klaw_core.core_memory.facts import SECTIONS
from klaw_core.errors import KlawError, RecordError
from klaw_core.files.timestamps import shown
from klaw_core.maintenance.checks.owned_files import SUMMARIES
from klaw_core.sources.saved import MAX_LINE_BYTES, Saved
from klaw_core.sources.workspaces import parse_workspace, workspace_entry
from klaw_core.values.chat_rows import Summary

FORMAT = "klaw-export"
VERSION = 1
#: A memory's line, and what goes around it.
MAX_EXPORT_LINE_BYTES = MAX_LINE_BYTES + (1 << 20)


@frozen
class CoreFact:
    """One key of core memory."""

    section: str
    key: str
    value: str = field(repr=False)


@frozen
class MessageRecord:
    """A message and which file it stands in; ``day`` is that file's name."""

    chat: Chat
    day: str
    message: Message


@frozen
class SummaryRecord:
    """A summary of a chat."""

    chat: Chat
    summary: Summary


Item: TypeAlias = Workspace | CoreFact | Saved | MessageRecord | SummaryRecord

#: What a line may hold, in the order of an export.
KINDS: Mapping[str, type] = {
    "workspace": Workspace,
    "core": CoreFact,
    "saved": Saved,
    "message": MessageRecord,
    "summary": SummaryRecord,
}


def header() -> dict[str, Any]:
    """Return the first line."""
    return {"kind": "header", "format": FORMAT, "version": VERSION}


def end(count: int) -> dict[str, Any]:
    """Return the last line; ``count`` is how many stand between."""
    return {"kind": "end", "records": count}


def kind_of(item: Item) -> str:
    """Return the ``kind`` of an item's line."""
    return next(kind for kind, cls in KINDS.items() if isinstance(item, cls))


def as_line(item: Item) -> dict[str, Any]:
    """Return an item's line."""
    kind: dict[str, Any] = {"kind": kind_of(item)}
    if isinstance(item, Workspace):
        return kind | {"name": item.origin, "value": workspace_entry(item)}
    if isinstance(item, CoreFact):
        return kind | {"section": item.section, "key": item.key, "value": item.value}
    if isinstance(item, Saved):
        return kind | {"value": item.record()}
    if isinstance(item, MessageRecord):
        return kind | {"chat": item.chat.name, "day": item.day, "value": item.message.record()}
    return kind | {"chat": item.chat.name, "value": SummaryFiles.record(item.summary)}


def parse_line(line: Mapping[str, Any]) -> Item:
    """Return what a line holds. Raise RecordError for a kind that is not known, or a line that holds none."""
    kind = line.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        raise RecordError(f"unknown kind {shown(kind)}, known are {', '.join(KINDS)}", hint="pip install -U klaw")
    try:
        return _PARSERS[kind](line)
    except KlawError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise RecordError(f"it holds no {kind}: {type(error).__name__}: {error}") from error


def check_header(line: Mapping[str, Any]) -> None:
    """Raise RecordError unless this is the first line of an export that this version can read."""
    if line.get("kind") != "header" or line.get("format") != FORMAT:
        raise RecordError("it is not an export of Klaw: the first line is no header")
    if line.get("version") != VERSION:
        raise RecordError(
            f"it is of version {shown(line.get('version'))}, this Klaw reads {VERSION}", hint="pip install -U klaw"
        )


def _parse_saved(line: Mapping[str, Any]) -> Saved:
    return Saved.parse(line["value"])


def _parse_core(line: Mapping[str, Any]) -> CoreFact:
    if line.get("section") not in SECTIONS:
        raise RecordError(f"core memory has no section {shown(line.get('section'))}")
    return CoreFact(_text(line, "section"), _text(line, "key"), _text(line, "value"))


def _parse_workspace(line: Mapping[str, Any]) -> Workspace:
    workspace = parse_workspace(_text(line, "name"), line["value"])
    if not workspace.root.is_absolute() or not can_name(workspace.origin):
        raise RecordError(f"{workspace.origin!r} is no workspace: {workspace.root} is not absolute, or the name is odd")
    return workspace


def _parse_said(line: Mapping[str, Any]) -> MessageRecord:
    day = _text(line, "day")
    if Path(day).name != day or len(day) != len("2026-02-24"):
        raise RecordError(f"{day!r} is no day")
    return MessageRecord(
        Chat.parse(_text(line, "chat")), date.fromisoformat(day).isoformat(), Message.parse(line["value"])
    )


def _parse_told(line: Mapping[str, Any]) -> SummaryRecord:
    chat = Chat.parse(_text(line, "chat"))
    return SummaryRecord(chat, SummaryFiles(Path(SUMMARIES)).parse(chat, line["value"]))


def _text(line: Mapping[str, Any], name: str) -> str:
    value = line.get(name)
    if not isinstance(value, str):
        raise RecordError(f"{name} is {'not a text' if name in line else 'missing'}")
    return value


_PARSERS: Mapping[str, Callable[[Mapping[str, Any]], Item]] = {
    "workspace": _parse_workspace,
    "core": _parse_core,
    "saved": _parse_saved,
    "message": _parse_said,
    "summary": _parse_told,
}
