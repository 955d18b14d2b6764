"""The context provider and the tools of Microsoft's Agent Framework, run by its agent and a model of the test."""

import asyncio
import json

import pytest
from agent_framework import Agent, BaseChatClient, ChatResponse, Content, FunctionInvocationLayer, Message

from klaw_agents.agent_framework import KlawContextProvider, klaw_tools


class Scripted(FunctionInvocationLayer, BaseChatClient):
    """A model that makes some calls, one after another, and then says what the tools have answered."""

    def __init__(self, *calls):
        super().__init__()
        self.calls = list(calls)
        self.asked = []

    async def _inner_get_response(self, *, messages, stream, options, **_options):
        assert not stream
        self.asked.append((list(messages), options))
        if self.calls:
            name, arguments = self.calls.pop(0)
            call = Content.from_function_call(call_id="1", name=name, arguments=json.dumps(arguments))
            return ChatResponse(messages=[Message("assistant", [call])])
        results = [str(each.result) for m in messages for each in m.contents if each.type == "function_result"]
        return ChatResponse(messages=[Message("assistant", ["; ".join(results) or "Noted."])])


def run(client, text, session_id, *, tools=(), providers=()):
    agent = Agent(client, tools=list(tools), context_providers=list(providers))
    return asyncio.run(agent.run(text, session=agent.create_session(session_id=session_id))).text


def told(client):
    """Return the instructions that the model was given at last."""
    messages, options = client.asked[-1]
    system = [message.text for message in messages if message.role == "system"]
    return "\n".join([*system, str(options.get("instructions") or "")])


def test_what_was_said_in_one_session_is_known_in_another_of_a_later_process(memory, open_memory):
    run(Scripted(), "My sister Ada keeps bees in Kiel.", "first", providers=[KlawContextProvider(memory)])
    client = Scripted()
    run(client, "Where does my sister keep bees?", "second", providers=[KlawContextProvider(open_memory())])
    assert "keeps bees in Kiel" in told(client)


def test_both_sides_are_kept_in_the_journal_of_the_session(memory):
    run(Scripted(), "My sister Ada keeps bees.", "a/b", providers=[KlawContextProvider(memory, sender_id="bo")])
    (chat,) = memory.conversations.chats()
    kept = [line.message for line in memory.conversations.read(chat)]
    assert [(message.role, message.content) for message in kept] == [
        ("user", "My sister Ada keeps bees."),
        ("assistant", "Noted."),
    ]
    assert kept[0].meta == {"channel": "agent-framework", "chat_id": "a/b", "sender_id": "bo"}


def test_nothing_is_kept_if_the_program_says_so(memory):
    run(Scripted(), "My sister Ada keeps bees.", "one", providers=[KlawContextProvider(memory, remember=False)])
    assert not list(memory.conversations.chats())


def test_the_tools_are_offered_unchanged(memory):
    offered = {tool.name: (tool.description, tool.parameters()) for tool in klaw_tools(memory)}
    assert offered == {name: (tool.description, tool.input_schema) for name, tool in memory.toolbox().items()}


def test_a_text_of_one_agent_is_found_by_another_in_a_later_process(memory, open_memory):
    save = Scripted(("memory_save", {"content": "Ada keeps bees."}))
    assert "saved/" in run(save, "Remember: Ada keeps bees.", "one", tools=klaw_tools(memory))
    search = Scripted(("memory_search", {"query": "bees"}))
    assert "Ada keeps bees." in run(search, "Who keeps bees?", "two", tools=klaw_tools(open_memory()))


@pytest.mark.parametrize("arguments", [{"query": "bees", "limit": "many"}, {"query": "bees", "nonsense": 1}])
def test_wrong_calls_of_a_model_are_answered(memory, arguments):
    assert "rror" in run(Scripted(("memory_search", arguments)), "?", "one", tools=klaw_tools(memory))


def test_forget_is_offered_only_if_allowed(memory):
    path = memory.save("The code of the safe is xylophone.").path
    assert "memory_forget" not in {tool.name for tool in klaw_tools(memory)}
    run(Scripted(("memory_forget", {"path": path})), "?", "one", tools=klaw_tools(memory, allow=["memory_forget"]))
    assert not memory.search("xylophone")
