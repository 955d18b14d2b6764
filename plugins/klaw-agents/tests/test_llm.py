"""``llm`` finds Klaw by its entry point: fragments and tools, through its command line and its Python interface."""

import json
import os
import subprocess
import sys
from pathlib import Path

import llm
import pytest
from click.testing import CliRunner
from llm import cli as program
from llm.plugins import load_plugins, pm

from klaw_agents import llm as klaw_llm
from klaw_core import Memory


class Echo(llm.Model):
    """A model that makes some calls, and then repeats its prompt and the answers of the tools."""

    model_id = "echo-of-the-test"
    supports_tools = True
    calls = ()

    def execute(self, prompt, stream, response, conversation):  # noqa: ARG002  # their interface
        if self.calls and not prompt.tool_results:
            for number, (name, arguments) in enumerate(self.calls):
                response.add_tool_call(llm.ToolCall(name, arguments, tool_call_id=str(number)))
            yield ""
            return
        yield json.dumps({"prompt": prompt.prompt, "results": [each.output for each in prompt.tool_results]})


class Models:
    @staticmethod
    @llm.hookimpl
    def register_models(register):
        register(Echo())


@pytest.fixture
def klaw(tmp_path, monkeypatch):
    """Return a function that runs ``llm`` with the memory of the test."""
    monkeypatch.setenv("LLM_USER_PATH", str(tmp_path / "llm"))
    monkeypatch.setenv("KLAW_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("KLAW_CONFIG", str(tmp_path / "none.toml"))
    monkeypatch.setenv("KLAW_EMBEDDER", "none")
    (tmp_path / "none.toml").touch()
    load_plugins()
    pm.register(Models, "models of the test")
    yield lambda *words: CliRunner().invoke(program.cli, list(words))
    pm.unregister(name="models of the test")


def test_it_finds_the_plugin_by_its_entry_point(klaw):
    (found,) = [each for each in json.loads(klaw("plugins").stdout) if each["name"] == "klaw-agents"]
    assert found["hooks"] == ["register_fragment_loaders", "register_tools"]
    assert "Klaw(data_dir: str = '')" in klaw("tools", "list").stdout
    assert klaw("fragments", "loaders").stdout.startswith("klaw:\n  Add what your memory")


def test_a_fragment_is_what_the_memory_says_about_a_question(klaw):
    with Memory.open() as memory:
        memory.save("My sister Ada keeps bees in Kiel.")
    result = klaw("-m", Echo.model_id, "-f", "klaw:who keeps bees", "Answer.")
    assert "My sister Ada keeps bees in Kiel." in json.loads(result.stdout)["prompt"]


@pytest.mark.usefixtures("klaw")
def test_a_fragment_may_be_a_document_or_lines_of_one(tmp_path):
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "bees.md").write_text("# Bees\n\nAda keeps them.\n\nIn \u200bKiel.\n", "utf-8")
    with Memory.open() as memory:
        memory.index(notes)
    assert klaw_llm.load("notes/bees.md") == "# Bees\n\nAda keeps them.\n\nIn Kiel.\n"
    assert klaw_llm.load("notes/bees.md:3-3").strip() == "Ada keeps them."


@pytest.mark.usefixtures("usual_memory")
def test_the_examples_of_the_readme_remember(tmp_path, openai_api, example):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "garden.md").write_text("# Garden\n\nIn May, sow the beans.\n")
    with Memory.open() as memory:
        memory.save("My sister Ada keeps bees in Kiel.")
        memory.index(tmp_path / "notes")
    openai_api.wanted += ["Noted.", "Noted.", ("memory_search", {"query": "bees"})]
    commands = f"PATH={Path(sys.executable).parent}:$PATH\n{example('llm')}"
    own = os.environ | {"LLM_USER_PATH": str(tmp_path / "llm")}
    done = subprocess.run(["bash", "-e", "-c", commands], env=own, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["Noted."] * 3, done.stderr
    present, garden, called, bees = (json.dumps(each["input"]) for each in openai_api.asked)
    assert "My sister Ada keeps bees in Kiel." in present
    assert "In May, sow the beans." in garden
    assert "Kiel" not in called
    assert "My sister Ada keeps bees in Kiel." in bees


def test_a_question_to_which_the_memory_says_nothing_is_an_error_that_says_so(klaw):
    result = klaw("-m", Echo.model_id, "-f", "klaw:who keeps bees", "Answer.")
    assert result.exit_code == 1
    assert "the memory says nothing about 'who keeps bees'" in result.output


def test_the_toolbox_saves_in_one_run_and_finds_in_the_next(klaw, monkeypatch):
    monkeypatch.setattr(Echo, "calls", [("memory_save", {"content": "Ada keeps bees."})])
    assert "saved/" in klaw("-m", Echo.model_id, "-T", "Klaw", "Remember it.").stdout
    monkeypatch.setattr(Echo, "calls", [("memory_search", {"query": "bees"}), ("memory_search", {"nonsense": 1})])
    answer = klaw("-m", Echo.model_id, "-T", "Klaw", "Who keeps bees?")
    found, refused = json.loads(answer.stdout)["results"]
    assert "Ada keeps bees." in found
    assert "error" in refused


@pytest.mark.usefixtures("klaw")
def test_the_tools_are_those_of_the_memory(tmp_path):
    toolbox = klaw_llm.Klaw(str(tmp_path / "data"))
    with Memory.open() as memory:
        offered = {name: (tool.description, tool.input_schema) for name, tool in memory.toolbox().items()}
    assert {
        tool.name: (tool.description, tool.input_schema) for tool in [*toolbox.tools(), *toolbox.tools()]
    } == offered
