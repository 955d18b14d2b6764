"""OpenClaw: an agent's workspace (``MEMORY.md``, ``memory/2026-02-24.md`` …) and its sessions (``*.jsonl``).

A session is a JSON Lines file: a line of type ``session`` with its id, then lines of type ``message``. Versions since
2026.7.2 have the same lines in a database of each agent (``agents/main/agent/openclaw-agent.sqlite``), in the table
``transcript_events``: https://docs.openclaw.ai/refactor/database-first
"""

from __future__ import annotations

import json
import re
import sqlite3
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from itertools import chain, groupby
from operator import itemgetter
from pathlib import Path, PurePosixPath
from typing import Any

from klaw_core import RecordError, SkippedEntry, update_command
from klaw_doctor.readers.files import named_files
from klaw_doctor.readers.markdown import pages
from klaw_doctor.readers.records import ImportedMessage, as_string, conversation, moment_of, objects, skipped
from klaw_journals import Record

_EVENTS = "SELECT session_id, event_json, NULL FROM transcript_events ORDER BY session_id, seq"
_ZSTD_EVENTS = "SELECT session_id, event_json, event_zstd FROM transcript_events ORDER BY session_id, seq"
# What OpenClaw writes at the end of a line of MEMORY.md, and in lines of their own.
_ANNOTATION = re.compile(r"<!--[ \t]*(trigger|importance|project)[ \t]*:((?:(?!<!--|-->).)*)-->", re.IGNORECASE)
_MARKER = re.compile(r"<!--\s*openclaw-memory-(?:promotion|lineage):[^\n]*-->")
_DATABASES = (".sqlite", ".db")
_ROLES = {"user": "user", "assistant": "assistant", "system": "system", "toolResult": "tool", "tool": "tool"}


def read(source: Path) -> Iterator[Record | SkippedEntry]:
    """Yield the pages of a workspace and the messages of sessions, if they exist."""
    found = 0
    for item in chain(_pages(source), _sessions(source), _databases(source)):
        found += 1
        yield item
    if not found:
        raise RecordError(
            f"{source} contains neither Markdown nor sessions", hint="pass ~/.openclaw or a workspace in it"
        )


def _pages(source: Path) -> Iterator[Record | SkippedEntry]:
    if source.suffix not in (".jsonl", *_DATABASES):
        yield from pages("openclaw", source, required=False, parse=_annotated)


def _annotated(text: str) -> tuple[str, dict[str, Any]]:
    """Return a page and its annotations as metadata: all triggers and projects, the most importance.

    The text keeps only the triggers, in parentheses: they are the words that its line is to be found by.
    """
    found: dict[str, list[str]] = {"trigger": [], "importance": [], "project": []}
    kept = []
    for line in text.split("\n"):
        if _MARKER.fullmatch(line.strip()):  # OpenClaw's own record of where a line comes from
            continue
        annotations = _ANNOTATION.findall(line)
        for kind, value in annotations:
            found[kind.lower()].append(value.strip())
        kept.append(_ANNOTATION.sub(_shown, line).rstrip() if annotations else line)
    levels = [int(value) for value in found["importance"] if re.fullmatch("[0-9]{1,2}", value)]
    lists = {kind: _phrases(found[kind], separator) for kind, separator in (("trigger", ","), ("project", ";"))}
    metadata: dict[str, Any] = {kind: phrases for kind, phrases in lists.items() if phrases}
    return "\n".join(kept), {**metadata, **({"importance": max(levels)} if levels else {})}


def _shown(annotation: re.Match[str]) -> str:
    return f"({annotation[2].strip()})" if annotation[1].lower() == "trigger" and annotation[2].strip() else ""


def _phrases(values: Iterable[str], separator: str) -> list[str]:
    phrases = (phrase.strip() for value in values for phrase in value.split(separator))
    return list(dict.fromkeys(filter(None, phrases)))


def _sessions(source: Path) -> Iterator[Record | SkippedEntry]:
    if source.suffix in (".md", *_DATABASES):
        return
    for name, content in named_files(source, "*.jsonl", required=False):
        yield from _session(name, PurePosixPath(name).stem, content.splitlines())


def _databases(source: Path) -> Iterator[Record | SkippedEntry]:
    """Yield the sessions of each agent's database."""
    if source.is_dir():
        files = [path for path in sorted(source.rglob("openclaw-agent.sqlite")) if path.is_file()]
    elif source.suffix in _DATABASES:
        files = [source]
    else:
        if zipfile.is_zipfile(source):
            with zipfile.ZipFile(source) as archive:
                names = [name for name in archive.namelist() if name.endswith(_DATABASES)]
            yield from (skipped(name, "a database in an archive: unpack it first") for name in names)
        return
    for path in files:
        name = path.relative_to(source).as_posix() if path != source else path.name
        try:
            with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
                yield from _events(name, connection)
        except sqlite3.Error as error:
            yield skipped(name, f"cannot be read: {error}")


def _events(name: str, connection: sqlite3.Connection) -> Iterator[Record | SkippedEntry]:
    columns = {row[1] for row in connection.execute("PRAGMA table_info(transcript_events)")}
    if not columns:  # versions before 2026.7.2 keep only other things there
        return
    if not columns >= {"session_id", "seq", "event_json"}:
        yield skipped(
            name, f"a newer form of OpenClaw's sessions, which this version does not read; {update_command()}"
        )
        return
    rows = connection.execute(_ZSTD_EVENTS if "event_zstd" in columns else _EVENTS)
    for session, events in groupby(rows, key=itemgetter(0)):
        lines, unread = [], 0
        for _, text, packed_line in events:
            line = _unpacked(packed_line) if text is None else str(text).encode()
            unread += line is None
            lines.append(line or b"")
        if unread:
            yield skipped(f"{name}, session {session}", f"{unread} lines in zstd, which needs Python 3.14")
        yield from _session(f"{name}, session {session}", str(session), lines)


def _unpacked(data: Any) -> bytes | None:
    """Return a line that is compressed with zstd; None if this Python cannot read it."""
    try:
        from compression import zstd  # type: ignore[import-not-found,unused-ignore]  # Python 3.14

        return bytes(zstd.decompress(data))
    except Exception:  # noqa: BLE001  # also ZstdError, which is not known without the module
        return None


def _session(name: str, key: str, lines: Iterable[bytes]) -> Iterator[Record | SkippedEntry]:
    begun, messages = None, []
    for number, line in enumerate(lines, start=1):
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
