"""Strands Agents: a memory store, and a repository of sessions."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from strands.memory import AddMessagesContext, MemoryEntry, MemoryStore, SearchOptions

from klaw_agents.threads import in_thread
from klaw_agents.turns import place_of
from klaw_core import Filters, IndexReport, Memory, SearchResult, metadata_part
from klaw_core.cli.kit import visible
from klaw_journals import Chat, Message, NewDocument

if TYPE_CHECKING:
    from strands.memory import ExtractionConfig

_CHANNEL = "strands"
_CONVERSATIONS = "conversations"
_DIGEST_CHARACTERS = 32
_DEFAULT_RESULTS = 5


class KlawMemoryStore(MemoryStore):
    """A ``MemoryStore`` of Strands over a whole memory: notes, conversations, saved texts and documents of agents.

        manager = MemoryManager(stores=[KlawMemoryStore(memory)], add_tool_config=True)
        agent = Agent(model=model, memory_manager=manager)

    ``filters``, ``collection`` and ``min_relevance`` restrict searches. An added text is a document of that collection,
    by default of ``memory``; an equal text is stored once. With ``extraction=True`` the messages of the conversation
    are stored in the journal of the chat ``strands_NAME``, without a model. Such a store belongs to one agent.
    ``sender_id`` identifies its user: facts belong to this person. The caller closes ``memory``.
    """

    def __init__(
        self,
        memory: Memory,
        name: str = "klaw",
        *,
        description: str | None = "Notes, past conversations and saved texts.",
        max_search_results: int | None = None,
        writable: bool = True,
        extraction: ExtractionConfig | bool | None = None,
        collection: str | None = None,
        filters: Filters = Filters(),  # noqa: B008  # frozen
        min_relevance: float | None = None,
        sender_id: str = "",
    ) -> None:
        if not name.strip():
            raise ValueError("the store's name must not be empty")
        self.name = name
        self.description = description
        self.max_search_results = None if max_search_results is None else _checked(max_search_results)
        self.writable = writable
        self.extraction = extraction
        self._memory = memory
        self._collection = collection
        self._filters = filters
        self._min_relevance = min_relevance
        self._chat = Chat(_CHANNEL, name)
        self._sender_id = sender_id
        self._run = uuid.uuid4().hex
        self._written: set[str] = set()

    async def initialize(self) -> None:
        """Start a run of an agent, whose messages are numbered from 0."""
        self._run = uuid.uuid4().hex
        self._written.clear()

    async def search(self, query: str, options: SearchOptions | None = None) -> list[MemoryEntry]:
        """Return the chunks that answer a question, best first, each with its location in the metadata."""
        given = (options or {}).get("max_search_results", self.max_search_results)
        wanted = _DEFAULT_RESULTS if given is None else _checked(given)
        if not query.strip():
            return []
        return await in_thread(self._search, query, wanted)

    async def add(self, content: str, metadata: Mapping[str, Any] | None = None) -> str:
        """Store a text and return its id; it can be found at once. Raise ValueError, RecordError, StoreError."""
        if not self.writable:
            raise ValueError(f"this store is not writable: {self.name}")
        if not content.strip():
            raise ValueError("nothing to remember: content must not be empty")
        name = f"{_CHANNEL}/{_digest(content)}"
        kept = dict(metadata or {})
        document = NewDocument(
            name, content, metadata_part(kept), source=self.name, payload=kept or None, trust="agent"
        )
        await in_thread(self._memory.add, [document], collection=self._collection or "memory")
        return name

    async def add_messages(self, messages: Sequence[Any], context: AddMessagesContext | None = None) -> None:
        """Append messages to the journal and index them; a repeated batch is stored once. Raise StoreError."""
        numbers = context.sequence_numbers if context is not None else None
        await in_thread(self._append, messages, numbers)

    def _search(self, query: str, wanted: int) -> list[MemoryEntry]:
        if self._collection is not None and self._collection not in self._memory.collections():
            return []
        results = self._memory.search(
            query, wanted, filters=self._filters, collection=self._collection, min_relevance=self._min_relevance
        )
        return [_entry(result) for result in results]

    def _append(self, messages: Sequence[Any], numbers: Sequence[int] | None) -> IndexReport:
        now = datetime.now(UTC)
        ids = [uuid.uuid4().hex for _ in messages] if numbers is None else [f"{self._run}-{n}" for n in numbers]
        new = [
            _message(message, self._chat, now, name, self._sender_id)
            for name, message in zip(ids, messages, strict=True)
            if name not in self._written
        ]
        self._memory.conversations.append_many(new)
        self._written.update(ids)
        return self._memory.index(origin=_CONVERSATIONS)


def _checked(number: int) -> int:
    if number < 1:
        raise ValueError(f"max_search_results must be at least 1, not {number}")
    return number


def _entry(result: SearchResult) -> MemoryEntry:
    metadata = {**place_of(result), "score": result.score, "relevance": result.relevance}
    return MemoryEntry(content=visible(result.content), metadata=metadata)


def _message(message: Mapping[str, Any], chat: Chat, now: datetime, name: str, sender_id: str) -> Message:
    texts = [block["text"] for block in message["content"] if "text" in block]
    role = message["role"] if texts else "tool"
    meta = {**chat.meta, **({"sender_id": sender_id} if sender_id and role == "user" else {})}
    return Message(role, "\n".join(texts), now, name, meta=meta)


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST_CHARACTERS]
