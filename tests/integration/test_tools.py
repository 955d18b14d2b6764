"""The agent's tools: their schemas, what they answer, and that nothing a model says raises."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from klaw_core import Chat, Filters, Message, NewDocument
from klaw_testing.laws import scaled
from klaw_testing.values import MOMENT
from klaw_tools.tools import all_tools, call, run_tool, tools

NAMES = [
    "memory_search",
    "memory_get",
    "memory_context",
    "memory_status",
    "memory_core_get",
    "memory_core_update",
    "memory_core_delete",
    "memory_save",
]


@pytest.fixture
def memory(home):
    home.write("MEMORY.md", "# Memory\n\nThe harbour master writes down every ship.\n")
    home.write("memory/2026-02-24.md", "# Tuesday\n\nThe lighthouse keeper baked bread.\n")
    with home.open() as opened:
        opened.index(home.notes)
        yield opened


class TestSchemas:
    def test_schemas_are_plain_json_and_short(self, memory):
        described = tools(memory)
        assert [tool["name"] for tool in described] == NAMES
        assert json.loads(json.dumps(described)) == described
        for tool in described:
            assert set(tool) == {"name", "description", "input_schema"}
            assert re.fullmatch("[a-z]+(_[a-z]+)*", tool["name"])
            assert 0 < len(tool["description"]) < 200
            schema = tool["input_schema"]
            assert schema["type"] == "object"
            assert schema["additionalProperties"] is False
            assert set(schema["required"]) <= set(schema["properties"])
            assert all(rules["description"] for rules in schema["properties"].values())

    def test_all_schemas_together_are_short(self, memory):
        described = json.dumps(tools(memory, allow=["memory_forget"]), separators=(",", ":"))
        assert len(described) <= 4_300  # of such JSON a token has 4.3 characters: 1,000 tokens (Claude's tokenizer)

    def test_a_caller_may_change_the_returned_schemas(self, memory):
        tools(memory)[0]["input_schema"]["properties"]["limit"]["maximum"] = 0
        assert tools(memory)[0]["input_schema"]["properties"]["limit"]["maximum"] > 0

    def test_every_tool_and_argument_is_documented(self, memory):
        page = (Path(__file__).parents[2] / "docs" / "reference" / "tools.md").read_text("utf-8")
        listed = tools(memory, allow=["memory_forget"])
        assert len(listed) > 5
        for tool in listed:
            (section,) = re.findall(rf"^## `{tool['name']}`$.*?(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)
            assert [name for name in tool["input_schema"]["properties"] if f"`{name}`" not in section] == []


class TestSearchAndSave:
    def test_results_have_their_origin(self, memory):
        answer = call(memory, "memory_search", {"query": "harbour master", "topK": 1})
        (result,) = answer["results"]
        assert result["source"] == "MEMORY.md"
        assert result["content"].endswith("The harbour master writes down every ship.")
        assert result["created_at"] == "2026-02-24T12:00:00Z"
        assert memory.get(result["path"].partition(":")[0])
        assert json.loads(json.dumps(answer)) == answer

    def test_results_have_their_source_labels(self, memory):
        call(memory, "memory_save", {"content": "The ferry leaves at seven."})
        found = call(memory, "memory_search", {"query": "ferry lighthouse keeper"})["results"]
        assert {"manual", "memory/2026-02-24.md"} <= {result["source"] for result in found}
        only = call(memory, "memory_search", {"query": "ferry lighthouse", "source": "memory/2026-02-24.md"})["results"]
        assert {result["source"] for result in only} == {"memory/2026-02-24.md"}

    @pytest.mark.promise("D1")
    def test_a_saved_text_is_found_at_once_with_its_source(self, memory):
        saved = call(memory, "memory_save", {"content": "Pelicans came.", "source": "conversation"})
        assert memory.get(saved["saved"]).content == "Pelicans came."
        found = call(memory, "memory_search", {"query": "pelicans", "topK": 1.0})["results"]
        assert [result["source"] for result in found] == ["conversation"]

    def test_until_a_day_includes_that_day(self, memory):
        def found(**arguments):
            return len(call(memory, "memory_search", {"query": "harbour lighthouse", **arguments})["results"])

        assert found(since="2026-02-24", until="2026-02-24") == 2
        assert found(until="2026-02-23") == 0
        assert found(since="2026-02-25") == 0
        assert found(since="2026-02-24T06:00:00Z") == 1
        assert found(since="7d", until="yesterday") == 0
        assert "since is not a date" in call(memory, "memory_search", {"query": "x", "since": "soon"})["error"]


class TestAliases:
    """Arguments under other tools' names, in other types: taken where the meaning is plain."""

    @pytest.mark.promise("T4")
    @pytest.mark.parametrize(
        "arguments",
        [
            {"q": "harbour", "k": 1},
            {"query": "harbour", "topK": "1"},
            {"query": "harbour", "max_results": 1.0},
            {"query": "harbour", "maxResults": " 1 "},
            {"query": "harbour", "limit": [1], "source": None},
            '{"query": "harbour", "limit": 1}',
        ],
    )
    def test_aliases_of_arguments_give_the_same_search(self, memory, arguments):
        expected = call(memory, "memory_search", {"query": "harbour", "limit": 1})
        assert len(expected["results"]) == 1
        assert call(memory, "memory_search", arguments) == expected

    @pytest.mark.promise("T4")
    @pytest.mark.parametrize("name", ["memory.search", "memory-search", "memorySearch"])
    def test_aliases_of_tool_names_are_accepted(self, memory, name):
        assert call(memory, name, {"query": "harbour"})["results"]

    def test_a_list_is_no_text(self, memory):
        tools = all_tools(memory, ["memory_forget"]).values()
        texts = [(tool, name) for tool in tools for name, rules in tool.properties.items() if rules["type"] == "string"]
        assert len(texts) > 10
        said = {name: run_tool({tool.name: tool}, tool.name, {name: ["a"]})["error"] for tool, name in texts}
        assert [name for name, error in said.items() if f"{name} must be a string, not ['a']" not in error] == []

    def test_every_alias_maps_to_an_argument_and_hides_none(self, memory):
        known = all_tools(memory, ["memory_forget"])
        assert any(tool.aliases for tool in known.values())
        for tool in known.values():
            assert set(tool.aliases.values()) <= set(tool.properties), tool.name
            assert not set(tool.aliases) & set(tool.properties), tool.name

    def test_the_default_limit_is_ten(self, memory):
        for number in range(12):
            memory.save(f"Ship number {number} is in the harbour.")
        assert len(call(memory, "memory_search", {"query": "ship harbour"})["results"]) == 10

    def test_a_path_of_a_result_restricts_the_search(self, memory):
        (first, *_) = call(memory, "memory_search", {"query": "lighthouse keeper"})["results"]
        for name in ("path", "source"):
            found = call(memory, "memory_search", {"query": "harbour lighthouse", name: first["path"]})["results"]
            assert {result["path"] for result in found} == {first["path"]}
        below = call(memory, "memory_search", {"query": "harbour lighthouse", "path": "notes/memory/"})["results"]
        assert {result["path"] for result in below} == {first["path"]}

    def test_collections_restrict_the_search(self, memory, home):
        manual = home.root / "manual"
        manual.mkdir()
        (manual / "API.md").write_text("# Harbour API\n")
        memory.index(manual, collection="docs")
        docs = call(memory, "memory_search", {"query": "harbour", "collection": "docs"})["results"]
        assert [result["source"] for result in docs] == ["API.md"]
        both = call(memory, "memory_search", {"query": "harbour", "collection": "memory, docs"})["results"]
        assert {"API.md", "MEMORY.md"} <= {result["source"] for result in both}


