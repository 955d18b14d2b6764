"""Hermes' own agent with Klaw as its memory provider; a server of the test stands for the model."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from agent.memory_manager import MemoryManager

from klaw_agents.hermes import KlawMemoryProvider
from klaw_journals import Chat

_AGENT = """
import sys
from run_agent import AIAgent

options = {"api_key": "none", "model": "m", "quiet_mode": True, "enabled_toolsets": ["memory"]}
agent = AIAgent(base_url=sys.argv[1], session_id=sys.argv[2], **options)
print(agent.run_conversation(sys.argv[3])["final_response"])
agent.shutdown_memory_provider([])
"""


@pytest.fixture
def ask(usual_memory, openai_api, example):
    """Set Hermes up as the README says; return a function that runs it in a process of its own.

    The function returns the requests to the model.
    """

    def run(*command):
        own = {name: value for name, value in os.environ.items() if name != "HERMES_HOME"} | usual_memory
        done = subprocess.run(command, env=own, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    commands = f"PATH={Path(sys.executable).parent}:$PATH\n{example('Hermes Agent')}"
    run("bash", "-e", "-c", commands)

    def ask(session, message, *wanted):
        openai_api.wanted[:] = wanted
        openai_api.asked.clear()
        assert "Noted." in run(sys.executable, "-c", _AGENT, openai_api.url, session, message)
        return list(openai_api.asked)

    return ask


def test_what_was_said_and_saved_in_one_run_is_known_in_the_next(ask, memory):
    ask("first", "My sister Ada lives in Kiel.", ("memory_save", {"content": "The kiln fires at 900 degrees."}))
    requests = ask("second", "In which city does my sister Ada live?", ("memory_search", {"query": "kiln"}))
    (_, asked, *_), (*_, found) = requests[0]["messages"], requests[-1]["messages"]
    assert "My sister Ada lives in Kiel." in asked["content"]
    assert "The kiln fires at 900 degrees." in found["content"]
    assert "# Klaw" in requests[0]["messages"][0]["content"]
    offered = {tool["function"]["name"]: tool["function"] for tool in requests[0]["tools"]}
    assert {name: (offered[name]["description"], offered[name]["parameters"]) for name in memory.toolbox()} == {
        name: (tool.description, tool.input_schema) for name, tool in memory.toolbox().items()
    }


class TestProvider:
    """The provider, called as Hermes' manager of memories calls it."""

    @pytest.fixture
    def managed(self, open_memory):
        manager = MemoryManager()
        manager.add_provider(KlawMemoryProvider(open_memory=open_memory))
        yield manager
        manager.shutdown_all()

    def chats(self, memory):
        return {
            each.name: [line.message.content for line in memory.conversations.read(Chat.parse(each.name))]
            for each in memory.conversations.chats()
        }

    def test_a_turn_goes_to_the_chat_of_its_session(self, managed, memory):
        managed.initialize_all("one", platform="telegram", user_id="7")
        managed.sync_all("My sister Ada keeps bees.", "Noted.", session_id="one")
        managed.on_session_switch("two")
        managed.sync_all("She lives in Kiel.", "Noted.")
        managed.flush_pending()
        assert self.chats(memory) == {
            "hermes_one": ["My sister Ada keeps bees.", "Noted."],
            "hermes_two": ["She lives in Kiel.", "Noted."],
        }
        assert "keeps bees" in managed.prefetch_all("who keeps bees")

    def test_turns_of_scheduled_work_are_not_kept(self, managed, memory):
        managed.initialize_all("one", agent_context="cron")
        managed.sync_all("Summarize the news.", "Done.", session_id="one")
        managed.on_memory_write("add", "memory", "The news are bad.")
        managed.flush_pending()
        assert self.chats(memory) == {}
        assert not memory.search("news")

    def test_what_hermes_adds_to_its_own_memory_is_saved(self, managed, memory):
        managed.initialize_all("one")
        managed.on_memory_write("add", "user", "Ada likes tea.")
        managed.on_memory_write("remove", "user", "Ada likes coffee.")
        (found,) = memory.search("Ada likes")
        assert (found.content, found.trust, found.metadata["tags"]) == ("Ada likes tea.", "agent", ("hermes", "user"))

    @pytest.mark.parametrize("call", [("memory_search", {"nonsense": 1}), ("memory_forget", {"path": "a"}), ("no", {})])
    def test_every_call_of_a_model_is_answered(self, managed, call):
        managed.initialize_all("one")
        assert "error" in json.loads(managed.handle_tool_call(*call))

    def test_without_a_session_it_says_nothing(self, open_memory):
        provider = KlawMemoryProvider(open_memory=open_memory)
        assert (provider.is_available(), provider.prefetch("bees")) == (True, "")
        provider.sync_turn("a", "b")
        provider.shutdown()
