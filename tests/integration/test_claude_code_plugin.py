"""The plugin of Claude Code says what Klaw has: its commands, its hooks, its tools with their arguments."""

import json
import re
from importlib.metadata import version
from pathlib import Path

import click
import pytest

from klaw_core import Memory
from klaw_core.cli.program import cli
from klaw_sessions.install import CLIENTS

PLUGIN = Path(__file__).parents[2] / "plugins" / "claude-code-plugin"
SKILL = (PLUGIN / "skills" / "memory" / "SKILL.md").read_text("utf-8")


def read(name):
    return json.loads((PLUGIN / name).read_text("utf-8"))


def command_of(words):
    """Return the command of Klaw that a command line begins with."""
    found = cli
    for word in words:
        inner = found.get_command(click.Context(found), word) if isinstance(found, click.Group) else None
        if inner is None:
            break
        found = inner
    return found


def test_the_version_and_the_names_are_those_of_klaw():
    manifest, market = read(".claude-plugin/plugin.json"), read(".claude-plugin/marketplace.json")
    assert manifest["version"] == version("klaw")
    (entry,) = market["plugins"]
    assert (entry["name"], entry["description"]) == (manifest["name"], manifest["description"])
    assert (PLUGIN / entry["source"]).resolve() == PLUGIN


def test_the_hooks_are_those_that_klaw_hook_install_writes():
    hooks = read("hooks/hooks.json")["hooks"]
    commands = {event: group["hooks"][0]["command"] for event, (group,) in hooks.items()}
    assert commands.keys() == CLIENTS["claude-code"].events.keys()
    for event, name in CLIENTS["claude-code"].events.items():
        assert commands[event].endswith(f"klaw hook {name} || true")
        assert command_of(["hook", name]).name == name


def test_the_server_is_a_command_of_klaw():
    (server,) = read(".mcp.json")["mcpServers"].values()
    assert (server["command"], command_of(server["args"]).name) == ("klaw", "mcp")


@pytest.fixture(name="schemas")
def _schemas(tmp_path):
    with Memory.open(data_dir=tmp_path / "data") as memory:
        return {tool["name"]: tool["input_schema"] for tool in memory.tools()}


@pytest.mark.needs("klaw-conversations")
def test_every_tool_and_argument_of_the_skill_exists(schemas):
    named = set(re.findall(r"\bmemory_\w+", SKILL)) - {"memory_forget"}  # offered on request only
    assert {"memory_search", "memory_get", "memory_save", "memory_core_update"} <= named <= schemas.keys()
    calls = re.findall(r"`(memory_\w+)\((.*?)\)`", SKILL)
    assert len(calls) >= 5
    for name, given in calls:
        arguments = set(re.findall(r"(\w+)=\"", re.sub(r"=\"[^\"]*\"", '="', given)))
        assert arguments
        assert arguments <= schemas[name]["properties"].keys()
        assert set(schemas[name].get("required", ())) <= arguments


def test_every_command_of_the_skill_and_of_the_readme_exists():
    pages = SKILL + (PLUGIN / "README.md").read_text("utf-8")
    lines = re.findall(r"\bklaw ((?:[a-z]+ ?)+)", " ".join(re.findall(r"`[^`]+`|^    .+$", pages, re.MULTILINE)))
    assert len(lines) >= 6
    for line in lines:
        assert command_of(line.split()) is not cli, line


def test_the_texts_that_a_model_reads_are_below_1200_tokens():
    assert 1000 < len(SKILL) < 1200 * 4
