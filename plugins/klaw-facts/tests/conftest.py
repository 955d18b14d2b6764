"""A home of its own for each test, ``klaw`` run in this process, and a memory in the same home."""

from datetime import UTC, datetime, timedelta

import pytest
from click.testing import CliRunner

from klaw_core import ForgetEvent, LiveComponent, Memory, load_config
from klaw_core.cli.program import cli
from klaw_facts import Facts, FactsOptions
from klaw_facts.plugin import FactChunker
from klaw_journals import Message

META = {"channel": "telegram", "chat_id": "1"}
MONDAY = datetime(2026, 2, 23, 10, tzinfo=UTC)


@pytest.fixture
def open_memory(tmp_path):
    """Return a function that opens a memory with facts and perhaps a language model."""
    opened = []

    def make(model=None, **options):
        memory = {"embedding": {"type": "none"}}
        live = [
            LiveComponent(
                "extension",
                "facts",
                Facts(FactsOptions(**options), tmp_path / "data"),
                listens=(ForgetEvent,),
                separate=("facts",),
            ),
            LiveComponent("chunker", "fact", FactChunker()),
        ]
        if model is not None:
            memory["language_model"] = {"type": "scripted"}
            live.append(LiveComponent("language model", "scripted", model))
        config = load_config(
            data_dir=tmp_path / "data", overrides={"memory": memory}, environment={"KLAW_CONFIG": "/dev/null"}
        )
        opened.append(Memory.open(config, components=live))
        return opened[-1]

    yield make
    for memory in opened:
        memory.close()


@pytest.fixture
def say():
    """Return a function that adds a message to a chat."""

    def append(memory, text, *, days=0, role="user"):
        return memory.conversations.append(Message(role, text, MONDAY + timedelta(days), meta=META))

    return append


@pytest.fixture
def klaw(tmp_path, monkeypatch):
    """Return a function that runs a command on the memory of ``open_memory``."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("KLAW_CONFIG", "/dev/null")
    monkeypatch.setenv("KLAW_EMBEDDER", "none")
    monkeypatch.chdir(tmp_path)

    def run(*arguments, stdin=None):
        return CliRunner().invoke(cli, [*arguments, "--data-dir", str(tmp_path / "data")], input=stdin)

    return run
