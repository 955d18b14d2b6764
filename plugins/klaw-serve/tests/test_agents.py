"""An agent's token opens the agent's memory, and through it nothing of the owner's: no data, no key, no place."""

from __future__ import annotations

import itertools
import json
import socket
import threading
from contextlib import contextmanager
from datetime import UTC, datetime
from urllib.parse import quote, urlencode

import pytest
from websockets.sync.client import connect

from klaw_core import Memory, PluginNotFoundError, load_config
from klaw_journals import Chat, Message, NewDocument
from klaw_serve.table import OPERATIONS

#: Words to ask for, one for each place in which the owner has a text.
WALRUS = {
    name: f"walrus{name}" for name in ("note", "source", "transcript", "saved", "document", "message", "core", "fact")
}
PLACE = "walruspath"
KEY = "walruskey"
#: In every text of the owner's.
PHRASE = "kept by the owner"
CHAT = "telegram_1"
_MCP = {
    "Content-Type": "application/json",
    "Accept": "application/json, text/event-stream",
    "MCP-Protocol-Version": "2025-11-25",
}


@contextmanager
def counting():
    """Listen on a port, close every connection, and count them."""
    taken = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def accept():
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                taken.append(connection.recv(65536))
                connection.close()

        threading.Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", taken
        listener.shutdown(socket.SHUT_RDWR)


def configure(home, url):
    """Write the owner's configuration: sources, a language model, a reranker, extensions; and what the sources have."""
    private, transcripts = home.path / PLACE, home.path / "transcripts" / "project"
    private.mkdir()
    transcripts.mkdir(parents=True)
    (private / "secret.md").write_text(f"# Plan\n\nThe {WALRUS['source']}, {PHRASE}.\n")
    said = {"type": "user", "message": {"content": f"the {WALRUS['transcript']}, {PHRASE}"}, "uuid": "1"}
    (transcripts / "a.jsonl").write_text(json.dumps({**said, "timestamp": "2026-02-24T12:00:00Z"}) + "\n")
    text = f"""
[[memory.sources]]
type = "workspace"
name = "private"
path = "{private}"

[[memory.sources]]
type = "claude-code"
path = "{transcripts.parent}"

[memory.language_model]
type = "openai"
url = "{url}/v1"
api_key = "{KEY}"

[[memory.reranking]]
type = "http"
url = "{url}"
api_key = "{KEY}"

[extensions.facts]
extractor = "model"
compressor = "model"

[agents.bob.memory.language_model]
type = "openai"
api_key = "{KEY}"
"""
    (home.path / "config" / "klaw").mkdir(parents=True)
    (home.path / "config" / "klaw" / "config.toml").write_text(text)


def fill(home):
    """Put a word into every place of the owner's memory."""
    with Memory.open(load_config(data_dir=home.data, environment={"KLAW_EMBEDDER": "none"})) as memory:
        (home.path / "notes" / "walrus.md").write_text(f"The {WALRUS['note']}, {PHRASE}.\n")
        memory.index(home.path / "notes")
        memory.save(f"The {WALRUS['saved']}, {PHRASE}.")
        memory.add([NewDocument(WALRUS["document"], f"The {WALRUS['document']}, {PHRASE}.")])
        memory.core.update("user", "animal", f"{WALRUS['core']}, {PHRASE}")
        said = f"The {WALRUS['message']}, {PHRASE}."
        memory.conversations.append(Message("assistant", said, datetime.now(UTC), id="m1", meta=Chat.parse(CHAT).meta))
        try:
            memory.extension("facts").remember(f"The {WALRUS['fact']} is {PHRASE}.")
        except PluginNotFoundError:
            pytest.skip("needs klaw-facts")


@pytest.fixture(scope="module")
def world(tmp_path_factory, new_home):
    home = new_home(tmp_path_factory.mktemp("agents"))
    with counting() as (url, taken):
        configure(home, url)
        fill(home)
        assert home.run("index").returncode == 0
        assert all(PHRASE in home.run("search", "--json", WALRUS[each]).stdout for each in ("source", "transcript"))
        ann = home.run("serve", "token", "--agent", "ann").stdout.strip()
        taken.clear()
        with home.serving() as running:
            yield home, running, ann, taken


