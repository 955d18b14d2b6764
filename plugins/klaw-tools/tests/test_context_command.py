"""``klaw context`` needs no other feature than the tools."""

import json

import pytest
from click.testing import CliRunner

from klaw_core.cli.program import cli


@pytest.fixture
def klaw(tmp_path, monkeypatch):
    """Run a command with words alone, where the extension ``facts`` is turned off."""
    for name in ("CONFIG", "DATA", "CACHE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    monkeypatch.setenv("KLAW_EMBEDDER", "none")
    monkeypatch.setenv("KLAW_DISABLE_PLUGINS", "klaw-facts")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "harbour.md").write_text("# Harbour\n\nThe pilot comes at dawn.\n", "utf-8")
    return lambda *arguments: CliRunner().invoke(cli, [*arguments, "--data-dir", str(tmp_path / "memory")])


def test_the_context_for_a_message_is_printed_without_facts(klaw):
    assert klaw("index", "notes").exit_code == 0
    done = klaw("context", "when does the pilot come")
    assert done.exit_code == 0
    assert "The pilot comes at dawn." in done.stdout
    assert json.loads(klaw("context", "pilot", "--json").stdout)["tokens"] > 0


def test_a_chat_without_messages_is_named(klaw):
    assert klaw("index", "notes").exit_code == 0
    assert "no messages from chat 'telegram_1'" in klaw("context", "pilot", "--chat", "telegram_1").stderr


def test_foreign_text_is_left_out_unless_it_is_asked_for(klaw, tmp_path):
    assert klaw("index", "notes", "--trust", "foreign").exit_code == 0
    done = klaw("context", "when does the pilot come")
    assert done.stdout == ""
    assert "1 chunk that others wrote is left out" in done.stderr
    assert "[foreign, notes/harbour.md:1-3" in klaw("context", "when does the pilot come", "--trust", "foreign").stdout
    (tmp_path / "memory" / "config.toml").write_text('[extensions.tools]\ntrust = "foreign"\n', "utf-8")
    settings = ("--config", str(tmp_path / "memory" / "config.toml"))
    assert "at dawn" in klaw("context", "when does the pilot come", *settings).stdout
    assert klaw("context", "when does the pilot come", "--trust", "owner", *settings).stdout == ""
