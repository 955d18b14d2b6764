"""``klaw eval facts`` on tiny chats: what is credited, what is counted as marked, and what is refused."""

from __future__ import annotations

import json
import re

import pytest

from klaw_eval.building import OpenIndex
from klaw_eval.contexts import _Asker
from klaw_eval.datasets import read_dataset, recognise
from klaw_eval.errors import DatasetError
from klaw_eval.values import Question
from klaw_tools import Context, ContextItem


def said(number, content, anchor=None, role="user"):
    return {"role": role, "id": number, "content": content, "time_anchor": anchor, "index": "1,1"}


@pytest.fixture
def beam(tmp_path):
    """A chat of two days, in which a number changes."""
    chat = [
        {"batch_number": 1, "turns": [[said(0, "My library has 45 sources on kilns.", "March-15-2024")]]},
        {
            "batch_number": 2,
            "turns": [
                [
                    said(1, "My library of kilns now has 52 sources.", "April-05-2024"),
                    said(2, "Fine, 52.", role="assistant"),
                ],
                [said(3, "The boat lies in Split.")],
            ],
        },
    ]
    update = {"original_info": [0], "updated_info": [1]}
    asked = {
        "knowledge_update": [
            {"question": "How many sources on kilns does my library have?", "source_chat_ids": update}
        ],
        "information_extraction": [{"question": "Where does the boat lie?", "source_chat_ids": [3]}],
        "abstention": [{"question": "Who paid?"}],
    }
    folder = tmp_path / "chats" / "7"
    folder.mkdir(parents=True)
    (folder / "chat.json").write_text(json.dumps(chat), "utf-8")
    (folder / "q.json").write_text(json.dumps(asked), "utf-8")
    return folder.parent


def record(result):
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def test_a_beam_folder_is_recognised_and_read(beam):
    assert recognise(beam) == "beam"
    dataset = read_dataset(beam, "beam")
    (corpus,) = dataset.corpora
    turns = corpus.talks[0].turns
    assert [turn.id for turn in turns] == ["beam/7/0", "beam/7/1", "beam/7/2", "beam/7/3"]
    assert [turn.ts.date().isoformat() for turn in turns] == ["2024-03-15", "2024-04-05", "2024-04-05", "2024-04-05"]
    assert [turn.role for turn in turns] == ["user", "user", "assistant", "user"]
    update, boat = corpus.questions
    assert (update.current, update.outdated) == (("beam/7/1",), ("beam/7/0",))
    assert set(update.gold) == {"beam/7/0", "beam/7/1"}
    assert (boat.current, set(boat.gold)) == ((), {"beam/7/3"})
    assert dict(dataset.left_out) == {"without a readable gold id": 1}


@pytest.mark.parametrize(
    "chat", ["[]x", '[{"turns": [[{"role": "user", "id": 0, "content": "a", "time_anchor": "x"}]]}]']
)
def test_an_unreadable_beam_chat_is_named(beam, chat):
    (beam / "7" / "chat.json").write_text(chat, "utf-8")
    with pytest.raises(DatasetError, match=r"chat\.json"):
        read_dataset(beam, "beam")


@pytest.mark.needs("klaw-facts")
def test_a_beam_folder_is_searched_like_any_test_set(klaw, beam):
    report = record(klaw("eval", beam, "--json"))
    assert (report["unit"], report["n"], report["missing_ids"]) == ("turn", 2, 0)


@pytest.mark.needs("klaw-facts")
def test_the_arms_are_measured_and_kept(klaw, beam, tmp_path):
    arguments = ("eval", "facts", beam, "--keep", tmp_path / "kept", "--json")
    report = record(klaw(*arguments))
    assert (report["questions"], list(report["arms"])) == (2, ["chunks", "marks", "facts", "digests"])
    chunks, marks, facts = (report["arms"][name]["figures"] for name in ("chunks", "marks", "facts"))
    assert chunks["any@1000"] == chunks["frac@1000"] == 1
    assert (chunks["update found"], chunks["outdated found too"], chunks["outdated marked"]) == (1, 1, 0)
    assert marks["outdated marked"] == 1
    assert marks["outdated first, unmarked"] == 0
    assert facts["frac@1000"] == 1
    assert report["arms"]["chunks"]["facts"] == report["arms"]["marks"]["facts"] == 0
    assert report["arms"]["facts"]["facts"] > 0
    assert "any@250" not in report["arms"]["chunks"]["gained"]
    gained = report["arms"]["marks"]["gained"]["frac@1000"]
    assert gained["mean"] == pytest.approx(marks["frac@1000"] - chunks["frac@1000"])
    assert gained["low"] <= gained["mean"] <= gained["high"]
    again = record(klaw(*arguments, "--arm", "facts"))
    assert again["arms"]["facts"]["facts"] == report["arms"]["facts"]["facts"]


