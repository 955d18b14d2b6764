"""The retriever and the tools of DSPy, with its own modules and its model for tests."""

import dspy
import pytest
from dspy.utils.dummies import DummyLM

from klaw_agents.dspy import KlawRetriever, klaw_tools
from klaw_core import Filters


def test_the_passages_answer_the_question_and_have_their_place(memory):
    path = memory.save("My sister Ada keeps bees in Kiel.").path
    memory.save("The kiln fires at 900 degrees.")
    found = KlawRetriever(memory)("who keeps bees")
    assert found.passages[0] == "My sister Ada keeps bees in Kiel."
    assert found.paths[0] == path
    assert 0 <= found.relevances[0] <= 1
    assert found.is_weak[0] is False


def test_it_restricts_searches_as_it_is_told(memory):
    for number in range(4):
        memory.save(f"bees of year {number}", source="user" if number else "diary")
    assert len(KlawRetriever(memory, k=2)("bees").passages) == 2
    assert len(KlawRetriever(memory)("bees", k=1).passages) == 1
    assert KlawRetriever(memory, filters=Filters(source="diary"))("bees").passages == ["bees of year 0"]


def test_it_is_the_retriever_of_a_program(memory, open_memory):
    memory.save("My sister Ada keeps bees in Kiel.")
    with dspy.context(rm=KlawRetriever(open_memory())):
        assert dspy.Retrieve(k=1)("who keeps bees").passages == ["My sister Ada keeps bees in Kiel."]


def test_a_program_puts_the_passages_into_its_prompt(memory):
    memory.save("My sister Ada keeps bees in Kiel.")
    model = DummyLM([{"answer": "in Kiel"}])
    with dspy.context(lm=model):
        passages = KlawRetriever(memory)("who keeps bees").passages
        assert dspy.Predict("context, question -> answer")(context=passages, question="Where?").answer == "in Kiel"
    assert "My sister Ada keeps bees in Kiel." in str(model.history[-1]["messages"])


def react(memory, name, arguments):
    """Return what a tool has answered to an agent whose model calls it."""
    steps = [
        {"next_thought": "look", "next_tool_name": name, "next_tool_args": arguments},
        {"next_thought": "done", "next_tool_name": "finish", "next_tool_args": {}},
        {"reasoning": "it says so", "answer": "Ada"},
    ]
    with dspy.context(lm=DummyLM(steps)):
        return dspy.ReAct("question -> answer", tools=klaw_tools(memory))(question="Who?").trajectory["observation_0"]


def test_a_text_of_one_agent_is_found_by_another_in_a_later_process(memory, open_memory):
    assert "saved/" in react(memory, "memory_save", {"content": "Ada keeps bees."})
    assert "Ada keeps bees." in react(open_memory(), "memory_search", {"query": "bees", "limit": 3})


@pytest.mark.parametrize("arguments", [{"query": 3, "limit": "many"}, {"nonsense": 1}, {}])
def test_every_call_of_a_model_is_answered(memory, arguments):
    assert "rror" in react(memory, "memory_search", arguments)


def test_the_tools_are_offered_unchanged(memory):
    offered = {tool.name: (tool.desc, tool.args) for tool in klaw_tools(memory, allow=["memory_forget"])}
    assert offered == {
        name: (tool.description, dict(tool.properties))
        for name, tool in memory.toolbox(allow=["memory_forget"]).items()
    }


#: What a model says in DSPy's form, for each of the modules of the example.
SAID = """
[[ ## reasoning ## ]]
A note says so.

[[ ## answer ## ]]
In Kiel.

[[ ## next_thought ## ]]
Enough is known.

[[ ## next_tool_name ## ]]
finish

[[ ## next_tool_args ## ]]
{}

[[ ## completed ## ]]
"""


def test_the_example_of_the_readme_remembers(openai_api, ran):
    search = {"finish": "memory_search", "{}": '{"query": "sister"}'}
    openai_api.says = SAID
    openai_api.wanted += [SAID, SAID.replace("finish", search["finish"]).replace("{}", search["{}"])]
    assert ran("DSPy").splitlines() == ["In Kiel.", "In Kiel."]
    retrieved, asked, *found = [str(each["messages"]) for each in openai_api.asked]
    assert "My sister Ada keeps bees in Kiel." in retrieved
    assert "My sister Ada keeps bees in Kiel." not in asked
    assert "My sister Ada keeps bees in Kiel." in found[0]
