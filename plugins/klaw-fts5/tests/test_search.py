"""What is found: the requirements, the languages, the order."""

from __future__ import annotations

import threading
from collections.abc import Callable

import apsw
import pytest

from klaw_core import Query
from klaw_fts5.index import Fts5Index
from klaw_testing.index import selection, stored

Find = Callable[..., list[int]]


def test_finds_only_the_exact_phrase(find: Find) -> None:
    texts = ("the write ahead log grows", "ahead of the write log", "write ahead")
    assert find('"write ahead log"', *texts) == [1]


def test_a_phrase_does_not_run_from_heading_into_text(connection: apsw.Connection) -> None:
    index = Fts5Index()
    index.add(connection, "memory", [stored(1, "ahead log", heading=("write",))], None)
    assert index.search(connection, Query('"write ahead"'), 5) == ()
    assert [hit.key for hit in index.search(connection, Query("write"), 5)] == [1]


@pytest.mark.parametrize("query", ["archit", "architec", "architectu", "ARCHIT", "archit*", "архит", "архитекту"])
def test_finds_a_partial_word(find: Find, query: str) -> None:
    assert find(query, "notes on architecture", "заметки об архитектуре", "nothing here") in ([1], [2])


@pytest.mark.parametrize(
    ("query", "text"),
    [("importa", "the importance of it"), ("relatio", "a relational store"), ("сотрудничат", "они сотрудничают")],
)
def test_finds_a_partial_word_that_is_longer_than_the_stem(find: Find, query: str, text: str) -> None:
    assert find(query, "something else", text) == [2]


def test_finds_a_partial_name_in_code(find: Find) -> None:
    assert find("snake_cas", "a snake", "a snake_case name", "x", "y", "z") == [2, 1]


def test_orders_by_rank(find: Find) -> None:
    texts = ("tide and wind and sand and sea", "tide", "tide tide tide", "wind")
    assert find("tide", *texts) == [3, 2, 1]


def test_a_rare_word_counts_more_than_a_frequent_one(find: Find) -> None:
    texts = [f"the ship {number}" for number in range(20)] + ["a lantern"]
    assert find("the lantern", *texts)[0] == 21


def test_chunks_with_only_frequent_words_are_left_out_if_others_match_better(find: Find) -> None:
    texts = [f"the ship in harbour {number}" for number in range(20)] + ["the lantern in the cabin"]
    assert find("the lantern in a storm", *texts) == [21]


def test_a_query_of_only_frequent_words_finds_chunks(find: Find) -> None:
    texts = ["the ship in the harbour", "the ship", "a lantern"]
    assert sorted(find("the ship", *texts)) == [1, 2]
    assert len(find("the", *[f"the ship {number}" for number in range(9)])) == 9


@pytest.mark.parametrize("query", ["xyzzy", "ёжик", "数据", "", "?!", '"no such phrase"', "zz*"])
def test_a_query_without_a_match_is_empty(find: Find, query: str) -> None:
    assert find(query, "notes on architecture", "заметки") == []


def test_a_question_needs_one_shared_word(find: Find) -> None:
    texts = ("We settled on SQLite for storage.", "Lunch was good.")
    assert find("Which database engine did we end up choosing: SQLite or something else?", *texts) == [1]


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("памяти", "Долговременная память агента"),
        ("память", "Он говорит о памяти"),
        ("ПАМЯТЬЮ", "память"),
        ("ёлка", "под елкой"),
        ("елки", "Ёлка стоит"),
        ("за́мок", "старый замок"),
        ("мой", "мои\u0306 дом"),
        ("USB-флешками", "флешка"),
        ("4Gсетями", "быстрая 4Gсеть"),
        ("индексирование базы", "как проиндексировать базу"),
        ('"базы данных"', "в базе данных"),
        ("数据库", "我们用数据库存储记忆"),
        ("库", "数据库"),
        ("什么是长期记忆？", "长期记忆保存在文件里"),
        ('"据库存"', "我们用数据库存储记忆"),
        ("ＳＱＬｉｔｅ数据", "SQLite数据"),
        ("データベース", "このデータベースは速い"),
        ("ﾃﾞｰﾀ", "データ"),
        ("記憶を", "長い記憶を持つ"),
        ("데이터베이스", "데이터베이스를 사용합니다"),
        ("기억", "장기기억은 파일에 있습니다"),
        ("ภาษา", "ฉันเรียนภาษาไทย"),
        ("ຂ້ອຍ", "ຂ້ອຍຮັກພາສາລາວ"),
        ("ភាសា", "ខ្ញុំរៀនភាសាខ្មែរ"),
        ("မြန်မာ", "ကျွန်တော်မြန်မာစာလေ့လာ"),
        ("हिन्दी", "मैं हिन्दी सीखता हूँ"),
        ("كتاب", "هٰذَا كِتَابٌ"),
        ("ספר", "סֵפֶר"),
        ("Strasse", "die Straße"),
        ("cafe", "le café"),
        ("CAFÉ", "cafe\u0301"),
        ("istanbul", "İstanbul"),
        ("fine", "ﬁne"),
        ("running", "he runs"),
        ("decisions", "we decided: the decision"),
        ("don't", "don’t"),
        ("hello", "hello🤔"),
        ("100", "100₽"),
        ("main", "\ue0a0main"),
        ("encyclopaedia", "encyclo\u00adpaedia"),
    ],
)
def test_finds_across_forms_and_languages(find: Find, query: str, text: str) -> None:
    assert find(query, "unrelated", text, "другое 別的") == [2]


