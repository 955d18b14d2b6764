"""The memory store of Strands, with its agent, its memory manager and a model of the test's own."""

import asyncio
import json

import pytest
from strands import Agent
from strands.memory import AddMessagesContext, MemoryManager
from strands.models import Model

from klaw_agents.strands import KlawMemoryStore
from klaw_core import Filters
from klaw_journals import Chat

BEES = "My sister Ada keeps bees in Kiel."


def run(coroutine):
    return asyncio.run(coroutine)


def said(text, role="user"):
    return {"role": role, "content": [{"text": text}]}


def texts(entries):
    return [entry.content for entry in entries]


@pytest.fixture
def store(memory):
    return KlawMemoryStore(memory)


def test_an_added_text_is_found_in_a_later_process(store, open_memory):
    run(store.add(BEES, {"topic": "family", "parts": {"a": 1}}))
    (entry,) = run(KlawMemoryStore(open_memory()).search("who keeps bees"))
    assert entry.content == BEES
    assert entry.metadata["topic"] == "family"
    assert entry.metadata["path"].startswith("documents/strands/")
    assert entry.metadata["origin"] == "documents"


def test_a_text_that_was_added_twice_is_found_once(store):
    first = run(store.add(BEES))
    assert run(store.add(BEES, {"topic": "family"})) == first
    assert texts(run(store.search("bees"))) == [BEES]
    run(store.add("Bees sleep in winter."))
    assert len(run(store.search("bees"))) == 2


def test_metadata_cannot_change_the_origin(store):
    run(store.add(BEES, {"path": "notes/elsewhere.md", "score": 99}))
    (entry,) = run(store.search("bees"))
    assert entry.metadata["path"].startswith("documents/strands/")
    assert entry.metadata["score"] < 99


@pytest.mark.parametrize("content", ["", "  \n"])
def test_an_empty_text_is_rejected(store, content):
    with pytest.raises(ValueError, match="empty"):
        run(store.add(content))


def test_invalid_options_are_rejected(memory, store):
    with pytest.raises(ValueError, match="name"):
        KlawMemoryStore(memory, " ")
    with pytest.raises(ValueError, match="at least 1"):
        KlawMemoryStore(memory, max_search_results=0)
    with pytest.raises(ValueError, match="at least 1"):
        run(store.search("bees", {"max_search_results": 0}))
    with pytest.raises(ValueError, match="not writable"):
        run(KlawMemoryStore(memory, writable=False).add(BEES))


@pytest.mark.parametrize("query", ["", "   "])
def test_an_empty_question_finds_nothing(store, query):
    run(store.add(BEES))
    assert run(store.search(query)) == []


def test_it_searches_only_the_allowed_parts_of_the_memory(store, memory):
    memory.save("Bees sleep in winter.", source="book")
    memory.save("Bees dance.", source="film")
    assert set(texts(run(store.search("bees")))) == {"Bees sleep in winter.", "Bees dance."}
    assert texts(run(KlawMemoryStore(memory, filters=Filters(source="film")).search("bees"))) == ["Bees dance."]
    assert run(KlawMemoryStore(memory, collection="other").search("bees")) == []


def test_the_number_of_results_comes_from_the_call_or_the_store(memory):
    store = KlawMemoryStore(memory, max_search_results=2)
    for number in range(4):
        run(store.add(f"bees, hive {number}"))
    assert len(run(store.search("bees"))) == 2
    assert len(run(store.search("bees", {"max_search_results": 3}))) == 3


def test_messages_are_stored_as_a_conversation(store, memory):
    messages = [
        said(BEES),
        said("Noted.", "assistant"),
        {"role": "user", "content": [{"toolResult": {"toolUseId": "t", "content": [{"text": "harbour"}]}}]},
        {"role": "assistant", "content": [{"text": "One."}, {"text": "Two."}]},
    ]
    run(store.add_messages(messages))
    assert [(line.message.role, line.message.content) for line in _lines(memory)] == [
        ("user", BEES),
        ("assistant", "Noted."),
        ("tool", ""),
        ("assistant", "One.\nTwo."),
    ]
    assert any(BEES in text for text in texts(run(store.search("bees"))))
    assert run(store.search("harbour")) == []


def test_a_repeated_batch_is_stored_once(store, memory):
    batch, context = [said("ok"), said("ok")], AddMessagesContext(sequence_numbers=[0, 3])
    run(store.add_messages(batch, context))
    run(store.add_messages(batch, context))
    run(store.add_messages([*batch, said("more")], AddMessagesContext(sequence_numbers=[0, 3, 4])))
    assert [line.message.content for line in _lines(memory)] == ["ok", "ok", "more"]


