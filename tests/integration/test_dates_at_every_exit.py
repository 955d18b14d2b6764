"""Every option, operation and tool that takes a date takes the same forms, and says them if it cannot read one."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import click
import pytest
from command_lines import commands, of_core, of_plugins

from klaw_core import Memory

FORMS = ("2024", "2024-07", "2024-07-05", "last week", "3 days ago", "yesterday", "7d", "2024-07-05T10:30Z")
NO_FORMS = ("soon", "5.7.2024", "2024-13", "next week")
SAID = "write 2026-02-24, 2026-02, 2026, "
#: Dates of REST and of tools by their names; other operations take timestamps of a program.
NAMES = {"since", "until", "as_of", "known_at", "valid_from", "created_at", "ts"}


def options() -> list[tuple[str, click.Command, click.Option]]:
    """Return the options that take a date, of all commands."""
    found = [
        (name, command, option)
        for name, command in commands((*of_core(), *of_plugins()))
        for option in command.params
        if isinstance(option, click.Option) and option.metavar == "WHEN"
    ]
    assert len(found) >= 10
    return found


@pytest.mark.parametrize("text", FORMS)
def test_every_option_reads_every_form(text):
    for name, command, option in options():
        assert option.callback is not None, (name, option.name)
        found = option.callback(click.Context(command), option, text)
        assert isinstance(found, datetime), (name, option.name)
        assert found.tzinfo is UTC


@pytest.mark.parametrize("text", NO_FORMS)
def test_every_option_says_what_can_be_written(text):
    for name, command, option in options():
        assert option.callback is not None, (name, option.name)
        with pytest.raises(click.BadParameter, match=rf"'{re.escape(text)}' is not a date; {SAID}"):
            option.callback(click.Context(command), option, text)


def test_every_option_that_is_named_for_a_date_takes_one():
    dates = {"--since", "--until", "--as-of", "--known-at"}
    every = commands((*of_core(), *of_plugins()))
    named = {(name, option.name) for name, command in every for option in command.params if dates & {*option.opts}}
    assert named <= {(name, option.name) for name, _, option in options()}
    assert named


@pytest.fixture
def memory(tmp_path, monkeypatch):
    monkeypatch.setenv("KLAW_EMBEDDER", "none")
    with Memory.open(tmp_path / "data") as memory:
        (tmp_path / "notes").mkdir()
        (tmp_path / "notes" / "kiln.md").write_text("---\ndate: 2024-07-05\n---\nThe kiln fires the glaze.\n", "utf-8")
        memory.index(tmp_path / "notes")
        yield memory


def test_every_operation_reads_every_form(memory):
    events = pytest.importorskip("klaw_serve.events")
    from klaw_serve.operations import OperationError
    from klaw_serve.table import OPERATIONS
    from klaw_serve.tenants import Tenant

    tenant = Tenant("", memory, events.EventHub(None))
    asked = [(item, name) for item in OPERATIONS.values() for name in ("since", "until", "as_of")
             if name in item.properties and item.method == "GET"]  # fmt: skip
    assert len(asked) >= 4
    needed: dict[str, Any] = {"query": "kiln", "chat": "telegram_1", "message": "kiln"}
    for item, name in asked:
        given = {key: value for key, value in needed.items() if key in item.required}
        for text in FORMS:
            item.call(tenant, {**given, name: text})
        for text in NO_FORMS:
            with pytest.raises(OperationError) as refused:
                item.call(tenant, {**given, name: text})
            assert refused.value.hint.startswith(SAID), (item.name, name)


def test_every_tool_reads_every_form(memory):
    tools = {tool["name"]: tool["input_schema"] for tool in memory.tools()}
    asked = [(name, key) for name, schema in tools.items() for key in NAMES & schema["properties"].keys()]
    assert {name for name, _ in asked} == {"memory_search", "memory_facts", "memory_remember"}
    texts = {"query": "kiln", "text": "Ada has a kiln.", "fact": "Ada has a kiln."}
    for name, key in asked:
        given = {each: texts[each] for each in tools[name]["required"]}
        for text in FORMS:
            assert "error" not in memory.call_tool(name, {**given, key: text}), (name, text)
        for text in NO_FORMS:
            answer = memory.call_tool(name, {**given, key: text})
            assert "is not a date" in answer["error"]
            assert answer["hint"].startswith(SAID)


def test_a_month_is_from_its_first_to_its_last_day_at_every_exit(memory):
    found = [memory.call_tool("memory_search", {"query": "", "since": text, "until": text})["results"]
             for text in ("2024", "2024-07", "2024-07-05", "2024-06", "2023")]  # fmt: skip
    assert list(map(len, found)) == [1, 1, 1, 0, 0]
