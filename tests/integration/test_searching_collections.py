"""Searches of several collections, searches by a vector, and copies of a text."""

import numpy as np
import pytest

from klaw_core import Filters, QueryError, parse_condition
from klaw_core.values.search import NO_GOOD_MATCH

WORDS = ["harbour", "kiln", "lantern", "heron"]


def shown(results):
    """Return the results as what they are of, without scores."""
    return {(result.collection, result.path, result.start_line, result.content) for result in results}


@pytest.fixture
def both(home, memory):
    """A memory over notes and a manual that share words, names of files, and one whole text."""
    manual = home.root / "manual"
    manual.mkdir()
    for number, word in enumerate(WORDS):
        home.write(f"{number}.md", f"---\nplace: notes\n---\nThe {word} of the notes, number {number}.\n")
        text = f"---\nplace: manual\n---\nThe {word} of the manual, number {number}.\n"
        (manual / f"{number}.md").write_text(text)
    home.write("same.md", "This buoy is everywhere.\n")
    (manual / "same.md").write_text("This buoy is everywhere.\n")
    memory.index(home.notes)
    memory.index(manual, collection="docs")
    return memory


@pytest.mark.parametrize("mode", ["hybrid", "fts", "vector"])
@pytest.mark.parametrize("query", WORDS)
def test_a_search_in_several_collections_unites_their_results(both, query, mode):
    found = both.search(query, 100, mode=mode, collection=["memory", "docs"], duplicates="keep")
    apart = [both.search(query, 100, mode=mode, collection=name, duplicates="keep") for name in ("memory", "docs")]
    assert shown(found) == shown(apart[0]) | shown(apart[1])
    assert len(found) == len(shown(found))
    assert {result.collection for result in found} == {"memory", "docs"}


@pytest.mark.parametrize("mode", ["hybrid", "fts", "vector"])
def test_the_order_of_collections_changes_no_score(both, mode):
    one, other = (
        both.search("harbour kiln", 100, mode=mode, collection=names, duplicates="keep")
        for names in (["memory", "docs"], ["docs", "memory"])
    )
    assert shown(one) == shown(other)
    if mode == "vector":  # ranks of equal scores may differ, scores may not
        assert sorted(item.similarity for item in one) == pytest.approx(sorted(item.similarity for item in other))


def test_a_collection_named_twice_is_searched_once(both):
    twice = both.search("harbour", 100, collection=["docs", "docs"])
    assert twice.results == both.search("harbour", 100, collection="docs").results


def test_a_text_of_two_collections_is_shown_once_unless_duplicates_are_kept(both):
    assert len(both.search("buoy", 1, mode="fts", collection=["memory", "docs"])) == 1
    both_copies = both.search("buoy", 10, mode="fts", collection=["memory", "docs"], duplicates="keep")
    assert sorted((item.collection, item.path) for item in both_copies) == [
        ("docs", "manual/same.md"),
        ("memory", "notes/same.md"),
    ]


def test_filters_apply_in_every_collection(both):
    conditions = Filters(metadata=(parse_condition("place=manual"),))
    found = both.search("harbour heron", 100, collection=["memory", "docs"], filters=conditions)
    assert {result.collection for result in found} == {"docs"}
    assert all(result.metadata == {"place": "manual"} for result in found)


def test_get_reads_a_result_of_any_collection(both):
    results = both.search("harbour", 100, mode="fts", collection=["memory", "docs"])
    assert {result.collection for result in results} == {"memory", "docs"}
    for result in results:
        excerpt = both.get(result.path, result.start_line, result.end_line - result.start_line + 1)
        assert result.content.strip() in excerpt.content


@pytest.mark.parametrize("names", [[], ["memory", "elsewhere"]])
def test_collections_that_do_not_exist_are_refused(both, names):
    with pytest.raises(QueryError):
        both.search("harbour", collection=names)


@pytest.mark.parametrize("query", WORDS)
def test_the_vector_of_a_question_finds_the_same_as_the_question(home, both, query):
    vector = home.component("counting").factory(None, None).embed_query(query)
    asked, given = both.search(query, mode="vector"), both.search("else", mode="vector", vector=vector)
    assert asked.results == given.results
    assert asked[0].similarity == pytest.approx(asked[0].explain[0].raw)


def test_a_vector_needs_no_embedder(home, both):
    vector = home.component("counting").factory(None, None).embed_query("kiln")
    home.recorder.questions.clear()
    home.recorder.fail_at = 0
    assert both.search("kiln", vector=vector).notices == ()
    assert home.recorder.questions == []


@pytest.mark.parametrize("vector", [np.ones(48), np.ones(3) / np.sqrt(3), np.zeros(48), np.full(48, np.nan)])
def test_a_vector_of_another_space_is_rejected(both, vector):
    with pytest.raises(QueryError, match="unit length"):
        both.search("kiln", vector=vector)


def test_duplicates_are_kept_only_on_request(home, memory):
    for number in range(3):
        home.write(f"copy{number}.md", "Twine is in the drawer.\n")
    memory.index(home.notes)
    assert len(memory.search("twine")) == 1
    kept = memory.search("twine", duplicates="keep")
    assert sorted(result.path for result in kept) == [f"notes/copy{number}.md" for number in range(3)]
    assert shown(memory.search("twine")) <= shown(kept)
    with pytest.raises(QueryError, match="duplicates"):
        memory.search("twine", duplicates="some")


@pytest.fixture
def manual(home):
    """A directory of documents whose texts are alike; the collection ``memory`` stays empty."""
    directory = home.root / "manual"
    directory.mkdir()
    for number, more in enumerate(["", " again", " and again", " with a kiln and a lantern"]):
        (directory / f"{number}.md").write_text(f"The heron stands in the harbour{more}.\n")
    return directory


@pytest.mark.parametrize("names", [["docs", "memory"], ["memory", "docs"]])
@pytest.mark.parametrize("mode", ["hybrid", "fts", "vector"])
def test_an_empty_collection_does_not_affect_other_results(home, manual, mode, names):
    with home.open(reranking=[{"type": "mmr"}]) as memory:
        memory.index(manual, collection="docs")
        alone, both = (memory.search("heron", mode=mode, collection=wanted) for wanted in (["docs"], names))
        assert both.notices == alone.notices
        assert [item.path for item in both] == [item.path for item in alone]
        stages = [[part.value for part in item.explain if part.component == "mmr"] for item in both]
        assert stages == [[part.value for part in item.explain if part.component == "mmr"] for item in alone]


def test_a_collection_without_vectors_is_not_an_empty_one(home, manual, memory):
    memory.index(manual, collection="docs")
    home.write("a.md", "The heron is waiting.\n")
    memory.index(home.notes, embed=False)
    notices = memory.search("heron", collection=["memory", "docs"]).notices
    (notice,) = [each for each in notices if each != NO_GOOD_MATCH]
    assert "klaw embed" in notice