def values(name, rules):
    """Return values for an argument: what the owner's memory has, if the schema allows it."""
    if "enum" in rules:
        return rules["enum"]
    kind = rules.get("type")
    if kind == "array":
        return [[each] for each in values(name, rules["items"])]
    if kind in ("integer", "number"):
        return [rules.get("maximum", 50) if name == "limit" else rules.get("minimum", 1)]
    if kind == "boolean":
        return [True, False]
    if kind == "object":
        return [{}]
    paths = [
        "notes/walrus.md",
        "private/secret.md",
        f"documents/{WALRUS['document']}",
        f"../{PLACE}/secret.md",
        "../../serve.token",
        "../../../config/klaw/config.toml",
        f"{CHAT}/m1",
    ]
    return {
        "path": paths,
        "origin": ["private", "claude-code", "notes", "saved", "documents"],
        "collection": ["memory", "facts", "conversations"],
        "chat": [CHAT],
        "chat_id": [CHAT],
        "source": ["secret.md", "manual"],
        "prefix": ["", "private/", "notes/"],
        "after": [""],
        "key": ["animal"],
        "where": ["project=walrus"],
        "since": ["2020-01-01"],
        "until": ["2030-01-01"],
        "ts": ["2026-01-01"],
        "as_of": ["2030-01-01"],
    }.get(name, ["walrus", *WALRUS.values()])


def cases(properties, required):
    """Yield arguments: the required ones with every value, and once each with every other argument."""
    least = {name: values(name, properties[name]) for name in required}
    for row in itertools.product(*least.values()):
        yield dict(zip(least, row, strict=True))
    base = {name: found[0] for name, found in least.items()}
    for name in set(properties) - set(required):
        for value in values(name, properties[name]):
            yield {**base, name: value}


def no_walrus(answer, what, arguments):
    """Check that an answer has nothing of the owner's except what was in the question."""
    asked = json.dumps(arguments)
    told = [word for word in (PHRASE, PLACE, KEY) if word in answer and word not in asked]
    assert not told, (what, arguments, answer[:500])
    assert "Traceback" not in answer


def reads(each):
    """Whether an operation leaves the agent's memory as it is: what an agent saves itself may be returned."""
    return each.read_only or each.name == "memory.index"


@pytest.mark.parametrize("name", [name for name, each in OPERATIONS.items() if reads(each)])
def test_no_operation_returns_anything_of_the_owners(world, name):
    _, running, ann, _ = world
    operation = OPERATIONS[name]
    for arguments in cases(operation.properties, operation.required):
        place = operation.path
        for key in [key for key in arguments if f"{{{key}}}" in place]:
            place = place.replace(f"{{{key}}}", quote(str(arguments[key]), safe=""))
        others = {key: value for key, value in arguments.items() if f"{{{key}}}" not in operation.path}
        if operation.method == "GET":
            place += f"?{urlencode(others, doseq=True)}"
            answer = running.get(f"/agents/ann{place}", token=ann)
        else:
            answer = running.ask(operation.method, f"/agents/ann{place}", others, token=ann)
        no_walrus(answer.body.decode(), place, arguments)
        frame = {"jsonrpc": "2.0", "id": 1, "method": name, "params": arguments}
        no_walrus(running.ask("POST", "/agents/ann/rpc", frame, token=ann).body.decode(), name, arguments)


@pytest.mark.parametrize("name", [name for name, each in OPERATIONS.items() if not reads(each)])
def test_no_operation_that_writes_reaches_the_owner(world, name):
    _, running, ann, _ = world
    operation = OPERATIONS[name]

    def state():
        paths = ("/api/core", f"/api/chats/{CHAT}", "/api/facts", "/api/sources")
        documents = running.get("/api/documents?limit=1000").json["documents"]
        # The owner's own run at the start notes when it has seen a file.
        return [[{**each, "seen": ""} for each in documents], *(running.get(path).body for path in paths)]

    before = state()
    for arguments in itertools.islice(cases(operation.properties, operation.required), 30):
        frame = {"jsonrpc": "2.0", "id": 1, "method": name, "params": arguments}
        no_walrus(running.ask("POST", "/agents/ann/rpc", frame, token=ann).body.decode(), name, arguments)
    assert state() == before


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_agents_token_opens_no_other_memory(world, name):
    _, running, ann, _ = world
    operation = OPERATIONS[name]
    path = operation.path.replace("{", "").replace("}", "")
    for place in ("", "/agents/bob", "/agents/ANN", "/agents/ann/agents/bob", "/agents"):
        answer = running.ask(operation.method, place + path, {}, token=ann)
        assert answer.status in {401, 404}
        no_walrus(answer.body.decode(), place + path, {})