class TestGet:
    def test_get_accepts_the_path_of_a_result(self, memory):
        (result, *_) = call(memory, "memory_search", {"query": "harbour master"})["results"]
        read = call(memory, "memory_get", {"path": result["path"]})
        assert read["content"] == memory.get("notes/MEMORY.md").content
        assert (read["path"], read["start_line"], read["end_line"]) == ("notes/MEMORY.md", 1, 3)
        assert "next_line" not in read

    @pytest.mark.promise("T8")
    def test_the_text_of_a_deleted_note_has_a_notice(self, memory, home):
        assert "notice" not in call(memory, "memory_get", {"path": "notes/MEMORY.md"})
        (home.notes / "MEMORY.md").unlink()
        assert "when it was last indexed" in call(memory, "memory_get", {"path": "notes/MEMORY.md"})["notice"]

    def test_a_long_note_is_read_in_pages(self, memory, home):
        home.write("long.md", "".join(f"line {number}\n" for number in range(1, 451)))
        first = call(memory, "memory_get", {"path": "notes/long.md"})
        assert (first["start_line"], first["end_line"], first["next_line"]) == (1, 200, 201)
        last = call(memory, "memory_get", {"path": "notes/long.md", "from": "401"})
        assert last["content"].splitlines() == [f"line {number}" for number in range(401, 451)]
        assert "next_line" not in last
        few = call(memory, "memory_get", {"path": "notes/long.md", "start_line": 3, "lines": 2})
        assert few["content"] == "line 3\nline 4\n"
        ranged = call(memory, "memory_get", {"path": "notes/long.md:5-6"})
        assert (ranged["content"], ranged["next_line"]) == ("line 5\nline 6\n", 7)

    @pytest.mark.promise("T7")
    def test_an_answer_is_bounded(self, memory, home):
        home.write("wide.md", f"{'x' * 100_000}\nsecond\n")
        answer = call(memory, "memory_get", {"path": "notes/wide.md"})
        assert (len(answer["content"]), answer["next_line"]) == (40_000, 2)


