"""Core memory: the few facts that are part of every prompt, stored in ``core_memory.json``.

The file may be edited by hand at any time: Klaw reads it again for every call and preserves unknown keys.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from heapq import merge
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from attrs import asdict, field, frozen

from klaw_core import NotFoundError, RecordError, StoreCorruptError, operations
from klaw_journals import FileJournals, OwnedText, parse_json, parse_ts
from klaw_journals.traces import plain_key
from klaw_journals.trust import OWNER, Trust, check_trust, lowest
from klaw_memories.user_md import parse_user_md
from klaw_redaction import Redactor
from klaw_tools.frames import item_text, one_line

#: ``user``: name, location, occupation, preferences …; ``agent``: personality_notes, learned_rules …
Section: TypeAlias = Literal["user", "agent"]
SECTIONS: tuple[str, ...] = get_args(Section)
MAX_KEY_CHARACTERS = 200
MAX_VALUE_CHARACTERS = 10_000

_MAX_LISTED_KEYS = 20  # in an error message

_TRUST = "trust"  # the field of the file with the classes of the keys that the owner did not write
_UNKNOWN = datetime.min.replace(tzinfo=UTC)
_HISTORY = "history"  # the field of the file with what others replaced or removed
_IMPORTED = "user_md_imported"  # the field of the file that records the import of a USER.md
# Klaw writes files up to the first limit. It reads larger ones, which a manual edit can produce, up to the second.
# Files up to the third limit can only be made smaller.
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

        The second and later lines of a value are indented, so that a value cannot start a heading in the prompt.
        """
        titles = (("About the user", self.user), ("About yourself, the agent", self.agent))
        blocks = [f"### {title}\n\n{_items(facts)}" for title, facts in titles if facts]
        return "\n\n".join(["## Core memory", *blocks]) if blocks else ""


@frozen
class ReplacedFact:
    """A value that somebody who is trusted less has replaced or removed: usually the owner's, by an agent.

    ``trust`` is the class of who wrote it, ``by`` of who replaced it; ``at`` is the time of that, in ISO 8601.
    """

    section: str
    key: str
    value: str
    trust: str
    by: str
    at: str


def _as_text(place: Any) -> Any:
    """Return the text of a JSON file given by its path; return anything else unchanged."""
    return FileJournals(place.parent).text(place.stem) if isinstance(place, Path) else place


