"""The markup of ``.txt`` files."""

import pytest

from klaw_notes.text_kinds import markup_of

RST = "==========\nMiddleware\n==========\n\nA hook.\n\nWriting\n=======\n\n.. code::\n\n    x\n"
GIT = "git-stash(1)\n============\n\nNAME\n----\ngit-stash - Stash\n\nUSE\n---\n[verse]\n'git stash'\n\n-p::\n\tA.\n"


@pytest.mark.parametrize(
    ("text", "suffix"),
    [
        (RST, ".rst"),
        (RST.replace("\n", "\r\n"), ".rst"),
        (GIT, ".adoc"),
        (":toc:\n= Guide\nAnn\n\n== One\n\ntext\n", ".adoc"),
        ("Just lines.\n\nAnd more of them.\n", ""),
        ("Name   Size\n----   ----\na      1\n\nOne\n===\n", ""),
        ("= a + b\n\nSome sums.\n", ""),
        ("-----\nline\n-----\n\ntext that goes on\n--\n", ""),
    ],
)
def test_a_text_with_titles_has_a_markup(text, suffix):
    assert markup_of(text) == suffix
