"""``klaw mcp install``: what is written is what the agent starts, and nothing else of the file changes."""

from __future__ import annotations

import json
import subprocess
import tomllib

import pytest

PLACES = {
    "claude-code": (".claude.json", "mcpServers"),
    "codex": (".codex/config.toml", "mcp_servers"),
    "cursor": (".cursor/mcp.json", "mcpServers"),
}


def read(file):
    text = file.read_text("utf-8")
    return tomllib.loads(text) if file.suffix == ".toml" else json.loads(text)


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


def test_a_file_of_another_format_is_not_changed(home):
    file = home.path / "home" / ".claude.json"
    file.parent.mkdir()
    file.write_text("// mine\n{}")
    done = home.run("mcp", "install", "claude-code", "--yes")
    assert done.returncode == 1
    assert "plain JSON" in done.stderr
    assert file.read_text() == "// mine\n{}"