@operations
@frozen
class CoreMemory:
    """Two sections of keys and texts. Safe for several threads and processes at once.

    A key keeps the spelling with which it was first written: ``Favourite drink``, ``favourite_drink`` and
    ``FAVOURITE-DRINK`` are one key. What somebody writes is kept in the history (:meth:`history`) if somebody who is
    trusted less replaces or removes it.

    ``place`` is the JSON file ``core_memory.json``, or its path. The file keeps what was written; ``redactor`` removes
    secrets from what :meth:`render` returns.

    Every method raises StoreCorruptError if the file is invalid, for example after a manual edit. Klaw never
    overwrites an invalid file. It stores a copy next to it as ``core_memory.json.broken-1`` (``-2`` …, one for each
    different content), until the owner deletes a key.
    """

    place: OwnedText = field(converter=_as_text)
    redactor: Redactor = field(factory=Redactor, repr=False)

    def get(self) -> CoreFacts:
        """Return all facts, or none if the file does not exist.

        A value that is not a string is returned as JSON text. Raise StoreCorruptError, StoreError.
        """
        table = self._load()
        return CoreFacts(*({key: _text(value) for key, value in table[section].items()} for section in SECTIONS))

    def render(self) -> str:
        """Return :meth:`CoreFacts.render` of all facts, without secrets."""
        return self.redacted().render()

    def redacted(self) -> CoreFacts:
        """Return all facts without secrets, for a model. Raise the errors of :meth:`get`."""
        facts = self.get()

        def shown(section: Mapping[str, str]) -> dict[str, str]:
            return {self.redactor.text(key): self.redactor.beside(key, value) for key, value in section.items()}

        return CoreFacts(shown(facts.user), shown(facts.agent))

    def classes(self) -> Mapping[tuple[str, str], str]:
        """Return the class of each (section, key) that the owner did not write. Raise the errors of :meth:`get`."""
        table = self._load()
        return {
            (section, key): lowest((str(trust),))
            for section in SECTIONS
            for key, trust in _classes(table, section).items()
            if key in table[section]
        }

    def history(self, section: str | None = None, key: str | None = None) -> Sequence[ReplacedFact]:
        """Return what was replaced or removed by somebody who is trusted less, the oldest first.

        Only that of a section, and of a key. Raise NotFoundError for an unknown section, and the errors of :meth:`get`.
        """
        if section is not None:
            _check_section(section)
        found = [fact for each in _history(self._load()) if (fact := _replaced(each)) is not None]
        return [fact for fact in found if section in (None, fact.section) and (key is None or _is_same(fact.key, key))]

    def add_history(self, facts: Sequence[ReplacedFact]) -> int:
        """Add to the history what it lacks, as after an import; return how much. Raise the errors of :meth:`update`.

        Raise RecordError also for a time that is not in ISO 8601 with its zone; an unknown time is empty.
        """
        for fact in facts:
            _check_section(fact.section)
            _check(fact.key, fact.value)
            if fact.at:
                parse_ts(fact.at)
        with self.place.changing():
            table, size = self._load_any()
            held = filter(None, map(_replaced, _history(table)))
            here = {(fact.section, fact.key, fact.value) for fact in held}
            new = {(each.section, each.key, each.value): each for each in facts}
            lacking = [asdict(each) for name, each in new.items() if name not in here]
            if lacking:
                # By time only between the two: in each, what was replaced last is last, whatever the clock said then.
                table[_HISTORY] = list(merge(_history(table), lacking, key=_time))
                self._save(table, size)
        return len(lacking)

    def update(self, section: str, key: str, value: str, *, trust: Trust = OWNER) -> None:
        """Set one key, written by somebody of a class; it is on disk when this returns.

        Raise NotFoundError for an unknown section. Raise RecordError if the key is empty, has several lines or over
        200 characters, if the value has over 10,000 characters, or if core memory would exceed its size limit. Raise
        StoreCorruptError, StoreError.
        """
        self.update_all([(section, key, value)], trust=trust)

    def update_all(self, facts: Iterable[tuple[str, str, str]], *, trust: Trust = OWNER) -> None:
        """Set several keys, each given as (section, key, value): all or none. Raise the errors of :meth:`update`.

        A key that had this value keeps its class, unless the new one is trusted more.
        """
        facts, trust = tuple(facts), check_trust(trust)
        for section, key, value in facts:
            _check_section(section)
            _check(key, value)
        with self.place.changing():
            table, size = self._load_any()
            has_changed = False
            known = {section: Spellings(table[section]) for section in SECTIONS}
            for section, given, value in facts:
                key = known[section].add(given)
                if _is_new(table, section, key, value, trust):
                    _keep(table, section, key, trust)
                    table[section][key] = value
                    _set_class(table, section, key, trust)
                    has_changed = True
            if has_changed:
                self._save(table, size)

    def delete(self, section: str, key: str, *, trust: Trust = OWNER) -> None:
        """Remove one key, for somebody of a class. If it is the owner, its history goes, too.

        Machines that share the memory forget then what its owner deletes, when they synchronise. Raise NotFoundError if
        the key does not exist, StoreCorruptError, StoreError.
        """
        _check_section(section)
        check_trust(trust)
        with self.place.changing():
            table, size = self._load_any()
            key = Spellings(table[section]).find(key)
            is_erased = trust == OWNER and _erase(table, section, key)
            if key not in table[section] and not is_erased:
                known = ", ".join(list(table[section])[:_MAX_LISTED_KEYS]) or "nothing yet"
                raise NotFoundError(
                    f"core memory has no key {key!r} in section {section!r}", hint=f"known keys: {known}"
                )
            _keep(table, section, key, trust)
            table[section].pop(key, None)
            _set_class(table, section, key, OWNER)
            self._save(table, size, [f"{section}.{plain_key(key)}"] if trust == OWNER else [])

    @property
    def has_user_md(self) -> bool:
        """Whether a USER.md was imported. Raise StoreCorruptError, StoreError."""
        return bool(self._load().get(_IMPORTED))

    def init_from_user_md(self, text: str, *, again: bool = False) -> Mapping[str, str]:
        """Add the facts of a USER.md to ``user`` once; return the added facts.

        Existing keys keep their values. The file records the import, and later calls do nothing, except with ``again``;
        a USER.md without facts does not count as an import. Raise RecordError, and change nothing, if a fact is too
        long.
        """
        with self.place.changing():
            table, size = self._load_any()
            facts = parse_user_md(text)
            if not facts or (table.get(_IMPORTED) and not again):
                return {}
            known = Spellings(table["user"])
            added = {key: value for key, value in facts.items() if known.find(key) not in table["user"]}
            for key, value in added.items():
                _check(key, value)
            table["user"].update(added)
            table[_IMPORTED] = True
            self._save(table, size)
        return added

    def _load(self) -> dict[str, Any]:
        """Return the file's JSON object, with both sections. Raise StoreCorruptError, StoreError."""
        table, _ = self._load_any(_MAX_FILE_BYTES)
        return table

    def _load_any(self, max_bytes: int = _MAX_REPAIRED_BYTES) -> tuple[dict[str, Any], int]:
        """Return the JSON object of a file of at most ``max_bytes``, and the file's size in bytes."""
        data = self.place.read(max_bytes + 1)
        if data is None:
            return {section: {} for section in SECTIONS}, 0
        if len(data) > max_bytes:
            hint = "make it smaller with `klaw core delete`" if max_bytes < _MAX_REPAIRED_BYTES else "move it away"
            raise StoreCorruptError(f"{self.place.location} has over {max_bytes >> 20} MiB", hint=hint)
        try:
            table = parse_json(data)
        except RecordError as error:
            raise self._broken(data, error.message) from error
        for section in SECTIONS:
            if not isinstance(table.setdefault(section, {}), dict):
                raise self._broken(data, f"its {section!r} is not an object")
        return table, len(data)

    def _save(self, table: Mapping[str, Any], before: int, forgotten: Sequence[str] = ()) -> None:
        """Write the file. Raise RecordError if it would be too large and has grown, StoreError.

        ``forgotten`` names keys that its owner has deleted.
        """
        text = json.dumps(table, ensure_ascii=False, indent=2) + "\n"
        try:
            size = len(text.encode())
        except UnicodeEncodeError as error:
            what = f"{self.place.location} cannot hold a string with an unpaired surrogate, which is not valid Unicode"
            raise RecordError(what, hint="remove the characters U+D800 to U+DFFF from the text") from error
        past = len(json.dumps(table.get(_HISTORY, ""), ensure_ascii=False, indent=2).encode("utf-8", "surrogatepass"))
        if size - past > max(before, _MAX_WRITTEN_BYTES):  # so an agent can make room by deleting
            raise RecordError(
                f"core memory is full: it would have {size:,} bytes; the limit is {_MAX_WRITTEN_BYTES:,}",
                hint="keep only facts that always apply: save others with `klaw save`, and delete outdated ones",
            )
        if forgotten:
            self.place.remove_copies()
        self.place.replace(text, forgotten)

    def _broken(self, data: bytes, reason: str) -> StoreCorruptError:
        """Store a copy of the invalid file; return an error that names both files."""
        try:
            where = f"a copy is kept as {self.place.keep_aside(data)}"
        except OSError as error:
            where = f"a copy could not be kept: {error.strerror}"
        return StoreCorruptError(
            f"{self.place.location} is not core memory: {reason}; {where}",
            hint="fix the file by hand, or delete it to start again",
        )


