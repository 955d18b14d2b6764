"""A note is found by what it is called: its file, its folders, the title and aliases in its front matter."""

import pytest

from klaw_core import Filters


@pytest.fixture
def memory(make_home):
    home = make_home("sqlite")
    memory = home.open()
    memory.home = home
    yield memory
    memory.close()


def first(memory, question, mode="fts"):
    results = memory.search(question, 1, mode=mode)
    return results[0].path if results else None


@pytest.fixture
def notes(memory):
    home = memory.home
    home.write("Recipes/Borscht.md", "Two beets, one onion.\n\n## Method\n\nBoil them.\n")
    home.write("falcon.md", "---\ntitle: Peregrine\naliases: [duck hawk]\n---\nOld note about a bird.\n")
    home.write("other.md", "# Soup\n\nTwo leeks, one onion, boil.\n")
    memory.index(home.notes)
    return home


@pytest.mark.parametrize(
    ("question", "path"),
    [
        ("borscht", "notes/Recipes/Borscht.md"),
        ("recipes", "notes/Recipes/Borscht.md"),
        ("peregrine", "notes/falcon.md"),
        ("duck hawk", "notes/falcon.md"),
        ("falcon", "notes/falcon.md"),
    ],
)
@pytest.mark.usefixtures("notes")
def test_a_note_is_found_by_its_names(memory, question, path):
    assert first(memory, question) == path


def test_a_name_is_embedded_with_a_chunk_that_has_no_heading(notes):
    probe, *texts = notes.recorder.take()
    assert "brown fox" in probe
    assert texts == [
        "Recipes / Borscht\nTwo beets, one onion.\n\n## Method\n\nBoil them.",
        "Peregrine (falcon, duck hawk)\nOld note about a bird.",
        "# Soup\n\nTwo leeks, one onion, boil.",
    ]


@pytest.mark.usefixtures("notes")
def test_names_do_not_change_content_and_lines(memory):
    (result,) = memory.search("duck hawk", mode="fts")
    assert result.content == "Old note about a bird."
    assert (result.start_line, result.heading) == (5, ())
    assert memory.get(result.path, 5, 1).content.strip() == result.content


def test_a_new_alias_is_found_and_embeds_only_affected_chunks(memory, notes, check):
    kept = {result.chunk_id for result in memory.search("old onion boil", 9, mode="fts")}
    notes.recorder.take()
    notes.write("falcon.md", "---\ntitle: Peregrine\naliases: [stooper]\n---\nOld note about a bird.\n", hours=1)
    notes.write("other.md", "---\naliases: [stooper]\n---\n# Soup\n\nTwo leeks, one onion, boil.\n", hours=1)
    assert memory.index().changed == 2
    assert notes.recorder.take() == ["Peregrine (falcon, stooper)\nOld note about a bird."]
    assert {result.path for result in memory.search("stooper", mode="fts")} == {"notes/falcon.md", "notes/other.md"}
    assert first(memory, "duck hawk") is None
    assert {result.chunk_id for result in memory.search("old onion boil", 9, mode="fts")} == kept
    check(memory)
    assert memory.doctor().findings == ()


def test_the_date_of_a_note_is_that_of_its_front_matter(memory):
    home = memory.home
    home.write("a.md", "---\ndate: 2020-01-05\n---\nThe marmots sleep.\n")
    home.write("2021-02-03.md", "---\ncreated: 2020-01-05\n---\nThe marmots wake.\n")
    memory.index(home.notes)
    found = {item.path: item.created_at.date().isoformat() for item in memory.search("marmots", mode="fts")}
    assert found == {"notes/a.md": "2020-01-05", "notes/2021-02-03.md": "2021-02-03"}
    early = Filters(until=memory.search("sleep", mode="fts")[0].created_at.replace(year=2021))
    assert [item.path for item in memory.search("marmots", mode="fts", filters=early)] == ["notes/a.md"]


def test_encoded_data_is_not_found_but_can_be_read(memory):
    home = memory.home
    picture = "iVBORw0KGgoAAAANSUhEUgAAAAUA9Zk" * 40
    image = f"![p](data:image/png;base64,{picture})"
    home.write("a.md", f"# Kiln\n\nSee [the book].\n\n{image}\n\n[the book]: https://x.org/yonder\n")
    memory.index(home.notes)
    (result,) = memory.search("kiln", mode="fts")
    assert result.content.split() == ["#", "Kiln", "See", "[the", "book].", "![p](", ")"]
    assert not memory.search("yonder", mode="fts")
    assert picture in memory.get(result.path).content
    assert memory.get(result.path, 7, 1).content.strip() == "[the book]: https://x.org/yonder"


@pytest.mark.needs("klaw-rerank-basic")
@pytest.mark.parametrize("question", ["2025-05-10", "what did I do on 10 May 2025", "May 10"])
def test_a_question_about_a_day_prefers_the_note_of_that_day(memory, question):
    home = memory.home
    home.write("Daily/2025-05-10.md", "Fired the kiln with Ben, who brought the new cones.\n")
    home.write("Daily/2025-05-11.md", "[[2025-05-10]] was a day in May 2025: what did I do? May 10 was odd.\n")
    home.write("Daily/2025-04-10.md", "What did I do? Nothing.\n")
    memory.index(home.notes)
    result = memory.search(question)[0]
    assert result.path == "notes/Daily/2025-05-10.md"
    assert "date" in [part.component for part in result.explain]
    assert sum(part.value for part in result.explain) == pytest.approx(result.score)
