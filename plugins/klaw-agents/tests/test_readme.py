"""Each example of the README is run: by its page, or by a test with one of the fixtures ``example`` and ``ran``."""

import re
from pathlib import Path

import klaw_agents

TESTS = [path.read_text("utf-8") for path in Path(__file__).parent.glob("test_*.py")]
RUN = {title for text in TESTS for title in re.findall(r"""\b(?:example|ran)\(["']([^"']+)["']\)""", text)}


def test_each_example_that_the_page_does_not_run_is_run_by_a_test(sections):
    left = {title for title, blocks in sections.items() if any(not block.runs_on_the_page for block in blocks)}
    assert left == RUN


def test_each_framework_has_an_example(sections):
    adapters = {path.stem for path in Path(klaw_agents.__file__).parent.glob("*.py")} - {"__init__", "threads", "turns"}
    shown = "".join(block.code for blocks in sections.values() for block in blocks)
    assert adapters - set(re.findall(r"klaw_agents\.(\w+)", shown)) == {"llm"}  # which finds the plugin by itself
    assert "llm" in sections
