"""A line of saved.jsonl that is broken takes nothing from the index: the last copy of a memory may be there."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize("damage", [lambda line: line.replace(b'"text"', b'"txet"'), lambda line: line[:20] + b"\n"])
def test_a_memory_with_an_invalid_line_is_still_found(home, check, damage):
    with home.open() as memory:
        lost, kept = memory.save("the harbour code"), memory.save("the lighthouse keeper")
        journal = home.root / "data" / "saved.jsonl"
        first, second = journal.read_bytes().splitlines(keepends=True)
        journal.write_bytes(damage(first) + second)
        report = memory.index()
        assert report.removed == 0
        assert [(skipped.path, skipped.keep) for skipped in report.skipped] == [("saved", True)]
        assert "saved.jsonl" in report.skipped[0].reason
        assert memory.search("harbour code").results[0].path == lost.path
        assert memory.get(lost.path).content == "the harbour code"
        assert memory.get(kept.path).content == "the lighthouse keeper"
        check(memory)
        memory.reindex()
        assert memory.get(lost.path).content == "the harbour code"
        check(memory)
        journal.write_bytes(first + second)
        assert memory.index().skipped == ()
        check(memory)
