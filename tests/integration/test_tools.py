"""The agent's tools: their schemas, what they answer, and that nothing a model says raises."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from klaw_core.extensions.tools import call, run_tool, tools

NAMES = ["memory_search", "memory_core_get", "memory_core_update", "memory_core_delete", "memory_save"]


@pytest.fixture
def memory(home):
    home.write("MEMORY.md", "# Memory\n\nThe harbour master writes down every ship.\n")
    home.write("memory/2026-02-24.md", "# Tuesday\n\nThe lighthouse keeper baked bread.\n")
    with home.open() as opened:
        opened.index(home.notes)
        yield opened


class TestSchemas:
    def test_they_are_plain_json_and_short(self, memory):
        described = tools(memory)
        assert [tool["name"] for tool in described] == NAMES
        assert json.loads(json.dumps(described)) == described
        for tool in described:
            assert set(tool) == {"name", "description", "input_schema"}
            assert 0 < len(tool["description"]) < 200
            schema = tool["input_schema"]
            assert schema["type"] == "object"
            assert schema["additionalProperties"] is False
            assert set(schema["required"]) <= set(schema["properties"])
            assert all(rules["description"] for rules in schema["properties"].values())

    def test_a_caller_may_change_what_it_got(self, memory):
        tools(memory)[0]["input_schema"]["properties"]["query"]["maxLength"] = 0
        assert tools(memory)[0]["input_schema"]["properties"]["query"]["maxLength"] > 0

    def test_every_tool_and_argument_is_documented(self, memory):
        page = (Path(__file__).parents[2] / "docs" / "reference" / "tools.md").read_text("utf-8")
        for tool in tools(memory):
            (section,) = re.findall(rf"^## `{tool['name']}`$.*?(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)
            assert all(f"`{name}`" in section for name in tool["input_schema"]["properties"])


class TestSearchAndSave:
    def test_results_say_where_they_are_from(self, memory):
        answer = call(memory, "memory_search", {"query": "harbour master", "topK": 1})
        (result,) = answer["results"]
        assert result["source"] == "MEMORY.md"
        assert result["content"].endswith("The harbour master writes down every ship.")
        assert result["created_at"] == "2026-02-24T12:00:00Z"
        assert memory.get(result["path"].partition(":")[0])
        assert json.loads(json.dumps(answer)) == answer

    def test_the_source_labels(self, memory):
        call(memory, "memory_save", {"content": "The ferry leaves at seven."})
        found = call(memory, "memory_search", {"query": "ferry lighthouse keeper"})["results"]
        assert {"manual", "memory/2026-02-24.md"} <= {result["source"] for result in found}
        only = call(memory, "memory_search", {"query": "ferry lighthouse", "source": "memory/2026-02-24.md"})["results"]
        assert {result["source"] for result in only} == {"memory/2026-02-24.md"}

    def test_what_is_saved_is_found_at_once_and_has_its_source(self, memory):
        saved = call(memory, "memory_save", {"content": "Pelicans came.", "source": "conversation"})
        assert memory.get(saved["saved"]).content == "Pelicans came."
        found = call(memory, "memory_search", {"query": "pelicans", "topK": 1.0})["results"]
        assert [result["source"] for result in found] == ["conversation"]

    def test_days_are_whole(self, memory):
        def found(**arguments):
            return len(call(memory, "memory_search", {"query": "harbour lighthouse", **arguments})["results"])

        assert found(since="2026-02-24", until="2026-02-24") == 2
        assert found(until="2026-02-23") == 0
        assert found(since="2026-02-25") == 0
        assert found(since="2026-02-24T06:00:00Z") == 1
        assert "since is no date" in call(memory, "memory_search", {"query": "x", "since": "yesterday"})["error"]


class TestCore:
    def test_update_get_delete(self, memory):
        assert call(memory, "memory_core_get", {}) == {"user": {}, "agent": {}}
        update = {"section": "user", "key": "name", "value": "Ada"}
        assert call(memory, "memory_core_update", update) == {"updated": "user.name"}
        assert call(memory, "memory_core_get", {}) == {"user": {"name": "Ada"}, "agent": {}}
        assert call(memory, "memory_core_delete", {"section": "user", "key": "name"}) == {"deleted": "user.name"}
        missing = call(memory, "memory_core_delete", {"section": "user", "key": "name"})
        assert missing == {"error": "core memory has no 'name' about the user", "hint": "it knows: nothing yet"}

    def test_a_broken_file_is_an_answer(self, memory, home):
        (home.root / "data").mkdir(exist_ok=True)
        (home.root / "data" / "core_memory.json").write_text("[]")
        assert "is not core memory" in call(memory, "memory_core_get", {})["error"]


class TestWrongArguments:
    @pytest.mark.parametrize(
        ("name", "arguments", "error"),
        [
            ("memory_serch", {}, "there is no tool 'memory_serch'"),
            (["memory_search"], {}, "there is no tool ['memory_search']"),
            ("memory_search", [], "memory_search: arguments must be an object, not []"),
            ("memory_search", {}, "memory_search: query is missing"),
            ("memory_search", {"query": 3}, "query must be a string, not 3"),
            ("memory_search", {"query": " "}, "query is empty"),
            ("memory_search", {"query": "x" * 4001}, "query has 4,001 characters, at most 4,000 are allowed"),
            ("memory_search", {"query": "x", "topK": 0}, "topK must be 1 to 50, not 0"),
            ("memory_search", {"query": "x", "topK": True}, "topK must be a whole number, not True"),
            ("memory_search", {"query": "x", "topK": 1.5}, "topK must be a whole number, not 1.5"),
            ("memory_search", {"query": "x", "topK": float("nan")}, "topK must be a whole number, not nan"),
            ("memory_search", {"query": "x", "limit": 3}, "unknown argument 'limit', known are query, topK"),
            ("memory_core_get", {"section": "user"}, "unknown argument 'section', known are none"),
            (
                "memory_core_update",
                {"section": "world", "value": None},
                "key is missing; section must be one of user, agent, not 'world'; value must be a string, not None",
            ),
            ("memory_core_update", {"section": "user", "key": "a\nb", "value": ""}, "line"),
            ("memory_save", {"content": "half \ud800"}, "not valid Unicode"),
        ],
    )
    def test_every_problem_is_named_as_data(self, memory, name, arguments, error):
        answer = call(memory, name, arguments)
        assert error in answer["error"]
        assert set(answer) <= {"error", "hint"}
        json.dumps(answer)

    json_values = st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None), max_size=20),
        lambda children: st.lists(children, max_size=2) | st.dictionaries(st.text(max_size=5), children, max_size=2),
        max_leaves=5,
    )
    keys = st.sampled_from(["query", "topK", "source", "since", "until", "content", "section", "key", "value", "x"])

    @given(
        name=st.sampled_from(NAMES) | st.text(max_size=5),
        arguments=st.dictionaries(keys, json_values, max_size=5) | json_values,
    )
    @settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
    def test_nothing_that_a_model_says_raises(self, memory, name, arguments):
        answer = call(memory, name, arguments)
        json.dumps(answer).encode()


def test_a_toolbox_says_which_tools_only_read_and_runs_as_the_memory_does(memory):
    toolbox = memory.toolbox()
    assert [name for name, tool in toolbox.items() if tool.read_only] == ["memory_search", "memory_core_get"]
    assert [name for name, tool in toolbox.items() if tool.destructive] == ["memory_core_delete"]
    few = {"memory_search": toolbox["memory_search"]}
    assert run_tool(few, "memory_search", {"query": "lighthouse"}) == memory.call_tool(
        "memory_search", {"query": "lighthouse"}
    )
    assert run_tool(few, "memory_save", {"content": "no"})["hint"] == "known: memory_search"
