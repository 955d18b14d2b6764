"""``KlawStore``: LangGraph's long-term memory in a collection of a Klaw memory."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from attrs import frozen
from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    TTLConfig,
    get_text_at_path,
    tokenize_path,
    validate_op_namespace,
)

from klaw_core import Filters, Memory, SearchResult, metadata_part
from klaw_core.cli.kit import visible_json
from klaw_journals import NewDocument
from langchain_klaw.embeddings import report_problems
from langchain_klaw.filters import holds, pushed_down

_PREFIX = "documents/"
_PAGE = 500
# Chunks requested per item, because several chunks of a long text may match, and filters may reject some.
_CHUNKS_PER_ITEM = 4
_WHOLE = "$"
_ESCAPED = {"%": "%25", "/": "%2F"}


class KlawStore(BaseStore):
    """Items by namespace and key, found by words and by meaning, in one SQLite file.

        store = KlawStore(memory)
        store.put(("users", "ada"), "ferry", {"text": "Ada takes the ferry at seven."})
        store.search(("users",), query="when does Ada travel")

    ``fields`` are the paths of a value that are searched (default: all of it); ``put(index=...)`` names others, or
    False. ``ttl`` is LangGraph's configuration of expiry, in minutes: an expired item is not returned, and
    :meth:`sweep_ttl` deletes it. Filters support ``$eq $ne $gt $gte $lt $lte $in``, and ``a.b`` looks into an object.
    A score is the relevance, from 0 to 1 and comparable between questions; with ``mode="vector"`` it is the cosine.
    """

    supports_ttl = True

    def __init__(
        self,
        memory: Memory,
        *,
        collection: str = "langgraph",
        fields: Sequence[str] = (_WHOLE,),
        mode: Literal["hybrid", "fts", "vector"] = "hybrid",
        ttl: TTLConfig | None = None,
    ) -> None:
        self._memory = memory
        self._collection = collection
        self._fields = tuple(fields)
        self._mode = mode
        self.ttl_config = ttl

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Run operations. Reads see the state before the batch. Of several writes to a key, the last one counts.

        Raise InvalidNamespaceError, TypeError for an operation that does not exist, klaw_core.RecordError for a value
        that is not JSON or too long.
        """
        asked = list(ops)
        for op in asked:
            validate_op_namespace(op)
        results = [self._read(op) for op in asked]
        puts = {_name(op.namespace, op.key): op for op in asked if isinstance(op, PutOp)}
        if puts:
            self._write(puts)
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Run operations in a thread."""
        return await asyncio.to_thread(self.batch, list(ops))

    def sweep_ttl(self) -> int:
        """Delete every expired item; return how many there were."""
        now = datetime.now(UTC)
        expired = [kept.id for kept in self._stored("") if _Record.of(kept).is_expired(now)]
        return self._delete(expired)

    def _read(self, op: Op) -> Result:
        if isinstance(op, GetOp):
            return self._get(op)
        if isinstance(op, SearchOp):
            return self._search(op)
        if isinstance(op, ListNamespacesOp):
            return self._namespaces(op)
        if isinstance(op, PutOp):
            return None
        raise TypeError(f"unknown operation {type(op).__name__}")

    def _get(self, op: GetOp) -> Item | None:
        kept = self._memory.get_by_ids([_name(op.namespace, op.key)], collection=self._collection)
        found = [record for record in map(_Record.of, kept) if not record.is_expired(datetime.now(UTC))]
        if op.refresh_ttl:
            self._refresh(kept)
        return found[0].item() if found else None

    def _search(self, op: SearchOp) -> list[SearchItem]:
        prefix = _prefix(op.namespace_prefix)
        if not self._has_collection():
            return []
        found = self._ranked(op, prefix) if op.query and op.query.strip() else self._listed(op, prefix)
        page = found[op.offset : op.offset + op.limit]
        if op.refresh_ttl:
            self._refresh([kept for kept, _ in page])
        return [_Record.of(kept).found(score, shown=bool(op.query)) for kept, score in page]

    def _ranked(self, op: SearchOp, prefix: str) -> list[tuple[NewDocument, float | None]]:
        wanted = op.offset + op.limit
        results = self._memory.search(
            op.query or "",
            wanted * _CHUNKS_PER_ITEM,
            mode=self._mode,
            filters=Filters(path=_PREFIX + prefix, metadata=pushed_down(op.filter)),
            collection=self._collection,
            per_document=1,
            duplicates="keep",
        )
        scores: dict[str, float | None] = {}
        for result in results:
            scores.setdefault(result.path.removeprefix(_PREFIX), self._score(result))
        kept = self._memory.get_by_ids(list(scores), collection=self._collection)
        return [(document, scores[document.id]) for document in kept if self._passes(document, op.filter)]

    def _listed(self, op: SearchOp, prefix: str) -> list[tuple[NewDocument, float | None]]:
        kept = [document for document in self._stored(prefix) if self._passes(document, op.filter)]
        kept.sort(key=lambda document: document.created_at, reverse=True)  # the latest first
        return [(document, None) for document in kept]

    def _passes(self, kept: NewDocument, where: Mapping[str, Any] | None) -> bool:
        record = _Record.of(kept)
        return not record.is_expired(datetime.now(UTC)) and holds(where, record.value)

    def _score(self, result: SearchResult) -> float:
        """Return the cosine, the relevance, or the score of a result: the first that is known for the mode."""
        if self._mode == "vector" and result.similarity is not None:
            return result.similarity
        return result.score if result.relevance is None else result.relevance

    def _namespaces(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        names = dict.fromkeys(_split(name)[0] for name in self._names(""))
        matching = [name for name in names if all(_matches(name, item) for item in op.match_conditions or ())]
        cut = sorted({name[: op.max_depth] for name in matching})
        return cut[op.offset : op.offset + op.limit]

    def _write(self, puts: Mapping[str, PutOp]) -> None:
        deleted = [name for name, op in puts.items() if op.value is None]
        self._delete(deleted)
        written = {name: op for name, op in puts.items() if op.value is not None}
        if not written:
            return
        now = datetime.now(UTC)
        before = {kept.id: kept for kept in self._memory.get_by_ids(list(written), collection=self._collection)}
        documents = []
        for name, op in written.items():
            known = before.get(name)
            made = now if known is None else _Record.of(known).created_at
            record = _Record(op.namespace, op.key, op.value or {}, made, now, op.ttl, _expiry(now, op.ttl))
            documents.append(record.document(self._text(op)))
        report_problems(self._memory.add(documents, collection=self._collection))

    def _text(self, op: PutOp) -> str:
        """Return the searched text of a value."""
        if op.index is False:
            return ""
        paths = self._fields if op.index is None else op.index
        value = op.value or {}
        parts = [
            "\n".join(_lines(value)) if path == _WHOLE else "\n".join(get_text_at_path(value, tokenize_path(path)))
            for path in paths
        ]
        return "\n\n".join(part for part in parts if part)

    def _refresh(self, kept: Iterable[NewDocument]) -> None:
        """Let the time to live of items that were read begin again."""
        now = datetime.now(UTC)
        live = [(document, _Record.of(document)) for document in kept]
        renewed = [
            record.renewed(now).document(document.text)
            for document, record in live
            if record.ttl is not None and not record.is_expired(now)
        ]
        if renewed:
            self._memory.add(renewed, collection=self._collection)

    def _delete(self, names: Sequence[str]) -> int:
        if not names:
            return 0
        return self._memory.delete(names, collection=self._collection, missing_ok=True)

    def _has_collection(self) -> bool:
        return self._collection in self._memory.collections()

    def _names(self, prefix: str) -> Iterator[str]:
        if not self._has_collection():
            return
        after = ""
        while page := self._memory.documents(
            collection=self._collection, prefix=_PREFIX + prefix, after=after, limit=_PAGE
        ):
            yield from (record.path.removeprefix(_PREFIX) for record in page)
            after = page[-1].path

    def _stored(self, prefix: str) -> Sequence[NewDocument]:
        return self._memory.get_by_ids(list(self._names(prefix)), collection=self._collection)


@frozen
class _Record:
    """An item, as the payload of a document keeps it. ``ttl`` is in minutes."""

    namespace: tuple[str, ...]
    key: str
    value: Mapping[str, Any]
    created_at: datetime
    updated_at: datetime
    ttl: float | None
    expires_at: datetime | None

    @classmethod
    def of(cls, kept: NewDocument) -> _Record:
        namespace, key = _split(kept.id)
        payload = kept.payload
        expires = payload.get("expires_at")
        return cls(
            namespace,
            key,
            payload["value"],
            datetime.fromisoformat(payload["created_at"]),
            datetime.fromisoformat(payload["updated_at"]),
            payload.get("ttl"),
            None if expires is None else datetime.fromisoformat(expires),
        )

    def document(self, text: str) -> NewDocument:
        payload: dict[str, Any] = {
            "value": dict(self.value),
            "created_at": self.created_at.isoformat(),
            "updated_at": self.updated_at.isoformat(),
        }
        if self.expires_at is not None:
            payload.update(ttl=self.ttl, expires_at=self.expires_at.isoformat())
        name = _name(self.namespace, self.key)
        metadata, moment = metadata_part(self.value), self.updated_at
        return NewDocument(name, text, metadata, created_at=moment, payload=payload, trust="agent")

    def renewed(self, now: datetime) -> _Record:
        return _Record(
            self.namespace, self.key, self.value, self.created_at, self.updated_at, self.ttl, _expiry(now, self.ttl)
        )

    def is_expired(self, now: datetime) -> bool:
        return self.expires_at is not None and self.expires_at <= now

    def item(self) -> Item:
        return Item(
            value=dict(self.value),
            key=self.key,
            namespace=self.namespace,
            created_at=self.created_at,
            updated_at=self.updated_at,
        )

    def found(self, score: float | None, *, shown: bool) -> SearchItem:
        """Return the item as a search returns it. ``shown``: an answer to a question, which a model reads."""
        value = visible_json(self.value) if shown else dict(self.value)
        return SearchItem(self.namespace, self.key, value, self.created_at, self.updated_at, score)


def _expiry(now: datetime, minutes: float | None) -> datetime | None:
    if minutes is None:
        return None
    try:
        return now + timedelta(minutes=minutes)
    except OverflowError:  # after the year 9999
        return datetime.max.replace(tzinfo=UTC)


def _name(namespace: Sequence[str], key: str) -> str:
    return _prefix(namespace) + _quoted(key)


def _prefix(namespace: Sequence[str]) -> str:
    return "".join(f"{_quoted(label)}/" for label in namespace)


def _quoted(label: str) -> str:
    """Return a label of a namespace as a part of a document's id."""
    return "".join(
        _ESCAPED.get(character, character)
        if character.isprintable()
        else "".join(f"%{byte:02X}" for byte in character.encode("utf-8", "surrogatepass"))
        for character in label
    )


def _split(name: str) -> tuple[tuple[str, ...], str]:
    from urllib.parse import unquote

    *namespace, key = (unquote(part, errors="surrogatepass") for part in name.split("/"))
    return tuple(namespace), key


def _matches(namespace: Sequence[str], condition: MatchCondition) -> bool:
    path = condition.path
    if len(path) > len(namespace):
        return False
    part = namespace[: len(path)] if condition.match_type == "prefix" else namespace[len(namespace) - len(path) :]
    return all(wanted in {"*", label} for wanted, label in zip(path, part, strict=True))


def _lines(value: Any, key: str = "") -> Iterator[str]:
    """Yield a line ``key: value`` for each scalar of a JSON value."""
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield from _lines(item, str(name))
    elif isinstance(value, list):
        for item in value:
            yield from _lines(item, key)
    elif value is not None:
        yield f"{key}: {value}" if key else str(value)
