"""Conditions in questions: tags, paths, words to leave out, phrases."""

import os
from random import Random

import pytest

from klaw_core import Condition, Filters, QueryError

NOTES = {
    "People/Ann.md": "---\ntags: [person, energy/heating]\n---\nThe pump of Ann radiates warmth.\n",
    "Radiators.md": "The pump feeds the radiators. #energy\n",
    "Old/pump.md": "The old pump: butter with one egg.\n",
    "cake.md": "Take egg butter for the pump cake.\n",
}


@pytest.fixture
def notes(home, memory):
    for name, text in NOTES.items():
        home.write(name, text)
    memory.index(home.notes)
    return memory


@pytest.mark.parametrize(
    ("question", "paths"),
    [
        ("pump tag:energy", {"People/Ann.md", "Radiators.md"}),
        ("tag:ENERGY/heating", {"People/Ann.md"}),
        ("tags:#person pump", {"People/Ann.md"}),
        ("pump -tag:energy", {"Old/pump.md", "cake.md"}),
        ("pump -tag:Energy", {"Old/pump.md", "cake.md"}),
        ("path:people/ pump", {"People/Ann.md"}),
        ('pump path:"Old/"', {"Old/pump.md"}),
        ("pump -path:old -radiators", {"People/Ann.md", "cake.md"}),
        ('"egg butter" -radiators', {"cake.md"}),
        ('pump -"egg butter"', {"People/Ann.md", "Radiators.md", "Old/pump.md"}),
    ],
)
def test_a_condition_holds_for_all_results(notes, question, paths):
    results = notes.search(question)
    assert {result.path.removeprefix("notes/") for result in results} == paths
    assert [notice for notice in results.notices if notice.startswith("read as conditions: ")]


@pytest.mark.parametrize(
    ("question", "filters", "paths"),
    [
        ("tag:energy", Filters(), ["Radiators.md", "People/Ann.md"]),
        ("", Filters(metadata=(Condition("tags", "=", "energy"),)), ["Radiators.md", "People/Ann.md"]),
        ("  ", Filters(path="notes/"), ["cake.md", "Old/pump.md", "Radiators.md", "People/Ann.md"]),
        ("tag:energy -radiators", Filters(), ["People/Ann.md"]),
        ("path:old", Filters(), ["Old/pump.md"]),
        ("-tag:energy", Filters(), ["cake.md", "Old/pump.md"]),
        ("-path:old -tag:person", Filters(), ["cake.md", "Radiators.md"]),
        ("tag:energy", Filters(path="notes/R"), ["Radiators.md"]),
        ("tag:nowhere", Filters(), []),
    ],
)
def test_conditions_without_words_list_the_newest_documents(home, memory, question, filters, paths):
    for number, (name, text) in enumerate(NOTES.items(), start=1):
        os.utime(home.write(name, text), (number * 86_400, number * 86_400))
    memory.index(home.notes)
    results = memory.search(question, filters=filters)
    assert [result.path.removeprefix("notes/") for result in results] == paths
    assert {result.relevance for result in results} <= {None}
    assert [result.path for result in memory.search(question, 1, filters=filters)] == [
        f"notes/{path}" for path in paths[:1]
    ]
    assert results or "no metadata has tags = " in " ".join(results.hints)


@pytest.mark.parametrize("limit", [1, 3, 5])
@pytest.mark.parametrize("question", ["tag:even", "tag:rare", "-tag:even", "path:notes/"])
def test_law_a_list_is_the_same_whether_all_chunks_are_read_or_those_of_the_newest(
    home, memory, monkeypatch, question, limit
):
    dice = Random(7)
    for number in range(120):
        tags = ["even"] * (number % 2 == 0) + ["rare"] * (number % 40 == 3)
        path = home.write(f"n{number}.md", f"---\ntags: {tags}\n---\nThe pump.\n\n## More\n\nOf note {number}.\n")
        os.utime(path, (day := dice.randrange(1, 60) * 86_400, day))  # several notes are of one day
    memory.index(home.notes)
    snapshot = class_of_snapshots(memory)
    read = []
    chunks = snapshot.chunks
    monkeypatch.setattr(snapshot, "chunks", lambda view, name, keys: read.extend(keys) or chunks(view, name, keys))
    quick, few = list(memory.search(question, limit)), len(read)
    monkeypatch.setattr(snapshot, "newest", lambda *_given, **_named: ())
    assert quick == list(memory.search(question, limit))
    assert len(quick) == min(limit, 3 if question == "tag:rare" else limit)
    if limit == 1 and question != "tag:rare":
        assert few < (len(read) - few) / 3


def class_of_snapshots(memory):
    """Return the class of the snapshots of a memory's store."""
    with memory._assembly.store.read() as snapshot:
        return type(snapshot)


def test_a_list_has_the_first_matching_chunk_of_each_document(home, memory):
    long = "\n\n".join(f"## Part {number}\n\n" + f"The pump of part {number} runs. " * 80 for number in range(6))
    home.write("long.md", f"---\ntags: [t]\n---\n{long}\n")
    home.write("other.md", "No tag.\n")
    memory.index(home.notes)
    (result,) = memory.search("tag:t")
    assert result.heading == ("Part 0",)
    assert len(memory.search("pump tag:t", per_document=None)) > 1


@pytest.mark.parametrize("question", ["", " ", "\n"])
def test_without_words_and_conditions_there_is_nothing_to_search_for(notes, question):
    with pytest.raises(QueryError, match="the query is empty"):
        notes.search(question)


@pytest.mark.parametrize(
    "question",
    [
        "pump - radiators",
        "ls -la pump",
        "pump --radiators",
        "energy-radiators pump",
        "what:is pump",
        "-radiators",
        'a "pump" x',
    ],
)
def test_other_questions_are_read_as_words(notes, question):
    results = notes.search(question)
    assert "notes/Radiators.md" in {result.path for result in results}
    assert not [notice for notice in results.notices if "conditions" in notice]


def test_a_message_is_no_question(notes):
    assert not [notice for notice in notes.search("the pump\n-radiators").notices if "conditions" in notice]
    assert not [notice for notice in notes.search("pump " * 50 + "-radiators").notices if "conditions" in notice]


def test_a_condition_reaches_results_that_are_far_down(home, memory):
    for number in range(60):
        home.write(f"many/{number}.md", f"The pump number {number} pumps, a pump of pumps.\n")
    home.write("last/one.md", "A long text about many other things, in which some pump is mentioned once. " * 3)
    memory.index(home.notes)
    assert [result.path for result in memory.search("pump path:last/", 3)] == ["notes/last/one.md"]


def test_a_phrase_alone_comes_first_and_leaves_nothing_out(home, memory):
    home.write("a.md", "Take butter. Take an egg, and butter it, egg for egg. Butter, egg.\n")
    home.write("b.md", "A long text about a cake, in which some egg butter is mentioned among other things.\n" * 2)
    memory.index(home.notes)
    assert memory.search('"egg butter"')[0].path == "notes/b.md"
    assert not [notice for notice in memory.search('"egg butter"').notices if "conditions" in notice]


def test_a_question_with_a_secret_is_left_as_it_is(notes):
    found = notes.search("mysql -u root -pZq7Yw3Xv91119Ut5")
    assert not any("read as conditions" in notice or "Zq7Yw3" in notice for notice in found.notices)
