"""Every page installs extras with the same two commands, and no page tells readers to mix pip and uv."""

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "tests" / "house"))
from installs import EXTRAS, block, pages, rewritten  # noqa: E402  # beside the other programs of the house

PAGES = [ROOT / "README.md", *pages()]
#: Libraries that a Python program imports beside Klaw, from the clone; they have no extra.
_LIBRARIES = {"plugins/klaw-haystack", "plugins/langchain-klaw"}


@pytest.mark.parametrize("page", pages(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_page_installs_extras_in_the_one_form(page):
    text = page.read_text("utf-8")
    assert rewritten(text) == text, "python tests/house/installs.py --write"


def test_every_named_extra_exists():
    named = {
        name
        for page in PAGES
        for found in re.findall(r"'\.\[([\w,-]+)\]'", page.read_text("utf-8"))
        for name in found.split(",")
    }
    assert {"default", "mcp", "serve"} <= named
    assert named - EXTRAS.keys() == set()


@pytest.mark.parametrize("page", ["README.md", "docs/README.md"])
def test_the_first_pages_install_the_same_and_give_it_to_an_agent(page):
    text = (ROOT / page).read_text("utf-8")
    commands = ("pip install -c constraints.txt '.[default,mcp]'", "uv tool install '.[default,mcp]'")
    assert [command for command in (*commands, "klaw mcp install claude-code") if command not in text] == []


def test_no_page_installs_a_directory_of_a_plugin_beside_klaw():
    named = {
        place for page in PAGES for place in re.findall(r"install [^\n`]*?'?(plugins/[\w-]+)", page.read_text("utf-8"))
    }
    # Other programs install the others: npm, Claude Code.
    assert {place for place in named if (ROOT / place / "pyproject.toml").is_file()} == _LIBRARIES


def test_other_forms_are_found_and_rewritten():
    one = "pip install -c constraints.txt '.[ollama]'   # with uv: uv tool install '.[default,ollama]'"
    two = "    # in your clone of Klaw; with pip: …\n    uv tool install '.[default,ollama]'"
    three = "    pip install -c constraints.txt '.[fts5]'     # in a clone of Klaw"
    assert rewritten(one) == block("ollama")
    assert rewritten(two) == block("default,ollama", "    ")
    assert rewritten(three).splitlines()[1].startswith("    uv tool install '.[default]' ")