class TestForget:
    @pytest.mark.promise("T6", "T20")
    def test_forget_is_offered_only_if_the_program_allows_it(self, memory):
        saved = memory.save("The ferry leaves at seven.")
        assert "memory_forget" not in {tool["name"] for tool in memory.tools()}
        assert "memory_forget" in {tool["name"] for tool in memory.tools(allow=["memory_forget"])}
        assert "error" in memory.call_tool("memory_forget", {"path": saved.path})
        found = memory.call_tool("memory_search", {"query": "ferry"})["results"][0]["path"]
        answer = memory.call_tool("memory_forget", {"path": found}, allow=["memory_forget"])
        assert answer == {"forgotten": [saved.path], "chunks": 1}

    @pytest.mark.promise("T15")
    def test_forget_rejects_a_whole_workspace(self, memory):
        answer = call(memory, "memory_forget", {"path": "notes/"}, ["memory_forget"])
        assert "whole workspace" in answer["error"]


class TestContextAndStatus:
    def test_the_context_has_core_memory_and_chunks(self, memory):
        memory.core.update("user", "name", "Ada")
        answer = call(memory, "memory_context", {"message": "harbour master", "budget": "300"})
        assert "Ada" in answer["context"]
        assert "writes down every ship" in answer["context"]
        assert 0 < answer["tokens"] <= 300

    def test_the_status_counts_by_origin(self, memory):
        answer = call(memory, "memory_status", {})
        assert answer["origins"]["notes"] == {"documents": 2, "chunks": 2, "collections": ["memory"]}
        assert answer["problems"] == list(memory.status().problems)


class TestCore:
    @pytest.mark.promise("T17")
    def test_core_values_can_be_updated_read_and_deleted(self, memory):
        assert call(memory, "memory_core_get", {}) == {"user": {}, "agent": {}}
        update = {"section": "user", "key": "name", "value": "Ada"}
        assert call(memory, "memory_core_update", update) == {"updated": "user.name"}
        assert call(memory, "memory_core_get", {}) == {"user": {"name": "Ada"}, "agent": {}}
        assert call(memory, "memory_core_delete", {"section": "user", "key": "name"}) == {"deleted": "user.name"}
        missing = call(memory, "memory_core_delete", {"section": "user", "key": "name"})
        assert missing == {
            "error": "core memory has no key 'name' in section 'user'",
            "hint": "known keys: nothing yet",
        }

    def test_a_broken_core_memory_is_an_error_in_the_answer(self, memory, home):
        (home.root / "data").mkdir(exist_ok=True)
        (home.root / "data" / "core_memory.json").write_text("[]")
        assert "is not core memory" in call(memory, "memory_core_get", {})["error"]


