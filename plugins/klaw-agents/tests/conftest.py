"""Each file of tests needs its framework: ``nox -s agents`` and ``nox -s agents-large`` bring them.

An example of the README that asks a model runs as it is written. Its framework talks to a server of the test, which
answers as OpenAI's does: the same address that a user sets for a model of their own.
"""

import json
import os
import re
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pytest

# The frameworks report what is run to their makers; a test tells nobody.
os.environ["OPENAI_AGENTS_DISABLE_TRACING"] = "1"
os.environ["PYDANTIC_AI_SHOW_BANNER"] = "0"

README = Path(__file__).parents[1] / "README.md"

_NEEDS = {
    "test_openai.py": "agents",
    "test_google.py": "google.adk",
    "test_strands.py": "strands",
    "test_anthropic.py": "anthropic",
    "test_pydantic_ai.py": "pydantic_ai",
    "test_agno.py": "agno",
    "test_agent_framework.py": "agent_framework",
    "test_llama_index.py": "llama_index.core",
    "test_llm.py": "llm",
    "test_claude_agent_sdk.py": "claude_agent_sdk",
    "test_crewai.py": "crewai",
    "test_hermes.py": "agent.memory_provider",
    "test_open_webui.py": "open_webui",
    "test_dspy.py": "dspy",
}


def _is_there(module: str) -> bool:
    parent = module.partition(".")[0]
    return find_spec(parent) is not None and find_spec(module) is not None


collect_ignore = [file for file, module in _NEEDS.items() if not _is_there(module)]


@pytest.fixture
def open_memory(tmp_path):
    """Return a function that opens the test's memory, words only; all are closed at the end."""
    from klaw_core import Memory, load_config

    opened = []

    def open_memory():
        overrides = {"memory": {"embedding": {"type": "none"}}}
        memory = Memory.open(load_config(data_dir=tmp_path / "data", overrides=overrides))
        opened.append(memory)
        return memory

    yield open_memory
    for memory in opened:
        memory.close()


@pytest.fixture
def memory(open_memory):
    return open_memory()


@pytest.fixture
def bytes_on_disk(memory):
    """Return a function that says whether any file of the memory holds a text."""

    def holds(text):
        files = [path for path in memory.config.data_dir.rglob("*") if path.is_file()]
        return [path.name for path in files if text.encode() in path.read_bytes()]

    return holds


_FENCE = re.compile(
    r"(?P<skip><!-- skip: next[^\n]*-->\s*)?^```(?P<language>\w+)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL
)


class Block(NamedTuple):
    """A block of code. The page itself runs Python that is not skipped."""

    language: str
    code: str
    runs_on_the_page: bool


@pytest.fixture(scope="session")
def sections():
    """Return the blocks of each section of the README, by its title."""
    _, *parts = re.split(r"^## (.*)$", README.read_text("utf-8"), flags=re.MULTILINE)
    return {title: list(_blocks(text)) for title, text in zip(parts[::2], parts[1::2], strict=True)}


def _blocks(text):
    for match in _FENCE.finditer(text):
        yield Block(match["language"], match["code"], match["language"] == "python" and not match["skip"])


@pytest.fixture
def example(sections):
    """Return a function that gives the code of a section of the README that its page does not run."""

    def example(title):
        (found,) = [block.code for block in sections[title] if not block.runs_on_the_page]
        return found

    return example


@pytest.fixture
def ran(usual_memory, example):
    """Return a function that runs the code of :func:`example` in a process of its own, and returns what it prints."""

    def ran(title):
        return run([sys.executable, "-c", example(title)], usual_memory)

    return ran


