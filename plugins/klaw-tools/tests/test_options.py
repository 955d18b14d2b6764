"""What a model gets if its call does not say it, for the owner and for an agent."""

import pytest

from klaw_core import Agents, ConfigError, Memory, load_config

NOTES = [f"the harbour is deep, note {number}" for number in range(12)]


def config(tmp_path, **tables):
    return load_config(data_dir=tmp_path / "data", overrides=tables, environment={"KLAW_EMBEDDER": "none"})


def found(memory, **arguments):
    return memory.call_tool("memory_search", {"query": "harbour", "per_document": 50, **arguments})["results"]


def filled(memory):
    for text in NOTES:
        memory.save(text)
    return memory


def test_the_defaults_of_a_search(tmp_path):
    with Memory.open(config(tmp_path, extensions={"tools": {"max_results": 4}})) as memory:
        filled(memory)
        assert len(found(memory)) == 4
        assert len(found(memory, limit=6)) == 6
        (tool,) = [tool for tool in memory.tools() if tool["name"] == "memory_search"]
        assert "4 by default" in tool["input_schema"]["properties"]["limit"]["description"]


def test_the_least_relevance(tmp_path):
    with Memory.open(config(tmp_path, extensions={"tools": {"min_relevance": 1.0}})) as memory:
        filled(memory)
        assert memory.call_tool("memory_search", {"query": "harbour of the zebra in May"})["results"] == []
        assert memory.call_tool("memory_search", {"query": "harbour of the zebra in May", "min_relevance": 0})[
            "results"
        ]


def test_the_budget_of_a_context(tmp_path):
    with Memory.open(config(tmp_path, extensions={"tools": {"context_tokens": 60}})) as memory:
        filled(memory)
        assert memory.call_tool("memory_context", {"message": "harbour"})["tokens"] <= 60
        assert memory.call_tool("memory_context", {"message": "harbour", "budget": 500})["tokens"] > 60


def test_an_agent_inherits_them_and_can_have_its_own(tmp_path):
    tables = {
        "extensions": {"tools": {"max_results": 4}},
        "agents": {"ann": {"extensions": {"tools": {"max_results": 2}}}},
    }
    with Agents(config(tmp_path, **tables)) as agents:
        assert len(found(filled(agents.memory("bob")))) == 4
        assert len(found(filled(agents.memory("ann")))) == 2


@pytest.mark.parametrize(
    "table", [{"max_results": 0}, {"max_results": 51}, {"min_relevance": 1.1}, {"context_tokens": 1}, {"limit": 3}]
)
def test_other_values_are_refused(tmp_path, table):
    with pytest.raises(ConfigError, match=r"extensions\.tools"):
        Memory.open(config(tmp_path, extensions={"tools": table}))
