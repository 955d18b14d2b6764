"""Canvases of Obsidian, a picture of cards and arrows in JSON, as Markdown: https://jsoncanvas.org/spec/1.0/."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from klaw_core import ConversionError

_MAX_NAME = 60


def markdown_of(data: str) -> str:
    """Return the texts of the cards, from top to bottom, those of a group below its label, then labelled arrows.

    Raise ConversionError.
    """
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ConversionError("is not a canvas: it is not JSON") from error
    nodes = _objects(value.get("nodes")) if isinstance(value, Mapping) else []
    nodes.sort(key=lambda node: (_number(node, "y"), _number(node, "x")))
    groups = [node for node in nodes if node.get("type") == "group"]
    cards = [node for node in nodes if node.get("type") != "group"]
    parts = [_text(card) for card in cards if not any(_contains(group, card) for group in groups)]
    for group in groups:
        parts.append(f"## {label}" if (label := _string(group, "label")) else "")
        parts += [_text(card) for card in cards if _contains(group, card)]
    parts.append("\n".join(_arrows(value, nodes)))
    return "\n\n".join(filter(None, (part.strip() for part in parts))) + "\n"


def _text(card: Mapping[str, Any]) -> str:
    file = _string(card, "file")
    return f"[[{file}{_string(card, 'subpath')}]]" if file else _string(card, "text") or _string(card, "url")


def _arrows(value: Any, nodes: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    names = {_string(node, "id"): _name(node) for node in nodes}
    for edge in _objects(value.get("edges")) if isinstance(value, Mapping) else ():
        if label := _string(edge, "label"):
            yield f"- {names.get(_string(edge, 'fromNode'), '')} → {names.get(_string(edge, 'toNode'), '')}: {label}"


def _name(node: Mapping[str, Any]) -> str:
    """Return what a card is called: the first line of its text."""
    lines = (_string(node, "label") or _text(node)).strip().splitlines()
    return lines[0].lstrip("# ")[:_MAX_NAME] if lines else ""


def _contains(group: Mapping[str, Any], card: Mapping[str, Any]) -> bool:
    """Return whether the upper left corner of a card is in a group."""
    return all(
        _number(group, axis) <= _number(card, axis) < _number(group, axis) + _number(group, size)
        for axis, size in (("x", "width"), ("y", "height"))
    )


def _objects(value: Any) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def _string(item: Mapping[str, Any], key: str) -> str:
    value = item.get(key)
    return value if isinstance(value, str) else ""


def _number(item: Mapping[str, Any], key: str) -> float:
    value = item.get(key)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0.0
