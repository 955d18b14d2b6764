"""``klaw eval`` as people run it: real index, real search, words alone unless a test says otherwise."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from klaw_eval.metrics import METRICS
from klaw_eval.relevance import Best, area, bins_of


def record(result):
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def fused(report, metric="ndcg@10"):
    return report["modes"]["fused"][metric]["mean"]


@pytest.mark.parametrize("form", ["squad", "beir", "smart"])
def test_every_format_is_indexed_and_found(form, klaw, request):
    report = record(klaw("eval", request.getfixturevalue(form), "--json"))

    assert fused(report, "any@10") == 1
    assert report["unit"] == "document"
    assert report["missing_ids"] == 0


def test_a_translation_is_rejected_for_formats_other_than_squad(klaw, beir, locomo):
    result = klaw("eval", beir, "--bilingual", locomo)

    assert result.exit_code == 2
    assert "--bilingual is for SQuAD" in result.stderr


def test_a_report_starts_with_its_settings(klaw, beir):
    result = klaw("eval", beir)

    assert result.exit_code == 0
    first, second, *rest = result.stdout.splitlines()
    assert first == "trades/test: 2 questions, unit document, one index of 3 documents"
    assert second == "k = 5 and 10; in brackets 95% intervals, by bootstrap over questions"
    assert "left out: 1 without a readable gold id" in rest
    assert any(line.split() == ["embedder", "none"] for line in rest)
    assert any(line.split()[:3] == ["retrievers", "fts5", "x"] and line.split()[3].strip(";") == "1" for line in rest)


@pytest.mark.needs("klaw-conversations")
def test_locomo_sessions_are_found_by_their_lines(klaw, locomo):
    report = record(klaw("eval", locomo, "--json"))

    assert report["setting"] == "one index for each of 2 conversations"
    assert report["interval"]["over"] == "conversations"
    assert report["n"] == 4
    # Each question shares its rare words with one session, and the wanted one is indexed with the others of its chat.
    assert fused(report, "mrr") == 1
    assert report["missing_ids"] == 0
    assert report["categories"]["4 single-hop"]["n"] == 2
    assert report["categories"]["1-4"]["n"] == 3


@pytest.mark.needs("klaw-conversations")
def test_locomo_turns_are_found_on_the_lines_of_their_session(klaw, locomo):
    session, turn = record(klaw("eval", locomo, "--unit", "session", "--unit", "turn", "--json"))

    assert (session["unit"], turn["unit"]) == ("session", "turn")
    assert fused(turn, "any@5") == 1
    assert fused(turn, "frac@10") == 1


@pytest.mark.needs("klaw-conversations")
def test_pooled_conversations_share_an_index(klaw, locomo):
    report = record(klaw("eval", locomo, "--pooled", "--json"))

    assert report["setting"] == "one index for all of 2 conversations"
    assert fused(report, "any@5") == 1


def test_own_questions_use_the_existing_index(klaw, tmp_path, write_lines):
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "kiln.md").write_text("# Kiln\n\nThe kiln is fired to\ntwelve hundred degrees.\n", "utf-8")
    (notes / "boat.md").write_text("# Boat\n\nThe boat lies in Split.\n", "utf-8")
    assert klaw("index", notes).exit_code == 0
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "data").glob("*.jso*")}
    questions = write_lines(
        "my.jsonl",
        [
            {"question": "kiln", "path": "notes/kiln.md", "category": "craft"},
            {"question": "how hot", "text": "TWELVE hundred  degrees"},
            {"question": "boat", "path": ["notes/nowhere.md"]},
        ],
    )

    report = record(klaw("eval", "--questions", questions, "--json", "--verbose"))

    assert report["setting"] == "your own index, as it is"
    assert report["missing_ids"] == 1
    assert fused(report, "any@10") == pytest.approx(1 / 3, abs=1e-4)
    assert report["categories"] == {"craft": {"n": 1, "modes": report["categories"]["craft"]["modes"]}}
    assert [miss["question"] for miss in report["missed"]] == ["how hot", "boat"]
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_a_text_counts_as_found_in_any_chunk_that_contains_it(klaw, tmp_path, write_lines):
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "kiln.md").write_text("The kiln is fired to\ntwelve hundred degrees.\n", "utf-8")
    klaw("index", notes)
    questions = write_lines("my.jsonl", [{"question": "kiln", "text": "to TWELVE hundred  degrees"}])

    report = record(klaw("eval", "--questions", questions, "--json"))

    assert report["missing_ids"] == 0
    assert fused(report, "mrr") == 1


def test_relevant_ids_that_are_all_missing_are_rejected(klaw, beir):
    (beir / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n1\tKILN.txt\t1\n2\tBOAT.txt\t1\n", "utf-8")

    result = klaw("eval", beir)

    assert result.exit_code == 1
    assert "do not match: the questions expect 'KILN.txt', 'BOAT.txt'; the index has 'kiln', 'boat'" in result.stderr
    assert result.stdout == ""


def test_own_questions_about_another_index_are_refused(klaw, tmp_path, write_lines):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.md").write_text("Something.\n", "utf-8")
    klaw("index", tmp_path / "notes")

    result = klaw("eval", "--questions", write_lines("my.jsonl", [{"question": "why", "path": "work/b.md"}]))

    assert result.exit_code == 1
    assert "the questions expect 'work/b.md'; the index has 'notes/…'" in result.stderr


def test_single_missing_ids_count_as_not_found(klaw, beir):
    (beir / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n1\tkiln\t1\n2\tgone\t1\n", "utf-8")

    result = klaw("eval", beir)

    assert "not in the index, so never found: 1 expected id" in result.stdout
    assert fused(record(klaw("eval", beir, "--json")), "any@10") == 0.5


def test_fail_under_exits_1_and_still_prints(klaw, squad):
    good = klaw("eval", squad, "--fail-under", "ndcg@10=.5")
    bad = klaw("eval", squad, "--fail-under", "mrr=.5", "--fail-under", "any@5=1.01")

    assert good.exit_code == 0
    assert bad.exit_code == 1
    assert bad.stdout.splitlines()[0].startswith("crafts: 3 questions")
    assert bad.stderr == "klaw: any@5 of crafts, unit document, is 1.0000, below 1.01\n"


@pytest.mark.parametrize("value", ["ndcg@10=nan", "mrr=inf", "ndcg", "ndcg@11=.3", "mrr=high", "=.3"])
def test_an_invalid_threshold_is_a_usage_error(klaw, squad, value):
    assert klaw("eval", squad, "--fail-under", value).exit_code == 2


def test_comparing_a_configuration_with_itself_shows_no_difference(klaw, squad, tmp_path):
    words = tmp_path / "words.toml"

    result = klaw("eval", squad, "--compare", words, words)
    report = record(klaw("eval", squad, "--compare", words, words, "--json"))

    assert "fused: the same for every question" in result.stdout
    assert report["differences"]["fused"]["mrr"] == {"mean": 0, "low": 0, "high": 0}


def test_comparing_two_configurations_pairs_the_questions(klaw, squad, tmp_path):
    # An index of the conversations' store only: nothing that is longer than eight tokens stays in one chunk.
    (tmp_path / "short.toml").write_text(
        '[memory.embedding]\ntype = "none"\n[memory.chunking]\nmax_tokens = 8\noverlap_tokens = 0\n', "utf-8"
    )
    report = record(klaw("eval", squad, "--compare", tmp_path / "words.toml", tmp_path / "short.toml", "--json"))

    a, b = report["a"]["modes"]["fused"], report["b"]["modes"]["fused"]
    for metric in METRICS:
        difference = report["differences"]["fused"][metric]
        assert difference["mean"] == pytest.approx(b[metric]["mean"] - a[metric]["mean"], abs=2e-4)
        assert difference["low"] <= difference["mean"] <= difference["high"]


def test_reports_of_halves_are_marked_and_add_up(klaw, write_json):
    paragraphs = [
        {"context": f"Vessel {number} sails.", "qas": [{"id": f"{number}", "question": f"Does {number} sail?"}]}
        for number in range(12)
    ]
    vessels = write_json("vessels.json", {"data": [{"paragraphs": paragraphs}]})

    halves = [record(klaw("eval", vessels, "--half", half, "--json")) for half in ("tune", "report")]

    assert sum(report["n"] for report in halves) == 12
    assert [report["half"] for report in halves] == ["tune", "report"]
    assert "half: tune" in klaw("eval", vessels, "--half", "tune").stdout
    assert {report["available"] for report in halves} == {12}


def test_an_empty_half_is_an_error(klaw, squad):
    result = klaw("eval", squad, "--half", "report")

    assert result.exit_code == 1
    assert "the half 'report' of crafts has no questions" in result.stderr


def test_a_limit_reduces_the_questions(klaw, squad):
    report = record(klaw("eval", squad, "-n", "2", "--json"))

    assert (report["n"], report["available"]) == (2, 3)
    assert klaw("eval", squad, "-n", "2").stdout.startswith("crafts: 2 of 3 questions, ")


@pytest.mark.needs("klaw-conversations")
def test_kept_indexes_are_used_again(klaw, locomo, tmp_path):
    kept = tmp_path / "kept"
    first = record(klaw("eval", locomo, "--keep", kept, "--json"))
    files = {path: path.stat().st_mtime_ns for path in kept.rglob("*.jsonl")}
    second = record(klaw("eval", locomo, "--keep", kept, "--json"))

    assert first["modes"] == second["modes"]
    assert files
    assert {path: path.stat().st_mtime_ns for path in kept.rglob("*.jsonl")} == files


@pytest.mark.needs("klaw-conversations")
def test_an_interrupted_run_starts_again(klaw, locomo, tmp_path):
    kept = tmp_path / "kept"
    first = record(klaw("eval", locomo, "--keep", kept, "--json"))
    for mark in kept.rglob("written"):
        mark.unlink()
    second = record(klaw("eval", locomo, "--keep", kept, "--json"))

    assert first["modes"] == second["modes"]
    # Not twice: a message has one line.
    for file in kept.rglob("conversations/**/*.jsonl"):
        ids = [json.loads(line)["id"] for line in file.read_text("utf-8").splitlines()]
        assert len(ids) == len(set(ids))


def test_a_test_set_does_not_change_the_users_data(klaw, squad, tmp_path):
    klaw("eval", squad)

    assert not (tmp_path / "data").exists()


def test_a_store_at_a_fixed_location_is_rejected(klaw, squad, tmp_path):
    (tmp_path / "fixed.toml").write_text(
        f'{(tmp_path / "words.toml").read_text()}[memory.store]\npath = "{tmp_path}/mine.db"\n', "utf-8"
    )

    result = klaw("eval", squad, "--config", tmp_path / "fixed.toml")

    assert result.exit_code == 1
    assert "where test sets must not be indexed" in result.stderr


@pytest.mark.parametrize("ending", ["svg", "png"])
def test_one_run_and_a_comparison_are_plotted(klaw, squad, beir, tmp_path, ending):
    words, picture = tmp_path / "words.toml", tmp_path / f"picture.{ending}"

    assert klaw("eval", squad, beir, "--plot", picture).exit_code == 0
    one = picture.read_bytes()
    assert klaw("eval", squad, "--compare", words, words, "--plot", picture).exit_code == 0

    assert picture.read_bytes() != one
    if ending == "svg":
        text = " ".join(ET.fromstring(one).itertext())
        assert "crafts: 3 questions" in text
        assert "trades/test: 2 questions" in text
        assert "ndcg@10" in text
    else:
        assert one.startswith(b"\x89PNG")


def test_the_same_report_gives_the_same_picture(klaw, squad, tmp_path):
    pictures = [tmp_path / "a.svg", tmp_path / "b.svg"]
    for picture in pictures:
        klaw("eval", squad, "--plot", picture)

    assert pictures[0].read_bytes() == pictures[1].read_bytes()


def test_a_picture_that_cannot_be_written_is_an_error(klaw, squad, tmp_path):
    result = klaw("eval", squad, "--plot", tmp_path / "nowhere" / "a.svg")

    assert result.exit_code == 1
    assert "cannot be written" in result.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("SQUAD", "--unit", "turn"),
        ("SQUAD", "--pooled"),
        ("SQUAD", "--part", "dev"),
        ("SQUAD", "--plot", "a.pdf"),
        ("SQUAD", "--limit", "0"),
        ("SQUAD", "--data-dir", "x"),
        ("SQUAD", "--compare", "words.toml", "words.toml", "--config", "words.toml"),
        ("SQUAD", "--half", "dev"),
        ("SQUAD", "--format", "csv"),
    ],
)
def test_a_usage_error_exits_with_2(klaw, squad, arguments):
    result = klaw("eval", *(squad if item == "SQUAD" else item for item in arguments))

    assert result.exit_code == 2
    assert result.stdout == ""


def test_an_error_of_a_file_is_one_line(klaw, tmp_path):
    (tmp_path / "bad.json").write_text('[{"conversation": {},\n "qa": [{]}]', "utf-8")

    result = klaw("eval", tmp_path / "bad.json")

    assert result.exit_code == 1
    assert result.stderr.startswith(f"klaw: {tmp_path}/bad.json:2: not valid JSON")
    assert result.stderr.count("\n") == 1


def test_the_default_configuration_has_three_modes(klaw, squad, tmp_path):
    (tmp_path / "default.toml").write_text("", "utf-8")

    result = klaw("eval", squad, "--config", tmp_path / "default.toml")
    report = record(klaw("eval", squad, "--config", tmp_path / "default.toml", "--json"))

    assert list(report["modes"]) == ["words", "vectors", "fused"]
    assert set(report["differences"]) == {"fused-words", "fused-vectors"}
    assert report["modes"]["vectors"]["any@5"]["mean"] == 1
    assert "ndcg@10  fused - words" in result.stdout
    assert report["embedder"].startswith("all-MiniLM-L6-v2")


def test_the_help_imports_nothing_heavy():
    program = (
        "import sys, klaw_eval.command; "
        "print([name for name in ('numpy', 'matplotlib', 'msgspec', 'onnxruntime') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=os.environ)

    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    "form", ["squad", "beir", "smart", pytest.param("locomo", marks=pytest.mark.needs("klaw-conversations"))]
)
def test_relevance_is_higher_if_the_documents_are_indexed(form, klaw, request, tmp_path):
    options = ["--keep", tmp_path / "kept", "--json", *(["--pooled"] if form == "locomo" else [])]
    report = record(klaw("eval", request.getfixturevalue(form), "--relevance", *options))

    assert report["n"] > 0
    assert report["auroc"]["mean"] >= 0.5
    assert report["weak"]["present"] <= report["weak"]["absent"]
    again = record(klaw("eval", request.getfixturevalue(form), *options))
    assert again["missing_ids"] == 0, "what was taken out is there again"
    assert fused(again, "any@10") == 1


def test_relevance_explains_its_figures(klaw, squad):
    result = klaw("eval", squad, "--relevance")

    assert result.exit_code == 0
    assert "each with and without its documents" in result.stdout
    assert "auroc" in result.stdout
    assert "calibration error" in result.stdout
    assert "first results  relevance  right" in result.stdout


@pytest.mark.parametrize("options", [("--fail-under", "mrr=.1"), ("--plot", "a.svg"), ("--questions", "a.jsonl")])
def test_relevance_is_rejected_with_incompatible_options(klaw, squad, options):
    result = klaw("eval", squad, "--relevance", *options)

    assert result.exit_code == 2
    assert "--relevance cannot be combined with" in result.stderr


@pytest.mark.needs("klaw-conversations")
def test_relevance_of_turns_takes_their_days_out(klaw, locomo):
    report = record(klaw("eval", locomo, "--unit", "turn", "--pooled", "--relevance", "--json"))

    assert report["unit"] == "turn"
    assert sum(each["n"] for each in report["bins"]) <= 2 * report["n"]


def test_bins_count_every_first_result_once():
    found = [Best(0.9, False, first, is_right) for first, is_right in [(0.0, False), (0.95, True), (1.0, False)]]
    bins = bins_of([*found, Best(0.0, True, None, False)])

    assert [(each.count, each.relevance, each.right) for each in bins] == [(1, 0.0, 0.0), (2, 0.975, 0.5)]


@pytest.mark.parametrize("form", ["squad", "beir"])
def test_the_calibration_error_is_the_mean_of_its_bins(form, klaw, request):
    report = record(klaw("eval", request.getfixturevalue(form), "--relevance", "--json"))

    bins = report["bins"]
    total = sum(each["n"] for each in bins)
    assert report["n"] <= total <= 2 * report["n"]
    error = sum(each["n"] * abs(each["relevance"] - each["right"]) for each in bins) / total
    assert report["calibration_error"] == pytest.approx(error, abs=1e-3)


def test_the_area_under_the_curve_agrees_with_its_definition():
    assert area(np.array([0.9, 0.8]), np.array([0.1, 0.2])) == 1
    assert area(np.array([0.5, 0.1]), np.array([0.5, 0.1])) == 0.5
    assert area(np.array([0.1]), np.array([0.9, 0.1])) == 0.25
