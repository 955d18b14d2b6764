"""What the adapters share of a result: where it is from, and how far it can be trusted."""

import json

from klaw_agents.turns import place_of


def test_the_place_of_a_result_is_data_that_every_framework_can_store(memory, tmp_path):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "ferry.md").write_text("# Ferry\n\nThe ferry leaves at nine.\n", "utf-8")
    memory.index(tmp_path / "notes", trust="foreign")
    (result,) = memory.search("when does the ferry leave").results
    place = place_of(result)
    assert json.loads(json.dumps(place)) == {
        "path": "notes/ferry.md",
        "start_line": 1,
        "end_line": 3,
        "origin": result.origin,
        "source": result.source,
        "created_at": result.created_at.isoformat(),
        "is_weak": result.is_weak,
        "trust": "foreign",
    }