class TestWrongArguments:
    @pytest.mark.promise("T1", "T2", "T3", "T5")
    @pytest.mark.parametrize(
        ("name", "arguments", "error"),
        [
            ("memory_serch", {}, "unknown tool 'memory_serch'"),
            (["memory_search"], {}, "unknown tool ['memory_search']"),
            ("memory_search", [], "memory_search: arguments must be an object, not []"),
            ("memory_search", {}, "memory_search: query is missing"),
            ("memory_search", {"query": 3}, "query must be a string, not 3"),
            ("memory_search", {"query": " "}, "query is empty"),
            ("memory_search", {"query": "x" * 4001}, "query has 4,001 characters; the limit is 4,000"),
            ("memory_search", {"query": "x", "topK": 0}, "limit must be 1 to 50, not 0"),
            ("memory_search", {"query": "x", "limit": True}, "limit must be a whole number, not True"),
            ("memory_search", {"query": "x", "limit": 1.5}, "limit must be a whole number, not 1.5"),
            ("memory_search", {"query": "x", "limit": float("nan")}, "limit must be a whole number, not nan"),
            ("memory_search", {"query": "x", "colour": 3}, "unknown argument 'colour'; known: query, limit"),
            ("memory_search", {"query": "x", "limit": 3, "k": 4}, "unknown argument 'k'"),
            ("memory_search", {"query": "x", "limit": "many"}, "limit must be a whole number, not 'many'"),
            ("memory_search", {"query": "x", "limit": "9" * 30}, "limit must be a whole number"),
            ("memory_search", {"query": "x", "collection": "nope"}, "unknown collection 'nope'"),
            ("memory_search", "{not json", "arguments must be an object"),
            ("memory_get", {"path": "notes/none.md"}, "no indexed document has the path or id 'notes/none.md'"),
            ("memory_get", {"path": "notes/MEMORY.md:9-3"}, "before its first line"),
            ("memory_get", {"path": "notes/MEMORY.md:99"}, "asked for line 99"),
            ("memory_forget", {"path": "notes/MEMORY.md"}, "unknown tool 'memory_forget'"),
            ("memory_core_get", {"section": "user"}, "unknown argument 'section'; known: none"),
            (
                "memory_core_update",
                {"section": "world", "value": None},
                "key is missing; section must be one of user, agent, not 'world'; value must be a string, not None",
            ),
            ("memory_core_update", {"section": "user", "key": "a\nb", "value": ""}, "line"),
            ("memory_save", {"content": "half \ud800"}, "not valid Unicode"),
        ],
    )
    def test_all_problems_are_in_the_answer(self, memory, name, arguments, error):
        answer = call(memory, name, arguments)
        assert error in answer["error"]
        assert set(answer) <= {"error", "hint"}
        json.dumps(answer)

    json_values = st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None), max_size=20),
        lambda children: st.lists(children, max_size=2) | st.dictionaries(st.text(max_size=5), children, max_size=2),
        max_leaves=5,
    )
    keys = st.sampled_from(
        [
            "query",
            "topK",
            "limit",
            "path",
            "collection",
            "lines",
            "message",
            "budget",
            "origin",
            "source",
            "since",
            "until",
            "content",
            "section",
            "key",
            "value",
            "x",
        ]
    )

    @given(
        name=st.sampled_from(NAMES) | st.text(max_size=5),
        arguments=st.dictionaries(keys, json_values, max_size=5) | json_values,
    )
    @settings(deadline=None, max_examples=scaled(150), suppress_health_check=[HealthCheck.function_scoped_fixture])
    def test_no_input_of_a_model_raises(self, memory, name, arguments):
        answer = call(memory, name, arguments)
        assert json.loads(json.dumps(answer)) == answer
        assert isinstance(answer, dict)
        assert isinstance(answer.get("error"), str) or name in NAMES


