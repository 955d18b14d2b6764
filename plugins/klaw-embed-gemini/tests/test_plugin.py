"""What is registered, what the options take, and that registering stays cheap."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from klaw_core import API, ComponentContext, EmbedderUnavailableError
from klaw_embed_gemini.options import GeminiOptions
from klaw_embed_gemini.plugin import klaw_embedders


def test_the_entry_point_leads_to_the_component() -> None:
    (entry,) = entry_points(group="klaw", name="embed-gemini")
    (component,) = entry.load().klaw_embedders()
    assert (component.name, component.options, component.api) == ("gemini", GeminiOptions, API)


def test_registering_imports_nothing_heavy() -> None:
    heavy = "{'httpx2', 'httpcore2', 'numpy', 'ssl', 'asyncio'}"
    code = (
        "import sys, klaw_embed_gemini.plugin as p; list(p.klaw_embedders()); p.GeminiOptions();"
        f"print(sorted({heavy} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert run.stdout.strip() == "[]"


def test_the_key_is_not_in_reprs_and_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", "sk-0123456789")
    assert GeminiOptions().api_key == ""
    assert "sk-0123456789" not in repr(GeminiOptions(api_key="sk-0123456789"))


@pytest.mark.parametrize(
    "options",
    [
        {"url": "ftp://host"},
        {"url": "http://me:secret@host"},
        {"model": ""},
        {"batch_size": 0},
        {"batch_size": 101},
        {"model": "a/b"},
        {"model": "models/../x"},
        {"dimension": 0},
        {"api_key": "sk-0123456789\n"},
    ],
)
def test_invalid_options_are_rejected(options: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))) as caught:
        GeminiOptions(**options)  # type: ignore[arg-type]  # wrong on purpose
    assert "sk-0123456789" not in str(caught.value)


def test_offline_only_local_servers_are_called(tmp_path: Path) -> None:
    (component,) = klaw_embedders()
    place = ComponentContext(data_dir=tmp_path, cache_dir=tmp_path, offline=True)
    component.factory(GeminiOptions(url="http://localhost:8080/v1beta"), place)
    with pytest.raises(EmbedderUnavailableError, match="offline"):
        component.factory(GeminiOptions(), place)
