"""The retriever and the memory block of LlamaIndex, in its own query engine and memory."""

import asyncio

import pytest
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.llms import MockLLM
from llama_index.core.memory import Memory as AgentMemory
from llama_index.core.query_engine import RetrieverQueryEngine

from klaw_agents.llama_index import KlawMemoryBlock, KlawRetriever
from klaw_core import Filters


def words(text):
    return text.split()


def agent_memory(memory, session, **options):
    """Return LlamaIndex's memory of a session, which keeps few messages itself."""
    limits = {"token_limit": 40, "chat_history_token_ratio": 0.5, "token_flush_size": 10}
    blocks = [KlawMemoryBlock(memory=memory, **options)]
    return AgentMemory.from_defaults(session_id=session, memory_blocks=blocks, tokenizer_fn=words, **limits)


def test_a_node_has_the_text_its_place_and_its_relevance(memory):
    memory.save("My sister Ada keeps bees in Kiel.", tags=["family"])
    (found,) = KlawRetriever(memory).retrieve("who keeps bees")
    (result,) = memory.search("who keeps bees")
    assert (found.text, found.score, found.node_id) == (result.content, result.relevance, result.chunk_id)
    assert (found.metadata["path"], found.metadata["start_line"], found.metadata["trust"]) == (result.path, 1, "owner")
    assert found.metadata["tags"] == ["family"]


def test_it_restricts_searches_as_it_is_told(memory):
    for number in range(4):
        memory.save(f"bees of year {number}", source="user" if number else "diary")
    assert len(KlawRetriever(memory, similarity_top_k=2).retrieve("bees")) == 2
    (found,) = KlawRetriever(memory, filters=Filters(source="diary")).retrieve("bees")
    assert found.text == "bees of year 0"
    assert KlawRetriever(memory, min_relevance=1.0).retrieve("bees of a year that nobody knows") == []
    assert len(asyncio.run(KlawRetriever(memory).aretrieve("bees"))) == 4


def test_a_query_engine_puts_the_text_and_its_path_into_the_prompt(memory):
    path = memory.save("My sister Ada keeps bees in Kiel.").path
    answer = RetrieverQueryEngine.from_args(KlawRetriever(memory), llm=MockLLM()).query("Who keeps bees?")
    assert "My sister Ada keeps bees in Kiel." in answer.response  # the model repeats its prompt
    assert f"path: {path}" in answer.response
    assert "chunk_id" not in answer.response
    assert "is_weak" not in answer.response


def test_what_leaves_one_session_is_found_in_another_of_a_later_process(memory, open_memory):
    async def talk():
        first = agent_memory(memory, "one", sender_id="bo")
        await first.aput(ChatMessage("My sister Ada keeps bees in Kiel.", role="user"))
        for number in range(12):
            role = "user" if number % 2 else "assistant"
            await first.aput(ChatMessage(f"That is interesting, tell me more of it {number}.", role=role))
        second = agent_memory(open_memory(), "two")
        await second.aput(ChatMessage("Where does my sister keep bees?", role="user"))
        try:
            return await second.aget()
        finally:
            for each in (first, second):
                await each.sql_store._async_engine.dispose()

    messages = asyncio.run(talk())
    assert "keeps bees in Kiel" in str(messages[0].content)
    (chat,) = memory.conversations.chats()
    kept = [line.message for line in memory.conversations.read(chat)]
    assert kept[0].content == "My sister Ada keeps bees in Kiel."
    assert kept[0].meta == {"channel": "llama-index", "chat_id": "one", "sender_id": "bo"}


def test_a_block_of_an_empty_memory_says_nothing(memory):
    assert asyncio.run(KlawMemoryBlock(memory=memory).aget([])) == ""


@pytest.mark.parametrize("budget", [0, -1])
def test_a_budget_of_nothing_is_refused(memory, budget):
    with pytest.raises(ValueError, match="budget"):
        KlawMemoryBlock(memory=memory, budget=budget)
