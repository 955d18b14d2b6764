"""What normalising a text loads."""

from __future__ import annotations

import subprocess
import sys

import pytest

from klaw_words.tokenizer import tokenizer
from klaw_words.treatment import fold, index_text


def test_stemming_is_loaded_with_the_first_cyrillic_word() -> None:
    program = (
        "import sys; from klaw_words.treatment import index_text; index_text('naïve 数据'); "
        "assert 'snowballstemmer' not in sys.modules; print(index_text('памяти'))"
    )
    ran = subprocess.run(
        [sys.executable, "-X", "utf8", "-c", program], capture_output=True, text=True, check=True, encoding="utf8"
    )
    assert ran.stdout.strip() == "памят"


@pytest.mark.parametrize(
    ("written", "asked"),
    [
        ("Αθήνα", "ΑΘΗΝΑ"),
        ("Οδυσσέας", "ΟΔΥΣΣΕΑΣ"),
        ("Ἀθῆναι", "αθηναι"),
        ("Łódź", "LODZ"),
        ("żółw", "zolw"),
        ("Øresund", "oresund"),
        ("đường", "duong"),
        ("Iğdır", "IĞDIR"),
        ("ışık", "ISIK"),
        ("œuvre", "oeuvre"),
        ("Þingvellir", "thingvellir"),
        ("ħobż", "hobz"),
        ("Straße", "STRASSE"),
        ("أحمد", "احمد"),
        ("إيمان", "ايمان"),
        ("آمنة", "امنه"),
        ("مدرسة", "مدرسه"),
        ("کتاب", "كتاب"),
    ],
)
def test_letters_that_people_write_for_one_another_are_the_same(written: str, asked: str) -> None:
    terms = tokenizer()
    found = terms(index_text(written).encode())
    assert found == terms(index_text(asked).encode())
    assert terms(fold(written).encode()) == terms(fold(asked).encode())


@pytest.mark.parametrize(("one", "other"), [("йод", "иод"), ("か", "が"), ("は", "ぱ"), ("שָׁלוֹם", "סלום")])
def test_other_letters_stay_apart(one: str, other: str) -> None:
    terms = tokenizer()
    assert terms(index_text(one).encode()) != terms(index_text(other).encode())


def test_a_folded_letter_is_folded_for_good() -> None:
    folded = {character: fold(character) for character in map(chr, range(0x80, 0x3000))}
    assert not {character: text for character, text in folded.items() if fold(text) != text}
