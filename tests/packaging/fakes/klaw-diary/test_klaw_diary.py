"""Everything that a feature needs, by a plugin that the core does not know: the proof of the seam."""

import json
from datetime import date

import pytest

from klaw_core import Filters, Memory, load_config, parse_condition
from klaw_diary import Diary, DiaryChunker

MONDAY, SATURDAY = date(2026, 2, 23), date(2026, 2, 28)


def config(tmp_path, **more):
    tables = {"memory": {"embedding": {"type": "hashing"}}, **more}
    return load_config(data_dir=tmp_path / "data", overrides=tables, environment={"KLAW_CONFIG": "/dev/null"})


@pytest.fixture
def memory(tmp_path):
    with Memory.open(config(tmp_path)) as opened:
        yield opened


@pytest.fixture
def diary(memory):
    found = memory.extension(Diary)
    found.write("The harbour was frozen.", "calm", MONDAY)
    found.write("Skated with Ada.", "happy", SATURDAY)
    found.write("Lost a glove at the harbour.", "sad", SATURDAY)
    return found


def test_an_extension_is_reached_by_its_name_and_typed_by_its_class(memory):
    assert memory.extension("diary") is memory.extension(Diary)


@pytest.mark.usefixtures("diary")
def test_its_format_is_cut_by_its_own_chunker(memory):
    assert [result.content for result in memory.search("skated", collection="diary", limit=1)] == ["Skated with Ada."]
    assert [span.heading for span in DiaryChunker().split("@ a\nb\n@ c\nd", len)] == [("a",), ("c",)]


@pytest.mark.usefixtures("diary")
def test_its_collection_is_apart_and_can_be_searched_together_with_others(memory, tmp_path):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.md").write_text("# Harbour\n\nThe harbour master.\n")
    memory.index(tmp_path / "notes")
    assert {result.collection for result in memory.search("harbour")} == {"memory"}
    both = memory.search("harbour", collection=["memory", "diary"])
    assert {(result.collection, result.path.partition("/")[0]) for result in both} == {
        ("memory", "notes"),
        ("diary", "diary"),
    }


@pytest.mark.parametrize(
    ("condition", "days"),
    [
        ("moods=sad", {"2026-02-28"}),
        ("entries<2", {"2026-02-23"}),
        ("weekend=false", {"2026-02-23"}),
        ("moods=x", set()),
    ],
)
@pytest.mark.usefixtures("diary")
def test_its_metadata_is_filtered_and_returned(memory, condition, days):
    filters = Filters(metadata=(parse_condition(condition),))
    found = memory.search("harbour skated", collection="diary", filters=filters)
    assert {result.path[6:16] for result in found} == days
    assert all(set(result.metadata) == {"moods", "entries", "weekend"} for result in found)


def test_what_it_counts_survives_a_reindex(memory, diary):
    for _ in range(2):
        memory.search("skated", collection="diary", limit=1)
    assert diary.finds() == {"diary/2026-02-28.diary": 2}
    memory.reindex()
    assert diary.finds() == {"diary/2026-02-28.diary": 2}
    assert memory.search("skated", collection="diary", limit=1)


def test_its_documents_can_be_forgotten_and_do_not_come_back(memory, diary):
    assert memory.forget("diary/2026-02-28.diary").chunks == 2
    memory.index()
    assert not (diary.root / "2026-02-28.diary").exists()
    assert {result.path for result in memory.search("harbour skated glove", collection="diary")} == {
        "diary/2026-02-23.diary"
    }


def test_its_source_is_listed_watched_and_indexed_alone(memory, diary):
    (listed,) = [source for source in memory.sources() if source.origin == "diary"]
    assert (listed.collection, listed.can_forget, listed.configured) == ("diary", True, False)
    assert list(memory.watch_paths()["diary"]) == [diary.root]
    (diary.root / "2026-03-01.diary").write_text("@ calm\nWrote by hand.\n")
    assert memory.index(origin="diary").added == 1


@pytest.mark.usefixtures("diary")
def test_models_can_use_its_tool(memory):
    assert "memory_diary" in {tool["name"] for tool in memory.tools()}
    assert memory.call_tool("memory_diary", {"text": "By a model."})["written"].startswith("diary/")
    assert "mood" in memory.call_tool("memory_diary", {"text": "x", "mood": "two words"})["error"]


def test_doctor_runs_its_check_and_its_fix(memory, diary):
    with (diary.root / "2026-02-23.diary").open("a") as file:
        file.write("no end")
    assert "diary-end" in {finding.check for finding in memory.doctor().findings}
    fixed = memory.doctor(fix=True)
    assert "diary-end" not in {finding.check for finding in fixed.remaining}


@pytest.mark.usefixtures("diary")
def test_its_records_are_exported_and_imported(memory, tmp_path):
    report = memory.export(tmp_path / "all.jsonl")
    assert report.counts["diary"] == 2
    with Memory.open(config(tmp_path / "elsewhere")) as other:
        assert other.import_(tmp_path / "all.jsonl").added["diary"] == 2
        assert other.import_(tmp_path / "all.jsonl").present["diary"] == 2
        other.index()
        assert other.search("skated", collection="diary")


@pytest.mark.usefixtures("diary")
def test_it_offers_context(memory):
    assert "Skated with Ada." in memory.context("who skated").volatile


def test_its_table_of_the_configuration_is_read_and_checked(tmp_path):
    with Memory.open(config(tmp_path, extensions={"diary": {"mood": "grim"}})) as memory:
        path = memory.extension(Diary).write("It rained.", day=MONDAY)
        assert "@ grim" in (tmp_path / "data" / path).read_text()
    with pytest.raises(Exception, match=r"extensions\.diary\.mod: unknown key; did you mean 'mood'"):
        Memory.open(config(tmp_path, extensions={"diary": {"mod": "grim"}}))


@pytest.mark.usefixtures("diary")
def test_its_status_is_shown(memory):
    assert memory.status().statistics["diary_days"] == 2


@pytest.mark.usefixtures("diary")
def test_a_listener_that_fails_costs_nobody_anything(memory, monkeypatch):
    monkeypatch.setattr(Diary, "on", lambda _self, _event: 1 / 0)
    assert memory.search("skated", collection="diary")


@pytest.mark.usefixtures("diary")
def test_json_of_results_names_the_collection_and_the_metadata(memory):
    from klaw_core import to_json

    (result,) = to_json(memory.search("skated", collection="diary", limit=1).results)
    assert json.loads(json.dumps(result))["metadata"]["weekend"] is True
