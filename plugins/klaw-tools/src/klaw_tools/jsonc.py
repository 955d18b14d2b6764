"""Change an entry or element of a JSON text that may have comments and trailing commas, and leave the rest as it is.

Settings of Zed, VS Code, OpenCode and others are such texts. So are texts of plain JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from attrs import frozen

from klaw_tools.text_lines import newline_of

_SPACE = " \t\r\n"
_COMMENT = re.compile(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_LAST_COMMA = re.compile(r'("(?:\\.|[^"\\])*")|,(?=\s*[}\]])')
_INDENT = re.compile(r"^([ \t]+)\S", re.MULTILINE)
_DECODER = json.JSONDecoder()


def parse(text: str) -> Any:
    """Return the value of a text, {} for an empty one. Raise ValueError if it is no JSON, with or without comments."""
    return json.loads(_blank(_LAST_COMMA, _blank(_COMMENT, text))) if text.strip() else {}


def with_entry(text: str, keys: Sequence[str], name: str, value: Any) -> str:
    """Return a text with an entry in the object below ``keys``, or without it if the value is None.

    Objects that do not exist are added, and are removed when they become empty. An empty object that was there before
    stays: its member begins directly behind its brace. Raise ValueError if the text is no JSON, or if there is
    something else than an object in the place of one.
    """
    path = [*keys, name]
    if value is None:
        return without(text, path) if text.strip() else text
    text = text if text.strip() else "{}\n"
    missing: list[str] = []
    while path and not (found := _Found.of(text, path[:-1], "{")).exists:
        missing.insert(0, path.pop())
    key = path[-1] if path else missing.pop(0)
    whole: Any = value
    for each in reversed(missing):
        whole = {each: whole}
    found = _Found.of(text, path[:-1], "{")
    return _updated(text, path, whole) if key in found.members else found.added(key, whole)


def _blank(pattern: re.Pattern[str], text: str) -> str:
    """Return a text of the same length with spaces in the place of what is found outside of strings."""
    return pattern.sub(lambda match: match[1] or re.sub(r"[^\n]", " ", match[0]), text)


@frozen
class _Member:
    start: int
    value: int
    end: int


@frozen
class _Found:
    """An object or array in a text: the places of its brackets and of its members, and how deep it lies."""

    text: str
    bare: str  # the text without comments
    start: int
    end: int
    members: Mapping[str | int, _Member]
    depth: int
    exists: bool = True

    @classmethod
    def of(cls, text: str, keys: Sequence[str | int], opening: str = "") -> _Found:
        """Return the object, or array, below keys; one that does not exist has no members. Raise ValueError.

        A number among the keys is an index. ``opening`` is the bracket with which the value must begin, if it is given.
        """
        bare = _blank(_COMMENT, text)
        plain = _blank(_LAST_COMMA, bare)
        if not isinstance(json.loads(plain), dict):
            raise ValueError("the text is not an object")  # noqa: TRY004  # the value is wrong, not the caller's type
        start = _past_space(plain, 0)
        members, end = _members(plain, start)
        brackets = [*("[" if isinstance(key, int) else "{" for key in keys[1:]), opening or "{["]
        for depth, (key, bracket) in enumerate(zip(keys, brackets, strict=False)):
            if key not in members:
                return cls(text, bare, start, end, {}, depth, exists=False)
            start = members[key].value
            if plain[start] not in bracket:
                raise ValueError(f"{key!r} is not an {'array' if bracket == '[' else 'object'}")
            members, end = _members(plain, start)
        return cls(text, bare, start, end, members, len(keys) + 1)

    @property
    def inner(self) -> str:
        """What stands between the braces, with comments."""
        return self.text[self.start + 1 : self.end]

    def value(self, key: str | int) -> Any:
        """Return the value of a member."""
        member = self.members[key]
        return json.loads(_blank(_LAST_COMMA, self.bare[member.value : member.end]))

    def replaced(self, key: str | int, value: Any) -> str:
        """Return the text with another value of a member."""
        member = self.members[key]
        if self.value(key) == value:
            return self.text
        return self.text[: member.value] + self._written(value, self._margin(member)) + self.text[member.end :]

    def added(self, key: str | int, value: Any) -> str:
        """Return the text with a member behind the others, in lines of its own if they have such."""
        shown = "" if isinstance(key, int) else f"{_json(key)}: "
        outer = self._unit * (self.depth - 1)
        if not self.members:
            if self.depth == 1 and not self.inner:  # the whole text
                gap = f"{self._newline}{outer}"
                member = f"{gap}{self._unit}{shown}{self._written(value, self._unit)}{gap}"
            else:
                member = f"{shown}{self._written(value, outer)}"
            return f"{self.text[: self.start + 1]}{member}{self.text[self.start + 1 :]}"
        margin = self._margin(max(self.members.values(), key=lambda each: each.start))
        last = max(each.end for each in self.members.values())
        end = len(self.text[: self.end].rstrip(_SPACE))
        before, comma = self.text[:end], ""
        if self._comma_after(last) is None:
            before = f"{self.text[:last]},{self.text[last:end]}"
        else:
            comma = ","
        gap = f"{self._newline}{margin}" if "\n" in self.inner else " "
        return f"{before}{gap}{shown}{self._written(value, margin)}{comma}{self.text[end:]}"

    def removed(self, key: str | int) -> str:
        """Return the text without a member."""
        member = self.members[key]
        start, end = len(self.text[: member.start].rstrip(_SPACE)), member.end
        before = self.text[:start]
        comma = self._comma_after(end)
        earlier = [each.end for each in self.members.values() if each.end < member.start]
        if comma is not None:
            before += self.text[end:comma].rstrip(_SPACE)
            end = comma + 1
        elif earlier and (comma := self._comma_after(max(earlier))) is not None:
            before = self.text[:comma] + self.text[comma + 1 : start]
        rest = self.text[end:]
        if not before[self.start + 1 :].strip() and rest.lstrip(_SPACE).startswith(("}", "]")):
            return before + (rest if self._is_direct(member) else rest.lstrip(_SPACE))
        if _ends_in_note(self.text, start) and "\n" not in rest[: len(rest) - len(rest.lstrip(_SPACE))]:
            rest = f"{self._newline}{rest}"
        return before + rest

    @property
    def _newline(self) -> str:
        return newline_of(self.text)

    @property
    def _unit(self) -> str:
        found = _INDENT.search(self.bare)
        return found[1] if found else "  "

    def _is_direct(self, member: _Member) -> bool:
        """Return whether a member begins directly behind the brace."""
        return member.start == self.start + 1

    def _margin(self, member: _Member) -> str:
        """Return the indentation of the line with a member; as deep as the object lies if others are before it."""
        line = self.text[self.text.rfind("\n", 0, member.start) + 1 : member.start]
        if self._is_direct(member):
            return self._unit * (self.depth - 1)
        return self._unit * self.depth if line.strip() else line

    def _written(self, value: Any, margin: str) -> str:
        """Return the text of a value; lines behind its first one begin with the margin."""
        within = self.inner if self.members else self.text.strip()
        if "\n" not in within and (self.members or self.depth > 1 or self.inner):
            return _in_one_line(value)
        first, *more = json.dumps(value, indent=self._unit, ensure_ascii=False).split("\n")
        return self._newline.join((first, *(margin + line for line in more)))

    def _comma_after(self, end: int) -> int | None:
        place = _past_space(self.bare, end)
        return place if self.bare[place] == "," else None


def without(text: str, path: Sequence[str | int]) -> str:
    """Return a text without a member or element, and without what was added for it and is empty now."""
    keys = [*path]
    shorter = _without(text, keys)
    while shorter != text and len(keys) > 1 and _is_added(text, keys[:-1]) and _is_empty(shorter, keys[:-1]):
        keys.pop()
        text, shorter = shorter, _without(shorter, keys)
    return shorter


def _updated(text: str, path: Sequence[str], value: Any) -> str:
    """Return a text with another value of a member; of an object, only the members that differ are changed."""
    found = _Found.of(text, path[:-1], "{")
    there = found.value(path[-1])
    if not (isinstance(value, dict) and isinstance(there, dict) and there.keys() <= value.keys()):
        return found.replaced(path[-1], value)
    for name, each in value.items():
        if name not in there or there[name] != each:
            text = with_entry(text, path, name, each)
    return text


def with_element(text: str, keys: Sequence[str], value: Any) -> str:
    """Return a text with a value at the end of the array below ``keys``. Raise ValueError as `with_entry`."""
    *outer, name = keys
    if not text.strip() or name not in _Found.of(text, outer, "{").members:
        return with_entry(text, outer, name, [value])
    found = _Found.of(text, keys, "[")
    return found.added(len(found.members), value)


def with_value(text: str, path: Sequence[str | int], value: Any) -> str:
    """Return a text with another value in the place of one that is there."""
    return _Found.of(text, path[:-1]).replaced(path[-1], value)


def _without(text: str, path: Sequence[str | int]) -> str:
    found = _Found.of(text, path[:-1])
    return found.removed(path[-1]) if path[-1] in found.members else text


def _is_added(text: str, path: Sequence[str | int]) -> bool:
    """Return whether space follows the brace of an object, as it does if `with_entry` has added the object."""
    return text[_Found.of(text, path).start + 1] in _SPACE


def _in_one_line(value: Any) -> str:
    """Return a value in one line, with space behind the brackets of what holds others."""
    if isinstance(value, dict) and any(map(_holds_objects, value.values())):
        return f"{{ {', '.join(f'{_json(key)}: {_in_one_line(each)}' for key, each in value.items())} }}"
    if isinstance(value, list) and _holds_objects(value):
        return f"[ {', '.join(map(_in_one_line, value))} ]"
    return _json(value)


def _holds_objects(value: Any) -> bool:
    return isinstance(value, dict) or (isinstance(value, list) and any(isinstance(each, dict) for each in value))


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _ends_in_note(text: str, place: int) -> bool:
    """Return whether a comment at a place reaches to the end of its line."""
    notes = (match for match in _COMMENT.finditer(text) if match[0].startswith("//"))
    return any(note.start() < place <= note.end() for note in notes)


def _is_empty(text: str, path: Sequence[str | int]) -> bool:
    """Return whether an object or array has no members, and neither it nor its key has comments."""
    found = _Found.of(text, path[:-1])
    place = slice(found.members[path[-1]].start, found.members[path[-1]].end)
    return found.bare[place] == text[place] and not _Found.of(text, path).members


def _past_space(text: str, place: int) -> int:
    while text[place] in _SPACE:
        place += 1
    return place


def _members(plain: str, start: int) -> tuple[dict[str | int, _Member], int]:
    """Return the members of the object or array at a place of valid JSON, and the place of its closing bracket."""
    members: dict[str | int, _Member] = {}
    is_array = plain[start] == "["
    place = _past_space(plain, start + 1)
    while plain[place] not in "}]":
        value, key = place, len(members)
        if not is_array:
            key, after = _DECODER.raw_decode(plain, place)
            value = _past_space(plain, _past_space(plain, after) + 1)
        _, end = _DECODER.raw_decode(plain, value)
        members[key] = _Member(place, value, end)
        place = _past_space(plain, end)
        if plain[place] == ",":
            place = _past_space(plain, place + 1)
    return members, place
