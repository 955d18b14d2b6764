"""Which chats have become so long that a run may summarise them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from klaw_facts.journal import FactsJournal
from klaw_facts.runs import own_summaries, undone_chats
from klaw_journals import BadLine, Chat, format_ts

if TYPE_CHECKING:
    from klaw_conversations import Conversations


def long_chats(conversations: Conversations, journal: FactsJournal, above: int) -> Iterator[str]:
    """Yield the chats with more than ``above`` messages after their summary; none if it is 0.

    Not those whose last summary a person or a program wrote, and not those whose summary was undone.
    """
    if not above:
        return
    own, undone = own_summaries(journal), undone_chats(journal)
    for listed in conversations.chats():
        chat = Chat.parse(listed.name)
        last = next(reversed(conversations.summaries(chat)), None)
        is_own = last is None or (chat.name, format_ts(last.created_at)) in own
        if not is_own or chat.name in undone:
            continue
        covered = None if last is None else last.to_message_id
        lines = [line for line in conversations.tail(chat, above + 1) if not isinstance(line, BadLine)]
        said = [line.message for line in lines if line.message.type is None]
        if len(said) > above and all(message.id != covered for message in said):
            yield chat.name
