"""Hermes' own agent with Klaw as its memory provider; a server of the test stands for the model."""

import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

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
def ask(tmp_path):
    """Return a function that runs Hermes in a process of its own and returns the requests to the model."""
    calls, asked = [], []

    class Api(BaseHTTPRequestHandler):
        def log_message(self, *_arguments):
            pass

        def do_GET(self):
            self.send_error(404)

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if "messages" not in body:
                self.send_error(404)
                return
            asked.append(body)
            delta, reason = {"role": "assistant", "content": "Noted."}, "stop"
            if calls:
                name, arguments = calls.pop(0)
                function = {"name": name, "arguments": json.dumps(arguments)}
                call = {"index": 0, "id": "1", "type": "function", "function": function}
                delta, reason = {"role": "assistant", "content": None, "tool_calls": [call]}, "tool_calls"
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.end_headers()
            for choice in ({"delta": delta, "finish_reason": None}, {"delta": {}, "finish_reason": reason}):
                chunk = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
                line = json.dumps({**chunk, "choices": [{"index": 0, **choice}]})
                self.wfile.write(f"data: {line}\n\n".encode())
            self.wfile.write(b"data: [DONE]\n\n")

    plugin = tmp_path / "hermes" / "plugins" / "klaw"
    plugin.mkdir(parents=True)
    (plugin / "__init__.py").write_text("from klaw_agents.hermes import register  # a MemoryProvider\n")
    (tmp_path / "hermes" / "config.yaml").write_text("memory:\n  provider: klaw\n")
    (tmp_path / "none.toml").touch()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Api)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    own = {
        "HOME": str(tmp_path),
        "HERMES_HOME": str(tmp_path / "hermes"),
        "KLAW_DATA_DIR": str(tmp_path / "data"),
        "KLAW_CONFIG": str(tmp_path / "none.toml"),
        "KLAW_EMBEDDER": "none",
    }

    def ask(session, message, *wanted):
        calls[:] = wanted
        asked.clear()
        command = [sys.executable, "-c", _AGENT, f"http://127.0.0.1:{server.server_port}/v1", session, message]
        done = subprocess.run(command, env=os.environ | own, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert "Noted." in done.stdout, done.stderr
        return list(asked)

    yield ask
    server.shutdown()
    server.server_close()
    thread.join()


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
