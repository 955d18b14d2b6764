"""The tools of CrewAI, used by an agent of a crew with a model that says what the test says."""

import json
import os
import warnings

import pytest

# Before the import: CrewAI tells its maker what is run.
os.environ["CREWAI_DISABLE_TELEMETRY"] = os.environ["OTEL_SDK_DISABLED"] = "true"
os.environ["CREWAI_DISABLE_VERSION_CHECK"] = os.environ["CREWAI_TESTING"] = "true"

with warnings.catch_warnings():  # its own modules warn of each other
    warnings.simplefilter("ignore")
    from crewai import Agent, Crew, Task
    from crewai.llms.base_llm import BaseLLM

    from klaw_agents.crewai import klaw_tools

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # it uses its own old names


class Scripted(BaseLLM):
    """A model that makes some calls, one after another, and then says what the tools have answered."""

    calls: list = []  # noqa: RUF012  # a field
    offered: list = []  # noqa: RUF012

    def call(self, messages, tools=None, *_arguments, **_options):
        self.offered.append(tools or [])
        if self.calls:
            name, arguments = self.calls.pop(0)
            return [{"id": "1", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}]
        return "; ".join(str(each["content"]) for each in messages if each["role"] == "tool") or "nothing"

    def supports_function_calling(self):
        return True


def run(memory, *calls, allow=()):
    model = Scripted(model="of-the-test", calls=list(calls))
    agent = Agent(role="librarian", goal="help", backstory="old", tools=klaw_tools(memory, allow=allow), llm=model)
    task = Task(description="Who keeps bees?", expected_output="a name", agent=agent)
    return Crew(agents=[agent], tasks=[task]).kickoff().raw, model


def test_every_tool_is_offered_with_its_arguments(memory):
    _, model = run(memory)
    offered = {each["function"]["name"]: each["function"]["parameters"] for each in model.offered[0]}
    assert {name: set(schema["properties"]) for name, schema in offered.items()} == {
        name: set(tool.properties) for name, tool in memory.toolbox().items()
    }


def test_a_text_of_one_crew_is_found_by_another_in_a_later_process(memory, open_memory):
    said, _ = run(memory, ("memory_save", {"content": "Ada keeps bees."}))
    assert "saved/" in said
    said, _ = run(open_memory(), ("memory_search", {"query": "bees"}))
    assert "Ada keeps bees." in said


@pytest.mark.parametrize("arguments", [{"query": "bees", "limit": "many"}, {"nonsense": 1}, {}])
def test_every_call_of_a_model_is_answered(memory, arguments):
    said, _ = run(memory, ("memory_search", arguments))
    assert "rror" in said


def test_forget_is_offered_only_if_allowed(memory):
    path = memory.save("The code of the safe is xylophone.").path
    assert "memory_forget" not in {tool.name for tool in klaw_tools(memory)}
    run(memory, ("memory_forget", {"path": path}), allow=["memory_forget"])
    assert not memory.search("xylophone")


def test_the_same_question_is_asked_again(memory):
    (search,) = [tool for tool in klaw_tools(memory) if tool.name == "memory_search"]
    assert "bees" not in search.run(query="hobby")
    memory.save("Her hobby: bees.")
    assert "bees" in search.run(query="hobby", limit=None)


def test_the_example_of_the_readme_remembers(openai_api, ran):
    openai_api.wanted.append(("memory_search", {"query": "sister"}))
    assert "Noted." in ran("CrewAI")
    first, last = openai_api.asked
    assert "Where does my sister keep bees?" in str(first["messages"])
    assert "My sister Ada keeps bees in Kiel." in last["messages"][-1]["content"]
