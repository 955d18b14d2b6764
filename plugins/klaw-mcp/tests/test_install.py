"""``klaw mcp install``: what is written is what the agent starts, and nothing else of the file changes."""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from klaw_core import ConfigError
from klaw_mcp import clients as module
from klaw_mcp.clients import Client, clients, with_server
from klaw_tools import jsonc

PLACES = {
    "claude-code": (".claude.json", "mcpServers"),
    "codex": (".codex/config.toml", "mcp_servers"),
    "cursor": (".cursor/mcp.json", "mcpServers"),
}
COMMAND = ["/bin/klaw", "mcp", "--data-dir", "/d"]


def read(file):
    return parsed(file.suffix, file.read_text("utf-8"))


def parsed(suffix, text):
    return {".toml": tomllib.loads, ".json": jsonc.parse, ".yaml": YAML(typ="safe").load}[suffix](text)


@pytest.fixture(params=sorted(clients()))
def client(request):
    return clients()[request.param]


def entry_of(client, text):
    place = parsed(client.user().suffix, text)
    for key in client.keys:
        place = place[key]
    return place


def test_every_agent_gets_a_server_with_the_whole_command_line(client):
    server = client.describe(COMMAND)
    told = entry_of(client, with_server(client, client.user(), "", server))["klaw"]
    assert told == server
    first = told.get("command", told.get("cmd"))
    assert [*([first] if isinstance(first, str) else first), *told.get("args", ())] == COMMAND


@pytest.mark.parametrize("text", ["[", "7", '"text"', "{a: 1", "a: [", "KEYS"])
def test_a_file_of_another_form_is_refused(client, text):
    file = client.user()
    if text == "KEYS":  # the table of servers is none
        text = {".json": '{"K": 7}', ".toml": "K = 7", ".yaml": "K: 7"}[file.suffix].replace("K", client.keys[0])
    with pytest.raises(ConfigError, match=r"expected form") as refused:
        with_server(client, file, text, client.describe(COMMAND))
    assert refused.value.hint == f"add the output of `klaw mcp install {client.name} --print` by hand"
    with pytest.raises(ConfigError, match=r"expected form") as refused:
        with_server(client, file, text, None)
    assert refused.value.hint == f"remove 'klaw' from '{client.keys[0]}' by hand"


def test_the_help_names_every_agent(home):
    told = " ".join(home.run("mcp", "install", "--help").stdout.split())
    assert len(clients()) > 10
    assert [name for name in clients() if name not in told] == []
    assert "is not one of claude-code," in home.run("mcp", "install", "emacs").stderr


def test_another_distribution_adds_an_agent(monkeypatch):
    monkeypatch.setattr(module, "MINE", Client("mine", Path, None, ("servers",)), raising=False)
    point = EntryPoint("mine", "klaw_mcp.clients:MINE", module.GROUP)
    monkeypatch.setattr(module, "entry_points", lambda group: (point,) if group == module.GROUP else ())
    assert clients()["mine"].keys == ("servers",)
    monkeypatch.setattr(module, "MINE", "no client")
    with pytest.raises(ConfigError, match="is no klaw_mcp"):
        clients()
    monkeypatch.delattr(module, "MINE")
    with pytest.raises(ConfigError, match="cannot be loaded"):
        clients()


def test_a_removed_server_is_gone_and_a_copy_is_kept(home):
    file = home.path / "home" / ".cursor" / "mcp.json"
    assert "does not have klaw" in home.run("mcp", "install", "cursor", "--remove", "--yes").stdout
    assert not file.exists()
    assert home.run("mcp", "install", "cursor", "--yes").returncode == 0
    done = home.run("mcp", "install", "cursor", "--remove", "--yes")
    assert "unload" in done.stdout
    assert read(file) == {}
    (backup,) = file.parent.glob("*.backup")
    assert "klaw" in json.loads(backup.read_text("utf-8"))["mcpServers"]
    assert home.run("mcp", "install", "cursor", "--remove", "--read-only", "--yes").returncode == 2


@pytest.mark.parametrize("client", PLACES)
def test_the_command_that_is_written_serves_this_memory(home, client):
    done = home.run("mcp", "install", client, "--yes")
    assert done.returncode == 0, done.stderr
    name, key = PLACES[client]
    server = read(home.path / "home" / name)[key]["klaw"]
    assert server["args"][-3:] == ["mcp", "--data-dir", str(home.data)]
    first = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
    }
    started = subprocess.run(
        [server["command"], *server["args"]],
        input=json.dumps(first) + "\n",
        env=home.environment,
        cwd="/",
        capture_output=True,
        text=True,
        timeout=home.patience,
        check=True,
    )
    assert json.loads(started.stdout)["result"]["serverInfo"]["name"] == "klaw"


