"""Google ADK: a memory service."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
from google.adk.memory.memory_entry import MemoryEntry
from google.genai import types

from klaw_agents.threads import in_thread
from klaw_core import Filters, Memory, RecordError, metadata_part
from klaw_core.cli.kit import visible
from klaw_journals import NewDocument

if TYPE_CHECKING:
    from google.adk.events.event import Event
    from google.adk.sessions.session import Session

_ROOT = "documents/"
_NO_SESSION = "unknown"
_MAX_LABEL_CHARACTERS = 100
_DIGEST_CHARACTERS = 32
_PRINTABLE = "@+-._~ "


class KlawMemoryService(BaseMemoryService):
    """ADK's long-term memory in a Klaw memory. Every event and every memory entry is one document.

        runner = Runner(agent=agent, app_name="travel", session_service=..., memory_service=KlawMemoryService(memory))

    A user of an app finds only events of this user in this app. An event that is added again replaces its earlier copy.
    :meth:`delete_memory` deletes an entry from the files and the index; adding its session again does not restore it.
    The documents are in ``collection``. A search returns at most ``max_results`` of at least ``min_relevance``
    (0 to 1). The caller closes ``memory``.
    """

    def __init__(
        self, memory: Memory, *, collection: str = "adk", max_results: int = 10, min_relevance: float | None = None
    ) -> None:
        self._memory = memory
        self._collection = collection
        self._max_results = max_results
        self._min_relevance = min_relevance

    async def add_session_to_memory(self, session: Session) -> None:
        """Store the messages of a session. Raise klaw_core.RecordError, StoreError."""
        await self.add_events_to_memory(
            app_name=session.app_name, user_id=session.user_id, events=session.events, session_id=session.id
        )

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Store the messages of some events of a session. Raise klaw_core.RecordError, StoreError.

        Thoughts of a model, tool calls and unfinished parts of a stream are left out.
        """
        prefix = f"{_prefix(app_name, user_id)}sessions/{_label(session_id or _NO_SESSION)}/"
        documents = [_of_event(prefix, event, custom_metadata or {}) for event in events if not event.partial]
        await in_thread(self._add, [document for document in documents if document.text])

    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Store entries. An equal entry without an id is stored once. Raise RecordError, StoreError."""
        prefix = f"{_prefix(app_name, user_id)}memories/"
        documents = [_of_memory(prefix, entry, custom_metadata or {}) for entry in memories]
        await in_thread(self._add, [document for document in documents if document.text])

    async def search_memory(self, *, app_name: str, user_id: str, query: str) -> SearchMemoryResponse:
        """Return the messages of this user in this app that match a question, best first."""
        if not query.strip():
            return SearchMemoryResponse()
        return SearchMemoryResponse(memories=await in_thread(self._search, _prefix(app_name, user_id), query))

    async def delete_memory(self, *, app_name: str, user_id: str, memory_id: str | None = None) -> None:
        """Delete an entry by the id from :meth:`search_memory`; unknown ids are ignored."""
        if memory_id:
            await in_thread(self._delete, _prefix(app_name, user_id) + memory_id)

    def _add(self, documents: Sequence[NewDocument]) -> None:
        kept = self._memory.get_by_ids([document.id for document in documents], collection=self._collection)
        deleted = {document.id for document in kept if _is_deleted(document)}
        wanted = [document for document in documents if document.id not in deleted]
        if wanted:
            self._memory.add(wanted, collection=self._collection)

    def _search(self, prefix: str, query: str) -> list[MemoryEntry]:
        if self._collection not in self._memory.collections():
            return []
        results = self._memory.search(
            query,
            self._max_results,
            filters=Filters(path=_ROOT + prefix),
            collection=self._collection,
            min_relevance=self._min_relevance,
            per_document=1,
            duplicates="keep",
        )
        judged: dict[str, dict[str, Any]] = {}
        for result in results:
            judgement = {"relevance": result.relevance, "is_weak": result.is_weak}
            judged.setdefault(result.path.removeprefix(_ROOT), judgement)
        found = self._memory.get_by_ids(list(judged), collection=self._collection)
        return [_entry(document, prefix, judged[document.id]) for document in found]

    def _delete(self, name: str) -> None:
        try:
            known = self._memory.get_by_ids([name], collection=self._collection)
        except RecordError:  # no id of a document
            return
        if not known or _is_deleted(known[0]):
            return
        self._memory.delete([name], collection=self._collection, missing_ok=True)
        # Only the id stays, so that the session can be added again without it.
        self._memory.add([NewDocument(name, "", payload={"deleted": True})], collection=self._collection)


def _of_event(prefix: str, event: Event, custom: Mapping[str, object]) -> NewDocument:
    moment = datetime.fromtimestamp(event.timestamp, UTC)
    name = event.id or _digest(event.author, moment.isoformat(), _said(event.content))
    return _document(prefix + _label(name), event.content, event.author, moment, custom)


def _of_memory(prefix: str, entry: MemoryEntry, custom: Mapping[str, object]) -> NewDocument:
    moment = _moment(entry.timestamp)
    name = entry.id or _digest(entry.author or "", entry.timestamp or "", _said(entry.content))
    return _document(prefix + _label(name), entry.content, entry.author, moment, {**entry.custom_metadata, **custom})


def _document(
    name: str, content: types.Content | None, author: str | None, moment: datetime | None, custom: Mapping[str, object]
) -> NewDocument:
    payload = {
        "role": content.role if content else None,
        "texts": list(_texts(content)),
        "author": author or None,
        "timestamp": moment.isoformat() if moment else None,
        "custom": json.loads(json.dumps(dict(custom), default=str)),
    }
    return NewDocument(
        name,
        _said(content),
        metadata_part(payload["custom"]),
        source=author or "adk",
        created_at=moment or datetime.now(UTC),
        payload=payload,
        trust="agent",
    )


def _entry(document: NewDocument, prefix: str, judgement: Mapping[str, Any]) -> MemoryEntry:
    """Return a stored entry; its metadata also have the ``relevance`` of the search, and whether it ``is_weak``."""
    kept = document.payload
    return MemoryEntry(
        id=document.id.removeprefix(prefix),
        content=types.Content(role=kept["role"], parts=[types.Part(text=visible(text)) for text in kept["texts"]]),
        author=kept["author"],
        timestamp=kept["timestamp"],
        custom_metadata={**kept["custom"], **judgement},
    )


def _is_deleted(document: NewDocument) -> bool:
    return bool(document.payload.get("deleted"))


def _texts(content: types.Content | None) -> Iterator[str]:
    for part in (content.parts if content else None) or ():
        if part.text and not part.thought:
            yield part.text


def _said(content: types.Content | None) -> str:
    return "\n".join(_texts(content)).strip()


def _moment(text: str | None) -> datetime | None:
    """Return the moment of a timestamp, which can be any text; without a time zone it is local time."""
    try:
        return datetime.fromisoformat(text).astimezone() if text else None
    except (ValueError, OverflowError):
        return None


def _prefix(app_name: str, user_id: str) -> str:
    return f"{_label(app_name)}/{_label(user_id)}/"


def _label(text: str) -> str:
    """Return a unique form of a name for the id of a document."""
    label = quote(text, safe=_PRINTABLE, errors="surrogatepass")
    return label if len(label) <= _MAX_LABEL_CHARACTERS else f"%{_digest(text)}"


def _digest(*texts: str) -> str:
    return sha256("\0".join(texts).encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST_CHARACTERS]