def test_chinese_characters_need_not_be_neighbours_but_rank_below(find: Find) -> None:
    assert find("数据库", "数学和据点和仓库", "数据很多", "数据库很快") == [3, 2]


def test_hindi_vowels_make_a_difference(find: Find) -> None:
    assert find("दिन", "दीन", "दिन") == [2]


def test_weights_decide_between_heading_and_text(connection: apsw.Connection) -> None:
    chunks = [stored(1, "tide and more", heading=("notes",)), stored(2, "notes and more", heading=("tide",))]
    Fts5Index().add(connection, "memory", chunks, None)
    best = {
        weights: Fts5Index(*weights).search(connection, Query("tide"), 1)[0].key for weights in ((5.0, 1.0), (1.0, 5.0))
    }
    assert best == {(5.0, 1.0): 2, (1.0, 5.0): 1}


def test_the_context_of_a_chunk_matches_with_less_weight(connection: apsw.Connection) -> None:
    index = Fts5Index()
    chunks = [stored(1, "Yes, on Tuesday", context="Was it the tide"), stored(2, "It was the tide", context="Yes")]
    index.add(connection, "memory", [*chunks, *(stored(n, "sand") for n in range(3, 9))], None)
    assert [hit.key for hit in index.search(connection, Query("tide"), 5)] == [2, 1]


def test_a_phrase_does_not_run_from_context_into_text(connection: apsw.Connection) -> None:
    index = Fts5Index()
    index.add(connection, "memory", [stored(1, "log kept", context="write ahead")], None)
    assert not index.search(connection, Query('"ahead log"'), 5)


def test_an_index_without_contexts_is_recreated_empty() -> None:
    index = Fts5Index()
    connection = apsw.Connection(":memory:")
    oldest, *newer = index.migrations()
    oldest.apply(connection)
    connection.execute("INSERT INTO memory_fts(rowid, heading, text) VALUES (1, 'old', 'row')")
    for migration in newer:
        migration.apply(connection)
    assert index.keys(connection, "memory").tolist() == []
    index.add(connection, "memory", [stored(1, "lantern", context="harbour")], None)
    assert [hit.key for hit in index.search(connection, Query("harbour"), 5)] == [1]


def test_scores_do_not_depend_on_the_filter(connection: apsw.Connection) -> None:
    index = Fts5Index()
    index.add(connection, "memory", [stored(n, "tide " * (n % 7 + 1) + "sand " * (n % 5)) for n in range(1, 300)], None)
    everything = index.search(connection, Query("tide"), 300)
    within = selection(range(1, 300, 3))
    allowed = set(within.keys().tolist())
    assert index.search(connection, Query("tide", within=within), 300) == tuple(
        hit for hit in everything if hit.key in allowed
    )


def test_plain_sqlite_reads_the_index(connection: apsw.Connection) -> None:
    Fts5Index().add(connection, "memory", [stored(1, "数据库 architecture")], None)
    rows = connection.execute("SELECT rowid FROM memory_fts WHERE memory_fts MATCH '\"数 据 库\" AND architectures'")
    assert rows.fetchall() == [(1,)]


def test_the_text_is_not_stored_a_second_time(connection: apsw.Connection) -> None:
    Fts5Index().add(connection, "memory", [stored(1, "lantern")], None)
    assert connection.execute("SELECT text, heading FROM memory_fts").fetchall() == [(None, None)]


def test_many_threads_can_search_at_the_same_time() -> None:
    words = [stem + ending for stem in ("памят", "мысл", "книг", "дорог") for ending in ("ью", "и", "ам", "ами", "ях")]
    found: list[set[int]] = []

    def work(first: int) -> None:
        connection = apsw.Connection(":memory:")
        index = Fts5Index()
        for migration in index.migrations():
            migration.apply(connection)
        # Words that no other thread has treated yet, so that all of them are stemming.
        index.add(connection, "memory", [stored(n, f"{word}-{first}{word}") for n, word in enumerate(words)], None)
        found.append({n for n, word in enumerate(words) for hit in _hits(index, connection, word) if hit == n})
        connection.close()

    threads = [threading.Thread(target=work, args=(first,)) for first in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [set(range(len(words)))] * 4


def _hits(index: Fts5Index, connection: apsw.Connection, text: str) -> list[int]:
    return [hit.key for hit in index.search(connection, Query(text), 100)]
