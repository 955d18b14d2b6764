"""The toolset of Pydantic AI, with its test models."""

import asyncio

import pytest
from pydantic_ai import Agent, ModelResponse, TextPart, ToolCallPart, UnexpectedModelBehavior, models
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.models.test import TestModel

from klaw_agents.pydantic_ai import KlawToolset

models.ALLOW_MODEL_REQUESTS = False


def run(agent, text):
    return asyncio.run(agent.run(text))


@pytest.fixture
def toolset(memory):
    return KlawToolset(memory)


def calling(*calls):
    """Return a model that makes these calls, one after another, and then says the answers."""
    left = list(calls)

    def respond(messages, _info):
        if left:
            name, arguments = left.pop(0)
            return ModelResponse(parts=[ToolCallPart(name, arguments)])
        answers = [part.content for part in messages[-1].parts if part.part_kind == "tool-return"]
        return ModelResponse(parts=[TextPart(repr(answers))])

    return FunctionModel(respond)


def test_the_tools_are_offered_unchanged(memory, toolset):
    model = TestModel(call_tools=[])
    run(Agent(model, toolsets=[toolset]), "Hello")
    offered = model.last_model_request_parameters.function_tools
    assert {tool.name: (tool.description, tool.parameters_json_schema) for tool in offered} == {
        name: (tool.description, tool.input_schema) for name, tool in memory.toolbox().items()
    }
    assert {tool.name for tool in offered if tool.metadata["destructive"]} == {
        name for name, tool in memory.toolbox().items() if tool.destructive
    }


def test_arguments_that_pydantic_ai_generates_from_the_schemas_are_accepted(memory, toolset):
    memory.save("a a a")
    tools = [name for name, tool in memory.toolbox().items() if tool.read_only]
    result = run(Agent(TestModel(call_tools=tools), toolsets=[toolset]), "Hello")
    returned = {p.tool_name: p.content for m in result.all_messages() for p in m.parts if p.part_kind == "tool-return"}
    assert set(returned) == set(tools)
    assert "results" in returned["memory_search"]


def test_a_text_of_one_agent_is_found_by_another_in_a_later_process(memory, open_memory):
    saving = Agent(calling(("memory_save", {"text": "Ada keeps bees."})), toolsets=[KlawToolset(memory)])
    run(saving, "Remember: Ada keeps bees.")
    asking = Agent(calling(("memory_search", {"query": "bees"})), toolsets=[KlawToolset(open_memory())])
    assert "Ada keeps bees." in run(asking, "Who keeps bees?").output


@pytest.mark.parametrize("arguments", ["", "null", "[]", "3", '{"query": 3}', {"nonsense": 1}, {}])
def test_every_call_of_a_model_is_answered(toolset, arguments):
    agent = Agent(calling(("memory_search", arguments)), toolsets=[toolset])
    assert "error" in run(agent, "Who keeps bees?").output


def test_forget_is_offered_only_if_allowed(memory):
    path = memory.save("The code of the safe is xylophone.").path
    call = ("memory_forget", {"path": path})
    with pytest.raises(UnexpectedModelBehavior, match="memory_forget"):
        run(Agent(calling(call, call, call), toolsets=[KlawToolset(memory)]), "Forget it")
    assert memory.search("xylophone")
    run(Agent(calling(call), toolsets=[KlawToolset(memory, allow=["memory_forget"])]), "Forget it")
    assert not memory.search("xylophone")


def test_toolsets_of_two_memories_can_be_combined(memory):
    agent = Agent(
        calling(("notes_memory_search", {"query": "bees"})),
        toolsets=[KlawToolset(memory), KlawToolset(memory, id="notes").prefixed("notes")],
    )
    assert "results" in run(agent, "Who keeps bees?").output
