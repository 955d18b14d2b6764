"""The session of the OpenAI Agents SDK, with the SDK's runner and its scripted model."""

import asyncio
import json
import threading
from datetime import UTC, datetime

import pytest
from agents import Agent, RunConfig, Runner, SessionSettings, SQLiteSession
from agents.memory import Session
from agents.testing import ScriptedModel, assistant_message, function_call
from hypothesis import given, settings
from hypothesis import strategies as st

from klaw_agents.openai import KlawSession, klaw_tools
from klaw_core import Memory, RecordError, load_config
from klaw_journals import Chat, Message

USER = {"role": "user", "content": "My sister Ada keeps bees in Kiel."}
ASSISTANT = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": "Noted: bees, in Kiel.", "annotations": []}],
}
CALL = {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": '{"city": "Kiel"}', "id": "fc_1"}
OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": "rain over the harbour"}
REASONING = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Ada, then bees."}]}
ITEMS = [USER, REASONING, CALL, OUTPUT, ASSISTANT]


def run(coroutine):
    return asyncio.run(coroutine)


@pytest.fixture
def session(memory):
    return KlawSession("s1", memory)


def test_it_implements_the_session_of_the_sdk(session):
    assert isinstance(session, Session)


def test_items_are_read_back_unchanged_in_a_later_process(session, open_memory):
    run(session.add_items(ITEMS))
    assert run(session.get_items()) == ITEMS
    again = KlawSession("s1", open_memory())
    assert run(again.get_items()) == ITEMS
    assert run(KlawSession("s2", open_memory()).get_items()) == []


@pytest.mark.parametrize("limit", [None, -1, 0, 1, 2, 5, 99])
def test_a_limit_works_as_in_the_sdks_session(session, limit):
    own = SQLiteSession("s1")
    for each in (session, own):
        run(each.add_items(ITEMS))
    assert run(session.get_items(limit)) == run(own.get_items(limit))
    own.close()


def test_the_limit_of_the_settings_is_the_default(memory):
    session = KlawSession("s1", memory, session_settings=SessionSettings(limit=2))
    run(session.add_items(ITEMS))
    assert run(session.get_items()) == ITEMS[-2:]
    assert run(session.get_items(3)) == ITEMS[-3:]


def test_equal_items_are_kept_separately(session):
    run(session.add_items([USER, USER]))
    run(session.add_items([USER]))
    assert run(session.get_items()) == [USER] * 3
    assert run(session.pop_item()) == USER
    assert run(session.get_items()) == [USER] * 2


def test_messages_are_found_and_tool_calls_are_not(session, memory):
    run(session.add_items(ITEMS))
    memory.index()
    found = "\n".join(result.content for result in memory.search("who keeps bees"))
    assert "My sister Ada" in found
    assert "bees, in Kiel" in found
    assert not memory.search("harbour")


def test_secrets_are_redacted_in_results(session, memory):
    secret = "sk-ant-" + "a1" * 30
    run(session.add_items([{"role": "user", "content": f"the key for the harbour is {secret}"}]))
    memory.index()
    (found,) = memory.search("harbour")
    assert secret not in found.content
    assert run(session.get_items())[0]["content"].endswith(secret)


def test_a_popped_item_is_not_found_and_leaves_no_bytes(session, memory, bytes_on_disk):
    run(session.add_items([USER, {"role": "user", "content": "The code of the safe is xylophone."}]))
    memory.index()
    assert memory.search("xylophone")
    assert memory.conversations.search("xylophone")
    assert run(session.pop_item())["content"] == "The code of the safe is xylophone."
    assert not memory.search("xylophone")
    assert not memory.conversations.search("xylophone")
    memory.index()
    assert not memory.search("xylophone")
    assert memory.search("bees")
    assert run(session.get_items()) == [USER]
    assert not [finding for finding in memory.doctor().findings if finding.level == "error"]
    memory.close()
    assert bytes_on_disk("xylophone") == []


def test_an_empty_session_has_nothing_to_pop(session):
    assert run(session.pop_item()) is None


def test_no_item_is_popped_twice(session):
    run(session.add_items([{"role": "user", "content": str(number)} for number in range(12)]))
    popped = []

    def take():
        while (item := run(session.pop_item())) is not None:
            popped.append(int(item["content"]))

    threads = [threading.Thread(target=take) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(popped) == list(range(12))


def test_a_cleared_session_is_not_found_and_leaves_no_bytes(session, memory, bytes_on_disk):
    run(session.add_items([{"role": "user", "content": "The code of the safe is xylophone."}]))
    memory.index()
    run(session.clear_session())
    assert run(session.get_items()) == []
    assert not memory.search("xylophone")
    memory.close()
    assert bytes_on_disk("xylophone") == []


def test_an_item_that_is_not_json_is_rejected_with_its_batch(session):
    with pytest.raises(RecordError):
        run(session.add_items([USER, {"role": "user", "content": "x", "odd": object()}]))
    assert run(session.get_items()) == []


def test_messages_of_other_programs_are_read_as_items(session, memory):
    chat = Chat("openai-agents", "s1").meta
    now = datetime.now(UTC)
    memory.conversations.append(Message("user", "Hello", now, meta=chat))
    memory.conversations.append(Message("tool", "noise", now, meta=chat))
    memory.conversations.session_break(Chat("openai-agents", "s1"))
    memory.conversations.append(Message("assistant", "Hi", now, meta=chat))
    assert run(session.get_items()) == [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}]


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
items = st.one_of(
    st.builds(lambda text: {"role": "user", "content": text}, texts),
    st.builds(lambda text: {"role": "assistant", "content": [{"type": "output_text", "text": text}]}, texts),
    st.builds(lambda text: {"type": "function_call_output", "call_id": "c", "output": text}, texts),
    st.builds(lambda text: {"type": "function_call", "call_id": "c", "name": text, "arguments": "{}"}, texts),
    st.just({"type": "compaction", "encrypted_content": "…"}),
)
actions = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.lists(items, max_size=3)),
        st.tuples(st.just("pop"), st.none()),
        st.tuples(st.just("get"), st.integers(-2, 4)),
        st.tuples(st.just("clear"), st.none()),
    ),
    max_size=12,
)


