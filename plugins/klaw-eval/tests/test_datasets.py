"""Every form is read into the same value; a file that is not what it should be is named, with its line."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime

import pytest

from klaw_eval.datasets import read_bilingual, read_dataset, read_questions, recognise
from klaw_eval.errors import DatasetError


def by_id(dataset):
    return {question.id: question for question in dataset.questions()}


def pages(dataset):
    return {page.id: page for corpus in dataset.corpora for page in corpus.pages}


def test_each_format_is_recognised(squad, beir, smart, locomo):
    assert [recognise(path) for path in (squad, beir, smart, locomo)] == ["squad", "beir", "trec", "locomo"]


def test_squad_the_relevant_paragraph_is_that_of_the_question(squad):
    dataset = read_dataset(squad, "squad")

    assert len(pages(dataset)) == 3
    (wanted,) = by_id(dataset)["q2"].gold
    assert by_id(dataset)["q2"].side == wanted
    assert pages(dataset)[wanted].text.startswith("The boat")


def test_squad_the_same_paragraph_twice_is_one_document(write_json):
    paragraph = {"context": "Once.", "qas": [{"id": "1", "question": "How often?"}]}
    again = {"context": "Once.", "qas": [{"id": "2", "question": "How many times?"}]}
    path = write_json("twice.json", {"data": [{"paragraphs": [paragraph]}, {"paragraphs": [again]}]})

    dataset = read_dataset(path, "squad")

    assert len(pages(dataset)) == 1
    assert len({*by_id(dataset)["1"].gold, *by_id(dataset)["2"].gold}) == 1


def test_a_bilingual_set_asks_about_the_translated_half_in_the_other_language(write_json):
    english = [(f"The {name} is {number}.", f"q{number}", f"Which is {number}?") for number, name in enumerate("abcd")]
    german = [(f"Das {name} ist {number}.", f"q{number}", f"Was ist {number}?") for number, name in enumerate("abcd")]
    first, second = (
        write_json(name, {"data": [{"paragraphs": [_asked(*row) for row in rows]}]})
        for name, rows in (("en.json", english), ("de.json", german))
    )

    dataset = read_bilingual(first, second)

    assert [page.text[:3] for page in pages(dataset).values()] == ["The", "Das", "The", "Das"]
    assert [question.text for question in dataset.questions()] == ["Which is 1?", "Which is 3?"]
    for question in dataset.questions():
        (wanted,) = question.gold
        assert pages(dataset)[wanted].text.startswith("Das"), "the question is English, its paragraph German"


def test_a_bilingual_set_of_files_that_share_no_question_is_refused(write_json):
    first, second = (
        write_json(f"{name}.json", {"data": [{"paragraphs": [_asked(f"{n}.", f"{name}{n}", "?!") for n in (1, 2)]}]})
        for name in ("one", "other")
    )
    with pytest.raises(DatasetError, match="have different questions"):
        read_bilingual(first, second)


def _asked(text, number, question):
    return {"context": text, "qas": [{"id": number, "question": question}]}


def test_beir_uses_grades_above_zero_and_counts_the_others(beir):
    dataset = read_dataset(beir, "beir")

    assert by_id(dataset)["1"].gold == {"kiln": 2.0}
    assert set(by_id(dataset)) == {"1", "2"}
    assert dataset.left_out == {"without a readable gold id": 1}
    assert dataset.name == "trades/test"
    assert pages(dataset)["kiln"].title == "Pottery"


def test_beir_another_part_can_be_selected(beir):
    assert set(by_id(read_dataset(beir, "beir", part="dev"))) == {"4"}


def test_beir_an_unknown_part_lists_the_existing_ones(beir):
    with pytest.raises(DatasetError, match=r"no train\.tsv; found: dev, test"):
        read_dataset(beir, "beir", part="train")


def test_smart_questions_are_counted_and_a_repeated_title_is_not_doubled(smart):
    dataset = read_dataset(smart, "trec")

    assert by_id(dataset)["1"].text == "how hot is the kiln"
    assert {name: dict(question.gold) for name, question in by_id(dataset).items()} == {"1": {"1": 1}, "2": {"2": 1}}
    assert pages(dataset)["1"].title == "the kiln"
    assert pages(dataset)["1"].text.strip().startswith("The kiln is fired")


def test_trec_documents_and_topics(tmp_path):
    folder = tmp_path / "robust"
    folder.mkdir()
    (folder / "docs.sgml").write_text(
        "<DOC>\n<DOCNO> A-1 </DOCNO>\n<TITLE>Kilns</TITLE>\n<TEXT>\n<P>Hot.</P>\n</TEXT>\n</DOC>\n"
        "<DOC><DOCNO>A-2</DOCNO><TEXT>a < b & cold</TEXT></DOC>",
        "utf-8",
    )
    (folder / "topics").write_text(
        "<top>\n<num> Number: 301\n<title> hot\nkilns\n\n<desc> Description:\nWhich?\n</top>\n", "utf-8"
    )
    (folder / "qrels").write_text("301 0 A-1 1\n", "utf-8")

    dataset = read_dataset(folder, recognise(folder))

    assert by_id(dataset)["301"].text == "hot kilns"
    assert pages(dataset)["A-1"].title == "Kilns"
    assert pages(dataset)["A-1"].text.split() == ["Hot."]
    assert pages(dataset)["A-2"].text.strip() == "a < b & cold"


def test_locomo_reads_every_id_of_an_evidence(locomo):
    sessions = by_id(read_dataset(locomo, "locomo", unit="session"))
    turns = by_id(read_dataset(locomo, "locomo", unit="turn"))

    assert set(sessions["conv-1/0"].gold) == {"conv-1/D1"}
    assert set(turns["conv-1/0"].gold) == {"conv-1/D1:1", "conv-1/D1:2"}
    assert set(turns["conv-1/1"].gold) == {"conv-1/D2:1"}
    assert turns["conv-1/1"].category == "2 temporal"
    assert "conv-1/2" not in turns


def test_locomo_dates_speakers_and_sessions(locomo):
    dataset = read_dataset(locomo, "locomo")
    first = dataset.corpora[0].talks[0].turns

    assert dataset.left_out == {"without a readable gold id": 1}
    assert [turn.id for turn in first] == ["conv-1/D1:1", "conv-1/D1:2", "conv-1/D2:1", "conv-1/D2:2"]
    assert first[0].ts == datetime(2023, 5, 8, 13, 56, tzinfo=UTC)
    assert (first[0].speaker, first[0].role, first[1].role) == ("Bob", "user", "assistant")
    assert [corpus.name for corpus in dataset.corpora] == ["conv-1", "conv-2"]


def test_locomo_pooled_is_one_index_of_all(locomo):
    dataset = read_dataset(locomo, "locomo", pooled=True)

    (corpus,) = dataset.corpora
    assert [talk.name for talk in corpus.talks] == ["conv-1", "conv-2"]
    assert len(corpus.questions) == 4


def test_own_questions_need_a_path_or_a_text(write_lines):
    path = write_lines(
        "my.jsonl",
        [
            {"question": "a", "path": "notes/a.md"},
            {"question": "b", "text": ["one", "two"], "category": "facts"},
            {"question": "a", "path": ["notes/b.md", "notes/c.md"]},
        ],
    )
    found = by_id(read_questions(path))

    assert set(found) == {"a", "b", "a (2)"}
    assert found["b"].contains == ("one", "two")
    assert set(found["a (2)"].gold) == {"notes/b.md", "notes/c.md"}
    assert read_questions(path).unit == "chunk or document"


@pytest.mark.parametrize(
    ("record", "complaint"),
    [
        ({"question": "a"}, "this one has neither"),
        ({"question": "a", "path": "b", "text": "c"}, "this one has both"),
        ({"question": "a", "path": ""}, "this one has neither"),
        ({"question": 3, "path": "b"}, "Expected `str`, got `int`"),
        ({"question": "a", "expected": "b"}, "unknown field `expected`"),
        (["a"], "Expected `object`, got `array`"),
    ],
)
def test_invalid_own_questions_are_named_by_line(write_lines, record, complaint):
    path = write_lines("my.jsonl", [{"question": "fine", "path": "a.md"}, record])

    with pytest.raises(DatasetError, match=complaint) as caught:
        read_questions(path)
    assert f"{path}:2:" in caught.value.message


HOSTILE = {
    "empty": b"",
    "null": b"null",
    "a number": b"1e999",
    "cut": b'[{"sample_id": "a", "conv',
    "not UTF-8": b'[{"sample_id": "\xff"}]',
    "half a surrogate": b'[{"sample_id": "\\ud800", "conversation": {}, "qa": []}]',
    "deep": b"[" * 100_000,
    "other keys": b'{"data": [{"title": "no paragraphs"}]}',
    "empty list": b"[]",
    "empty data": b'{"data": []}',
    "binary": bytes(range(256)),
    "sessions are no lists": b'[{"conversation": {"session_1": 3}, "qa": []}]',
    "the end of time": b'[{"conversation": {"session_1": [{"speaker": "a", "text": "b"}, '
    b'{"speaker": "a", "text": "b"}], "session_1_date_time": "11:59 pm on 31 December, 9999"}, "qa": []}]',
    "a turn twice": b'[{"conversation": {"session_1": [{"speaker": "a", "text": "b", "dia_id": "D1:1"}, '
    b'{"speaker": "a", "text": "b", "dia_id": "D1:1"}], "session_1_date_time": "1:00 pm on 8 May, 2023"}, "qa": []}]',
    "no date": b'[{"conversation": {"session_1": [{"speaker": "a", "text": "b"}]}, "qa": []}]',
}


@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("form", ["locomo", "squad", None])
def test_a_hostile_file_is_an_error_that_names_it(tmp_path, content, form):
    path = tmp_path / "hostile.json"
    path.write_bytes(content)

    with pytest.raises(DatasetError) as caught:
        read_dataset(path, form or recognise(path))
    assert str(path) in caught.value.message


@pytest.mark.parametrize("file", ["corpus.jsonl", "queries.jsonl"])
@pytest.mark.parametrize("content", [b"{", b'{"_id": 3}', b"[]", b"\xff", b'{"text": "no id"}'])
def test_a_hostile_line_of_beir_is_named(beir, file, content):
    (beir / file).write_bytes(b'{"_id": "a", "text": "fine"}\n' + content)

    with pytest.raises(DatasetError) as caught:
        read_dataset(beir, "beir")
    assert f"{beir / file}:2:" in caught.value.message


@pytest.mark.parametrize(
    "row", ["1\tkiln", "1\tkiln\tmuch", "1\tkiln\tinf", "1\tkiln\tnan", "1 kiln 1", "1\tkiln\t1\t2"]
)
def test_an_invalid_row_of_judgements_is_named(beir, row):
    (beir / "qrels" / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{row}\n", "utf-8")

    with pytest.raises(DatasetError, match=r"test\.tsv:2: expected three columns"):
        read_dataset(beir, "beir")


def test_duplicate_ids_are_rejected(beir, write_lines):
    write_lines("trades/corpus.jsonl", [{"_id": "a", "text": "one"}, {"_id": "a", "text": "two"}])

    with pytest.raises(DatasetError, match="the first is 'a'"):
        read_dataset(beir, "beir")


def test_an_incomplete_folder_names_what_is_missing(tmp_path):
    with pytest.raises(DatasetError, match="has no documents in a known form"):
        read_dataset(tmp_path, recognise(tmp_path))


def test_a_folder_around_a_test_set_names_it(squad):
    with pytest.raises(DatasetError) as caught:
        read_dataset(squad.parent, recognise(squad.parent))
    assert caught.value.hint == f"klaw eval {squad}"


def test_two_files_of_judgements_are_an_error(smart):
    (smart / "more.txt").write_text("1 0 2 1\n", "utf-8")

    with pytest.raises(DatasetError, match=r"several files of judgements: more\.txt, rel\.txt"):
        read_dataset(smart, "trec")


def test_a_file_instead_of_a_folder_and_the_reverse_are_errors(squad, beir):
    with pytest.raises(DatasetError, match="is a file, expected a BEIR folder"):
        read_dataset(squad, "beir")
    with pytest.raises(DatasetError, match="is a folder, expected a SQuAD file"):
        read_dataset(beir, "squad")


def test_a_pipe_does_not_hang(tmp_path, smart):
    os.mkfifo(tmp_path / "pipe.json")
    os.mkfifo(smart / "pipe")

    with pytest.raises(DatasetError, match="is not a file"):
        recognise(tmp_path / "pipe.json")
    assert len(by_id(read_dataset(smart, "trec"))) == 2


def test_missing_documents_are_not_searched_in_the_users_index(beir):
    (beir / "corpus.jsonl").write_bytes(b"\n")

    with pytest.raises(DatasetError, match="contains no documents"):
        read_dataset(beir, "beir")


def test_a_missing_path_is_an_error(tmp_path):
    with pytest.raises(DatasetError, match="does not exist"):
        recognise(tmp_path / "nothing")


def test_own_questions_given_as_a_test_set_name_the_option(write_lines):
    path = write_lines("my.jsonl", [{"question": "a", "path": "b"}])

    with pytest.raises(DatasetError) as caught:
        recognise(path)
    assert "--questions" in caught.value.hint


def test_a_question_without_text_or_too_long_is_left_out_and_counted(write_json):
    asked = [{"id": "1", "question": " "}, {"id": "2", "question": "why " * 3_000}, {"id": "3", "question": "why?"}]
    path = write_json("odd.json", {"data": [{"paragraphs": [{"context": "Because.", "qas": asked}]}]})

    dataset = read_dataset(path, "squad")

    assert set(by_id(dataset)) == {"3"}
    assert dataset.left_out == {"without text": 1, "longer than 10,000 characters": 1}


def test_a_set_without_questions_is_an_error(write_json):
    path = write_json("mute.json", {"data": [{"paragraphs": [{"context": json.dumps({}), "qas": []}]}]})

    with pytest.raises(DatasetError, match="no usable question"):
        read_dataset(path, "squad")
