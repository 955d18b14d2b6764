"""ChatGPT's data export: ``conversations.json`` (or ``conversations-000.json`` …), in the archive or unpacked.

A conversation is a tree, because every edited question starts a branch. The branch that was shown last is imported.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from klaw_core import RecordError, SkippedEntry
from klaw_doctor.readers.files import named_files, parse_json
from klaw_doctor.readers.records import ImportedMessage, as_string, conversation, moment_of, objects, skipped
from klaw_journals import Record

_ROLES = {"user", "assistant", "system", "tool"}
# Instructions that the program adds, and thoughts of the model, are not messages.
_NOT_SAID = {"user_editable_context", "model_editable_context", "thoughts", "reasoning_recap"}


def read(source: Path) -> Iterator[Record | SkippedEntry]:
    """Yield the messages of every conversation."""
    person = _account(source)
    for name, content in named_files(source, "conversations.json", "conversations-*.json"):
        value = parse_json(name, content)
        if not isinstance(value, list):
            yield skipped(name, "not a list of conversations")
        for number, item in enumerate(objects(value)):
            where = f"{name}, conversation {number + 1}"
            key = as_string(item.get("conversation_id")) or as_string(item.get("id"))
            if not key or not isinstance(item.get("mapping"), Mapping):
                yield skipped(where, "it has no id or no messages")
                continue
            messages = [found for node in _branch(item) if (found := _message(node, person)) is not None]
            yield from conversation(
                "chatgpt", key, as_string(item.get("title")), moment_of(item.get("create_time")), messages
            )


def _account(source: Path) -> str:
    """Return the id of the person whose export it is; empty if it is not there."""
    if not (source.is_dir() or zipfile.is_zipfile(source)):
        return ""
    for name, content in named_files(source, "user.json", required=False):
        with suppress(RecordError):
            return as_string(_object(parse_json(name, content)).get("id"))
    return ""


def _branch(item: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the nodes from the root to the last shown message."""
    mapping: Mapping[str, Any] = item["mapping"]
    key = item.get("current_node")
    if key not in mapping:
        key = _newest_leaf(mapping)
    branch: list[Mapping[str, Any]] = []
    passed = set()
    while isinstance(key, str) and key not in passed and isinstance(node := mapping.get(key), Mapping):
        passed.add(key)
        branch.append(node)
        key = node.get("parent")
    return branch[::-1]


def _newest_leaf(mapping: Mapping[str, Any]) -> str | None:
    """Return the newest node that is nobody's parent; of nodes without a time, the last. Not all exports list children.

    A node without a message, such as the root, is none.
    """
    nodes = {name: node for name, node in mapping.items() if isinstance(node, Mapping)}
    parents = {node.get("parent") for node in nodes.values()}
    leaves = [name for name, node in nodes.items() if name not in parents and isinstance(node.get("message"), Mapping)]
    times = [moment_of(nodes[name]["message"].get("create_time")) for name in leaves]
    dated = [(moment, number) for number, moment in enumerate(times) if moment is not None]
    number = max(dated)[1] if dated else len(leaves) - 1
    return leaves[number] if leaves else None


def _message(node: Mapping[str, Any], person: str) -> ImportedMessage | None:
    message = node.get("message")
    if not isinstance(message, Mapping):
        return None
    author, content, metadata = (_object(message.get(name)) for name in ("author", "content", "metadata"))
    role, text = as_string(author.get("role")), _text(content)
    hidden = metadata.get("is_visually_hidden_from_conversation") is True
    if role not in _ROLES or hidden or content.get("content_type") in _NOT_SAID or not text.strip():
        return None
    name = as_string(message.get("id")) or as_string(node.get("id"))
    return ImportedMessage(
        *(name, role, text, moment_of(message.get("create_time")), as_string(metadata.get("model_slug"))),
        sender_id=person if role == "user" else "",
    )


def _text(content: Mapping[str, Any]) -> str:
    if isinstance(content.get("text"), str):
        return str(content["text"])
    parts = content.get("parts")
    texts = parts if isinstance(parts, list) else []
    return "\n\n".join(
        part if isinstance(part, str) else as_string(part.get("text")) if isinstance(part, Mapping) else ""
        for part in texts
    ).strip()


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
