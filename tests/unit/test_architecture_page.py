"""The architecture page lists every module of the core, in the order that import-linter checks."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_page_lists_the_layers_of_the_core_from_the_bottom_up():
    page = (ROOT / "docs" / "explanation" / "architecture.md").read_text("utf-8")
    table = page.partition("| module of `klaw_core` |")[2].partition("\n\n")[0]
    rows = [set(re.findall(r"`(\w+)`", row.split("|")[1])) for row in table.splitlines()[2:]]
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["name"] == "The core's layers")
    levels = {name: level for level, layer in enumerate(reversed(layers)) for name in layer.split(" | ")}

    assert set().union(*rows) == set(levels)
    listed = [levels[name] for row in rows for name in row - {"cli", "__main__"}]
    assert listed == sorted(listed)
