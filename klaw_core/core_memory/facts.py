"""Core memory: the few facts that every call to a model is given, in ``core_memory.json``.

The file is the truth and may be edited by hand at any time: it is read anew for every call, and what Klaw does
not know in it is kept.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeAlias, get_args

from attrs import field, frozen

from klaw_core.core_memory.user_md import parse_user_md
from klaw_core.errors import NotFoundError, RecordError, StoreCorruptError
from klaw_core.files.journals import as_text
from klaw_core.files.jsonl import decode
from klaw_core.interfaces.journal import OwnedText

#: ``user``: name, location, occupation, preferences …; ``agent``: personality_notes, learned_rules …
Section: TypeAlias = Literal["user", "agent"]
SECTIONS: tuple[str, ...] = get_args(Section)
MAX_KEY_CHARACTERS = 200
MAX_VALUE_CHARACTERS = 10_000

_NAMED = 20  # keys of a message

_IMPORTED = "user_md_imported"  # the file's field that remembers it
# Klaw writes no more; by hand it may be more, which is read, and beyond that can still be made smaller.
_MAX_WRITTEN_BYTES = 1 << 20
_MAX_FILE_BYTES = 16 << 20
_MAX_REPAIRED_BYTES = 1 << 30


@frozen
class CoreFacts:
    """The facts of core memory, by key, in the order of the file."""

    user: Mapping[str, str] = field(factory=dict)
    agent: Mapping[str, str] = field(factory=dict)

    def render(self) -> str:
        """Return the facts as a block of Markdown for a system prompt; empty if there are none.

        The lines of a value after its first are indented, so that a value cannot begin a heading of the prompt.
        """
        titles = (("About the user", self.user), ("About yourself, the agent", self.agent))
        blocks = [f"### {title}\n\n{_items(facts)}" for title, facts in titles if facts]
        return "\n\n".join(["## Core memory", *blocks]) if blocks else ""


@frozen
class CoreMemory:
    """Two sections of keys and texts. Safe for several threads and processes at once.

    ``place`` is the JSON file, ``core_memory.json``, which can be given as its path.

    Every method raises StoreCorruptError if the file is invalid, for example after a manual edit. Such a file is never
    overwritten: it stays until a person fixes it, and a copy is stored
    next to it as ``core_memory.json.broken-1`` (``-2`` …, one for each different content).
    """

    place: OwnedText = field(converter=as_text)

    def get(self) -> CoreFacts:
        """Return all facts; none if there is no file yet.

        A number or a list that a person wrote is returned as JSON text.

        Raise StoreCorruptError, StoreError.
        """
        table = self._load()
        return CoreFacts(*({key: _text(value) for key, value in table[section].items()} for section in SECTIONS))

    def render(self) -> str:
        """Return :meth:`CoreFacts.render` of all facts."""
        return self.get().render()

    def update(self, section: str, key: str, value: str) -> None:
        """Set one key; it is on the disk when this returns.

        Raise NotFoundError for an unknown section, RecordError for an empty key, one of several lines or over 200
        characters, or a value over 10,000, or if core memory would exceed its size limit;
        StoreCorruptError, StoreError.
        """
        self.update_all([(section, key, value)])

    def update_all(self, facts: Iterable[tuple[str, str, str]]) -> None:
        """Set several keys, given as section, key and value, at once; as :meth:`update`, all of them or none."""
        facts = tuple(facts)
        for section, key, value in facts:
            _check_section(section)
            _check(key, value)
        with self.place.changing():
            table, size = self._load_any()
            new = [fact for fact in facts if table[fact[0]].get(fact[1]) != fact[2]]
            for section, key, value in new:
                table[section][key] = value
            if new:
                self._save(table, size)

    def delete(self, section: str, key: str) -> None:
        """Remove one key. Raise NotFoundError if it is not there, StoreCorruptError, StoreError."""
        _check_section(section)
        with self.place.changing():
            table, size = self._load_any()
            if key not in table[section]:
                known = ", ".join(list(table[section])[:_NAMED]) or "nothing yet"
                raise NotFoundError(
                    f"core memory has no key {key!r} in section {section!r}", hint=f"known keys: {known}"
                )
            del table[section][key]
            self._save(table, size)

    def init_from_user_md(self, text: str) -> Mapping[str, str]:
        """Fill ``user`` from a USER.md, once, where it has no value yet; return the facts that were added.

        The file records that it was done (a USER.md without any fact does not count); after that, the text is ignored.
        Raise RecordError, and change nothing, if a fact is too long.
        """
        with self.place.changing():
            table, size = self._load_any()
            facts = parse_user_md(text)
            if not facts or table.get(_IMPORTED):
                return {}
            added = {key: value for key, value in facts.items() if key not in table["user"]}
            for key, value in added.items():
                _check(key, value)
            table["user"].update(added)
            table[_IMPORTED] = True
            self._save(table, size)
        return added

    def _load(self) -> dict[str, Any]:
        """Return the file's object, with both sections in it. Raise StoreCorruptError, StoreError."""
        table, _ = self._load_any(_MAX_FILE_BYTES)
        return table

    def _load_any(self, most: int = _MAX_REPAIRED_BYTES) -> tuple[dict[str, Any], int]:
        """Return the object of a file of at most so many bytes, and how many it has."""
        data = self.place.read(most + 1)
        if data is None:
            return {section: {} for section in SECTIONS}, 0
        if len(data) > most:
            hint = "make it smaller with `klaw core delete`" if most < _MAX_REPAIRED_BYTES else "move it away"
            raise StoreCorruptError(f"{self.place.location} has over {most >> 20} MiB", hint=hint)
        try:
            table = decode(data)
        except RecordError as error:
            raise self._broken(data, error.message) from error
        for section in SECTIONS:
            if not isinstance(table.setdefault(section, {}), dict):
                raise self._broken(data, f"its {section!r} is not an object")
        return table, len(data)

    def _save(self, table: Mapping[str, Any], before: int) -> None:
        """Write the file, unless it would be too large and larger than it was. Raise RecordError, StoreError."""
        text = json.dumps(table, ensure_ascii=False, indent=2) + "\n"
        size = len(text.encode("utf-8", "surrogatepass"))
        if size > max(before, _MAX_WRITTEN_BYTES):
            raise RecordError(
                f"core memory is full: it would have {size:,} bytes; the limit is {_MAX_WRITTEN_BYTES:,}",
                hint="keep only facts that always apply: save others with `klaw save`, and delete outdated ones",
            )
        self.place.replace(text)

    def _broken(self, data: bytes, reason: str) -> StoreCorruptError:
        """Keep a copy of what the file holds, and return the error that names both files."""
        try:
            where = f"a copy is kept as {self.place.keep_aside(data)}"
        except OSError as error:
            where = f"a copy could not be kept: {error.strerror}"
        return StoreCorruptError(
            f"{self.place.location} is not core memory: {reason}; {where}",
            hint="fix the file by hand, or delete it to start again",
        )


def _check_section(section: str) -> None:
    if section not in SECTIONS:
        raise NotFoundError(f"core memory has no section {section!r}", hint=f"known sections: {', '.join(SECTIONS)}")


def _check(key: object, value: object) -> None:
    """Raise RecordError for what core memory does not take."""
    if not isinstance(key, str) or not isinstance(value, str):
        raise RecordError("a key and a value of core memory must be strings")
    if not key.strip() or not key.isprintable():
        raise RecordError(f"invalid core-memory key {key[:40]!r}: use a single non-empty line")
    if len(key) > MAX_KEY_CHARACTERS:
        raise RecordError(f"the key has {len(key):,} characters; the limit is {MAX_KEY_CHARACTERS:,}")
    if len(value) > MAX_VALUE_CHARACTERS:
        raise RecordError(
            f"the value of {key!r} has {len(value):,} characters; the limit is {MAX_VALUE_CHARACTERS:,}",
            hint="save it as a memory: `klaw save`",
        )
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise RecordError(f"the value of {key!r} contains an unpaired surrogate, which is not valid Unicode") from error


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _items(facts: Mapping[str, str]) -> str:
    return "\n".join(f"- {' '.join(key.split())}: " + "\n  ".join(value.splitlines()) for key, value in facts.items())