@pytest.mark.needs("klaw-facts")
def test_a_report_names_its_figures(klaw, locomo):
    result = klaw("eval", "facts", locomo, "--arm", "chunks", "-n", "3")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("talks: 3 questions")
    for name in ("any@250", "frac@500", "words@1000", "p95 / search"):
        assert name in result.stdout
    assert "Gained over" not in result.stdout


@pytest.mark.needs("klaw-facts")
def test_what_an_arm_gained_is_printed_with_its_interval(klaw, locomo):
    result = klaw("eval", "facts", locomo, "--arm", "chunks", "--arm", "marks")
    assert result.exit_code == 0, result.stderr
    (table,) = re.findall(
        r"Gained over chunks, with the 95% interval over (?:conversations|questions):\n(.*)", result.stdout, re.DOTALL
    )
    rows = dict(re.findall(r"^(\w+@\d+) +([+-]\.?[\d.]+ \[[+-][\d.]+, [+-][\d.]+\])$", table, re.MULTILINE))
    assert {"any@250", "frac@1000", "words@500"} <= rows.keys()


@pytest.mark.needs("klaw-facts")
def test_an_embedder_that_fails_is_reported_with_the_figures(klaw, beam, tmp_path):
    config = tmp_path / "unreachable.toml"
    config.write_text('[memory.embedding]\ntype = "ollama"\nurl = "http://127.0.0.1:9"\n', "utf-8")
    result = klaw("eval", "facts", beam, "--arm", "chunks", "--config", config, "--json")
    (notice, *_) = record(result)["arms"]["chunks"]["notices"]
    assert "searched without vectors" in notice
    assert "(2 contexts)" in notice
    assert notice in result.stderr


@pytest.mark.needs("klaw-facts")
def test_halves_divide_the_chats(klaw, locomo):
    whole = record(klaw("eval", "facts", locomo, "--arm", "chunks", "--json"))["questions"]
    sizes = []
    for half in ("tune", "report"):
        result = klaw("eval", "facts", locomo, "--arm", "chunks", "--half", half, "--json")
        if result.exit_code == 0:
            sizes.append(json.loads(result.stdout)["questions"])
        else:
            assert "no chat of talks" in result.stderr
    assert sum(sizes) == whole == 4
    assert set(sizes) <= {1, 3, 4}  # of one chat there are three, of the other one


def test_a_set_without_conversations_is_rejected(klaw, squad):
    result = klaw("eval", "facts", squad)
    assert result.exit_code == 1
    assert "LoCoMo or BEAM" in result.stderr


class TestCredit:
    def asker(self):
        units = {("conversations/c/2024-01-01.jsonl", line): f"m{line}" for line in (1, 2, 3)}
        return _Asker(OpenIndex(None, None, frozenset(), units=units), None, None)

    @pytest.mark.parametrize(
        ("source", "expected"),
        [
            ("conversations/c/2024-01-01.jsonl:1-2", {"m1", "m2"}),
            ("conversations/c/2024-01-01.jsonl:7-9", set()),
            ("notes/a.md", set()),
            ("", set()),
        ],
    )
    def test_a_chunk_shows_the_messages_of_its_lines(self, source, expected):
        assert self.asker().messages_of(ContextItem("x", source=source)) == expected

    @pytest.mark.parametrize(
        ("texts", "order", "marked"),
        [
            ((("old", 1), ("new", 2)), True, False),
            ((("new", 2), ("old", 1)), False, False),
            ((("old (perhaps outdated: see 2024-01-02)", 1), ("new", 2)), False, True),
        ],
    )
    def test_an_unmarked_outdated_statement_before_the_current_one_is_wrong(self, texts, order, marked):
        path = "conversations/c/2024-01-01.jsonl"
        items = [ContextItem(text, source=f"{path}:{line}-{line}") for text, line in texts]
        context = Context(volatile="\n".join(item.text for item in items), items=tuple(reversed(items)))
        asker = self.asker()
        shown = {id(item): asker.messages_of(item) for item in items}
        question = Question("q", "?", {"m1": 1.0, "m2": 1.0}, current=("m2",), outdated=("m1",))
        found = asker._updates(question, context, shown)
        assert (found["wrong order"], found["marked"]) == (order, marked)
