"""What the pages show can be configured, and every option of a stage is on a page."""

import re
from pathlib import Path

import attrs
import pytest

from klaw_core.assembly import option_problems
from klaw_core.config.load import load_config
from klaw_core.plugins.discover import discover

ROOT = Path(__file__).parents[2]
HOW_TO = ROOT / "docs" / "how-to" / "rerank.md"
READMES = {name: ROOT / "plugins" / f"klaw-rerank-{name}" / "README.md" for name in ("http", "onnx")}
BLOCKS = [
    pytest.param(block, id=f"{page.parent.name}-{number}")
    for page in (HOW_TO, *READMES.values())
    for number, block in enumerate(re.findall(r"```toml\n(.*?)```", page.read_text("utf-8"), re.DOTALL))
]


@pytest.fixture(autouse=True)
def _the_plugins_are_there():
    for name in READMES:
        pytest.importorskip(f"klaw_rerank_{name}")


@pytest.mark.needs("klaw-conversations")
@pytest.mark.parametrize("block", BLOCKS)
def test_every_table_shown_is_a_configuration(block, tmp_path):
    file = tmp_path / "config.toml"
    file.write_text(block, "utf-8")
    stages = load_config(config_file=file, environment={"RERANK_API_KEY": "x"}).reranking
    assert stages
    assert option_problems(stages) == []
    registry = discover()
    assert all(registry.component("reranker", stage.type) for stage in stages)


@pytest.mark.parametrize(
    ("name", "page"), [*((name, HOW_TO) for name in ("recency", "importance", "mmr")), *READMES.items()]
)
def test_every_option_is_on_its_page(name, page):
    text = page.read_text("utf-8")
    fields = attrs.fields(discover().component("reranker", name).options)
    assert fields
    for field in fields:
        assert f"`{field.name}`" in text or f"\n{field.name} = " in text, field.name
        assert f"``{field.name}``" in discover().component("reranker", name).options.__doc__
