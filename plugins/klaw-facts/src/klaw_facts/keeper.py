"""Changes of facts by people, agents and programs: remember, edit, end, reopen, retract, review, undo, forget."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from pathlib import Path
from typing import Any, get_args

from attrs import define, evolve

from klaw_core import (
    MetadataValue,
    NotFoundError,
    RecordError,
    check_metadata,
    operations,
    quoted,
    read_regular,
    write_atomically,
)
from klaw_facts.extracting.begins import Begin, begin_in, told_by
from klaw_facts.extracting.resolve import Resolver
from klaw_facts.extracting.rules import category_of, importance_of
from klaw_facts.extracting.slots import Stated, all_stated_in
from klaw_facts.fold import State, without_person_guard
from klaw_facts.journal import FactsJournal
from klaw_facts.options import FactsOptions
from klaw_facts.records import check_operation, fact_record, operation, parse_fact
from klaw_facts.secret_gate import secret_refused
from klaw_facts.validity import is_dated, later_by
from klaw_facts.values import PERSON, Fact, Precision, Proposal, make_id
from klaw_journals import Traces, format_ts

_KEY_BYTES = 32
_EMPTY = "the text of the fact is empty; it has 1 to 10,000 characters"


@operations
@define(eq=False)
class FactKeeper:
    """Writes operations. ``changed`` is called with the ids of the changed facts."""

    journal: FactsJournal
    options: FactsOptions
    directory: Path
    changed: Callable[[Sequence[str]], object]
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    only_unnamed: Callable[[], str] = str

    def remember(
        self,
        text: str,
        *,
        subject: str = "user",
        category: str | None = None,
        slot: str | None = None,
        value: str | None = None,
        valid_from: datetime | None = None,
        precision: Precision | None = None,
        importance: float | None = None,
        tags: Iterable[str] = (),
        metadata: Mapping[str, MetadataValue] | None = None,
        is_pinned: bool = False,
        by: str = PERSON,
        source: str = "",
    ) -> Fact:
        """Store a fact that somebody states; it ends the previous value of its slot. Raise RecordError.

        A sentence with a secret is left out of the text; if nothing is left, this raises RecordError.
        The same text about the same subject confirms the existing fact, which gets the given tags, metadata,
        importance and pin. ``precision`` is that of ``valid_from`` (default: day). A ``value`` needs a slot, its own
        or that of the text.
        """
        now = self.now()
        begin, ended = Begin(), {}
        if slot is None:
            begin, stated = _stated(text, valid_from, now)
            told = told_by(text, stated)
            slot, ended = told["slot"], told["metadata"]
            value = told["value"] if value is None else value
        _check_value(slot, value)
        _check_precision(precision)
        if precision is not None and valid_from is None:
            raise RecordError(f"the precision {precision!r} needs valid_from", hint="give both, or none")
        category = category or category_of(text)
        if category not in self.options.curves:
            raise RecordError(
                f"unknown category {category!r}",
                hint=f"known: {', '.join(self.options.curves)}; add others to extensions.facts.half_life_days",
            )
        if not text.strip():
            raise RecordError(_EMPTY, hint="say the fact in one sentence")
        text = self.journal.gate.text(text)
        if not text or self.journal.gate.has_secret(value):
            raise secret_refused()
        fact = Fact(
            # Not derived from the text, so that an id that remains somewhere does not reveal a forgotten text.
            make_id("f", secrets.token_hex(_KEY_BYTES)),
            text.strip(),
            subject=subject,
            category=category,
            slot=slot,
            value=value,
            importance=importance_of(category) if importance is None else importance,
            tags=tuple(tags),
            metadata={**ended, **check_metadata(metadata or {})},
            **_since(valid_from, precision, begin if begin.valid_from else Begin(now, "by") if slot else begin),
            verified="person" if by == PERSON else "none",
            made_by=by,
            source=source,
            is_pinned=is_pinned,
        )
        parse_fact(fact_record(fact, now))
        fact = self.journal.gate.fact(fact)
        return self._state_fact(fact, by, now, {} if importance is None else {"importance": importance})

    def _state_fact(self, fact: Fact, by: str, now: datetime, given: Mapping[str, Any]) -> Fact:
        with self.journal.turn():
            state = self.journal.state()
            batch = make_id("b", fact.id, format_ts(now))
            given_state = without_person_guard(state, by)
            resolver = Resolver(
                *(given_state, self.options, now, by, batch), words_count=True, only_unnamed=self.only_unnamed
            )
            kept = resolver.add(fact)
            if resolver.asserted:
                self._append(resolver.finish())
            else:
                affirmed = None if is_dated(fact) else format_ts(now)
                again = [operation("confirm", now, by=by, fact=kept.id, affirmed_at=affirmed)]
                known = state.facts[kept.id]
                if changes := _added(known, fact, by, given):
                    again.append(operation("edit", now, by=by, fact=kept.id, changes=changes))
                if fact.is_pinned and not known.is_pinned:
                    again.append(operation("pin", now, by=by, fact=kept.id))
                self._append([self.journal.renamed(line) for line in again])
            return self.get(kept.id)

    def get(self, name: str) -> Fact:
        """Return a fact by its id, or by the beginning of one. Raise NotFoundError."""
        return find_fact(self.journal.state(), name)

    def edit(self, name: str, **changes: Any) -> Fact:
        """Change a fact by hand; its history keeps the old version. Raise NotFoundError, RecordError."""
        known, gate = self.get(name), self.journal.gate
        if not {"slot", "value"}.isdisjoint(changes):
            _check_value(changes.get("slot", known.slot), changes.get("value", known.value))
        _check_precision(changes.get("precision"))
        if "text" in changes and not str(changes["text"] or "").strip():
            raise RecordError(_EMPTY, hint="say the fact in one sentence")
        if gate.has_secret(changes.get("text")):
            changes["text"] = gate.text(changes["text"])
        is_secret = gate.has_secret(changes.get("value"))
        if not is_secret and changes.keys() & {"text", "subject"}:
            fact = self.get(name)
            is_secret = gate.completes(changes.get("subject", fact.subject), changes.get("text", fact.text))
        if changes.get("text") == "" or is_secret:
            raise secret_refused()
        plain = {key: format_ts(value) if isinstance(value, datetime) else value for key, value in changes.items()}
        return self._do(name, "edit", changes=plain)

    def end(self, name: str, valid_to: datetime | None = None, reason: str = "") -> Fact:
        """Record until when a fact was true (default: it is no longer true now, since some time).

        Raise NotFoundError; RecordError if it begins later.
        """
        precision = "by" if valid_to is None else "day"
        until = format_ts(valid_to or self.now())
        return self._do(name, "end", valid_to=until, precision=precision, reason=reason or None)

    def reopen(self, name: str) -> Fact:
        """Reverse the end, the retraction and the archiving of a fact."""
        with self.journal.turn():
            fact = self._do(name, "reopen")
            return self._do(name, "restore") if fact.is_archived else fact

    def retract(self, name: str, reason: str = "") -> Fact:
        """Retract a fact: it was never true. It stays in its history; ``forget`` removes it."""
        return self._do(name, "retract", reason=reason or None)

    def pin(self, name: str, *, on: bool = True) -> Fact:
        """Include a fact in every context, or stop including it."""
        return self._do(name, "pin" if on else "unpin")

    def archive(self, name: str, *, on: bool = True) -> Fact:
        """Hide a fact, or show it again."""
        return self._do(name, "archive" if on else "restore")

    def _do(self, name: str, op: str, **values: Any) -> Fact:
        with self.journal.turn():
            fact = self.get(name)
            return self._change(fact, [self.journal.renamed(operation(op, self.now(), fact=fact.id, **values))])

    def _change(self, fact: Fact, lines: Sequence[Mapping[str, Any]]) -> Fact:
        """Append operations on a fact, unless it would then end before it begins. Raise RecordError."""
        state = self.journal.state().copy()
        for line in lines:
            check_operation(line)
            state.apply(line)
        _check_period(fact, state.facts[fact.id])
        self._append(lines, [fact.id])
        return self.get(fact.id)

    def review(self) -> list[Proposal]:
        """Return the proposed ends that need a person's decision, oldest first."""
        return self.journal.state().waiting()

    def decide(self, proposal: str, *, accept: bool) -> Fact:
        """Accept or refuse a proposed end. Raise NotFoundError; RecordError if the fact begins after that end."""
        with self.journal.turn():
            found = [item for item in self.review() if item.id.startswith(proposal)] if proposal else []
            if len(found) != 1:
                raise NotFoundError(f"there is no proposal {proposal!r}", hint="klaw facts review")
            waiting = found[0]
            now = self.now()
            lines = [operation("decide", now, proposal=waiting.id, accepted=accept)]
            if accept:
                until = format_ts(waiting.valid_to or now)
                values: dict[str, Any] = {"by_fact": waiting.by_fact or None, "reason": waiting.reason or None}
                values["precision"] = waiting.precision if waiting.valid_to else "by"
                lines.append(operation("end", now, fact=waiting.fact, valid_to=until, **values))
            return self._change(self.get(waiting.fact), lines)

    def undo(self, batch: str) -> int:
        """Reverse all changes of a batch; return the number of facts. Raise NotFoundError.

        If it merged people, what each of them said later holds for each of them alone.
        """
        with self.journal.turn():
            names = [
                line["batch"] for line in self.journal.operations() if str(line.get("batch", "")).startswith(batch)
            ]
            names += [name for name in self.journal.state().batches if name.startswith(batch)]
            found = sorted(set(names)) if batch else []
            if len(found) != 1:
                raise NotFoundError(
                    f"there is no batch {batch!r}", hint="klaw facts show ID prints the batch of a fact"
                )
            lines = [line for line in self.journal.operations() if line.get("batch") == found[0]]
            told = [line.get("fact") or line["id"] for line in lines if line["op"] == "assert" or line.get("fact")]
            ids = list(dict.fromkeys(told))
            merged = {name for line in lines if line["op"] == "merge" for name in line["people"]}
            before = self.journal.state().facts
            self._append([operation("undo", self.now(), batch=found[0])], ids)
            if merged:
                self._append(self._settled(before, found[0]))
            return len(ids)

    def _settled(self, before: Mapping[str, Fact], batch: str) -> list[dict[str, Any]]:
        """Return the ends of values that others had ended, by what their own people have said since the merge."""
        state, lines = self.journal.state(), self.journal.operations()
        freed = [fact for name, fact in state.facts.items() if fact.valid_to != before[name].valid_to]
        names = {fact.id for fact in freed}
        merged_at = [line.get("batch") for line in lines].index(batch)
        since = {line["id"] for line in lines[merged_at:] if line["op"] == "assert"}
        now = self.now()
        own = make_id("b", "split", batch, format_ts(now))
        resolver = Resolver(state, evolve(self.options, max_ends=len(freed)), now, "rules", own)
        resolver.settle(freed, lambda old, new: old.id in names and new.id in since)
        return resolver.finish()

    def forget(self, names: Sequence[str], suppress: Callable[[Fact], Iterable[str]]) -> list[str]:
        """Remove facts and all operations on them from the journal; keyed hashes prevent extracting them again.

        A merge contains the text of its facts. Forgetting one of its facts removes the merge and restores the others;
        forgetting a merge removes all of its facts, also if it was undone. Return the ids of all affected facts.
        """
        with self.journal.turn():
            asserted = (line for line in self.journal.operations() if line["op"] == "assert")
            facts = {line["id"]: parse_fact(line) for line in asserted} | self.journal.state().facts
            wanted = {name for name in names if name in facts}
            wanted |= {part for name in wanted for part in facts[name].supersedes if part in facts}
            if not wanted:
                return []
            merges = {fact.id: fact.supersedes for fact in facts.values() if wanted & set(fact.supersedes)}
            now = self.now()
            keys = dict.fromkeys(key for name in sorted(wanted) for key in suppress(facts[name]))
            self.journal.append([{**operation("suppress", now, key=key), "id": f"s-{key}"} for key in keys])
            gone = wanted | merges.keys()
            self.journal.forget([line["id"] for line in self.journal.operations() if _concerns(line, gone)])
            return sorted(gone.union(*merges.values()))

    def key(self) -> bytes:
        """Return the key of the hashes of forgotten texts, the same on all machines that share the memory.

        Without others, it is created at the first call, in a file of mode 0600.
        """
        if shared := Traces(self.directory.parent).key:
            return blake2b(b"forgotten facts", key=shared, digest_size=_KEY_BYTES).hexdigest().encode()
        path = self.directory / "key"
        with self.journal.turn():
            if not path.exists():
                write_atomically(path, secrets.token_hex(_KEY_BYTES))
            return read_regular(path)

    def _append(self, operations: Sequence[Mapping[str, Any]], also: Iterable[str] = ()) -> None:
        self.journal.append(operations)
        ids = [line["id"] if line["op"] == "assert" else line.get("fact") for line in operations]
        self.changed([*(name for name in ids if name), *also])


