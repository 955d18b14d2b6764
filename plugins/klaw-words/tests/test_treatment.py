"""What normalising a text loads."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from klaw_words.plan import _JOINING
from klaw_words.query import compile_query
from klaw_words.tokenizer import FUNCTION_TERMS, makes_pairs, tokenizer
from klaw_words.treatment import _function_words, fold, index_text, keep


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


@pytest.mark.parametrize("name", ["Ines", "Inés", "Andes", "Howe", "herring", "Mai", "Wes", "ＩＮＥＳ", "Doe"])
def test_a_word_with_the_stem_of_a_function_word_is_not_that_word(name: str) -> None:
    terms = tokenizer()
    (known,) = terms(name.encode() if name.isascii() else fold(name).encode())
    assert known in FUNCTION_TERMS
    (found,) = terms(index_text(name).strip().encode())
    assert found not in FUNCTION_TERMS
    (asked,) = compile_query(name)
    assert terms(asked.words[0].encode()) == [found]
    assert makes_pairs(found)


def test_a_text_is_treated_word_by_word_whatever_was_treated_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Words that stay as they are need not be looked at again: not those that change, and not more than some."""
    monkeypatch.setattr("klaw_words.treatment._unchanged", known := set())
    monkeypatch.setattr("klaw_words.treatment._MAX_UNCHANGED", 4)
    separators = [chr(code) for code in range(0x80) if not chr(code).isalnum()]
    texts = [f"Ines{each}and{each}Andes{each}quay{each}дача{each}Ines" for each in separators]
    texts += ["Ines", "quay", "quays Ines", "", "quay", "one two three four five six", "Ines quay", "a\ud800b Ines"]
    for text in texts:
        words = re.split("([\x00-/:-@[-`{-\x7f]+)", text)
        assert index_text(text) == "".join(index_text(word) for word in words), text
        assert len(known) <= 4 + 6
        assert not known & {b"ines", b"andes"}
    assert known


def test_no_word_with_the_stem_of_a_function_word_is_overlooked() -> None:
    """The first letters of a word say whether it must be stemmed; endings after parts of the function words show it."""
    starts = {stem[:size] for stem in map(bytes.decode, FUNCTION_TERMS) for size in range(1, len(stem) + 1)}
    endings = ["", "y", "ies", "ied", "eed", "ness", "ful", "fulness", "ational", "biliti", "ousness", "izer", "ement"]
    endings += [f"{letter}{ending}" for letter in ("", "e", "l", "r", "t", "y") for ending in ("s", "es", "ed", "ing")]
    words = [f"{start}{ending}" for start in starts for ending in endings]
    changed = [word for word in words if keep(word) != word]
    assert len(changed) > 300
    assert not [word for word in changed if index_text(word) == word]


def test_inflections_of_what_is_no_function_word_stay_one_word() -> None:
    terms = tokenizer()
    assert len({*terms(index_text("canned canning Cans").encode())}) == 1
    assert terms(index_text("can may his").encode()) == [b"can", b"mai", b"hi"]


def test_the_stems_of_the_function_words_are_the_function_terms() -> None:
    text = " ".join(_function_words())
    assert index_text(text) == text
    assert set(tokenizer()(text.encode())) == FUNCTION_TERMS


def test_the_joining_words_are_function_words() -> None:
    terms = {word: tokenizer()(index_text(word).encode()) for word in _JOINING}
    assert len(terms) >= 7
    assert {word for word, found in terms.items() if not {*found} <= FUNCTION_TERMS} == set()
