"""Hold Klaw against agents themselves, as npm has them: what Klaw writes for them, they read, and the reverse.

    python tests/conformance/hosts.py NODE_MODULES

NODE_MODULES is a directory where npm has installed the agents. Each gets a home of its own, where ``klaw mcp install``
writes its configuration; its own command then has to list the server. Those that can use a model at a given address get
one that says the same to every question; Klaw then has to read the session that they have stored. Nobody signs in.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from attrs import field, frozen

PLUGIN = Path(__file__).parents[2] / "plugins" / "claude-code-plugin"
QUESTION = "When does the gate open?"
ANSWER = "The gate opens at seven."
_PATIENCE = 300
_COMPATIBLE = {"npm": "@ai-sdk/openai-compatible", "options": {"baseURL": "@MODEL@/v1", "apiKey": "none"}}
_OPENCODE = {"provider": {"said": {**_COMPATIBLE, "models": {"said": {}}}}, "model": "said/said"}


@frozen
class Host:
    """An agent: its name for Klaw, its program, and the words after it that list servers.

    ``files`` are settings below the home, ``ask`` are the commands that end with a session, and ``environment`` are
    variables. ``@MODEL@`` in them is the address of the model.
    """

    name: str
    program: str
    listing: Sequence[str] = ("mcp", "list")
    ask: Sequence[Sequence[str]] = ()
    files: Mapping[str, Any] = field(factory=dict)
    environment: Mapping[str, str] = field(factory=dict)


HOSTS = (
    Host("claude-code", "claude"),
    Host("codex", "codex"),
    Host(
        "gemini-cli",
        "gemini",
        ask=[["-m", "gemini-2.5-flash", "-p", QUESTION]],
        files={".gemini/settings.json": {"security": {"auth": {"selectedType": "gemini-api-key"}}}},
        environment={
            "GEMINI_API_KEY": "none",
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
            "GOOGLE_GEMINI_BASE_URL": "@MODEL@",
        },
    ),
    Host("opencode", "opencode", ask=[["run", QUESTION]], files={".config/opencode/opencode.json": _OPENCODE}),
    Host(
        "copilot-cli",
        "copilot",
        ask=[["-p", QUESTION]],
        environment={
            "COPILOT_PROVIDER_BASE_URL": "@MODEL@/v1",
            "COPILOT_PROVIDER_API_KEY": "none",
            "COPILOT_MODEL": "said",
            "COPILOT_OFFLINE": "true",
        },
    ),
    Host(
        "cline-cli",
        "cline",
        listing=(),
        ask=[["auth", "-p", "openai", "-k", "none", "-m", "said", "-b", "@MODEL@/v1"], [QUESTION]],
    ),
)
#: Sources of Klaw that have another name than the client of ``klaw mcp install``.
SOURCES = {"cline-cli": "cline"}
_LOAD = 'import {loadMcpSettingsFile} from "@cline/core"; console.log(JSON.stringify(loadMcpSettingsFile()))'


class Model(BaseHTTPRequestHandler):
    """A model with the interfaces of OpenAI and of Gemini, which always says the same."""

    def log_message(self, *_: Any) -> None:
        """Print nothing."""

    def do_GET(self) -> None:
        """List the models."""
        self._send({"object": "list", "data": [{"id": "said", "object": "model"}]})

    def do_POST(self) -> None:
        """Answer a question."""
        body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}")
        if "enerateContent" in self.path:
            part = {"content": {"role": "model", "parts": [{"text": ANSWER}]}, "finishReason": "STOP", "index": 0}
            self._send({"candidates": [part]}, stream="stream" in self.path)
            return
        usage = {"prompt_tokens": 5, "completion_tokens": 5, "total_tokens": 10}
        about = {"id": "1", "created": 1, "model": "said", "usage": usage}
        said = {"role": "assistant", "content": ANSWER}
        if body.get("stream"):
            choice = {"index": 0, "delta": said, "finish_reason": "stop"}
            self._send({**about, "object": "chat.completion.chunk", "choices": [choice]}, stream=True)
        else:
            choice = {"index": 0, "message": said, "finish_reason": "stop"}
            self._send({**about, "object": "chat.completion", "choices": [choice]})

    def _send(self, value: Any, *, stream: bool = False) -> None:
        text = json.dumps(value)
        end = "" if "candidates" in value else "data: [DONE]\n\n"
        body = f"data: {text}\n\n{end}" if stream else text
        self.send_response(200)
        self.send_header("content-type", "text/event-stream" if stream else "application/json")
        self.send_header("content-length", str(len(body.encode())))
        self.end_headers()
        self.wfile.write(body.encode())


@contextmanager
def model() -> Iterator[str]:
    """Serve a model; yield its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


