"""The extension ``current_facts``: an answer shows facts as the journal has them, also if the index is behind it.

Whoever retracts a fact while another process holds the store is told that the index could not follow, and the row stays
until the next index run. Every search passes here, so that nobody is shown such a row. It is built for every search, so
it imports little.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import define, evolve, field

from klaw_core import AttachedExtension, Event, Host, KlawError, ListeningExtension, SearchEvent

if TYPE_CHECKING:
    from klaw_facts.facts import Facts

#: The collection, as in klaw_facts.index, whose import is slow.
_FACTS = "facts"


@define(eq=False)
class CurrentFacts(AttachedExtension, ListeningExtension):
    """Leaves facts out of answers that the journal hides or no longer has, and replaces outdated texts."""

    _host: Host | None = field(default=None, init=False)

    name = "current_facts"

    def attach(self, host: Host, /) -> None:
        """Store the host."""
        self._host = host

    def on(self, event: Event, /) -> None:
        """Compare the facts of an answer with the journal. If it cannot be read, leave all of them out."""
        if not isinstance(event, SearchEvent) or self._host is None:
            return
        results = event.results.results
        if not any(result.collection == _FACTS for result in results):
            return
        try:
            facts: Facts = self._host.extension(_FACTS)
            shown = facts.index.current(results)
        except KlawError as error:
            shown = tuple(result for result in results if result.collection != _FACTS)
            event.notices.append(f"facts were left out, because it is not known which of them are current: {error}")
        else:
            same = set(map(id, shown))
            if behind := sum(id(result) not in same for result in results):
                event.notices.append(f"the index is older than {behind:,} of the found facts: run `klaw index`")
        event.results = evolve(event.results, results=shown)
