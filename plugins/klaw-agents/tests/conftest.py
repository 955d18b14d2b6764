"""Each file of tests needs its framework; ``nox -s agents`` brings them all, other sessions leave the files out."""

import os
from importlib.util import find_spec

import pytest

# The frameworks report what is run to their makers; a test tells nobody.
os.environ["OPENAI_AGENTS_DISABLE_TRACING"] = "1"
os.environ["PYDANTIC_AI_SHOW_BANNER"] = "0"

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