def run(command, own):
    """Run a command with variables of its own, and return what it prints."""
    done = subprocess.run(command, env=os.environ | own, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def usual_memory(tmp_path, monkeypatch):
    """Make the directory of the test the current one and the home, with a usual memory of words only."""
    (tmp_path / "none.toml").touch()
    own = {
        "HOME": str(tmp_path),
        "KLAW_DATA_DIR": str(tmp_path / "data"),
        "KLAW_CONFIG": str(tmp_path / "none.toml"),
        "KLAW_EMBEDDER": "none",
    }
    for name, value in own.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    return own


@pytest.fixture
def openai_api(monkeypatch):
    """Start a server that answers as OpenAI's, and let every client find it; return it.

    ``wanted`` are its next answers, a text or a call (name and arguments), and then ``says``. ``asked`` are the
    requests.
    """
    server = _Server(("127.0.0.1", 0), _Api)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    server.url = f"http://127.0.0.1:{server.server_port}/v1"
    for name, value in {"OPENAI_BASE_URL": server.url, "OPENAI_API_BASE": server.url, "OPENAI_API_KEY": "none"}.items():
        monkeypatch.setenv(name, value)
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


class _Server(ThreadingHTTPServer):
    def __init__(self, *given):
        super().__init__(*given)
        self.url, self.says = "", "Noted."
        self.wanted, self.asked = [], []


class _Api(BaseHTTPRequestHandler):
    def log_message(self, *_arguments):
        pass

    def do_GET(self):
        self.send_error(404)

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answers = {"/v1/chat/completions": _completion, "/v1/responses": _response}
        if self.path not in answers:
            self.send_error(404)
            return
        self.server.asked.append(body)
        answer = self.server.wanted.pop(0) if self.server.wanted else self.server.says
        whole, events = answers[self.path](answer)
        self.send_response(200)
        if body.get("stream"):
            self.send_header("content-type", "text/event-stream")
            self.end_headers()
            for event in events:
                self.wfile.write(f"data: {json.dumps(event)}\n\n".encode())
            self.wfile.write(b"data: [DONE]\n\n")
        else:
            self.send_header("content-type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps(whole).encode())


def _completion(answer):
    """Return an answer in the form of the chat completions, and the events of its stream."""
    message, reason = {"role": "assistant", "content": answer}, "stop"
    if not isinstance(answer, str):
        function = {"name": answer[0], "arguments": json.dumps(answer[1])}
        call = {"index": 0, "id": "1", "type": "function", "function": function}
        message, reason = {"role": "assistant", "content": None, "tool_calls": [call]}, "tool_calls"
    same = {"id": "1", "created": 1, "model": "m"}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    choice = {"index": 0, "message": message, "finish_reason": reason}
    whole = {**same, "object": "chat.completion", "choices": [choice], "usage": usage}
    parts = ({"delta": message, "finish_reason": None}, {"delta": {}, "finish_reason": reason})
    events = [{**same, "object": "chat.completion.chunk", "choices": [{"index": 0, **part}]} for part in parts]
    return whole, events


def _response(answer):
    """Return an answer in the form of the responses, and the events of its stream."""
    if isinstance(answer, str):
        text = {"type": "output_text", "text": answer, "annotations": []}
        item = {"id": "m", "type": "message", "role": "assistant", "status": "completed", "content": [text]}
    else:
        name, arguments = answer[0], json.dumps(answer[1])
        item = {"id": "f", "type": "function_call", "call_id": "1", "name": name, "arguments": arguments}
        item["status"] = "completed"
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    same = {"id": "r", "object": "response", "created_at": 1, "model": "m", "tools": [], "tool_choice": "auto"}
    begun = {**same, "parallel_tool_calls": False, "status": "in_progress", "output": []}
    whole = {**begun, "status": "completed", "output": [item], "usage": usage | details}
    events = [
        {"type": "response.created", "response": begun},
        {"type": "response.output_item.added", "output_index": 0, "item": item},
    ]
    if isinstance(answer, str):
        place = {"item_id": "m", "output_index": 0, "content_index": 0, "logprobs": []}
        events.append({"type": "response.output_text.delta", "delta": answer, **place})
    events.append({"type": "response.output_item.done", "output_index": 0, "item": item})
    events.append({"type": "response.completed", "response": whole})
    return whole, [{**event, "sequence_number": number} for number, event in enumerate(events)]