def test_a_toolbox_marks_read_only_tools_and_runs_like_the_memory(memory):
    toolbox = memory.toolbox(allow=["memory_forget"])
    reading = ["memory_search", "memory_get", "memory_context", "memory_status", "memory_core_get"]
    assert [name for name, tool in toolbox.items() if tool.read_only] == reading
    assert [name for name, tool in toolbox.items() if tool.destructive] == ["memory_forget", "memory_core_delete"]
    few = {"memory_search": toolbox["memory_search"]}
    assert run_tool(few, "memory_search", {"query": "lighthouse"}) == memory.call_tool(
        "memory_search", {"query": "lighthouse"}
    )
    assert run_tool(few, "memory_save", {"content": "no"})["hint"] == "known: memory_search"


@pytest.mark.promise("T9", "T19")
@pytest.mark.parametrize(
    "source",
    [
        *("MEMORY.md", "notes/a.md", "memory\\a", "a.b", " MEMORY.md", ".env", "MEMORY.md\u200b", "~", "C:notes"),
        *("MEMORY\u2024md", "MEMORY\uff0emd", "notes\u2215a", "notes\uff0fa", "a\nmanual", "a\x00b", "\u202emanual"),
    ],
)
def test_a_model_cannot_save_under_the_name_of_a_file(memory, source):
    answer = memory.call_tool("memory_save", {"content": "EVIL harbour", "source": source})
    assert "may be the name of a file" in answer["error"]
    assert answer["hint"].startswith("use manual or conversation")
    contents = [result["content"] for result in memory.call_tool("memory_search", {"query": "harbour"})["results"]]
    assert "EVIL harbour" not in contents


@pytest.mark.promise("T9", "T19")
def test_a_model_cannot_save_under_a_label_of_other_documents(home, memory):
    home.write("LICENSE", "the harbour may be used by anybody")
    memory.index(home.notes, include=["*.md", "LICENSE"])
    memory.add([NewDocument("x", "the harbour of a program", source="reports")])
    memory.add([NewDocument("y", "the harbour of docs", source="manuals")], collection="docs")
    for source in ("LICENSE", "reports", "manuals"):
        answer = memory.call_tool("memory_save", {"content": "EVIL harbour", "source": source})
        assert "is already the source of other documents" in answer["error"]
        assert answer["hint"].startswith("use manual or conversation")
    assert "EVIL harbour" not in [result.content for result in memory.search("harbour", 50)]


@pytest.mark.parametrize("source", ["manual", "conversation", "weekly meeting", "e-mail", "réunion", "बैठक", "会議_2"])
def test_a_model_may_save_under_an_ordinary_label(memory, source):
    memory.conversations.append(Message("user", "the harbour of a chat", MOMENT, meta=Chat("telegram", "1").meta))
    memory.index()
    for text in ("Pelicans came.", "Herons left."):  # the second where the first has the label
        saved = memory.call_tool("memory_save", {"content": text, "source": source})["saved"]
        assert saved in [result.path for result in memory.search(text, filters=Filters(source))]


@pytest.mark.promise("T10")
def test_a_person_may_use_any_label(memory):
    saved = memory.save("Pelicans came.", source="MEMORY.md").path
    found = memory.call_tool("memory_search", {"query": "pelicans", "source": "MEMORY.md"})["results"]
    (one,) = [result for result in found if "Pelicans" in result["content"]]
    assert (one["origin"], one["path"].partition(":")[0]) == ("saved", saved)


@pytest.mark.promise("T11", "T19")
def test_every_result_has_its_origin(home, memory):
    home.write("a.md", "the harbour of the note")
    memory.index(home.notes)
    memory.save("the harbour, saved as if from a note", source="a.md")
    memory.add([NewDocument("x", "the harbour of a program")])
    memory.conversations.append(Message("user", "the harbour of a chat", MOMENT, meta=Chat("telegram", "1").meta))
    memory.index()
    found = {result.origin: result.path for result in memory.search("harbour")}
    assert {origin: path.partition("/")[0] for origin, path in found.items()} == {
        name: name for name in ("notes", "saved", "documents", "conversations")
    }
    results = memory.call_tool("memory_search", {"query": "harbour"})["results"]
    assert {result["origin"] for result in results} == set(found)
    assert {result["origin"] for result in results if result["source"] == "a.md"} == {"notes", "saved"}
