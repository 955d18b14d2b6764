"""Notes with front matter: it is filtered by and never searched, its lines count, and a bad one stops nothing."""

import pytest

from klaw_core import Filters, parse_condition


def found(memory, query, *conditions):
    filters = Filters(metadata=tuple(map(parse_condition, conditions)))
    return memory.search(query, mode="fts", filters=filters)


def test_lines_of_results_are_those_of_the_file(home, memory):
    home.write("a.md", "---\ntags: [x]\nstatus: open\n---\n\n# Heron\n\nThe heron stands.\n")
    memory.index(home.notes)
    (result,) = found(memory, "heron", "status=open")
    assert result.metadata == {"tags": ("x",), "status": "open"}
    excerpt = memory.get(result.path, result.start_line, result.end_line - result.start_line + 1)
    assert result.content.strip() == excerpt.content.strip()
    assert memory.get("notes/a.md", 8, 1).content.strip() == "The heron stands."
    assert memory.get("notes/a.md").content.startswith("---\ntags: [x]")


def test_front_matter_is_found_and_is_not_part_of_the_text(home, memory):
    home.write("a.md", "---\nstatus: kingfisher\nemail: jaana@example.net\n---\nThe heron stands.\n")
    home.write("b.md", "---\nemail: ondrej@example.org\n---\nA net for example.\n")
    memory.index(home.notes)
    assert [result.content.strip() for result in found(memory, "kingfisher")] == ["The heron stands."]
    assert found(memory, "jaana@example.net")[0].path == "notes/a.md"
    assert found(memory, "heron", "status=kingfisher")
    assert not any("kingfisher" in text for text in home.recorder.texts)


@pytest.mark.parametrize(
    "block",
    [
        "---\nauthor: {name: Jaana, place: {town: Kingfisher}}\n---",
        "---\nauthor:\n  - name: Jaana\n    place: [{town: Kingfisher}]\n---",
        "+++\n[author]\nname = 'Jaana'\nplace.town = 'Kingfisher'\n+++",
    ],
)
def test_nested_front_matter_is_found_and_is_not_embedded(home, memory, block):
    home.write("a.md", f"{block}\nThe heron stands.\n")
    home.write("b.md", "A net for example.\n")
    memory.index(home.notes)
    for results in (found(memory, "kingfisher"), found(memory, "heron", "author.place.town=kingfisher")):
        assert [result.path for result in results] == ["notes/a.md"]
    assert not found(memory, "heron", "author.name=ondrej")
    assert not any("ingfisher" in text for text in home.recorder.texts)


def test_a_note_of_properties_alone_is_found_by_them(home, memory):
    home.write("only.md", "---\ntitle: Learn the accordion\nstatus: waiting\n---\n")
    home.write("bullet.md", "- \n")
    memory.index(home.notes)
    assert [result.path for result in found(memory, "accordion")] == ["notes/only.md"]
    assert found(memory, "waiting")[0].content.startswith("---\ntitle: Learn")
    assert {entry.path for entry in memory.recent()} == {"notes/only.md"}


def test_tags_in_the_text_are_tags(home, memory):
    text = "A manager listens. #zettel #management/people\n\n- item #listed\n\n`#code` [x](#anchor) #123 #a1b2c3\n"
    home.write("a.md", f"---\ntags: [Zettel, person]\n---\n{text}\n```\n#fenced\n```\n\n    #indented\n")
    memory.index(home.notes)
    assert found(memory, "manager")[0].metadata["tags"] == ("Zettel", "person", "management/people", "listed")
    assert found(memory, "manager", "tags=management")


def test_a_change_of_front_matter_alone_is_indexed(home, memory, check):
    home.write("a.md", "---\nstatus: open\n---\nThe heron stands.\n")
    memory.index(home.notes)
    home.write("a.md", "---\nstatus: done\n---\nThe heron stands.\n", hours=1)
    assert memory.index().changed == 1
    assert not found(memory, "heron", "status=open")
    assert found(memory, "heron", "status=done")
    check(memory)


@pytest.mark.parametrize(
    "block",
    [
        "tags: [a",
        "a: !!bool maybe",
        "a: !!timestamp soon",
        "a: !!int ''",
        "date: 0001-01-01T00:00:00+05:00",
        "a: " + "[" * 2000 + "]" * 2000,
        "a: &x [1]\nb: *x",
        "\x07: \x1b",
    ],
)
def test_invalid_front_matter_does_not_prevent_indexing(home, memory, block):
    home.write("bad.md", f"---\n{block}\n---\nThe heron of the bad note.\n")
    home.write("good.md", "The heron of the good note.\n")
    assert memory.index(home.notes).skipped == ()
    assert sorted(result.path for result in found(memory, "heron")) == ["notes/bad.md", "notes/good.md"]


def test_a_note_in_latin_1_is_read_and_a_notice_says_so(home, memory):
    home.write("a.md", "")
    (home.notes / "a.md").write_bytes("# Café\n\nCrème brûlée – “for” the heron.\n".encode("cp1252"))
    assert memory.index(home.notes).skipped == ()
    results = found(memory, "heron")
    assert (results[0].path, results[0].metadata) == ("notes/a.md", {"encoding": "windows-1252"})
    assert [notice for notice in results.notices if "read as Windows-1252" in notice]
    assert "brûlée – “for”" in memory.get("notes/a.md").content
