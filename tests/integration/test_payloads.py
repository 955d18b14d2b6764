"""A document's payload: kept and returned with it, never searched."""

import pytest

from klaw_core import Memory, NewDocument, RecordError, load_config

PAYLOAD = {"nested": {"wombat": [1, 2.5, None, True]}, "empty": {}, "text": "snow\nflake"}
WORDS_ONLY = {"memory": {"embedding": {"type": "none"}}}


@pytest.fixture
def open_memory(tmp_path):
    return lambda name="data": Memory.open(load_config(overrides=WORDS_ONLY, data_dir=tmp_path / name))


def test_a_payload_is_returned_and_not_searched(open_memory):
    with open_memory() as memory:
        memory.add([NewDocument("a", "The ferry leaves at seven.", payload=PAYLOAD), NewDocument("b", "No payload.")])
        first, second = memory.get_by_ids(["a", "b"])
        assert (first.payload, second.payload) == (PAYLOAD, None)
        assert memory.search("ferry")[0].path == "documents/a"
        assert not memory.search("wombat", mode="fts")


def test_a_payload_survives_rebuild_export_and_import(open_memory, tmp_path):
    with open_memory() as memory:
        memory.add([NewDocument("a", "The ferry leaves at seven.", payload=PAYLOAD)])
        memory.reindex()
        memory.export(tmp_path / "all.jsonl")
    with open_memory("other") as memory:
        memory.import_(tmp_path / "all.jsonl")
        assert memory.get_by_ids(["a"])[0].payload == PAYLOAD


def test_a_document_can_have_only_a_payload(open_memory):
    with open_memory() as memory:
        memory.add([NewDocument("a", "", payload={"n": 1})])
        assert memory.get_by_ids(["a"])[0].payload == {"n": 1}
        assert [record.path for record in memory.documents()] == ["documents/a"]
        assert memory.index().changed == 0
        assert not [found for found in memory.doctor().findings if found.check.startswith(("document", "index"))]
        assert memory.delete(["a"]) == 1


@pytest.mark.parametrize("payload", [{1: "a"}, (1, 2), {"a": float("nan")}, object(), "x" * 1_000_001], ids=type)
def test_a_payload_that_is_not_json_is_rejected(payload):
    with pytest.raises(RecordError, match="payload"):
        NewDocument("a", "text", payload=payload)
