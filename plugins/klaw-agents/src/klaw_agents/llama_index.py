"""LlamaIndex: a retriever over a memory, and a block of an agent's memory."""

from __future__ import annotations

from typing import Any

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.memory import BaseMemoryBlock
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from pydantic import Field

from klaw_agents.threads import in_thread
from klaw_agents.turns import place_of, remember
from klaw_core import Filters, Memory, SearchResult
from klaw_core.cli.kit import visible
from klaw_journals import Chat

_CHANNEL = "llama-index"
_NO_SESSION = "none"


class KlawRetriever(BaseRetriever):
    """The chunks of a memory that answer a question, best first; the score of a node is its relevance, from 0 to 1.

        RetrieverQueryEngine.from_args(KlawRetriever(memory), llm=llm)

    ``filters``, ``collection`` and ``min_relevance`` restrict searches. Raise klaw_core.QueryError for an empty query.
    The caller closes ``memory``.
    """

    def __init__(
        self,
        memory: Memory,
        *,
        similarity_top_k: int = 5,
        collection: str | None = None,
        filters: Filters = Filters(),  # noqa: B008  # frozen
        min_relevance: float | None = None,
    ) -> None:
        self._memory = memory
        self._limit = similarity_top_k
        self._options: dict[str, Any] = {"collection": collection, "filters": filters, "min_relevance": min_relevance}
        super().__init__()

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [_node(result) for result in self._memory.search(query_bundle.query_str, self._limit, **self._options)]

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await in_thread(self._retrieve, query_bundle)


class KlawMemoryBlock(BaseMemoryBlock[str]):
    """A block of ``Memory``: what a Klaw memory says about the last message, and where older messages go.

        memory_of_agent = llama_index.core.memory.Memory.from_defaults(
            session_id="family", memory_blocks=[KlawMemoryBlock(memory=memory)]
        )

    A message that leaves the short-term memory is appended to the journal of its session, and every later session
    finds it. ``budget`` is the size of the block in tokens. The caller closes ``memory``.
    """

    name: str = "klaw"
    memory: Memory = Field(exclude=True)
    budget: int = Field(default=1000, ge=1)
    sender_id: str = ""

    async def _aget(self, messages: list[ChatMessage] | None = None, **block_kwargs: Any) -> str:  # noqa: ARG002
        asked = next((each.content for each in reversed(messages or []) if each.role.value == "user"), None)
        return str(await in_thread(self.memory.context, asked or "", budget=self.budget))

    async def _aput(self, messages: list[ChatMessage]) -> None:
        sessions: dict[str, list[tuple[str, str]]] = {}
        for each in messages:
            session = str(each.additional_kwargs.get("session_id") or _NO_SESSION)
            sessions.setdefault(session, []).append((each.role.value, each.content or ""))
        for session, said in sessions.items():
            await in_thread(remember, self.memory, Chat(_CHANNEL, session), said, sender_id=self.sender_id)


def _node(result: SearchResult) -> NodeWithScore:
    metadata = place_of(result)  # a model reads the text and its path only
    hidden = [name for name in metadata if name != "path"]
    node = TextNode(
        id_=result.chunk_id,
        text=visible(result.content),
        metadata=metadata,
        excluded_llm_metadata_keys=hidden,
        excluded_embed_metadata_keys=hidden,
    )
    return NodeWithScore(node=node, score=result.relevance)
