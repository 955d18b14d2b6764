"""OpenClaw: an agent's workspace (``MEMORY.md``, ``memory/2026-02-24.md`` …) and its sessions (``*.jsonl``).

A session is a JSON Lines file: a line of type ``session`` with its id, then lines of type ``message``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Any

from klaw_core import RecordError, SkippedEntry
from klaw_doctor.readers.files import named_files
from klaw_doctor.readers.markdown import pages
from klaw_doctor.readers.records import ImportedMessage, as_string, conversation, moment_of, objects, skipped
from klaw_journals import Record

_ROLES = {"user": "user", "assistant": "assistant", "system": "system", "toolResult": "tool", "tool": "tool"}


def read(source: Path) -> Iterator[Record | SkippedEntry]:
    """Yield the pages of a workspace and the messages of sessions, if they exist."""
    found = 0
    for item in chain(_pages(source), _sessions(source)):
        found += 1
        yield item
    if not found:
        raise RecordError(
            f"{source} contains neither Markdown nor sessions", hint="pass ~/.openclaw or a workspace in it"
        )


def _pages(source: Path) -> Iterator[Record | SkippedEntry]:
    if source.suffix != ".jsonl":
        yield from pages("openclaw", source, required=False)


def _sessions(source: Path) -> Iterator[Record | SkippedEntry]:
    if source.suffix == ".md":
        return
    for name, content in named_files(source, "*.jsonl", required=False):
        yield from _session(name, content)


def _session(name: str, content: bytes) -> Iterator[Record | SkippedEntry]:
    key, begun, messages = PurePosixPath(name).stem, None, []
    for number, line in enumerate(content.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            yield skipped(f"{name}, line {number}", f"not JSON: {error}")
            continue
        if not isinstance(value, Mapping):
            continue
        if value.get("type") == "session":
            key, begun = as_string(value.get("id")) or key, moment_of(value.get("timestamp"))
        elif value.get("type") == "message" and (item := _message(value)) is not None:
            messages.append(item)
    yield from conversation("openclaw", key, "", begun, messages)


def _message(line: Mapping[str, Any]) -> ImportedMessage | None:
    message = line.get("message")
    if not isinstance(message, Mapping):
        return None
    role, content = _ROLES.get(as_string(message.get("role"))), message.get("content")
    blocks = [as_string(block.get("text")) for block in objects(content) if block.get("type") == "text"]
    text = content if isinstance(content, str) else "\n\n".join(filter(None, blocks))
    if role is None or not text.strip():
        return None
    moment = moment_of(line.get("timestamp")) or moment_of(message.get("timestamp"))
    return ImportedMessage(as_string(line.get("id")), role, text, moment, as_string(message.get("model")))
