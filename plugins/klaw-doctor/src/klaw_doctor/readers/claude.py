"""Claude's data export: ``conversations.json``, ``projects.json`` and ``memories.json``, in the archive or unpacked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from klaw_core import SkippedEntry
from klaw_doctor.readers.files import named_files, parse_json
from klaw_doctor.readers.records import ImportedMessage, as_string, conversation, document, moment_of, objects, skipped
from klaw_journals import Record

_ROLES = {"human": "user", "assistant": "assistant"}


def read(source: Path) -> Iterator[Record | SkippedEntry]:
    """Yield the messages of every conversation, the documents of projects, and Claude's memories."""
    for name, content in named_files(source, "conversations.json", "projects.json", "memories.json"):
        value = parse_json(name, content)
        kind = PurePosixPath(name).name
        if not isinstance(value, list):
            yield skipped(name, "not a list")
        for number, item in enumerate(objects(value)):
            where = f"{name}, entry {number + 1}"
            if kind == "projects.json":
                yield from _project(where, item)
            elif kind == "memories.json":
                yield from _memories(item)
            else:
                yield from _conversation(where, item)


def _conversation(where: str, item: Mapping[str, Any]) -> Iterator[Record | SkippedEntry]:
    key = as_string(item.get("uuid"))
    if not key or not isinstance(item.get("chat_messages"), list):
        yield skipped(where, "it has no uuid or no chat_messages")
        return
    account = item.get("account")
    person = as_string(account.get("uuid")) if isinstance(account, Mapping) else ""
    messages = [
        ImportedMessage(
            *(as_string(message.get("uuid")), role, text, moment_of(message.get("created_at"))),
            sender_id=person if role == "user" else "",
        )
        for message in objects(item["chat_messages"])
        if (role := _ROLES.get(as_string(message.get("sender")), "")) and (text := _text(message)).strip()
    ]
    yield from conversation("claude", key, as_string(item.get("name")), moment_of(item.get("created_at")), messages)


def _text(message: Mapping[str, Any]) -> str:
    """Return the text of a message, followed by the text of attached files."""
    blocks = [as_string(block.get("text")) for block in objects(message.get("content")) if block.get("type") == "text"]
    text = "\n\n".join(filter(None, blocks)) or as_string(message.get("text"))
    files = [
        f"[{as_string(item.get('file_name')) or 'attachment'}]\n{content}"
        for item in objects(message.get("attachments"))
        if (content := as_string(item.get("extracted_content")))
    ]
    return "\n\n".join([text, *files]).strip()


def _project(where: str, item: Mapping[str, Any]) -> Iterator[Record | SkippedEntry]:
    key = as_string(item.get("uuid"))
    if not key:
        yield skipped(where, "it has no uuid")
        return
    about = {"project": as_string(item.get("name"))}
    texts = {"prompt": as_string(item.get("prompt_template")), "description": as_string(item.get("description"))}
    for part, text in texts.items():
        if text.strip():
            yield document("claude", f"projects/{key}/{part}", text, moment_of(item.get("created_at")), about)
    for page in objects(item.get("docs")):
        name, text = as_string(page.get("filename")), as_string(page.get("content"))
        if text.strip():
            metadata = {**about, "title": name}
            path = f"projects/{key}/{as_string(page.get('uuid')) or name}"
            yield document("claude", path, text, moment_of(page.get("created_at")), metadata)


def _memories(item: Mapping[str, Any]) -> Iterator[Record | SkippedEntry]:
    account = as_string(item.get("account_uuid")) or "account"
    general = as_string(item.get("conversations_memory"))
    if general.strip():
        yield document("claude", f"memories/{account}", general, moment_of(item.get("updated_at")), {})
    projects = item.get("project_memories")
    for name, text in projects.items() if isinstance(projects, Mapping) else ():
        if as_string(text).strip():
            yield document("claude", f"memories/{account}/{name}", text, None, {"project": name})
