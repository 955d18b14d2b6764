"""The pictures of the pages with figures are drawn from the tables of these pages."""

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "docs" / "pictures"))
from bars import PAGES, drawn, panels, table  # noqa: E402  # next to the pictures


@pytest.mark.parametrize("page", PAGES)
def test_a_picture_shows_the_figures_of_its_page(page):
    stored = (ROOT / "docs" / "pictures" / f"{page}.svg").read_text("utf-8")
    assert stored == drawn(page), "python docs/pictures/bars.py"
    text = (ROOT / "docs" / "explanation" / f"{page}.md").read_text("utf-8")
    assert f"../pictures/{page}.svg" in text


@pytest.mark.parametrize("page", PAGES)
def test_every_panel_has_bars(page):
    bars = [cells for _, cells in panels(page)]
    assert len(bars) >= 3
    assert min(map(len, bars)) >= 2


def test_a_page_for_users_leads_to_each_page_of_measurements():
    short = [path.read_text("utf-8") for path in (ROOT / "docs" / "explanation").glob("*.md")]
    full = sorted(path.name for path in (ROOT / "docs" / "measurements").glob("*.md") if path.name != "README.md")
    assert full
    assert [name for name in full if not any(f"../measurements/{name}" in text for text in short)] == []


@pytest.mark.parametrize(
    ("short", "full"), [("how-well-it-finds", "retrieval-quality"), ("how-well-facts-fit", "facts-quality")]
)
def test_the_figures_of_a_short_page_are_those_of_the_measurements(short, full):
    _, *rows = table((ROOT / "docs" / "explanation" / f"{short}.md").read_text("utf-8"))
    figures = {cell for row in rows for cell in row if cell.startswith(".")}
    assert len(figures) >= 10
    measured = (ROOT / "docs" / "measurements" / f"{full}.md").read_text("utf-8")
    assert [figure for figure in sorted(figures) if figure not in measured] == []


def test_the_times_of_a_run_of_klaw_sync_are_those_of_the_measurements():
    page = (ROOT / "docs" / "how-to" / "sync.md").read_text("utf-8")
    told = page.partition("## How long it takes")[2].partition("\n## ")[0]
    figures = re.findall(r"\d[\d,.]*(?= (?:to|s|ms|records|MB|MiB|GB)\b|\n\d)", told)
    assert len(figures) >= 6
    full = (ROOT / "docs" / "measurements" / "speed.md").read_text("utf-8")
    measured = full.partition("## One memory on several machines")[2].partition("\n## ")[0]
    known = re.findall(r"\d[\d.,]*\d", measured)
    assert [figure for figure in figures if figure not in known] == []
