"""Plain transcripts: the usual names of roles, texts and times, and lines that are no messages."""

import json

import pytest

from klaw_core import Entry, Memory, load_config
from klaw_sessions.options import SessionOptions
from klaw_sessions.plain import PLAIN
from klaw_sessions.source import TranscriptSource
from klaw_testing.source import SourceContract


def write(path, *lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines), "utf-8")


def said(role, content, **more):
    return {"role": role, "timestamp": "2026-05-01T10:00:00Z", "content": content, **more}


class TestContract(SourceContract):
    @pytest.fixture
    def source(self, tmp_path):
        write(tmp_path / "chats" / "s1.jsonl", said("user", "I like kayaks"), said("assistant", "Noted."))
        write(tmp_path / "chats" / "deep" / "s2.jsonl", {"event": "start"})
        return TranscriptSource.of(PLAIN, SessionOptions(str(tmp_path / "chats")))


def read(tmp_path, *lines, **options):
    write(tmp_path / "chats" / "s1.jsonl", *lines)
    source = TranscriptSource.of(PLAIN, SessionOptions(str(tmp_path / "chats"), **options))
    (document,) = [source.read(entry) for entry in source.scan() if isinstance(entry, Entry)]
    return document


def test_messages_are_lines_with_their_times(tmp_path):
    document = read(
        tmp_path,
        said("user", "I like kayaks"),
        {"role": "assistant", "text": "Noted,\n\nand kept.", "ts": 1777629660},
        {"role": "human", "content": [{"type": "text", "text": "a block"}], "created_at": 1777629720000},
        {"type": "ai", "content": "by its type"},
        {"message": {"role": "user", "content": "inside"}, "time": "2026-05-01T10:05:00Z"},
    )
    assert document.text.split("\n") == [
        "User: I like kayaks",
        "Assistant: Noted, and kept.",
        "User: a block",
        "Assistant: by its type",
        "User: inside",
    ]
    assert document.path == "jsonl/s1.jsonl"
    moments = {line: moment.isoformat() for line, moment in document.times}
    assert moments == {
        1: "2026-05-01T10:00:00+00:00",
        2: "2026-05-01T10:01:00+00:00",
        3: "2026-05-01T10:02:00+00:00",
        5: "2026-05-01T10:05:00+00:00",
    }


@pytest.mark.parametrize(
    "line",
    [
        *('{"role": "user"', "[]", "null", "17", '"user"', "\udcff"),
        *('{"role": 7, "content": "x"}', '{"role": "user", "content": 7}', '{"role": "user", "content": ""}'),
        *('{"role": "system", "content": "be brief"}', '{"role": "tool", "content": "ls"}', '{"content": "no role"}'),
        '{"role": "user", "content": {"a": 1}, "timestamp": {"b": 2}}',
    ],
)
def test_a_line_that_is_no_message_is_left_out(tmp_path, line):
    file = tmp_path / "chats" / "s1.jsonl"
    file.parent.mkdir()
    file.write_bytes(
        line.encode("utf-8", "surrogateescape") + b"\n" + json.dumps(said("user", "hello")).encode() + b"\n"
    )
    source = TranscriptSource.of(PLAIN, SessionOptions(str(tmp_path / "chats")))
    (document,) = [source.read(entry) for entry in source.scan() if isinstance(entry, Entry)]
    assert document.text == "User: hello"


@pytest.mark.parametrize("moment", ["soon", -1e30, 1e30, True, None, [], "9999-99-99"])
def test_a_time_that_is_none_does_not_hide_a_message(tmp_path, moment):
    assert read(tmp_path, said("user", "hello", timestamp=moment)).text == "User: hello"


def test_tools_are_shown_if_configured(tmp_path):
    lines = [said("user", "list"), said("tool", "a.py")]
    assert read(tmp_path, *lines).text == "User: list"
    assert read(tmp_path, *lines, roles=("user", "tool")).text == "User: list\nTool: a.py"


def test_a_directory_is_found_by_search(tmp_path):
    write(tmp_path / "chats" / "s1.jsonl", said("user", "I like kayaks"), said("assistant", "Noted."))
    config = load_config(
        data_dir=tmp_path / "data",
        overrides={"memory": {"sources": [{"type": "jsonl", "path": str(tmp_path / "chats")}]}},
        environment={"KLAW_EMBEDDER": "none"},
    )
    with Memory.open(config) as memory:
        memory.index()
        (result,) = memory.search("kayaks")
        assert result.path == "jsonl/s1.jsonl"
        assert result.created_at.isoformat() == "2026-05-01T10:00:00+00:00"
        assert "{" not in result.content


def test_a_separate_collection_is_searched_only_by_name(tmp_path):
    write(tmp_path / "chats" / "s1.jsonl", said("user", "I like kayaks"))
    config = load_config(
        data_dir=tmp_path / "data",
        overrides={
            "memory": {
                "sources": [{"type": "jsonl", "path": str(tmp_path / "chats"), "collection": "sessions"}],
                "search": {"separate": ["sessions"]},
            }
        },
        environment={"KLAW_EMBEDDER": "none"},
    )
    with Memory.open(config) as memory:
        memory.save("the canoe is green")
        memory.index()
        assert not [result for result in memory.search("kayaks") if "kayaks" in result.content]
        (result,) = memory.search("kayaks", collection="sessions")
        assert result.collection == "sessions"


@pytest.mark.parametrize("name", ["", "a/b", "Ä" * 200])
def test_a_wrong_collection_is_refused(name):
    with pytest.raises(ValueError, match="collection"):
        SessionOptions(collection=name)


def test_status_names_what_a_run_has_skipped_of_a_configured_source_and_no_part_that_is_in_another_line(tmp_path):
    write(tmp_path / "chats" / "big.jsonl", said("user", "kayak " * 200_000))
    write(tmp_path / "chats" / "other.jsonl", {"event": "start"})
    source = {"type": "jsonl", "path": str(tmp_path / "chats")}
    memory = {"memory": {"embedding": {"type": "none"}, "sources": [source]}}
    with Memory.open(load_config(data_dir=tmp_path / "data", environment={}, overrides=memory)) as opened:
        report = opened.index()
        reasons = {item.path: item.reason.partition(";")[0] for item in report.skipped}
        assert reasons.pop("jsonl/other.jsonl") == "contains nothing that Klaw knows"
        assert set(reasons.values()) == {"is empty"}
        assert opened.status().skipped["jsonl"] == report.skipped
