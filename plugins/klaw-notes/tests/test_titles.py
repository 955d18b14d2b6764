"""What a note is called outside its text."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klaw_notes.titles import leading_day, note_title


@pytest.mark.parametrize(
    ("relative", "metadata", "title"),
    [
        ("Recipes/Borscht.md", {}, "Recipes / Borscht"),
        ("1598-generic_associated_types.md", {}, "1598 generic associated types"),
        ("a/b_c/d.markdown", {}, "a / b c / d"),
        ("b.md", {"title": "Beet  soup"}, "Beet soup (b)"),
        ("beet-soup.md", {"title": "Beet Soup"}, "Beet Soup"),
        ("b.md", {"aliases": ("Beet soup", "Borsch")}, "b (Beet soup, Borsch)"),
        ("b.md", {"alias": "Borsch"}, "b (Borsch)"),
        ("2026-02-24.md", {}, "2026-02-24, Tuesday, 24 February 2026"),
        ("log/2026-02-24 stand-up.md", {}, "log / 2026-02-24, Tuesday, 24 February 2026 stand up"),
        ("2026-02-31.md", {}, "2026 02 31"),
        ("b.md", {"title": 7, "aliases": True}, "7 (b, True)"),
        ("journals/2026_02_24.md", {}, "journals / 2026-02-24, Tuesday, 24 February 2026"),
        ("20260224T101530--the-harbour__work.md", {}, "2026-02-24, Tuesday, 24 February 2026 the harbour work"),
        ("202602241015 Harbour.md", {}, "2026-02-24, Tuesday, 24 February 2026 Harbour"),
        ("20261399 Harbour.md", {}, "20261399 Harbour"),
        ("12345678901.md", {}, "12345678901"),
        ("___.md", {}, ""),
        ("x" * 500 + ".md", {}, "x" * 200),
    ],
)
def test_the_title_of_a_note_has_folders_file_title_and_aliases(relative, metadata, title):
    assert note_title(relative, metadata) == title


@given(st.text(st.characters(exclude_characters="\0"), min_size=1, max_size=30).filter(lambda name: name.strip("/.")))
def test_every_title_is_one_line(name):
    title = note_title(f"{name}.md", {"title": name, "aliases": (name, "")})
    assert "\n" not in title
    assert title == title.strip()


@pytest.mark.parametrize("day", [date(2026, 2, 24), date(2000, 12, 31)])
@pytest.mark.parametrize("form", ["%Y-%m-%d", "%Y_%m_%d", "%Y%m%d", "%Y%m%dT101530", "%Y%m%d1015"])
@pytest.mark.parametrize("rest", ["", ".md", " a title.md", "--a-title__tag.md", "_a_title.md"])
def test_a_name_begins_with_a_day(day, form, rest):
    assert leading_day(f"{day:{form}}{rest}") == (day, rest)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "notes 2026-02-24",
        "2026-02_24",
        "20261399",
        "202602",
        "20260224abc",
        "123456789012",
        "12340506",
        "1234-05-06",
        "199012311234",
        "20260224T9999",
    ],
)
def test_other_names_begin_with_none(name):
    assert leading_day(name) is None
