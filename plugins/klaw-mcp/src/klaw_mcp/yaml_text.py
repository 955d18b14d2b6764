"""Change one entry of a YAML text, and leave every other byte as it is.

Only the places of the nodes come from the library. An entry in lines of its own, alone below its key, goes with that
key; one in braces leaves it. So what was an empty mapping before the entry was added is one again afterwards.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from io import StringIO
from typing import Any

from klaw_tools.text_lines import inserted, newline_of, removed

#: The key and the value of an entry: nodes of ruamel.yaml.
_Pair = tuple[Any, Any]

_AFTER = re.compile(r"\s*, ?")
_BEFORE = re.compile(r",\s*\Z")
_NULL = "tag:yaml.org,2002:null"


def parse(text: str) -> Any:
    """Return what a text says: mappings as dicts, other values with their tags. Raise ValueError if it is no YAML."""
    return _plain(_compose(text))


def with_entry(text: str, keys: Sequence[str], name: str, value: Mapping[str, Any] | None) -> str:
    """Return a text with an entry in the mapping below ``keys``, or without it if the value is None.

    Raise ValueError if the text is no YAML, or has something else than a mapping, or nothing, in the place of one.
    """
    path = [*keys, name]
    root = _compose(text)
    found = _found(root, path)
    if len(found) < len(path):
        return text if value is None else _added(text, root, found, path[len(found) :], value)
    if value is None:
        return _removed(text, root, found)
    return text if _plain(found[-1][1]) == parse(json.dumps(value)) else _replaced(text, root, found, value)


def _compose(text: str) -> Any:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError

    try:
        return YAML(typ="safe", pure=True).compose(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f" (line {mark.line + 1}, column {mark.column + 1})" if mark else ""
        raise ValueError(f"{error.problem or error.context}{where}") from error


def _plain(node: Any) -> Any:
    if _is_empty(node):
        return {}
    if node.id == "mapping":
        return {key.value if key.id == "scalar" else repr(_plain(key)): _plain(value) for key, value in node.value}
    return [_plain(each) for each in node.value] if node.id == "sequence" else (node.tag, node.value)


def _is_empty(node: Any) -> bool:
    """Return whether nothing is written in the place of a node."""
    return node is None or (node.id == "scalar" and node.tag == _NULL and not node.value)


def _found(root: Any, path: Sequence[str]) -> list[_Pair]:
    """Return the keys and values on a path, as far as they exist."""
    found: list[_Pair] = []
    node = root
    for key in path:
        if _is_empty(node):
            break
        if node.id != "mapping":
            raise ValueError(f"{repr(found[-1][0].value) if found else 'the text'} is not a mapping")
        pairs = [pair for pair in node.value if pair[0].id == "scalar" and pair[0].value == key]
        if not pairs:
            break
        if len(pairs) > 1:
            raise ValueError(f"{key!r} is there twice")
        if pairs[0][1].start_mark.index < pairs[0][0].end_mark.index:
            raise ValueError(f"{key!r} is an alias of another mapping")
        found.append(pairs[0])
        node = pairs[0][1]
    return found


def _added(text: str, root: Any, found: Sequence[_Pair], missing: Sequence[str], value: Mapping[str, Any]) -> str:
    parent = found[-1][1] if found else root
    if not _is_empty(parent) and parent.flow_style:
        start = text.index("{", parent.start_mark.index) + 1
        return f"{text[:start]}{_flow(missing, value)}{', ' if parent.value else ''}{text[start:]}"
    below = _next_line(text, found[-1][0].end_mark.index) if found else len(text)
    if _is_empty(parent) and found:
        line = f"{_margin(text, found[-1][0])}  {_flow(missing, value)}"
        return inserted(text, below, line + newline_of(text))
    margin = "" if _is_empty(parent) else _margin(text, parent.value[0][0])
    return inserted(text, below, _block(missing, value, margin, text))


def _replaced(text: str, root: Any, found: Sequence[_Pair], value: Mapping[str, Any]) -> str:
    key, old = found[-1]
    parent = found[-2][1] if len(found) > 1 else root
    if parent.flow_style or (old.id == "mapping" and old.flow_style):
        return text[: old.start_mark.index] + _json(value) + text[old.end_mark.index :]
    start, end = _lines(text, key)
    written = _block([key.value], value, _margin(text, key), text)
    return inserted(removed(text, start, end), min(start, len(removed(text, start, end))), written)


def _removed(text: str, root: Any, found: Sequence[_Pair]) -> str:
    parents = [root, *(value for _, value in found[:-1])]
    while len(parents) > 1 and len(parents[-1].value) == 1 and _is_added(text, parents[-1]):
        parents.pop()
    found = found[: len(parents)]
    key, old = found[-1]
    if parents[-1].flow_style:
        before, rest = text[: key.start_mark.index], text[old.end_mark.index :]
        after = _AFTER.match(rest)
        return before + rest[after.end() :] if after else _BEFORE.sub("", before) + rest
    start, end = _lines(text, key)
    is_block = not (old.id == "mapping" and old.flow_style)
    for (above, _), parent in reversed([*zip(found[:-1], parents[1:], strict=True)]):
        if not is_block or len(parent.value) > 1 or text[above.end_mark.index : start].strip() != ":":
            break
        start = _line_start(text, above)
    return removed(text, start, end)


def _lines(text: str, key: Any) -> tuple[int, int]:
    """Return where the lines of an entry begin and end: those that are indented more than its key.

    Comments and empty lines behind the last of them belong to what follows.
    """
    margin, start = len(_margin(text, key)), _line_start(text, key)
    place = end = _next_line(text, key.end_mark.index)
    while place < len(text):
        after = _next_line(text, place)
        line = text[place:after]
        bare = line.lstrip(" ")
        if bare.strip() and len(line) - len(bare) <= margin:
            break
        if bare.strip() and not bare.startswith("#"):
            end = after
        place = after
    return start, end


def _margin(text: str, key: Any) -> str:
    """Return what is before a key in its line. Raise ValueError if it is not only space."""
    margin = text[_line_start(text, key) : key.start_mark.index]
    if margin.strip(" "):
        raise ValueError(f"{key.value!r} does not begin a line")
    return margin


def _line_start(text: str, key: Any) -> int:
    return text.rfind("\n", 0, key.start_mark.index) + 1


def _next_line(text: str, place: int) -> int:
    return text.find("\n", place) + 1 or len(text)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _is_added(text: str, mapping: Any) -> bool:
    """Return whether a mapping in braces has space behind the first, as one has that was added for the entry."""
    return mapping.flow_style and text[text.index("{", mapping.start_mark.index) + 1] == " "


def _flow(names: Sequence[str], value: Any) -> str:
    """Return an entry in one line; mappings on the way to it have space behind their braces."""
    written = _json(value)
    for name in reversed(names[1:]):
        written = f"{{ {_json(name)}: {written} }}"
    return f"{_json(names[0])}: {written}"


def _block(names: Sequence[str], value: Mapping[str, Any], margin: str, text: str) -> str:
    """Return an entry in lines of its own."""
    from ruamel.yaml import YAML

    whole: Any = value
    for name in reversed(names):
        whole = {name: whole}
    yaml = YAML()
    yaml.width = 10_000
    stream = StringIO()
    yaml.dump(whole, stream)
    return "".join(f"{margin}{line}{newline_of(text)}" for line in stream.getvalue().splitlines())