def _classes(table: Mapping[str, Any], section: str) -> dict[str, Any]:
    """Return the classes of the keys of a section; what was edited by hand to something else has none."""
    classes = table.get(_TRUST)
    found = classes.get(section) if isinstance(classes, dict) else None
    return found if isinstance(found, dict) else {}


class Spellings:
    """How the keys of a section are spelled: a key is the same in upper and lower case, with spaces, ``_`` or ``-``."""

    def __init__(self, keys: Iterable[str]) -> None:
        """Learn the spellings of keys; of two that are the same, made by hand, the first is found by other ones."""
        self._exact = set(keys)
        self._plain: dict[str, str] = {}
        for key in keys:
            self._plain.setdefault(plain_key(key), key)

    def find(self, key: str) -> str:
        """Return the spelling of a key; the given one if it has none."""
        return key if key in self._exact else self._plain.get(plain_key(key), key)

    def add(self, key: str) -> str:
        """Return the spelling of a key, which from now on is the given one if it has none."""
        found = self.find(key)
        self._exact.add(found)
        self._plain.setdefault(plain_key(found), found)
        return found


def _is_same(key: str, other: str) -> bool:
    return plain_key(key) == plain_key(other)


def _history(table: Mapping[str, Any]) -> list[Any]:
    """Return the history; what was edited by hand to something else is kept as its only element."""
    found = table.get(_HISTORY, [])
    return found if isinstance(found, list) else [found]


