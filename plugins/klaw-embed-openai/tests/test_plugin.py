"""What is registered, what the options take, and that registering stays cheap."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from klaw_core import API, ComponentContext, EmbedderUnavailableError
from klaw_embed_openai.options import OPENAI_URL, OpenAIOptions
from klaw_embed_openai.plugin import klaw_embedders


def test_the_entry_point_leads_to_the_component() -> None:
    (entry,) = entry_points(group="klaw", name="embed-openai")
    (component,) = entry.load().klaw_embedders()
    assert (component.name, component.options, component.api) == ("openai", OpenAIOptions, API)


def test_registering_imports_nothing_heavy() -> None:
    heavy = "{'httpx2', 'httpcore2', 'numpy', 'ssl', 'asyncio'}"
    code = (
        "import sys, klaw_embed_openai.plugin as p; list(p.klaw_embedders()); p.OpenAIOptions();"
        f"print(sorted({heavy} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert run.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("variable", "url"),
    [
        ("", OPENAI_URL),
        ("http://localhost:8080/v1", "http://localhost:8080/v1"),
        (" https://h/v1/ ", "https://h/v1"),
    ],
)
def test_the_server_is_taken_from_openais_variable(monkeypatch: pytest.MonkeyPatch, variable: str, url: str) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", variable)
    assert OpenAIOptions().url == url


def test_an_invalid_variable_is_rejected_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "api.example.com/v1")
    with pytest.raises(ValueError, match=r"^OPENAI_BASE_URL: "):
        OpenAIOptions()


def test_the_key_is_not_in_reprs_and_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789")
    assert OpenAIOptions().api_key == ""
    assert "sk-0123456789" not in repr(OpenAIOptions(api_key="sk-0123456789"))


@pytest.mark.parametrize(
    "options",
    [
        {"url": "ftp://host"},
        {"url": "http://me:secret@host"},
        {"model": ""},
        {"batch_size": 0},
        {"batch_size": 2049},
        {"dimension": 0},
        {"encoding": "hex"},
        {"batch_min_texts": 0},
        {"batch_max_texts": 50_001},
        {"batch_timeout_seconds": 0},
        {"api_key": "sk-0123456789\n"},
    ],
)
def test_invalid_options_are_rejected(options: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))) as caught:
        OpenAIOptions(**options)  # type: ignore[arg-type]  # wrong on purpose
    assert "sk-0123456789" not in str(caught.value)


def test_offline_only_local_servers_are_called(tmp_path: Path) -> None:
    (component,) = klaw_embedders()
    place = ComponentContext(data_dir=tmp_path, cache_dir=tmp_path, offline=True)
    component.factory(OpenAIOptions(url="http://localhost:8080/v1"), place)
    with pytest.raises(EmbedderUnavailableError, match="offline"):
        component.factory(OpenAIOptions(), place)


def test_batches_are_used_only_if_configured(tmp_path: Path) -> None:
    (component,) = klaw_embedders()
    place = ComponentContext(data_dir=tmp_path, cache_dir=tmp_path)
    assert component.factory(OpenAIOptions(), place).bulk is None
    assert component.factory(OpenAIOptions(batch_api=True), place).bulk is not None
    assert list(tmp_path.iterdir()) == []
