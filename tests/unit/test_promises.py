"""Each sentence of the documentation that promises something has an id, tests of the id, and a mutant that they kill.

``nox -s mutants -- promise:`` runs these mutants.
"""

import importlib.util
import re
import sys
from collections import Counter
from pathlib import Path

import pytest
from promises import PAGES, ids_in, marked_tests, without_ids

ROOT = Path(__file__).parents[2]
_PROGRAM = ROOT / "tests" / "mutants" / "mutants.py"
_SPEC = importlib.util.spec_from_file_location("klaw_mutants_of_promises", _PROGRAM)
mutants = importlib.util.module_from_spec(_SPEC)
sys.modules["klaw_mutants_of_promises"] = mutants
_SPEC.loader.exec_module(mutants)

TESTS = marked_tests(ROOT)
MUTANTS = mutants.load()
#: Parts of the pages of which every item is a promise: from one heading or line to another.
WHOLLY = {
    "docs/explanation/durability.md": [("## Guarantees", "## How it works"), ("## How it works", "## What is not")],
    "docs/reference/tools.md": [("It cannot:", "It can:")],
    ".github/SECURITY.md": [("## What Klaw promises", "## What Klaw does not promise")],
}
#: Words of promises. A sentence outside of these parts that has one of them has an id, or is listed below.
PROMISING = re.compile(r"\b(?:never|no other|refuse[sd]|rejects|cannot|always|is an error|nothing|accepts any)\b")
#: Reviewed by hand: sentences that begin so have such a word, and promise nothing of Klaw, or what others promise.
DESCRIBING = (
    "A crash inside an append leaves",
    "| `null` for an optional argument",
    "`relevance` is comparable between questions",
    "## What a hostile memory can and cannot do",
    "It cannot:",
    "No input of a model raises",
    "If agents must not see",
    "The code is asked for, or read from",
    "Each machine has a branch with a single commit",
    "Klaw cannot remove what the folder's own service keeps",
    "A run that finds nothing to do takes",
    "Gaps of machines that write without encryption",
    "- \"its 'user' is not an object\"",
)
#: Where a page ends to promise: what follows are limits, and what was tested.
ENDS = "## What is not guaranteed"


def sentences(text):
    """Yield what is between full stops, a row of a table and an item of a list each on its own; without code."""
    text = re.sub("<!-- promise: (.*?) -->", r"⟦\1⟧", text.partition(ENDS)[0])
    text = re.sub(r"^( *)```.*?^\1``` *$", "", text, flags=re.MULTILINE | re.DOTALL)
    for block in re.split(r"\n\s*\n|\n(?=\s*(?:[-*|]) )|\n(?=\|)|\n(?=#)", text):
        yield from (each for each in re.split(r"(?<=[.:;])\s+(?=[A-Z`*])", " ".join(block.split())) if each)


def text_of(page):
    return (ROOT / page).read_text("utf-8")


IDS = [name for page in PAGES for name in ids_in(text_of(page))]


@pytest.mark.parametrize("page", PAGES)
def test_ids_are_those_of_their_page(page):
    found = ids_in(text_of(page))
    assert found
    assert [name for name in found if not re.fullmatch(rf"{PAGES[page]}\d+", name)] == []
    assert "promise:" not in without_ids(text_of(page)), "an id that is not written as the others"


def test_an_id_is_one_promise():
    """One promise may be made in two places, if it is the same page that makes it: `T13` is."""
    assert [name for name, times in Counter(IDS).items() if times > 1] == ["T13"]


@pytest.mark.parametrize("page", WHOLLY)
def test_every_item_of_a_list_of_promises_has_an_id(page):
    for begin, end in WHOLLY[page]:
        _, _, rest = text_of(page).partition(begin)
        part, found, _ = rest.partition(end)
        assert found, f"{page} has no {end!r} after {begin!r}"
        items = re.findall(r"^(?:- |\| `).*?(?=^- |^\| |^$|\Z)", part, re.MULTILINE | re.DOTALL)
        assert len(items) >= 5
        assert [item for item in items if not ids_in(item)] == []
        rows = [item for item in items if item.startswith("|")]
        assert [row for row in rows if len(ids_in(row)) < 2] == [], "both what is acknowledged and what a crash leaves"


@pytest.mark.parametrize("page", PAGES)
def test_a_sentence_that_sounds_like_a_promise_has_an_id_or_was_reviewed(page):
    found = [each for each in sentences(text_of(page)) if PROMISING.search(each)]
    assert found
    assert [each for each in found if "⟦" not in each and not each.startswith(DESCRIBING)] == []


@pytest.mark.parametrize("name", IDS)
def test_a_promise_has_tests_that_kill_a_mutant_of_it(name):
    breaking = [mutant for mutant in MUTANTS if name in mutant.promises]
    if not breaking and f'"{name}"' in mutants.LIST.read_text("utf-8"):
        pytest.skip("the plugin that keeps it is not in this checkout")
    assert breaking, "no mutant breaks it"
    killing = {test.partition("[")[0] for mutant in breaking for test in mutant.tests}
    assert killing & TESTS.get(name, set()), f"none of {sorted(killing)} is marked promise({name!r})"


def test_every_mark_and_every_mutant_is_of_a_promise():
    assert sorted(TESTS.keys() - set(IDS)) == []
    assert sorted({name for mutant in MUTANTS for name in mutant.promises} - set(IDS)) == []
    unmarked = {
        (name, mutant.name)
        for mutant in MUTANTS
        for name in mutant.promises
        if not {test.partition("[")[0] for test in mutant.tests} & TESTS.get(name, set())
    }
    assert unmarked == set(), "no test that kills it is one of the promise"
