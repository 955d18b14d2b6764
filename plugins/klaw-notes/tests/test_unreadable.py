"""What nobody wrote to be read is blanked out of a note, and nothing else."""

import base64
import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klaw_notes import unreadable
from klaw_notes.unreadable import blank_unreadable

CODE = base64.b64encode(random.Random(7).randbytes(600)).decode()
ROWS, SHORTEST_ROWS = (
    "\n".join(CODE[start : start + width] for start in range(0, len(CODE), width)) for width in (64, 60)
)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (f"See ![a](data:image/png;base64,{CODE}) here.", "See ![a]( ) here."),
        (f"a\n\n{CODE}\n\nb", "a b"),
        (f"```\n-----BEGIN CERTIFICATE-----\n{ROWS}\n-----END CERTIFICATE-----\n```", "``` ---------- ---------- ```"),
        (f"a\n\n{SHORTEST_ROWS}\n\nb", "a b"),
        ("Read [the book] now.\n\n[the book]: https://example.org/book", "Read [the book] now."),
        ("Read [it][The  Book] now.\n[the book]: <a b> 'title'\n", "Read [it][The Book] now."),
        ("x " + "0123456789abcdef" * 20, "x"),
    ],
)
def test_encoded_data_is_blanked(text, left):
    blanked = re.sub(r"(BEGIN|END) CERTIFICATE", "", " ".join(blank_unreadable(text).split()))
    assert blanked == left


@pytest.mark.parametrize(
    "text",
    [
        "[bookmark]: https://example.org",  # nothing refers to it: somebody keeps it here
        "A note[^1].\n\n[^1]: What it says.",
        "See [a].\n\n```\n[a]: https://example.org\n```\n",
        "See [a].\n\n- [a]: an item\n",
        "See [a].\n\n[a]: words that go on and on\n",
        "sha512 " + "0123456789abcdef" * 8,
        "THIS_IS_A_VERY_LONG_CONSTANT_" * 9,
        "a-very-long-slug-of-words-" * 9,
        "/usr/lib/python3/dist-packages/" * 9,
        "GATTACA" * 60,
        "数据库" * 100,
        "1234567890" * 30,
        "\n".join(["supercalifragilisticexpialidocious" * 2] * 5),
    ],
)
def test_text_that_may_be_searched_for_stays(text):
    assert blank_unreadable(text) == text


@given(
    st.lists(
        st.sampled_from(
            ["[a]: b\n", "[a]\n", "```\n", "~~~~\r\n", f"{CODE}\n", f"{ROWS}\n", "words \r", "[b]: c", "\u2028"]
        )
        | st.text(max_size=9),
        max_size=9,
    ).map("".join)
)
def test_blanking_moves_no_character_and_no_line(text):
    blanked = blank_unreadable(text)
    assert len(blanked) == len(text)
    assert all(after in (before, " ") for before, after in zip(text, blanked, strict=True))
    assert re.sub(r"[^\r\n]", "", blanked) == re.sub(r"[^\r\n]", "", text)


_PIECES = st.sampled_from(
    (
        "word ",
        "\n",
        "\r\n",
        "\t",
        "\x0b",
        "\u2028",
        "A1b" * 25 + "\n",
        "Zz9+/" * 14,
        "q8R" * 45,
        "f0" * 130,
        "=",
        "-",
        "[a]: https://example.org/x\n",
        "[a] ",
        "  [b]: <y> 'z'\n",
        "[b]",
        "```\n",
        "~~~\n",
        "    [c]: d\n",
        "[^n]: o\n",
    )
)


@given(st.lists(_PIECES, max_size=25).map("".join))
def test_the_quick_check_misses_nothing(text: str) -> None:
    """Words tell where a pattern can match at all; here every pattern is tried everywhere."""
    expected = unreadable._ROWS.sub(unreadable._blank_code, unreadable._RUN.sub(unreadable._blank_code, text))
    lines = expected.splitlines(keepends=True)
    found = dict(unreadable._definitions(lines))
    rest = "".join(line for number, line in enumerate(lines) if number not in found)
    used = {unreadable._normal(label) for label in unreadable._LABEL.findall(rest)}
    blanked = (
        re.sub(r"[^\r\n]", " ", line) if found.get(number) in used else line for number, line in enumerate(lines)
    )
    assert blank_unreadable(text) == "".join(blanked)