@frozen
class Trial:
    """A host in a home of its own."""

    host: Host
    node_modules: Path
    home: Path
    url: str

    @property
    def environment(self) -> dict[str, str]:
        """The variables of its programs; those of the user's own agents are left out."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "KLAW_"))}
        path = (
            f"{self.node_modules / '.bin'}{os.pathsep}{Path(sys.executable).parent}{os.pathsep}{kept.get('PATH', '')}"
        )
        given = {name: value.replace("@MODEL@", self.url) for name, value in self.host.environment.items()}
        return {
            **kept,
            "HOME": str(self.home),
            "PWD": str(self.home / "project"),
            "PATH": path,
            "KLAW_EMBEDDER": "none",
            **given,
        }

    def run(self, program: str, *words: str) -> str:
        """Return what a program prints."""
        project = self.home / "project"
        project.mkdir(exist_ok=True)
        done = subprocess.run(  # programs that were installed for this
            [program, *(word.replace("@MODEL@", self.url) for word in words)],
            env=self.environment,
            cwd=project,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
            check=False,
        )
        return done.stdout + done.stderr

    def failures(self) -> Iterator[str]:
        """Yield what does not work."""
        for name, value in self.host.files.items():
            file = self.home / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(value).replace("@MODEL@", self.url), "utf-8")
        klaw = str(Path(sys.executable).with_name("klaw"))
        told = self.run(klaw, "mcp", "install", self.host.name, "--yes")
        if "written" not in told:
            yield f"klaw mcp install: {told}"
        program = str(self.node_modules / ".bin" / self.host.program)
        listed = self.run(program, *self.host.listing) if self.host.listing else self._loaded()
        if "klaw" not in listed:
            yield f"it lists no server: {listed}"
        if self.host.ask:
            said = [self.run(program, *words) for words in self.host.ask]
            yield from self._unread(klaw, said)

    def _loaded(self) -> str:
        """Return what the library of Cline reads of its settings; its program has no command that lists them."""
        script = self.node_modules / "load.mjs"
        script.write_text(_LOAD, "utf-8")
        return self.run(str(self.node_modules / ".bin" / "node"), str(script))

    def _unread(self, klaw: str, said: Sequence[str]) -> Iterator[str]:
        source = SOURCES.get(self.host.name, self.host.name)
        self.run(klaw, "config", "set", "memory.sources[0].type", source)
        told = self.run(klaw, "index")
        found = self.run(klaw, "search", "when does the gate open", "--source", source, "--json")
        if QUESTION not in found or ANSWER not in found:
            yield f"no session is found: {told}\n{found}\n{said}"


def main(node_modules: Path) -> int:
    """Try every host; return an exit status."""
    failed = 0
    with model() as url:
        for host in HOSTS:
            with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
                trial = Trial(host, node_modules, Path(home), url)
                version = trial.run(str(node_modules / ".bin" / host.program), "--version").strip().split("\n")[-1]
                failures = list(trial.failures())
                if host.name == "claude-code":
                    told = trial.run(
                        str(node_modules / ".bin" / "claude"), "plugin", "validate", "--strict", str(PLUGIN)
                    )
                    failures += [] if "Validation passed" in told else [told]
            print(host.name, version, *(failures or ["passed"]), sep="\n  ")  # noqa: T201  # a program
            failed += len(failures)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