def test_vscode_has_its_own_format(home):
    assert home.run("mcp", "install", "vscode", "--yes", "--scope", "project").returncode == 0
    server = read(home.path / ".vscode" / "mcp.json")["servers"]["klaw"]
    assert server["type"] == "stdio"


@pytest.mark.parametrize(
    ("client", "before"),
    [
        ("claude-code", '{"numStartups": 7, "mcpServers": {"other": {"command": "x"}}}'),
        ("codex", '# mine\nmodel = "o3"\n\n[mcp_servers.other]\ncommand = "x"  # keep\n'),
    ],
)
def test_existing_settings_stay_and_a_copy_is_kept(home, client, before):
    name, key = PLACES[client]
    file = home.path / "home" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(before)
    file.chmod(0o640)
    assert home.run("mcp", "install", client, "--yes").returncode == 0
    after = read(file)
    assert after[key]["other"] == {"command": "x"}
    assert "klaw" in after[key]
    assert after.get("numStartups", after.get("model")) in {7, "o3"}
    if client == "codex":
        assert "# mine" in file.read_text()
        assert "# keep" in file.read_text()
    (backup,) = file.parent.glob("*.backup")
    assert backup.read_text() == before
    assert file.stat().st_mode & 0o777 == 0o640


def test_installing_twice_changes_nothing(home):
    for _ in range(2):
        assert home.run("mcp", "install", "cursor", "--yes").returncode == 0
    assert not list((home.path / "home" / ".cursor").glob("*.backup"))


def test_nothing_is_written_without_confirmation(home):
    done = home.run("mcp", "install", "cursor")
    assert done.returncode == 2
    assert "--yes" in done.stderr
    assert not (home.path / "home" / ".cursor").exists()


def test_print_writes_nothing(home):
    done = home.run("mcp", "install", "codex", "--print", "--read-only", "--collection", "docs")
    assert "[mcp_servers.klaw]" in done.stdout
    assert '"--read-only", "--collection", "docs"' in done.stdout
    assert not (home.path / "home" / ".codex").exists()


def test_a_file_of_another_format_is_not_changed_and_the_advice_works(home):
    file = home.path / "home" / ".claude.json"
    file.parent.mkdir()
    file.write_text("{mine: 7}")
    done = home.run("mcp", "install", "claude-code", "--yes")
    assert done.returncode == 1
    assert "is not JSON" in done.stderr
    assert file.read_text() == "{mine: 7}"
    advised = re.search("`klaw (.*)`", done.stderr)[1].split()
    told = home.run(*advised)
    assert told.returncode == 0, told.stderr
    assert [*json.loads(told.stdout)["mcpServers"]] == ["klaw"]


def test_print_shows_nothing_else_of_the_file(home):
    file = home.path / "home" / ".claude.json"
    file.parent.mkdir()
    file.write_text('{"oauthAccount": "sesame", "mcpServers": {"other": {"env": {"TOKEN": "sesame"}}}}')
    told = home.run("mcp", "install", "claude-code", "--print")
    assert json.loads(told.stdout)["mcpServers"].keys() == {"klaw"}
    assert "sesame" not in told.stdout + told.stderr
    assert home.run("mcp", "install", "claude-code", "--print", "--remove").stdout == "removed: mcpServers.klaw\n"


def test_the_ends_of_lines_and_a_byte_order_mark_stay_in_the_file(home):
    file = home.path / "home" / ".cursor" / "mcp.json"
    file.parent.mkdir(parents=True)
    before = b'\xef\xbb\xbf{\r\n\t"theme": "dark", // keep\r\n}\r\n'
    file.write_bytes(before)
    assert home.run("mcp", "install", "cursor", "--yes").returncode == 0
    added = file.read_bytes()
    assert added.count(b"\n") == added.count(b"\r\n") > 3
    assert home.run("mcp", "install", "cursor", "--yes", "--remove").returncode == 0
    assert file.read_bytes() == before


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "cursor",
            '{\n  "mcpServers": {\n    "klaw": {\n    "command": "/old", // mine\n    "required": true\n  }\n  }\n}',
        ),
        ("codex", '[mcp_servers.klaw]\ncommand = "/old"\nrequired = true\n'),
    ],
)
def test_what_a_person_added_to_the_entry_stays(name, text):
    client = clients()[name]
    after = with_server(client, client.user(), text, client.describe(["/new", "mcp"]))
    parsed = (tomllib.loads if name == "codex" else jsonc.parse)(after)
    assert parsed[client.keys[0]]["klaw"] == {"command": "/new", "args": ["mcp"], "required": True}
    assert "// mine" in after or name == "codex"