@settings(max_examples=30)
@given(actions)
def test_after_any_calls_it_agrees_with_the_sdks_session(tmp_path_factory, actions):
    overrides = {"memory": {"embedding": {"type": "none"}}}

    async def main(memory):
        ours, own = KlawSession("s", memory), SQLiteSession("s")
        for action, value in actions:
            if action == "add":
                await ours.add_items(value)
                await own.add_items(value)
            elif action == "pop":
                assert await ours.pop_item() == await own.pop_item()
            elif action == "get":
                assert await ours.get_items(value) == await own.get_items(value)
            else:
                await ours.clear_session()
                await own.clear_session()
        assert await ours.get_items() == await own.get_items()
        own.close()

    with Memory.open(load_config(data_dir=tmp_path_factory.mktemp("law"), overrides=overrides)) as memory:
        run(main(memory))


def test_the_runner_gives_the_model_messages_of_an_earlier_process(open_memory):
    model = ScriptedModel([[assistant_message("Noted.")]])
    agent = Agent(name="assistant", model=model)
    run(Runner.run(agent, "My sister Ada keeps bees.", session=KlawSession("s1", open_memory())))
    model.enqueue([assistant_message("Ada.")])
    result = run(Runner.run(agent, "Who keeps bees?", session=KlawSession("s1", open_memory())))
    assert result.final_output == "Ada."
    said = [item.get("content") for item in model.calls[-1].input]
    assert said[0] == "My sister Ada keeps bees."
    assert said[-1] == "Who keeps bees?"
    assert len(said) == 3


def test_a_run_can_limit_the_items_for_the_model(session):
    run(session.add_items([USER, ASSISTANT] * 3))
    model = ScriptedModel([[assistant_message("Yes.")]])
    config = RunConfig(session_settings=SessionSettings(limit=1))
    run(Runner.run(Agent(name="assistant", model=model), "Bees?", session=session, run_config=config))
    assert len(model.calls[-1].input) == 2
    assert len(run(session.get_items())) == 8


def test_an_agent_searches_the_memory_with_its_tools(memory):
    memory.save("Ada keeps bees in Kiel.")
    model = ScriptedModel(
        [[function_call("memory_search", {"query": "bees"}, call_id="c1")], [assistant_message("In Kiel.")]]
    )
    result = run(Runner.run(Agent(name="assistant", model=model, tools=klaw_tools(memory)), "Where are the bees?"))
    assert result.final_output == "In Kiel."
    (output,) = [item for item in model.calls[-1].input if item.get("type") == "function_call_output"]
    assert json.loads(output["output"])["results"][0]["content"] == "Ada keeps bees in Kiel."


@pytest.mark.parametrize("arguments", ["", "null", "[]", "{", '{"query": 3}', '{"nonsense": 1}'])
def test_every_call_of_a_model_is_answered(memory, arguments):
    (search,) = [tool for tool in klaw_tools(memory) if tool.name == "memory_search"]
    assert "error" in json.loads(run(search.on_invoke_tool(None, arguments)))


def test_forget_is_offered_only_if_allowed(memory):
    assert "memory_forget" not in {tool.name for tool in klaw_tools(memory)}
    assert "memory_forget" in {tool.name for tool in klaw_tools(memory, allow=["memory_forget"])}


def test_messages_of_the_user_have_the_sender_that_the_session_names(memory):
    session = KlawSession("trip", memory, sender_id="7")
    run(session.add_items([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes?"}]))
    lines = memory.conversations.read(Chat("openai-agents", "trip"))
    assert [line.message.meta.get("sender_id") for line in lines] == ["7", None]
