"""The toolkit of Agno, run by its agent with a model that says what the test says."""

import asyncio
import json
from dataclasses import dataclass, field

import pytest
from agno.agent import Agent
from agno.models.base import Model
from agno.models.response import ModelResponse

from klaw_agents.agno import KlawTools


@dataclass
class Scripted(Model):
    """A model that makes some calls, one after another, and then says what the tools have answered."""

    id: str = "scripted"
    calls: list = field(default_factory=list)
    tools_seen: list = field(default_factory=list)

    def answer(self, messages, tools):
        self.tools_seen.append(tools)
        if self.calls:
            name, arguments = self.calls.pop(0)
            text = arguments if isinstance(arguments, str) else json.dumps(arguments)
            call = {"id": "1", "type": "function", "function": {"name": name, "arguments": text}}
            return ModelResponse(role="assistant", tool_calls=[call])
        said = [message.get_content_string() for message in messages if message.role == "tool"]
        return ModelResponse(role="assistant", content="; ".join(said) or "nothing")

    def invoke(self, messages, tools=None, **_options):
        return self.answer(messages, tools)

    async def ainvoke(self, messages, tools=None, **_options):
        return self.answer(messages, tools)

    def invoke_stream(self, messages, tools=None, **_options):
        yield self.answer(messages, tools)

    async def ainvoke_stream(self, messages, tools=None, **_options):
        yield self.answer(messages, tools)

    def _parse_provider_response(self, response, **_options):
        return response

    def _parse_provider_response_delta(self, response):
        return response


def ask(memory, *calls, allow=()):
    model = Scripted(calls=list(calls))
    agent = Agent(model=model, tools=[KlawTools(memory, allow=allow)], telemetry=False)
    return agent.run("Hello").content, model


def test_the_tools_are_offered_unchanged(memory):
    _, model = ask(memory)
    offered = {each["function"]["name"]: each["function"] for each in model.tools_seen[0]}
    assert {name: (each["description"], each["parameters"]) for name, each in offered.items()} == {
        name: (tool.description, tool.input_schema) for name, tool in memory.toolbox().items()
    }


def test_a_text_of_one_agent_is_found_by_another_in_a_later_process(memory, open_memory):
    said, _ = ask(memory, ("memory_save", {"text": "Ada keeps bees."}))
    assert "saved/" in said
    said, _ = ask(open_memory(), ("memory_search", {"query": "bees"}))
    assert "Ada keeps bees." in said


def test_an_agent_that_runs_asynchronously_calls_them_too(memory):
    memory.save("Ada keeps bees.")
    model = Scripted(calls=[("memory_search", {"query": "bees"})])
    agent = Agent(model=model, tools=[KlawTools(memory)], telemetry=False)
    assert "Ada keeps bees." in asyncio.run(agent.arun("Who keeps bees?")).content


@pytest.mark.parametrize("arguments", [{"query": 3, "limit": "many"}, {"nonsense": 1}, {}])
def test_every_call_of_a_model_is_answered(memory, arguments):
    assert "error" in ask(memory, ("memory_search", arguments))[0]


def test_forget_is_offered_only_if_allowed(memory):
    path = memory.save("The code of the safe is xylophone.").path
    ask(memory, ("memory_forget", {"path": path}))
    assert memory.search("xylophone")
    ask(memory, ("memory_forget", {"path": path}), allow=["memory_forget"])
    assert not memory.search("xylophone")