def own_key(directory: Path) -> bytes:
    """Return the key that a data directory made before it was shared; empty if it has made none."""
    path = directory / "key"
    return read_regular(path) if path.exists() else b""


def _stated(text: str, valid_from: datetime | None, now: datetime) -> tuple[Begin, Stated | None]:
    """Return what a text states, and since when, as in a message; a given time counts instead of its own."""
    if valid_from is None:
        return begin_in(text, (0, len(text)), text, now)
    return Begin(), next((item for item in all_stated_in(text) if not item.is_planned), None)


def _since(valid_from: datetime | None, precision: Precision | None, said: Begin) -> dict[str, Any]:
    """Return the fields of a fact that say since when it is true: as it was given, or else as it was said."""
    if valid_from is not None:
        return {"valid_from": valid_from, "precision": precision or "day"}
    return {"valid_from": said.valid_from, "precision": said.precision, "affirmed_at": said.affirmed_at}


def _added(known: Fact, stated: Fact, by: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the changes of a known fact by an equal statement; a fact that a person states becomes the person's."""
    changes = {name: value for name, value in given.items() if getattr(known, name) != value}
    if set(stated.tags) - set(known.tags):
        changes["tags"] = list(dict.fromkeys((*known.tags, *stated.tags)))
    if stated.metadata and {**known.metadata, **stated.metadata} != known.metadata:
        metadata = {**known.metadata, **stated.metadata}
        changes["metadata"] = {key: list(item) if isinstance(item, tuple) else item for key, item in metadata.items()}
    if by == PERSON and not known.is_by_person:
        changes["text"] = stated.text
    return changes


def _check_value(slot: str | None, value: str | None) -> None:
    """Raise RecordError unless there are both or none. A value without a slot would belong to nothing."""
    if slot and not value:
        raise RecordError(f"the slot {slot!r} needs a value", hint=f"--slot {slot}=VALUE")
    if value is not None and not slot:
        raise RecordError(f"the value {quoted(value, 40)} needs a slot", hint="--slot NAME=VALUE")


def _check_period(known: Fact, fact: Fact) -> None:
    """Raise RecordError if a change lets a fact end before the day of its begin."""
    begin, end = fact.valid_from, fact.valid_to
    is_same = (begin, end) == (known.valid_from, known.valid_to)
    if is_same or begin is None or end is None or later_by(end, timedelta(days=1)) > begin:
        return
    raise RecordError(
        f"the end, {end.date().isoformat()}, is before the begin of the fact, {begin.date().isoformat()}",
        hint=f"give a later end, or an earlier begin (`klaw facts edit --from`), or `klaw facts retract {fact.id}`",
    )


def _check_precision(precision: str | None) -> None:
    """Raise RecordError for an unknown precision."""
    if precision is not None and precision not in get_args(Precision):
        known = ", ".join(get_args(Precision))
        raise RecordError(f"unknown precision {quoted(precision, 40)}", hint=f"one of {known}")


def find_fact(state: State, name: str) -> Fact:
    """Return a fact by its id, its path, or the beginning of its id. Raise NotFoundError."""
    name = name.removeprefix("facts/")
    if name in state.facts:
        return state.facts[name]
    found = [fact for key, fact in state.facts.items() if name and key.startswith(name)]
    if len(found) == 1:
        return found[0]
    what = f"{len(found)} facts begin with" if found else "there is no fact"
    raise NotFoundError(f"{what} {name!r}", hint="klaw facts list --all")


def _concerns(line: Mapping[str, Any], facts: set[str]) -> bool:
    if line["op"] == "profile":
        return bool(facts & set(line.get("facts", ())))
    is_merged = line["op"] == "archive" and line.get("by_fact") in facts
    return is_merged or line["id"] in facts or line.get("fact") in facts
