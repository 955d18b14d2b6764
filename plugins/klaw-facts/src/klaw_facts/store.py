"""``FactStore``: facts by id, as agent frameworks expect it, over the journal or in memory; and ``inject``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Protocol

from attrs import define, evolve, field

from klaw_core import MetadataValue, NotFoundError, ThreadLock, estimate_tokens, operations
from klaw_facts.index import FactIndex, metadata_of
from klaw_facts.journal import FactsJournal
from klaw_facts.records import fact_record, operation, parse_fact
from klaw_facts.secret_gate import SecretGate
from klaw_facts.values import Fact
from klaw_tools.frames import item_text

_HEADING = "## Relevant Memory"
_EDITED = (
    *("text", "subject", "category", "slot", "value", "importance", "tags", "metadata"),
    *("valid_from", "precision", "valid_to"),
)


class FactStore(Protocol):
    """Facts by id. Safe to use from several threads."""

    def index(self, facts: Iterable[Fact], /) -> None:
        """Store facts; a known id updates the fact. Raise RecordError, StoreError."""

    def search(self, query: str, limit: int = 5, /) -> Sequence[Fact]:
        """Return the facts that match a query, best first."""

    def search_by_metadata(self, key: str, value: MetadataValue, /) -> Sequence[Fact]:
        """Return the facts whose metadata has this value under this key, or that have this tag, ordered by id."""

    def delete(self, fact_id: str, /) -> None:
        """Delete a fact permanently. Raise NotFoundError if the id is unknown."""

    def __len__(self) -> int:
        """Return the number of facts that are true now."""


@operations
@define(eq=False)
class JournalFactStore:
    """The facts of a memory as a ``FactStore``."""

    journal: FactsJournal
    facts: FactIndex
    changed: Callable[[Sequence[str]], object]
    forget: Callable[[Sequence[str]], object]
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    def index(self, facts: Iterable[Fact], /) -> None:
        """Store facts; a known id updates the fact."""
        given = {fact.id: self.journal.gate.fact(fact) for fact in facts}
        with self.journal.turn():
            now = self.now()
            known = self.journal.state().facts
            operations = []
            for fact in given.values():
                record = fact_record(fact, now)
                parse_fact(record)
                here = known.get(fact.id)
                if here is None:
                    operations.append(record)
                    continue
                before = fact_record(here, now)
                changes = {name: record.get(name) for name in _EDITED if record.get(name) != before.get(name)}
                if changes:
                    operations.append(operation("edit", now, fact=fact.id, changes=changes))
            self.journal.append(operations)
        self.changed(list(given))

    def search(self, query: str, limit: int = 5, /) -> Sequence[Fact]:
        """Return the current facts that match a query, best first; none for an empty query."""
        if not query.strip():
            return ()
        return self.facts.search(query, limit)

    def search_by_metadata(self, key: str, value: MetadataValue, /) -> Sequence[Fact]:
        """Return the current facts whose metadata has this value under this key, or that have this tag."""
        return matching(self.journal.state().visible(self.now()).values(), key, value)

    def delete(self, fact_id: str, /) -> None:
        """Delete a fact permanently."""
        if fact_id not in self.journal.state().facts:
            raise NotFoundError(f"there is no fact {fact_id!r}", hint="klaw facts list --all")
        self.forget([fact_id])

    def __len__(self) -> int:
        return len(self.journal.state().visible(self.now()))


@define(eq=False)
class MemoryFactStore:
    """Facts in memory, for tests. A search finds texts that contain words of the query."""

    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    gate: SecretGate = field(factory=SecretGate)
    _facts: dict[str, Fact] = field(factory=dict, init=False)
    _lock: ThreadLock = field(factory=partial(ThreadLock, "the facts in memory"), init=False)

    def index(self, facts: Iterable[Fact], /) -> None:
        """Store facts; a known id replaces the fact."""
        with self._lock.hold():
            now = self.now()
            checked = [self.gate.fact(parse_fact(fact_record(fact, now))) for fact in facts]
            for fact in checked:
                known = self._facts.get(fact.id)
                recorded = known.recorded_at if known else fact.recorded_at
                self._facts[fact.id] = evolve(fact, recorded_at=recorded)

    def search(self, query: str, limit: int = 5, /) -> Sequence[Fact]:
        """Return the facts with the most words of a query, best first."""
        words = set(query.casefold().split())
        with self._lock.hold():
            shown = [fact for fact in self._facts.values() if fact.is_visible_at(self.now())]
        scored = [(len(words & set(fact.text.casefold().strip(".!?").split())), fact) for fact in shown]
        best = sorted((item for item in scored if item[0]), key=lambda item: (-item[0], item[1].id))
        return [fact for _, fact in best[: max(limit, 0)]]

    def search_by_metadata(self, key: str, value: MetadataValue, /) -> Sequence[Fact]:
        """Return the facts whose metadata has this value under this key, or that have this tag."""
        with self._lock.hold():
            return matching((fact for fact in self._facts.values() if fact.is_visible_at(self.now())), key, value)

    def delete(self, fact_id: str, /) -> None:
        """Delete a fact."""
        with self._lock.hold():
            if self._facts.pop(fact_id, None) is None:
                raise NotFoundError(f"there is no fact {fact_id!r}")

    def __len__(self) -> int:
        with self._lock.hold():
            return sum(fact.is_visible_at(self.now()) for fact in self._facts.values())


def matching(facts: Iterable[Fact], key: str, value: MetadataValue) -> list[Fact]:
    """Return the facts that have a value under a key; of several values, one must be equal."""
    found = []
    for fact in facts:
        here = metadata_of(fact).get(key)
        if here == value or (isinstance(here, tuple) and value in here):
            found.append(fact)
    return sorted(found, key=lambda fact: fact.id)


def inject(
    store: FactStore | None,
    query: str,
    max_facts: int = 10,
    max_tokens: int = 2000,
    count_tokens: Callable[[str], int] | None = None,
) -> str | None:
    """Return facts that match a query as a block for a prompt, best first, within the budget; None if there are none.

    The block ends before the first fact that does not fit.
    """
    if store is None or not query.strip():
        return None
    count = count_tokens or (lambda text: estimate_tokens([text])[0])
    block = ""
    for fact in list(store.search(query, max_facts))[: max(max_facts, 0)]:
        line = f"- {item_text(fact.text)}"
        longer = f"{block}\n{line}" if block else f"{_HEADING}\n\n{line}"
        if count(longer) > max_tokens:
            break
        block = longer
    return block or None
