"""What facts lose when messages are forgotten."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from klaw_facts.index import FactIndex
from klaw_facts.journal import FactsJournal
from klaw_facts.pointers import Pointers
from klaw_facts.records import operation


def drop_missing(
    journal: FactsJournal, pointers: Pointers, forget: Callable[[Sequence[str]], None], index: FactIndex
) -> None:
    """Forget the facts of which every quote is of a message that is gone; take such quotes from the others."""
    state = journal.state()
    chats = {quote.chat for fact in state.facts.values() for quote in fact.quotes}
    chats |= {chat for chat, _ in state.digests}
    there = {chat: set(pointers.messages(chat)) for chat in chats}
    gone: list[str] = []
    lines: list[dict[str, Any]] = []
    now = datetime.now(UTC)
    for fact in state.facts.values():
        missing = [quote for quote in fact.quotes if quote.message not in there[quote.chat]]
        is_quotation = fact.verified in {"quote", "paraphrase"}  # others were stated by somebody
        if missing and len(missing) == len(fact.quotes) and is_quotation:
            gone.append(fact.id)
        else:
            places = dict.fromkeys((quote.chat, quote.message) for quote in missing)
            lines += [
                operation("unquote", now, by="rules", fact=fact.id, chat=chat, message=name) for chat, name in places
            ]
    digests = [
        digest.id
        for digest in state.digests.values()
        if any(quote.message not in there[digest.chat] for quote in digest.quotes)
    ]
    journal.append(lines)
    journal.forget(digests)
    if gone:
        index.remove(gone)
        forget(gone)
