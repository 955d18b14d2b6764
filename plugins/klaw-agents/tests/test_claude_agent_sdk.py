"""The Claude Agent SDK with the Claude Code that it brings; a server of the test stands for the model."""

import asyncio
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from claude_agent_sdk import AssistantMessage, TextBlock, ToolResultBlock, UserMessage, query

from klaw_agents.claude_agent_sdk import klaw_options, klaw_tools

_MESSAGE = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "model-of-the-test",
    "content": [],
    "stop_reason": None,
    "stop_sequence": None,
    "usage": {"input_tokens": 1, "output_tokens": 1},
}


def events(call):
    """Yield the events of an answer of the API that calls a tool, or that says something if it is no call."""
    if call is None:
        block, delta, reason = {"type": "text", "text": ""}, {"type": "text_delta", "text": "Noted."}, "end_turn"
    else:
        name, arguments = call
        block = {"type": "tool_use", "id": "toolu_1", "name": f"mcp__klaw__{name}", "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(arguments)}
        reason = "tool_use"
    yield {"type": "message_start", "message": _MESSAGE}
    yield {"type": "content_block_start", "index": 0, "content_block": block}
    yield {"type": "content_block_delta", "index": 0, "delta": delta}
    yield {"type": "content_block_stop", "index": 0}
    yield {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 1}}
    yield {"type": "message_stop"}


class Server(ThreadingHTTPServer):
    """Answers as Anthropic's API: what the model wants next (``calls``), and what it was asked."""

    def __init__(self, *given):
        super().__init__(*given)
        self.calls, self.asked = [], []


class Api(BaseHTTPRequestHandler):
    def log_message(self, *_arguments):
        pass

    def do_POST(self):
        self.server.asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        for event in events(self.server.calls.pop(0) if self.server.calls else None):
            self.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())


@pytest.fixture
def server(usual_memory, monkeypatch):
    """Start the server, and let Claude Code find it."""
    server = Server(("127.0.0.1", 0), Api)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    environment = {
        "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{server.server_port}",
        "ANTHROPIC_API_KEY": "none",
        "CLAUDE_CONFIG_DIR": f"{usual_memory['HOME']}/claude",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_TELEMETRY": "1",
    }
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def ask(server):
    """Return a function that runs a prompt with options and calls of the model; it returns what was said and asked."""

    async def run(memory, prompt, options):
        chosen = klaw_options(memory, setting_sources=[], **options)
        return [message async for message in query(prompt=prompt, options=chosen)]

    def ask(memory, prompt, *wanted, **options):
        server.calls[:] = wanted
        server.asked.clear()
        said = asyncio.run(run(memory, prompt, options))
        blocks = [
            each for message in said if isinstance(message, AssistantMessage | UserMessage) for each in message.content
        ]
        results = [json.loads(each.content[0]["text"]) for each in blocks if isinstance(each, ToolResultBlock)]
        return results, [each.text for each in blocks if isinstance(each, TextBlock)], list(server.asked)

    return ask


def test_the_example_of_the_readme_remembers(server, ran):
    server.calls.append(("memory_search", {"query": "sister"}))
    assert ran("Claude Agent SDK") == "Noted.\n"
    recalled, answered = (json.dumps(each["messages"]) for each in server.asked)
    assert "My sister Ada keeps bees in Kiel." in recalled
    assert answered.count("My sister Ada keeps bees in Kiel.") == 2  # and again in the answer of the tool


def test_the_prompt_has_what_the_memory_says_about_it(ask, memory):
    memory.save("The kiln fires at 900 degrees.")
    _, said, asked = ask(memory, "At which degrees does the kiln fire?")
    assert said == ["Noted."]
    assert "The kiln fires at 900 degrees." in json.dumps(asked[0]["messages"])


def test_a_text_of_one_run_is_found_in_a_later_one(ask, memory, open_memory):
    (saved,), _, _ = ask(memory, "Remember: Ada keeps bees.", ("memory_save", {"content": "Ada keeps bees."}))
    assert saved["saved"].startswith("saved/")
    (found,), _, _ = ask(open_memory(), "Who keeps bees?", ("memory_search", {"query": "bees"}))
    assert "Ada keeps bees." in json.dumps(found)


def test_the_tools_are_described_as_the_memory_does(memory):
    found = klaw_tools(memory)
    assert {tool.name: (tool.description, tool.input_schema) for tool in found} == {
        name: (tool.description, tool.input_schema) for name, tool in memory.toolbox().items()
    }
    for hint, attribute in (("destructiveHint", "destructive"), ("readOnlyHint", "read_only")):
        hinted = {tool.name for tool in found if tool.annotations.model_dump(by_alias=True)[hint]}
        assert hinted == {name for name, tool in memory.toolbox().items() if getattr(tool, attribute)}


def test_forget_is_offered_only_if_allowed(memory):
    assert "mcp__klaw__memory_forget" not in klaw_options(memory).allowed_tools
    assert "mcp__klaw__memory_forget" in klaw_options(memory, allow=["memory_forget"]).allowed_tools
    assert "memory_forget" in {tool.name for tool in klaw_tools(memory, allow=["memory_forget"])}
