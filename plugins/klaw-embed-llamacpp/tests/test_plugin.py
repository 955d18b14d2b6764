"""What is registered, what the options take, and that registering stays cheap."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from klaw_core import API, ComponentContext
from klaw_embed_llamacpp.options import LlamaCppOptions
from klaw_embed_llamacpp.plugin import klaw_embedders


def test_the_entry_point_leads_to_the_component() -> None:
    (entry,) = entry_points(group="klaw", name="embed-llamacpp")
    (component,) = entry.load().klaw_embedders()
    assert (component.name, component.options, component.api) == ("llamacpp", LlamaCppOptions, API)


def test_registering_imports_nothing_heavy() -> None:
    code = (
        "import sys, klaw_embed_llamacpp.plugin as p; list(p.klaw_embedders()); p.LlamaCppOptions();"
        "print(sorted({'xllamacpp', 'numpy', 'klaw_models'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert run.stdout.strip() == "[]"


def test_building_an_embedder_reads_nothing_and_loads_nothing(tmp_path: Path) -> None:
    (component,) = klaw_embedders()
    place = ComponentContext(data_dir=tmp_path, cache_dir=tmp_path)
    component.factory(LlamaCppOptions(path=str(tmp_path / "absent.gguf")), place)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "options",
    [
        {"model": ""},
        {"path": ""},
        {"pooling": "rank"},
        {"max_tokens": 0},
        {"dimension": 0},
        {"threads": -1},
    ],
)
def test_invalid_options_are_rejected(options: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        LlamaCppOptions(**options)  # type: ignore[arg-type]  # wrong on purpose
