"""Versions of records, and traces of forgotten ones: what machines exchange."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Self

from attrs import define, frozen

from klaw_core import RecordError
from klaw_journals import Traces
from klaw_journals.traces import digest, plain_key

#: The kind of a line that is a trace, of one that names a machine, and of one that removes one.
TRACE = "tomb"
MACHINE = "machine"
REMOVAL = "removal"
#: A version whose moment is later is invalid on every machine, so that no clock decides about it.
LAST_MOMENT = 7_258_118_400_000  # 2200-01-01, in milliseconds
_HEX = re.compile("[0-9a-f]{8,64}", re.ASCII)
# A summary belongs to each message that it covers; as JSON, so many scopes are 3.5 MB of the 8 MB of a line.
_MAX_SCOPES = 100_000
_MAX_SEEN = 100_000


@define(eq=False)
class Version:
    """One version of a record.

    ``kind``: the journal. ``place``: the log, empty elsewhere. ``machine`` wrote it as its line ``number``, at ``t``
    (milliseconds). ``scopes`` are keyed hashes of everything whose forgetting forgets it, the first ``own`` of them its
    own names; ``seen`` the traces that its writer had seen; ``over`` the versions that it replaces. ``body`` is None if
    it was forgotten or replaced.
    """

    v: str
    kind: str
    place: str
    machine: str
    number: int
    t: int
    scopes: tuple[str, ...]
    seen: frozenset[str]
    over: tuple[str, ...]
    body: dict[str, Any] | None
    is_bad: bool = False

    @property
    def order(self) -> tuple[int, str, int, str]:
        """The order of versions of different machines."""
        return self.t, self.machine, self.number, self.v

    def line(self) -> dict[str, Any]:
        """Return the line of a segment. A version without a body has no name either."""
        return {
            "k": self.kind,
            "p": self.place if self.body is not None else "",
            "v": self.v,
            "m": self.machine,
            "n": self.number,
            "t": self.t,
            "s": list(self.scopes),
            "a": sorted(self.seen),
            "o": list(self.over),
            "b": self.body,
        }

    @classmethod
    def parse(cls, line: Mapping[str, Any]) -> Self:
        """Return the version in a line. Raise RecordError."""
        kind, place, body = line.get("k"), line.get("p"), line.get("b")
        if not isinstance(kind, str) or not isinstance(place, str) or not (body is None or isinstance(body, dict)):
            raise RecordError("not a version of a record")
        number, t = line.get("n"), line.get("t")
        if type(number) is not int or type(t) is not int or not (0 <= number < 1 << 53 and 0 <= t < LAST_MOMENT):
            raise RecordError("a version has no valid number or moment")
        scopes, seen, over = (_hashes(line.get(name), most) for name, most in (("s", _MAX_SCOPES), *_MANY))
        v, machine = _hash(line.get("v")), _hash(line.get("m"))
        return cls(v, kind, place, machine, number, t, scopes, frozenset(seen), over, body)


_MANY = (("a", _MAX_SEEN), ("o", _MAX_SEEN))


@frozen
class Trace:
    """The trace of something forgotten: its keyed hash, and the random name of the forgetting."""

    scope: str
    name: str

    @property
    def item(self) -> str:
        """What identifies it in a segment."""
        return f"{self.name}{self.scope}"

    def line(self) -> dict[str, Any]:
        """Return the line of a segment."""
        return {"k": TRACE, "s": self.scope, "x": self.name}

    @classmethod
    def parse(cls, line: Mapping[str, Any]) -> Self:
        """Return the trace in a line. Raise RecordError."""
        return cls(_hash(line.get("s")), _hash(line.get("x")))


@frozen
class Removal:
    """The removal of a machine: its segments after this number are not read. ``name`` is random."""

    machine: str
    number: int
    name: str

    @property
    def item(self) -> str:
        """What identifies it in a segment."""
        return f"{self.name}{self.machine}"

    def line(self) -> dict[str, Any]:
        """Return the line of a segment."""
        return {"k": REMOVAL, "m": self.machine, "n": self.number, "x": self.name}

    @classmethod
    def parse(cls, line: Mapping[str, Any]) -> Self:
        """Return the removal in a line. Raise RecordError."""
        machine, number = line.get("m"), line.get("n")
        if not isinstance(machine, str) or re.fullmatch("[0-9a-f]{16}", machine, re.ASCII) is None:
            raise RecordError("not the id of a machine")
        if type(number) is not int or not 0 <= number < 1 << 32:
            raise RecordError("not the number of a segment")
        return cls(machine, number, _hash(line.get("x")))


def _hash(value: object) -> str:
    if not isinstance(value, str) or _HEX.fullmatch(value) is None:
        raise RecordError("not a hash")
    return value


def _hashes(value: object, most: int) -> tuple[str, ...]:
    if not isinstance(value, list) or len(value) > most:
        raise RecordError("not a list of hashes, or too long")
    return tuple(map(_hash, value))


@frozen
class Kind:
    """How a journal is merged.

    ``form``: that of the journal. A ``register`` has one value for each id, and the last write counts; the records of
    other journals are a set. In an ``ordered`` journal all machines have the same order.
    """

    name: str
    form: str
    register: bool = False
    ordered: bool = False
    #: Contains what people said, with the secrets in it.
    private: bool = False
    #: A record that is not there any more was deleted by a write; elsewhere it is only missing.
    has_deletions: bool = False
    #: Other records are derived from its records.
    is_source: bool = False
    #: How its records name what they are derived from: by "quotes", by a "range" of messages, or not at all.
    derived_by: str = ""
    #: Whether a record's own moment orders it. Otherwise a write is later than all others about the same subject.
    keeps_moment: bool = False
    #: The field that names what a record is about, if that is not its id.
    subject: str = ""
    #: The fields whose values are a record's content: two contents under one id are two records.
    content: tuple[str, ...] = ()
    #: The values of `op` of records that are only of use on their own machine, such as how far it has read a chat.
    own_ops: tuple[str, ...] = ()

    def is_synced(self, body: Mapping[str, Any]) -> bool:
        """Return whether other machines get a record."""
        return body.get("op") not in self.own_ops

    def subject_of(self, body: Mapping[str, Any]) -> str:
        """Return what a record is about: later writes about it have later moments."""
        return str(body.get(self.subject) or body.get("id")) if self.subject else self.id_of(body)

    def id_of(self, body: Mapping[str, Any]) -> str:
        """Return the id of a record."""
        if is_deletion(body):
            body = body["of"]
        if self.form == "text":
            return f"{body.get('section')}.{body.get('key')}"
        name = body.get("id")
        return name if isinstance(name, str) else ""

    def key(self, place: str, body: Mapping[str, Any]) -> str:
        """Return what identifies a record of this machine's journal."""
        part = self.id_of(body) if self.register else digest(body)
        return f"{self.name}\0{place}\0{part}"

    def group(self, place: str, body: Mapping[str, Any]) -> tuple[str, ...]:
        """Return what two versions have in common that are the same record."""
        if self.form == "log":
            return self.name, place, digest(body)
        if self.content:
            return self.name, self.id_of(body), digest([body.get(name) for name in self.content])
        return self.name, self.id_of(body)

    def scopes(self, traces: Traces, place: str, body: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the keyed hashes of a record's own names."""
        if self.form == "log":
            group = place.partition("/")[0]
            return traces.scope(self.name, group, digest(body)), traces.scope(self.name, group)
        if self.form == "text":  # all spellings of a key are forgotten with it
            names = body["of"] if is_deletion(body) else body
            return (traces.scope(self.name, f"{names.get('section')}.{plain_key(str(names.get('key')))}"),)
        own = traces.scope(self.name, self.id_of(body))
        return (own, traces.scope(self.name, renamed(body)["id"])) if self.content else (own,)


#: The journals that machines exchange.
KINDS: Mapping[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind("saved", "records", keeps_moment=True, content=("text", "source", "chat_id")),
        Kind("documents", "records", register=True),
        Kind("core_memory", "text", register=True, has_deletions=True),
        Kind("conversations", "log", ordered=True, private=True, keeps_moment=True, is_source=True),
        Kind("summaries", "log", ordered=True, private=True, keeps_moment=True, derived_by="range"),
        Kind("workspaces", "records", register=True, own_ops=("joined", "left")),
        Kind("facts", "records", ordered=True, derived_by="quotes", subject="fact", own_ops=("batch",)),
    )
}


def deletion(section: str, key: str) -> dict[str, Any]:
    """Return the body of a version that deletes a value of core memory."""
    return {"gone": True, "of": {"section": section, "key": key}}


def is_deletion(body: Mapping[str, Any]) -> bool:
    """Return whether a body is that of a deletion."""
    return body.get("gone") is True and isinstance(body.get("of"), dict)


def renamed(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return a saved memory under the id that it gets if another text has its own."""
    where = str(body.get("id")).rpartition("/")[0]
    return {**body, "id": f"{where}/{digest([body.get('id'), body.get('text'), body.get('source')])}"}
