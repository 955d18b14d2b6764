"""How Klaw finds the retriever, and what loading it costs."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest
from attrs import asdict

from klaw_core import API, ComponentContext
from klaw_fts5.index import Fts5Index
from klaw_fts5.options import Fts5Options
from klaw_fts5.plugin import klaw_retrievers


def test_the_entry_point_leads_to_the_component() -> None:
    (entry,) = entry_points(group="klaw", name="fts5")
    (component,) = entry.load().klaw_retrievers()
    assert (component.name, component.api) == ("fts5", API)
    assert component.summary


def test_the_factory_uses_the_options(tmp_path: Path) -> None:
    (component,) = klaw_retrievers()
    built = component.factory(
        component.options(
            heading_weight=2.0, text_weight=0.5, context_weight=0.1, pair_weight=0.0, search="exact", exact_up_to=5
        ),
        ComponentContext(tmp_path, tmp_path),
    )
    weights = {"heading_weight": 2.0, "text_weight": 0.5, "context_weight": 0.1, "pair_weight": 0.0}
    assert asdict(built) == {**weights, "search_by": "exact", "exact_up_to": 5}
    assert asdict(component.factory(component.options(), ComponentContext(tmp_path, tmp_path))) == asdict(Fts5Index())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("weight", [-1.0, float("nan"), float("inf")])
def test_invalid_weights_are_rejected(weight: float) -> None:
    with pytest.raises(ValueError, match="weight"):
        Fts5Options(heading_weight=weight)


@pytest.mark.parametrize("options", [{"search": "tantivy"}, {"exact_up_to": -1}])
def test_invalid_search_modes_are_rejected(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        Fts5Options(**options)


def test_loading_the_plugin_loads_nothing_heavy() -> None:
    program = "import sys, klaw_fts5.plugin; print({'apsw', 'numpy', 'snowballstemmer'} & {*sys.modules} or 'none')"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "none"