def _replaced(found: Any) -> ReplacedFact | None:
    """Return an element of the history; None if it was edited by hand to something else."""
    if not isinstance(found, dict) or found.get("section") not in SECTIONS or not isinstance(found.get("key"), str):
        return None
    trust, by = (lowest((str(found.get(name, OWNER)),)) for name in (_TRUST, "by"))
    return ReplacedFact(found["section"], found["key"], _text(found.get("value")), trust, by, str(found.get("at", "")))


def _time(found: Any) -> datetime:
    """Return the time of an element of the history; for an unknown one, a time before all others."""
    try:
        return parse_ts(found["at"])
    except (RecordError, LookupError, TypeError):
        return _UNKNOWN


def _keep(table: dict[str, Any], section: str, key: str, by: str) -> None:
    """Put the value of a key into the history if somebody who is trusted less than its writer changes it."""
    trust = lowest((str(_classes(table, section).get(key, OWNER)),))
    if key not in table[section] or lowest((trust, by)) == trust:
        return
    same = {"section": section, "key": key, "value": table[section][key]}
    written = {**same, **({_TRUST: trust} if trust != OWNER else {})}
    kept = [each for each in _history(table) if not isinstance(each, dict) or {**each, **same} != each]
    at = datetime.now(UTC).isoformat(timespec="seconds")
    table[_HISTORY] = [*kept, {**written, "by": by, "at": at}]


def _erase(table: dict[str, Any], section: str, key: str) -> bool:
    """Remove a key from the history; return whether it was there."""
    held = _history(table)
    left = [
        each
        for each in held
        if (fact := _replaced(each)) is None or fact.section != section or not _is_same(fact.key, key)
    ]
    if left:
        table[_HISTORY] = left
    else:
        table.pop(_HISTORY, None)
    return len(left) < len(held)


def _is_new(table: Mapping[str, Any], section: str, key: str, value: str, trust: str) -> bool:
    """Return whether a key gets another value, or the same one from somebody who is trusted more."""
    here = lowest((str(_classes(table, section).get(key, OWNER)),))
    return table[section].get(key) != value or lowest((here, trust)) != trust


def _set_class(table: dict[str, Any], section: str, key: str, trust: str) -> None:
    """Note who wrote a key; the owner's have no entry."""
    classes = {name: {**_classes(table, name)} for name in SECTIONS}
    classes[section].pop(key, None)
    if trust != OWNER:
        classes[section][key] = trust
    table.pop(_TRUST, None)
    if any(classes.values()):
        table[_TRUST] = {name: keys for name, keys in classes.items() if keys}


def _check_section(section: str) -> None:
    if section not in SECTIONS:
        raise NotFoundError(f"core memory has no section {section!r}", hint=f"known sections: {', '.join(SECTIONS)}")


def _check(key: object, value: object) -> None:
    """Raise RecordError for an invalid key or value."""
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
    return "\n".join(f"- {one_line(key)}: {item_text(value)}" for key, value in facts.items())
