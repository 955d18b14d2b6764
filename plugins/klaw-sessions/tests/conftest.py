"""Transcripts as the agents write them, in a home of their own."""

import json
import sys
from pathlib import Path

import pytest

from klaw_core import Memory, load_config

sys.path.insert(0, str(Path(__file__).parent))  # test modules are imported by path, and so know no neighbours


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "COPILOT_HOME", "KLAW_CONFIG", "KLAW_DATA_DIR"):
        monkeypatch.delenv(name, raising=False)
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture
def claude(home):
    """The directory of one project's transcripts."""
    directory = home / ".claude" / "projects" / "-home-ann-klaw"
    directory.mkdir(parents=True)
    return directory


@pytest.fixture
def open_memory(home):
    """Open a memory with these sources, without a model."""

    def open_with(*sources, **tables):
        file = home / "klaw.toml"
        lines = ["[memory.embedding]", 'type = "none"']
        for source in sources:
            lines += ["[[memory.sources]]", *(f"{name} = {json.dumps(value)}" for name, value in source.items())]
        file.write_text("\n".join([*lines, *tables.get("more", ())]), "utf-8")
        return Memory.open(load_config(config_file=file, data_dir=home / "data"))

    return open_with
