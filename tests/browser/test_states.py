"""Ten states of the page in both colours, compared with the pictures and outlines of ``docs/pictures/states.py``.

The outline is every visible text and field in order: it must be equal, so a view that loses its content fails, and the
message says what is missing. Of the pictures, the share of ink in twelve parts and the mean colour are compared. Other
fonts change both a little; a view without its content, its style or its colours changes them much.
"""

from __future__ import annotations

import base64
import importlib.util
import json
from pathlib import Path

import pytest

DRAWING = Path(__file__).parents[2] / "docs" / "pictures" / "states.py"
#: Another part of a picture may have at most this share of ink more or less, and half of what it has.
LEAST_INK = 0.015
#: Lines that break elsewhere move text to another part.
MOVED_PARTS = 2
#: Of 255, for each of red, green and blue.
NEAR_COLOUR = 14
SERIF = ":root { --text-font: 'DejaVu Serif', serif !important; --code-font: 'DejaVu Sans', sans-serif !important; }"

#: The share of ink in each of 4 x 3 parts below the bar at the top, and the mean colour. Ink differs from the commonest
#: colour of its part.
MEASURE = """async (address) => {
  const picture = new Image();
  picture.src = address;
  await picture.decode();
  const canvas = Object.assign(document.createElement('canvas'), { width: picture.width, height: picture.height });
  const drawn = canvas.getContext('2d');
  drawn.drawImage(picture, 0, 0);
  const sum = [0, 0, 0], ink = [], across = 3, down = 4, top = 60;
  for (let part = 0; part < across * down; part++) {
    const wide = Math.floor(picture.width / across), high = Math.floor((picture.height - top) / down);
    const { data } = drawn.getImageData((part % across) * wide, top + Math.floor(part / across) * high, wide, high);
    const counts = new Map();
    for (let at = 0; at < data.length; at += 4) {
      const colour = (data[at] >> 3 << 10) | (data[at + 1] >> 3 << 5) | (data[at + 2] >> 3);
      counts.set(colour, (counts.get(colour) ?? 0) + 1);
      for (const channel of [0, 1, 2]) sum[channel] += data[at + channel] / (picture.width * picture.height);
    }
    ink.push(1 - Math.max(...counts.values()) / (data.length / 4));
  }
  return { ink, colour: sum };
}"""


def _drawing():
    spec = importlib.util.spec_from_file_location("states", DRAWING)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


drawing = _drawing()
OUTLINES = json.loads((drawing.PLACE / "outline.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def served_states(tmp_path_factory):
    with drawing.serve(tmp_path_factory.mktemp("states")) as served:
        yield served


@pytest.fixture
def measure(visit):
    """Return a function that measures a picture, in a page of its own."""
    page = visit()

    def measure(png):
        return page.evaluate(MEASURE, "data:image/png;base64," + base64.b64encode(png).decode())

    return measure


def differences(found, stored):
    """Return what tells two pictures apart; empty if they show the same."""
    parts = [
        f"part {number}: {new:.3f} of ink instead of {old:.3f}"
        for number, (new, old) in enumerate(zip(found["ink"], stored["ink"], strict=True))
        if abs(new - old) > LEAST_INK + max(new, old) / 2
    ]
    colours = [
        f"mean colour {new:.0f} instead of {old:.0f}"
        for new, old in zip(found["colour"], stored["colour"], strict=True)
        if abs(new - old) > NEAR_COLOUR
    ]
    return [*(parts if len(parts) > MOVED_PARTS else ()), *colours]


def stored_picture(name, colour):
    return (drawing.PLACE / f"{name}-{colour}.png").read_bytes()


@pytest.mark.parametrize("colour", drawing.COLOURS)
@pytest.mark.parametrize("name", drawing.STATES)
def test_a_state_shows_what_its_picture_shows(browser, served_states, measure, name, colour):
    with drawing.opened(browser, served_states, name, colour) as page:
        assert page.evaluate(drawing.OUTLINE) == OUTLINES[name]
        found = measure(page.screenshot())
    assert differences(found, measure(stored_picture(name, colour))) == []


@pytest.mark.parametrize("name", drawing.STATES)
def test_another_font_is_no_difference_and_lost_content_is_one(browser, served_states, measure, name):
    stored = measure(stored_picture(name, "light"))
    assert differences(stored, measure(stored_picture(name, "dark"))) != []
    with drawing.opened(browser, served_states, name, "light", bypass_csp=True) as page:
        page.add_style_tag(content=SERIF)
        assert differences(measure(page.screenshot()), stored) == []
        page.evaluate("document.getElementById('main').replaceChildren()")
        assert page.evaluate(drawing.OUTLINE) != OUTLINES[name]
        assert differences(measure(page.screenshot()), stored) != []


def test_every_state_has_small_pictures():
    pictures = {path.name: path.stat().st_size for path in drawing.PLACE.glob("*.png")}
    assert sorted(pictures) == sorted(f"{name}-{colour}.png" for name in drawing.STATES for colour in drawing.COLOURS)
    assert sum(pictures.values()) < 1_500_000
