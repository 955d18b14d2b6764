"""The compiler: any text in, a bounded expression that FTS5 accepts out."""

from __future__ import annotations

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from klaw_testing.index import queries
from klaw_testing.laws import scaled
from klaw_words import query as compiler
from klaw_words.query import MAX_COMPILED, MAX_PREFIXES, MAX_WORDS, Term, compile_query, render, select
from klaw_words.tokenizer import TOKENIZER
from klaw_words.treatment import fold, index_text


def compiled(text: str) -> list[str]:
    return [render((term,)) for term in compile_query(text)]


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("", []),
        ("?! … 🚀 \0", []),
        ("Which database DID we choose", ['"which"', '"database"', '"did"', '"we"', '"choose"']),
        ("again and again", ['"again"', '"and"']),
        ('the "write ahead log" file', ['"the"', '"write ahead log"', '"file"']),
        ("“curly” «Война и мир»", ['"curly"', '"войн и мир"']),
        ('"" "?"', []),
        ('"unclosed phrase', ['"unclosed"', '"phrase"']),
        ("arch*", ['"arch"*']),
        ("a* *", ['"a"']),
        ('"arch*"', ['"arch"']),
        ("C++ and F#", ['"c"', '"and"', '"f"']),
        ("foo-bar", ['"foo bar"', '"foo"', '"bar"']),
        ("snake_case*", ['"snake case"*', '"snake"', '"case"*']),
        ("a.b.c", ['"a b c"']),
        ("the cat's", ['"the"', '"cat s"', '"cat"']),
        ("text:word AND NOT (x)", ['"text word"', '"text"', '"word"', '"and"', '"not"', '"x"']),
        ("什么是数据库？", ['"什 么"', '"么 是"', '"是 数"', '"数 据"', '"据 库"']),
        ("数", ['"数"']),
        ("用GPT模型", ['"用"', '"gpt"', '"模 型"']),
        ('"数据库 index"', ['"数 据 库 index"']),
        ("データ 데이터", ['"デ ー"', '"ー タ"', '"데 이"', '"이 터"']),
        ("ภาษาไทย", ['"ภ า ษ า"', '"า ษ า ไ"', '"ษ า ไ ท"', '"า ไ ท ย"']),
        ("ＦＵＬＬ　ｗｉｄｔｈ＊", ['"full"', '"width"*']),
        ("памяти Ёлка", ['"памят"', '"елк"']),
        ("हिन्दी", ['"हिन्दी"']),
        ("cafe\u0301", ['"caf\u00e9"']),
    ],
)
def test_a_question_is_compiled_to_a_query(text: str, terms: list[str]) -> None:
    assert compiled(text) == terms


@settings(deadline=None, max_examples=scaled(400))
@given(text=queries)
def test_work_is_bounded(text: str) -> None:
    terms = compile_query(text)
    assert len(set(terms)) == len(terms) <= MAX_COMPILED
    assert all(1 <= len(term.words) <= MAX_WORDS for term in terms)
    assert sum(term.prefix for term in terms) <= MAX_PREFIXES


@settings(deadline=None)
@given(text=queries, known=st.sets(st.text(max_size=3)))
def test_selection_adds_no_term_and_limits_prefixes(text: str, known: set[str]) -> None:
    terms = compile_query(text)
    chosen = select(terms, lambda term: term.words[-1] in known)
    assert len(set(chosen)) == len(chosen) <= len(terms)
    assert sum(term.prefix for term in chosen) <= 2 * MAX_PREFIXES
    assert set(select(terms, lambda _: True)) == set(terms)


@pytest.mark.parametrize(
    "text",
    [
        "a OR " * 200_000,
        "x" * 1_000_000,
        "数" * 1_000_000,
        '"' * 1_000_000,
        "ﷺ" * 100_000,
        "a.b" * 300_000,
        "“" * 1_000_000,
    ],
    ids=ascii,
)
def test_only_the_beginning_of_a_huge_question_is_used(text: str) -> None:
    assert compile_query(text) == compile_query(text[: compiler.MAX_CHARACTERS])
    assert len(render(compile_query(text))) < 16 * compiler.MAX_CHARACTERS


def test_a_long_quotation_is_searched_by_its_beginning() -> None:
    words = [f"w{number}" for number in range(40)]
    assert compile_query(f'"{" ".join(words)}"') == (Term(tuple(words[:MAX_WORDS]), literal=True),)


def test_many_prefixes_become_words() -> None:
    terms = compile_query(" ".join(f"word{number}*" for number in range(20)))
    assert [term.prefix for term in terms] == [True] * MAX_PREFIXES + [False] * (20 - MAX_PREFIXES)


def test_an_existing_word_is_not_a_prefix() -> None:
    assert select((Term(("arch",)),), lambda _: True) == (Term(("arch",)),)


def test_an_unknown_word_is_a_prefix() -> None:
    assert select((Term(("archit",)),), lambda term: term.prefix) == (Term(("archit",), prefix=True),)


def test_a_word_longer_than_its_stem_is_shortened() -> None:
    chosen = select((Term(("importa",)),), lambda term: term == Term(("import",)))
    assert chosen == (Term(("import",)),)


@pytest.mark.parametrize(
    ("word", "readings"),
    [
        ("ab", ["ab"]),
        ("abcd", ["abcd", "abcd*"]),
        ("abcdefgh", ["abcdefgh", "abcdefgh*", "abcdefg", "abcdef", "abcde", "abcd"]),
        ("v2024", ["v2024", "v2024*"]),
        ("abcdefghijkl", ["abcdefghijkl", "abcdefghijkl*", *("abcdefghijkl"[:end] for end in (11, 10, 9, 8, 7))]),
    ],
)
def test_the_forms_of_a_word_are_listed(word: str, readings: list[str]) -> None:
    asked: list[str] = []

    def never(term: Term) -> bool:
        asked.append(term.words[0] + "*" * term.prefix)
        return False

    assert select((Term((word,)),), never) == ()
    assert asked == readings


def test_phrases_and_characters_are_never_widened() -> None:
    literal = (Term(("write", "ahead"), literal=True), Term(("数", "据"), literal=True))
    assert select(literal, lambda _: False) == literal


def test_few_words_are_widened() -> None:
    terms = tuple(Term((f"word{number}",)) for number in range(30))
    assert len(select(terms, lambda term: term.prefix)) == MAX_PREFIXES


#: Blocks of 64 characters: the planes that hold any, tags, and both ends of private use.
_BLOCKS = [*range(0, 0x32400, 64), *range(0xE0000, 0xE0200, 64), 0xF0000, 0x10FFC0]


def test_compiler_and_tokenizer_agree_on_what_a_word_is() -> None:
    arguments = list(TOKENIZER[2:])
    tokenize = apsw.Connection(":memory:").fts5_tokenizer("unicode61", arguments)

    def indexed(text: str) -> int:
        return len(list(tokenize(index_text(text).encode(), apsw.FTS5_TOKENIZE_DOCUMENT, None)))

    def asked(text: str) -> int:
        return len(list(compiler._words(compiler._plain(fold(text)))))

    for start in _BLOCKS:
        text = " ".join(f"qq{chr(code)}zz" for code in range(start, start + 64))
        assert indexed(text) == asked(text), f"U+{start:04X}"
