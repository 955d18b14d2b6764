"""What is written has the class of the token with which the request came, whatever its path names."""

import json

import pytest
from websockets.sync.client import connect

from klaw_core import Memory, load_config

#: The routes whose text gets the class of the token: what to send first, and what then to write.
FIRST = "The heron is grey."
WITH_CLASS = {
    "memory.save": {"text": "The heron is white."},
    "memory.replace": {"path": None, "text": "The heron is white."},
    "memory.core_update": {"section": "user", "key": "heron", "value": "white"},
}
#: The other routes that write, and why they give no class of the token.
WITHOUT_CLASS = {
    "memory.forget": "removes",
    "memory.core_delete": "removes; what an agent removes is kept in the history (tested below)",
    "memory.restore": "includes a file again, which has the class of its directory",
    "memory.index": "reads files, which have the class of their directory",
    "memory.append": "a message has the class of its role",
    "memory.tool": "what a model writes is the agent's",
}


@pytest.fixture
def world(home):
    ann = home.run("serve", "token", "--agent", "ann").stdout.strip()
    with home.serving() as running:
        yield home, running, {"owner": running.token, "agent": ann}


def _write(running, way, token, name, arguments):
    """Call an operation of Ann's memory over one of the three protocols; return its result."""
    frame = {"jsonrpc": "2.0", "id": 1, "method": name, "params": arguments}
    if way == "rpc":
        return running.ask("POST", "/agents/ann/rpc", frame, token=token).json["result"]
    if way in ("socket", "socket, token in a frame"):
        headers = {"Authorization": f"Bearer {token}"} if way == "socket" else {}
        url = f"ws://127.0.0.1:{running.port}/agents/ann/ws"
        with connect(url, close_timeout=1, additional_headers=headers) as own:
            if not headers:
                own.send(json.dumps({"type": "auth", "token": token}))
                assert json.loads(own.recv(timeout=running.patience))["ok"] is True
            own.send(json.dumps(frame))
            return json.loads(own.recv(timeout=running.patience))["result"]
    method, path = next(
        (method.upper(), path)
        for path, methods in running.get("/openapi.json").json["paths"].items()
        for method, each in methods.items()
        if each.get("operationId") == name
    )
    for key in [key for key in arguments if f"{{{key}}}" in path]:
        path = path.replace(f"{{{key}}}", arguments[key])
    answer = running.ask(method, f"/agents/ann{path}", arguments, token=token)
    assert answer.status in (200, 201), answer.body
    return answer.json


def _class(home, name, result):
    with Memory.open(load_config(data_dir=home.data / "agents" / "ann", environment={"KLAW_EMBEDDER": "none"})) as own:
        if name == "memory.core_update":
            return own.core.classes().get(("user", "heron"), "owner")
        return own.extension("saved").version(result["path"]).trust


def test_every_route_that_writes_is_known_here(world):
    """A new one is tested here, or says why it gives no class."""
    _, running, _ = world
    paths = running.get("/openapi.json").json["paths"].values()
    writes = {each["operationId"] for methods in paths for kind, each in methods.items() if kind != "get"}
    reads = {"memory.search", "memory.nearest", "memory.context"}
    assert writes - {name for name in writes if not name.startswith("memory.")} - reads == {*WITH_CLASS, *WITHOUT_CLASS}


@pytest.mark.parametrize("way", ["rest", "rpc", "socket", "socket, token in a frame"])
@pytest.mark.parametrize("trust", ["owner", "agent"])
def test_what_is_written_has_the_class_of_the_token(world, way, trust):
    home, running, tokens = world
    for name, arguments in WITH_CLASS.items():
        given = dict(arguments)
        if "path" in given:
            given["path"] = _write(running, "rest", tokens["agent"], "memory.save", {"text": f"{FIRST} {way}"})["path"]
        result = _write(running, way, tokens[trust], name, given)
        assert _class(home, name, result) == trust, (name, way)


def test_an_agent_replaces_nothing_that_the_owner_saved_in_its_memory(world):
    """And what it replaces in core memory is kept."""
    _, running, tokens = world
    place, ann = "/agents/ann/api", tokens["agent"]
    path = running.ask("POST", f"{place}/memories", {"text": FIRST}).json["path"]
    for method, sent in (("POST", {"text": "x", "supersedes": path}), ("PUT", {"text": "x", "path": path})):
        refused = running.ask(method, f"{place}/memories", sent, token=ann)
        assert refused.status == 400
        assert "is by the owner" in refused.json["error"]
    running.ask("PUT", f"{place}/core/user/drink", {"value": "tea"})
    running.ask("PUT", f"{place}/core/user/drink", {"value": "coffee"}, token=ann)
    running.ask("PUT", f"{place}/core/user/food", {"value": "rice"})
    running.ask("DELETE", f"{place}/core/user/food", token=ann)
    with Memory.open(load_config(data_dir=world[0].data / "agents" / "ann")) as own:
        kept = [(each.key, each.value, each.trust, each.by) for each in own.core.history()]
    assert kept == [("drink", "tea", "owner", "agent"), ("food", "rice", "owner", "agent")]
