"""What ``klaw doctor`` checks of facts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from klaw_core import Finding
from klaw_facts.journal import FactsJournal
from klaw_facts.pointers import Pointers
from klaw_journals import check_lines, check_private


def find_problems(journal: FactsJournal, pointers: Pointers | None) -> Iterator[Finding]:
    """Yield invalid lines, secrets, quotes that their messages do not contain, and failed batches.

    Without ``pointers``, as in `klaw doctor` on a database that cannot be opened, the messages are not read.
    """
    location = journal.records.location
    yield from check_private([Path(location)])
    yield from check_lines("fact-lines", location, journal.broken())
    lines = journal.records.replay().records
    if secret := tuple(name for name, line in journal.gate.read(lines).items() if line != lines[name]):
        what = f"{len(secret):,} lines of an older version contain a secret"
        yield Finding("fact-secrets", "error", what, location, "klaw forget facts/ID, for each fact", secret)
    state = journal.state()
    quoting = () if pointers is None else pointers.unsound(state.facts.values())
    if wrong := tuple(fact.id for fact in quoting):
        what = f"{len(wrong):,} facts have quotes that their messages do not contain"
        yield Finding("fact-quotes", "error", what, location, "klaw index", wrong)
    if failed := state.failed():
        what = f"{len(failed):,} batches of messages could not be read by the model"
        items = tuple(batch.id for batch in failed)
        yield Finding("fact-batches", "warning", what, location, "klaw facts retry", items)
