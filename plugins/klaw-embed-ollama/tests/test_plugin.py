"""What is registered, what the options take, and that registering stays cheap."""

from __future__ import annotations

import math
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from klaw_core import API, ComponentContext, EmbedderUnavailableError
from klaw_embed_ollama.options import OllamaOptions, server_url
from klaw_embed_ollama.plugin import klaw_embedders


def test_the_entry_point_leads_to_the_component() -> None:
    (entry,) = entry_points(group="klaw", name="embed-ollama")
    (component,) = entry.load().klaw_embedders()
    assert (component.name, component.options, component.api) == ("ollama", OllamaOptions, API)


def test_registering_imports_nothing_heavy() -> None:
    heavy = "{'httpx2', 'httpcore2', 'numpy', 'ssl', 'asyncio'}"
    code = (
        "import sys, klaw_embed_ollama.plugin as p; list(p.klaw_embedders()); p.OllamaOptions();"
        f"print(sorted({heavy} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert run.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("variable", "url"),
    [
        (None, "http://localhost:11434"),
        ("", "http://localhost:11434"),
        ("gpu-box", "http://gpu-box:11434"),
        ("gpu-box:80", "http://gpu-box:80"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        ("0.0.0.0:8080", "http://127.0.0.1:8080"),
        ("http://0.0.0.0:8080", "http://127.0.0.1:8080"),
        ("[::]:11434", "http://[::1]:11434"),
        ("[::1]", "http://[::1]:11434"),
        ("::1", "http://[::1]:11434"),
        ("::", "http://[::1]:11434"),
        ("fd00::7", "http://[fd00::7]:11434"),
        (":8080", "http://localhost:8080"),
        ("https://ollama.example.com", "https://ollama.example.com"),
        ('"10.0.0.7:1"', "http://10.0.0.7:1"),
        ("host/ollama/", "http://host:11434/ollama"),
    ],
)
def test_the_server_is_taken_from_ollamas_variable(
    monkeypatch: pytest.MonkeyPatch, variable: str | None, url: str
) -> None:
    if variable is None:
        monkeypatch.delenv("OLLAMA_HOST", raising=False)
    else:
        monkeypatch.setenv("OLLAMA_HOST", variable)
    assert server_url() == url
    assert OllamaOptions().url == url


@pytest.mark.parametrize("variable", ["host:port", "ftp://host", "http://", "a b"])
def test_an_invalid_variable_is_rejected_by_name(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    monkeypatch.setenv("OLLAMA_HOST", variable)
    with pytest.raises(ValueError, match=r"^OLLAMA_HOST: "):
        OllamaOptions()
    with pytest.raises(ValueError, match=r"^url: "):
        OllamaOptions(url="ftp://other")


@pytest.mark.parametrize(
    "options",
    [
        {"model": ""},
        {"timeout_seconds": 0},
        {"deadline_seconds": -1},
        {"timeout_seconds": math.inf},
        {"deadline_seconds": math.inf},
        {"retries": -1},
        {"batch_size": 0},
        {"dimension": 0},
        {"max_tokens": 0},
        {"keep_alive": "5"},
        {"keep_alive": "five minutes"},
        {"api_key": "two words"},
        {"url": "http://me:secret@host"},
    ],
)
def test_invalid_options_are_rejected(options: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        OllamaOptions(**options)  # type: ignore[arg-type]  # wrong on purpose


def test_offline_only_local_servers_are_called(tmp_path: Path) -> None:
    (component,) = klaw_embedders()
    place = ComponentContext(data_dir=tmp_path, cache_dir=tmp_path, offline=True)
    component.factory(OllamaOptions(url="http://localhost:11434"), place)
    with pytest.raises(EmbedderUnavailableError, match="offline"):
        component.factory(OllamaOptions(url="http://gpu-box:11434"), place)