def test_no_tool_and_no_resource_of_mcp_returns_anything_of_the_owners(world):
    _, running, ann, _ = world

    def mcp(method, place="/agents/ann", **params):
        frame = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        answer = running.ask("POST", f"{place}/mcp", frame, token=ann, headers=_MCP)
        no_walrus(answer.body.decode(), method, params)
        return answer

    if mcp("ping").status == 404:
        pytest.skip("needs klaw-mcp")
    tools = mcp("tools/list").json["result"]["tools"]
    assert len(tools) > 5
    for tool in tools:
        schema = tool["inputSchema"]
        for arguments in itertools.islice(cases(schema["properties"], schema.get("required", ())), 60):
            mcp("tools/call", name=tool["name"], arguments=arguments)
    mcp("resources/list")
    mcp("resources/templates/list")
    for path in values("path", {}):
        mcp("resources/read", uri=f"klaw:///{quote(path)}")
        mcp("resources/read", uri=f"klaw:///{path}")
    for topic in ("walrus", *WALRUS.values()):
        mcp("prompts/get", name="recall", arguments={"topic": topic})
    for place in ("", "/agents/bob"):
        assert mcp("tools/list", place).status == 401


def test_no_tool_of_the_memory_returns_anything_of_the_owners(world):
    """The tools that REST offers: those of MCP and more."""
    _, running, ann, _ = world
    tools = running.get("/agents/ann/api/tools", token=ann).json["tools"]
    assert len(tools) > 5
    for tool in tools:
        for arguments in itertools.islice(
            cases(tool["input_schema"]["properties"], tool["input_schema"]["required"]), 40
        ):
            answer = running.ask("POST", f"/agents/ann/api/tools/{tool['name']}", {"arguments": arguments}, token=ann)
            no_walrus(answer.body.decode(), tool["name"], arguments)


def test_a_websocket_and_its_events_tell_nothing_of_the_owner(world):
    """Events of the agent's own memory may come: an index run that another test has started may still go on."""
    _, running, ann, _ = world
    url = f"ws://127.0.0.1:{running.port}/agents/ann/ws"
    with connect(url, close_timeout=1, additional_headers={"Authorization": f"Bearer {ann}"}) as own:
        own.send(json.dumps({"id": 1, "method": "events.subscribe"}))
        assert json.loads(own.recv(timeout=running.patience))["result"] == {"subscribed": True}
        running.ask("POST", "/api/memories", {"text": f"again {PHRASE}"})
        path = running.get("/api/recent?limit=1").json["documents"][0]["path"]
        running.ask("DELETE", f"/api/document?path={path}")
        said = running.ask("POST", "/api/chats/owners_1", {"role": "user", "content": f"again {PHRASE}"})
        assert said.status == 201
        own.send(json.dumps({"id": 2, "method": "memory.tools"}))
        frames = [json.loads(own.recv(timeout=running.patience))]
        while frames[-1].get("id") != 2:
            frames.append(json.loads(own.recv(timeout=running.patience)))
        text = json.dumps(frames)
        no_walrus(text, "events", {})
        seen = [word for word in (path, "owners", '"forget"') if word in text]
        assert not seen, "an event of the owner's memory"


def test_nothing_was_triggered_at_the_owners_cost_and_no_file_has_anything_of_the_owners(world):
    """The last test of the module: all the others have asked."""
    home, running, ann, taken = world
    while running.get("/agents/ann/api/index", token=ann).json["state"] == "running":
        pass
    assert not taken, "the owner's language model or reranker was asked"
    origins = {each["origin"] for each in running.get("/agents/ann/api/sources", token=ann).json["sources"]}
    assert not origins & {"private", "claude-code", "notes"}
    files = [file for file in (home.data / "agents" / "ann").rglob("*") if file.is_file()]
    assert len(files) > 2
    assert not [file for file in files if PHRASE.encode() in file.read_bytes()]
