"""A question without an answer is recognisable as such, through every exit of a search."""

from __future__ import annotations

import csv
import io
import json

import click
import pytest

from klaw_core.cli.program import cli
from klaw_core.config.load import load_config
from klaw_core.memory import Memory
from klaw_core.values.search import NO_GOOD_MATCH

ANSWERED, UNANSWERED = "which kiln fires the glaze", "the best pizza in Naples"
TOPICS = {
    "kiln": "The kiln fires the glaze at twelve hundred degrees.",
    "boat": "The boat leaves the harbour at noon, the best time of the day.",
    "bread": "Rye bread bakes for ninety minutes.",
    "roof": "The roof was tiled in the spring.",
    "tax": "The tax return is due in July.",
    "garden": "Tomatoes grow along the southern wall.",
    "bicycle": "The bicycle needs a new chain.",
    "piano": "The piano is tuned twice a year.",
}


@pytest.fixture
def indexed(klaw, user_home):
    notes = user_home / "work" / "notes"
    notes.mkdir()
    for name, text in TOPICS.items():
        (notes / f"{name}.md").write_text(f"# {name}\n\n{text}\n", "utf-8")
    assert klaw("index", "notes").exit_code == 0
    return klaw


def formats() -> tuple[str, ...]:
    search = cli.get_command(click.Context(cli), "search")
    assert search is not None
    (option,) = (option for option in search.params if option.name == "form")
    assert isinstance(option.type, click.Choice)
    return tuple(option.type.choices)


def is_marked(form: str, output: str) -> bool:
    """Return whether the output of a search marks what it shows, or says that nothing answers."""
    if form == "json":
        return all(result["is_weak"] for result in json.loads(output))
    if form == "csv":
        return all(row["is_weak"] == "True" for row in csv.DictReader(io.StringIO(output)))
    if form == "md":
        return all("weak match" in line for line in output.splitlines() if line.startswith("###"))
    return form == "text" and output.startswith("no good match")


@pytest.mark.parametrize("form", formats())
def test_every_format_tells_a_question_without_an_answer(indexed, form):
    found = indexed("search", "--format", form, UNANSWERED)
    assert found.exit_code == 0
    assert "boat" in found.stdout
    assert is_marked(form, found.stdout) or form == "files"
    assert (NO_GOOD_MATCH in found.stderr) == (form != "text")  # as text it is the first line
    found = indexed("search", "--format", form, ANSWERED)
    assert "kiln" in found.stdout
    assert not is_marked(form, found.stdout)
    assert "no good match" not in found.stdout + found.stderr


def asking_tools(memory: Memory) -> dict[str, str]:
    """Return the tools that answer a question, each with the name of its argument."""
    required = {tool["name"]: tool["input_schema"].get("required") for tool in memory.tools()}
    return {name: given[0] for name, given in required.items() if given in (["query"], ["message"])}


@pytest.mark.usefixtures("indexed")
def test_every_tool_tells_a_question_without_an_answer():
    with Memory.open(load_config()) as memory:
        tools = asking_tools(memory)
        assert tools.keys() >= {"memory_search", "memory_context"}
        for name, argument in tools.items():
            if name == "memory_facts":  # there is none
                continue
            missed, found = (memory.call_tool(name, {argument: question}) for question in (UNANSWERED, ANSWERED))
            assert NO_GOOD_MATCH in missed["notices"], name
            assert "notices" not in found, name
            assert "twelve hundred" in str(found)


@pytest.mark.usefixtures("indexed")
def test_the_results_say_so():
    with Memory.open(load_config()) as memory:
        (missed, found) = map(memory.search, (UNANSWERED, ANSWERED))
    assert NO_GOOD_MATCH in missed.hints
    assert NO_GOOD_MATCH in missed.notices
    assert not found.notices


@pytest.mark.usefixtures("indexed")
def test_a_search_for_a_relevance_that_nothing_has_names_the_best_one():
    with Memory.open(load_config()) as memory:
        best = max(result.relevance for result in memory.search(ANSWERED))
        assert 0 < best < 1
        none = memory.search(ANSWERED, min_relevance=1.0)
        (some, unknown) = (memory.search(ANSWERED, min_relevance=least) for least in (best, None))
        nothing = memory.search("zyzzyva", min_relevance=0.5, mode="fts")
    assert list(none) == []
    assert f"no result has a relevance of 1 or more; the best has {best:.2f}" in none.notices
    assert some
    assert not [hint for hint in (*some.hints, *unknown.hints, *nothing.hints) if "relevance" in hint]


@pytest.mark.usefixtures("indexed")
def test_a_context_names_weak_matches_as_such():
    with Memory.open(load_config()) as memory:
        missed, found = (str(memory.context(question)) for question in (UNANSWERED, ANSWERED))
    assert ("## Weak matches" in missed, "## Chunks" in missed) == (True, False)
    assert ("## Weak matches" in found, "## Chunks" in found) == (False, True)