def test_messages_without_numbers_or_of_a_new_run_are_new(store, memory):
    run(store.add_messages([said("ok")], AddMessagesContext(sequence_numbers=[0])))
    run(store.initialize())
    run(store.add_messages([said("ok")], AddMessagesContext(sequence_numbers=[0])))
    run(store.add_messages([said("ok")]))
    run(store.add_messages([said("ok")], AddMessagesContext()))
    assert len(_lines(memory)) == 4


def test_a_batch_whose_indexing_failed_is_stored_once(store, memory, monkeypatch):
    def fail(*_arguments, **_options):
        raise RuntimeError("the disk is full")

    context = AddMessagesContext(sequence_numbers=[0])
    with monkeypatch.context() as patch:
        patch.setattr(memory, "index", fail)
        with pytest.raises(RuntimeError):
            run(store.add_messages([said(BEES)], context))
    run(store.add_messages([said(BEES)], context))
    assert len(_lines(memory)) == 1
    assert len(run(store.search("bees"))) == 1


def _lines(memory):
    (chat,) = memory.conversations.chats()
    assert chat.name == "strands_klaw"
    return list(memory.conversations.read(Chat.parse(chat.name)))


class Scripted(Model):
    """Says what its function returns for the messages it is given: a text, or a tool's name and arguments."""

    def __init__(self, respond):
        self.respond = respond
        self.seen = []

    def get_config(self):
        return {}

    def update_config(self, **_config):
        pass

    async def structured_output(self, *_arguments, **_options):
        raise NotImplementedError
        yield

    async def stream(self, messages, *_arguments, **_options):
        self.seen.append(json.dumps(messages))
        answer = self.respond(messages)
        yield {"messageStart": {"role": "assistant"}}
        if isinstance(answer, str):
            yield {"contentBlockStart": {"start": {}}}
            yield {"contentBlockDelta": {"delta": {"text": answer}}}
        else:
            name, arguments = answer
            yield {"contentBlockStart": {"start": {"toolUse": {"name": name, "toolUseId": "t1"}}}}
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": json.dumps(arguments)}}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn" if isinstance(answer, str) else "tool_use"}}


def agent_of(memory, respond, **options):
    model = Scripted(respond)
    manager = MemoryManager(stores=[KlawMemoryStore(memory, **options)], add_tool_config=True)
    return Agent(model=model, memory_manager=manager, callback_handler=None), model, manager


def test_an_agent_of_strands_remembers_across_processes(open_memory):
    def remember(messages):
        last = messages[-1]["content"][-1]
        return "Noted." if "toolResult" in last else ("add_memory", {"entries": [BEES]})

    async def first():
        agent, _, _ = agent_of(open_memory(), remember)
        assert str(await agent.invoke_async("Remember that my sister Ada keeps bees in Kiel.")).strip() == "Noted."

    async def second():
        agent, model, _ = agent_of(open_memory(), lambda _messages: "Ada.")
        await agent.invoke_async("Who keeps bees?")
        assert BEES in model.seen[-1]  # injected, without being asked for

    run(first())
    run(second())


def test_the_conversation_is_stored_without_a_model(open_memory):
    async def main():
        memory = open_memory()
        agent, model, manager = agent_of(memory, lambda _messages: "Noted.", extraction=True)
        for turn in range(6):
            await agent.invoke_async(f"{BEES} ({turn})")
        await manager.flush()
        assert len(model.seen) == 6
        said_by = [line.message.role for line in _lines(memory)]
        assert said_by == ["user", "assistant"] * 6

    run(main())
    assert "bees" in open_memory().search("bees")[0].content


def test_a_read_only_store_rejects_extraction(memory):
    with pytest.raises(ValueError, match="not writable"):
        MemoryManager(stores=[KlawMemoryStore(memory, writable=False, extraction=True)])
    manager = MemoryManager(stores=[KlawMemoryStore(memory, writable=False)])
    with pytest.raises(ValueError, match="writable"):
        run(manager.add(BEES))


def test_messages_of_the_user_have_the_sender_that_the_store_names(memory):
    store = KlawMemoryStore(memory, "trip", extraction=True, sender_id="7")
    run(store.add_messages([said("Hi"), said("Yes?", "assistant")]))
    lines = memory.conversations.read(Chat("strands", "trip"))
    assert [line.message.meta.get("sender_id") for line in lines] == ["7", None]
