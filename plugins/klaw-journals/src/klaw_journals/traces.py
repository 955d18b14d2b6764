"""What a memory that other machines share keeps of forgotten records: keyed hashes in ``sync/forgotten.jsonl``.

A record that is missing on one machine may only be late. So a machine tells the others what it has forgotten, by a hash
that means nothing without the key of the memory. Without the file ``sync/key`` nothing is written or read here.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

from attrs import field, frozen

from klaw_core.files.atomic import open_regular
from klaw_core.files.layout import own_directory
from klaw_journals.contents import LogRecord
from klaw_journals.jsonl import JsonLines

#: The directory, in a data directory, of what machines need that share a memory.
DIRECTORY = "sync"

_DIGEST_BYTES = 16
_MAX_KEY_CHARACTERS = 200
_SEPARATORS = re.compile(r"[\s_-]+")  # between the words of a key of core memory
_encode = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode


def digest(value: object) -> str:
    """Return a hash of a JSON value, which depends neither on the order of keys nor on spaces."""
    return blake2b(_encode(value).encode("utf-8", "surrogatepass"), digest_size=_DIGEST_BYTES).hexdigest()


def plain_key(key: str) -> str:
    """Return what the spellings of a key of core memory have in common: case, spaces, ``_`` and ``-`` do not count."""
    return _SEPARATORS.sub(" ", key).strip().casefold() or key


@frozen
class Traces:
    """The traces of forgotten records in a data directory, ``root``."""

    root: Path
    #: The key of the memory; empty if no other machine shares it.
    key: bytes = field(init=False, repr=False)

    @key.default
    def _read_key(self) -> bytes:
        try:
            with open_regular(self.root / DIRECTORY / "key") as file:
                words = file.read(_MAX_KEY_CHARACTERS).decode("ascii").split()
            return bytes.fromhex(words[1])
        except (OSError, ValueError, IndexError):
            return b""

    def scope(self, *names: str) -> str:
        """Return the keyed hash of names: a journal and an id, or a folder of logs, a group and a line."""
        return blake2b("\0".join(names).encode("utf-8", "surrogatepass"), key=self.key, digest_size=16).hexdigest()

    def note_records(self, journal: str, ids: Iterable[str]) -> None:
        """Write down that records are about to be forgotten. Durable when it returns. Raise StoreError."""
        if self.key:
            self._note(self.scope(journal, name) for name in ids)

    def note_lines(self, folder: str, group: str, lines: Iterable[LogRecord]) -> None:
        """Write down that lines of a log are about to be removed, and their ids. Raise StoreError."""
        if self.key:
            lines = tuple(lines)
            scopes = [self.scope(folder, group, digest(line.value)) for line in lines]
            self._note([*scopes, *(self.scope("id", folder, group, name) for name in map(_id_of, lines) if name)])

    def note_group(self, folder: str, group: str) -> None:
        """Write down that a group of logs is about to be removed. Raise StoreError."""
        if self.key:
            self._note([self.scope(folder, group)])

    def add(self, traces: Iterable[tuple[str, str]]) -> None:
        """Add traces of other machines: hashes, and their random ids. Raise StoreError."""
        self._log.append(*({"s": scope, "x": name} for scope, name in traces))

    def read(self) -> list[tuple[str, str]]:
        """Return all traces: the hash of what was forgotten, and the random id of the trace."""
        return [(line["s"], line["x"]) for line in self._values(self._log) if _is_trace(line)]

    def forgotten_records(self, journal: str) -> Callable[[str], bool]:
        """Return what says of an id whether that record of a journal was forgotten on any machine. Raise StoreError.

        Only a memory that several machines share has traces of that.
        """
        known = {scope for scope, _ in self.read()} if self.key else set()
        return lambda name: self.scope(journal, name) in known

    def forgotten(self) -> Callable[[str, str, str], bool]:
        """Return what says of a folder, a group and an id whether that line was forgotten on any machine."""
        known = {scope for scope, _ in self.read()}

        def is_forgotten(folder: str, group: str, name: str) -> bool:
            return not known.isdisjoint((self.scope("id", folder, group, name), self.scope(folder, group)))

        return is_forgotten

    def arrived(self) -> Callable[[str, str, Mapping[str, Any]], bool] | None:
        """Return what says of a folder, a group and a record whether another machine wrote it; None if none is shared.

        Raise StoreError.
        """
        if not self.key:
            return None
        known = {line["s"] for line in self._values(self._arrived) if isinstance(line.get("s"), str)}
        return lambda folder, group, record: self.scope(folder, group, digest(record)) in known

    def add_arrived(self, scopes: Iterable[str]) -> None:
        """Write down the hashes of lines that other machines wrote. Raise StoreError."""
        self._arrived.append(*({"s": scope} for scope in scopes))

    def _values(self, log: JsonLines) -> Iterator[dict[str, Any]]:
        return (line.value for line in log.read() if isinstance(line, LogRecord))

    @property
    def _arrived(self) -> JsonLines:
        return JsonLines(own_directory(self.root, DIRECTORY) / "arrived.jsonl")

    @property
    def _log(self) -> JsonLines:
        return JsonLines(own_directory(self.root, DIRECTORY) / "forgotten.jsonl")

    def _note(self, scopes: Iterable[str]) -> None:
        self.add((scope, secrets.token_hex(8)) for scope in dict.fromkeys(scopes))


def _id_of(line: LogRecord) -> str:
    name = line.value.get("id")
    return name if isinstance(name, str) else ""


def _is_trace(line: Mapping[str, Any]) -> bool:
    return all(isinstance(line.get(name), str) for name in ("s", "x"))
