"""The append-only file of JSON lines: what is acknowledged stays, what is broken is counted, nothing raises."""

import errno
import fcntl
import json
import os
import resource
import subprocess
import sys
import threading
from itertools import islice
from pathlib import Path

import pytest

from klaw_core import RecordError, StoreError, StoreFullError, StoreReadOnlyError
from klaw_journals import FileJournals, jsonl
from klaw_journals.contents import BadLine, LogRecord
from klaw_journals.jsonl import MAX_DEPTH, MAX_LINE_BYTES, JsonLines, parse_json
from klaw_testing.crash import cut_power_everywhere, kill_everywhere

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")


@pytest.fixture
def lines(tmp_path):
    return JsonLines(tmp_path / "chat" / "day.jsonl")


def values(found):
    return [line.value for line in found if isinstance(line, LogRecord)]


def reasons(found):
    return {line.offset: line.reason for line in found if isinstance(line, BadLine)}


def write(lines: JsonLines, data: bytes) -> None:
    lines.path.parent.mkdir(parents=True, exist_ok=True)
    lines.path.write_bytes(data)


def test_appended_records_are_read_in_order_with_their_places(lines):
    written = [*lines.append({"n": 1}), *lines.append({"n": 2, "text": "Привет\n\u2028\0"}, {"n": 3})]
    assert list(lines.read()) == written
    assert values(written) == [{"n": 1}, {"n": 2, "text": "Привет\n\u2028\0"}, {"n": 3}]
    data = lines.path.read_bytes()
    assert [json.loads(data[line.offset : line.end]) for line in written] == values(written)
    assert data.count(b"\n") == 3


@pytest.mark.promise("S2")
def test_file_and_directories_are_private(lines):
    previous = os.umask(0o022)
    try:
        JsonLines(lines.path.parent / "new" / "deeper" / "x.jsonl").append({})
    finally:
        os.umask(previous)
    assert (lines.path.parent / "new" / "deeper" / "x.jsonl").stat().st_mode & 0o777 == 0o600
    for directory in (lines.path.parent, lines.path.parent / "new", lines.path.parent / "new" / "deeper"):
        assert directory.stat().st_mode & 0o777 == 0o700


def test_a_record_can_depend_on_its_offset(lines):
    lines.append({"n": 1})
    made = lines.append(lambda offset: {"at": offset}, lambda offset: {"at": offset})
    assert [line.value["at"] for line in made] == [line.offset for line in made] == [8, 17]


def test_appending_nothing_writes_nothing(lines):
    assert lines.append() == ()
    assert list(lines.read()) == []


def test_a_missing_file_has_no_lines(lines):
    assert list(lines.read()) == list(lines.read_backwards()) == []


@pytest.mark.parametrize("cut", range(1, 8))
def test_a_torn_tail_does_not_affect_other_lines(lines, cut):
    whole = b'{"n":2}\n'
    write(lines, b'{"n":1}\n' + whole[:cut])
    *_, tail = lines.read()
    assert tail == BadLine(
        lines.location, 8, 8, f"the last line is incomplete: {cut} bytes without a line end", torn=True
    )
    lines.append({"n": 3})
    found = list(lines.read())
    assert values(found) == ([{"n": 1}, {"n": 2}, {"n": 3}] if cut == 7 else [{"n": 1}, {"n": 3}])
    assert list(reasons(found)) == ([] if cut == 7 else [8])


BAD = {
    "garbage": b"\x8f\x12 what?",
    "not JSON": b"hello",
    "half an object": b'{"n":',
    "two objects": b"{} {}",
    "a list": b"[1]",
    "a number": b"1",
    "null": b"null",
    "NaN": b'{"n":NaN}',
    "Infinity": b'{"n":-Infinity}',
    "a number beyond a double": b'{"n":1e999}',
    "half a surrogate pair": b'{"n":"\\ud83d"}',
    "the other half": b'{"n":"\\ude00 and more"}',
    "a surrogate in UTF-8": b'{"n":"\xed\xa0\xbd"}',
    "not UTF-8": b'{"n":"\xff"}',
    "not UTF-8 in a key": b'{"\xff":1}',
    "Latin-1": "{'n': 'é'}".encode("latin-1"),
    "UTF-16": '{"n":1}'.encode("utf-16"),
    "NUL": b'{"n":"a\0b"}',
    "only NULs": b"\0" * 100,
    "a control character": b'{"n":"a\x01b"}',
    "single quotes": b"{'n':1}",
    "a comma too many": b'{"n":1,}',
    "a number of 5,000 digits": b'{"n":' + b"9" * 5000 + b"}",
    "100,000 deep": b'{"n":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "100,000 open": b"[" * 100_000,
    "one too deep": b'{"n":' + b"[" * MAX_DEPTH + b"]" * MAX_DEPTH + b"}",
    "a mark in the middle": b'\xef\xbb\xbf\xef\xbb\xbf{"n":1}',
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_an_invalid_line_is_counted_and_its_neighbours_are_read(lines, bad):
    write(lines, b'{"n":1}\n' + bad + b'\n{"n":2}\n')
    found = list(lines.read())
    assert values(found) == [{"n": 1}, {"n": 2}]
    assert list(reasons(found)) == [8]
    assert found[1].end == 8 + len(bad) + 1
    assert not found[1].ends_reading
    assert reasons(found)[8]
    assert str(found[1]).startswith(f"{lines.path}, byte 8: ")
    assert list(lines.read_backwards()) == found[::-1]


GOOD = {
    "a byte order mark": b'\xef\xbb\xbf{"n":1}',
    "a carriage return": b'{"n":1}\r',
    "spaces": b'\t {"n": 1}  ',
    "a key twice, the last counts": b'{"n":0,"n":1}',
}


@pytest.mark.parametrize("good", GOOD.values(), ids=GOOD)
def test_lines_of_other_programs_are_read(lines, good):
    write(lines, good + b"\n")
    assert values(lines.read()) == [{"n": 1}]


@pytest.mark.parametrize("content", ["😀", "\0", "\u2028", "a\r\nb", "\x7f"])
def test_any_unicode_text_survives(lines, content):
    lines.append({"n": content})
    assert values(lines.read()) == [{"n": content}]


def test_blank_lines_are_skipped(lines):
    write(lines, b'\n{"n":1}\n\n  \r\n{"n":2}\n\n')
    found = list(lines.read())
    assert values(found) == [{"n": 1}, {"n": 2}]
    assert len(found) == 2
    assert list(lines.read_backwards()) == found[::-1]


def test_nesting_up_to_the_limit_is_read_at_any_stack_depth(lines):
    deepest = b'{"n":' + b"[" * (MAX_DEPTH - 1) + b"]" * (MAX_DEPTH - 1) + b"}"
    write(lines, deepest + b"\n")

    def deeper(left):
        return deeper(left - 1) if left else len(values(lines.read()))

    assert deeper(600) == 1


@pytest.mark.cold_start  # what is imported would be a part of the memory that is measured
@pytest.mark.parametrize("ended", [True, False])
def test_a_line_of_100_megabytes_is_skipped_without_loading_it(tmp_path, ended):
    path = tmp_path / "x.jsonl"
    with path.open("wb") as file:
        file.write(b'{"n":1}\n{"n":"')
        file.seek(100 << 20, os.SEEK_CUR)  # a hole: no disk is used
        file.write(b'"}\n{"n":2}\n' if ended else b"")
        file.truncate(file.tell())
    program = f"""
import resource, sys
from pathlib import Path
from klaw_journals.jsonl import JsonLines, parse_json
from klaw_journals.contents import BadLine
parse_json(b"{{}}")
lines = JsonLines(Path({str(path)!r}))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
found = list(lines.read())
assert list(lines.read_backwards()) == found[::-1]
grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
print(grown, [line.value if not isinstance(line, BadLine) else (line.offset, line.torn) for line in found])
"""
    grown, found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout.split(" ", 1)
    assert eval(found) == ([{"n": 1}, (8, False), {"n": 2}] if ended else [{"n": 1}, (8, True)])
    assert int(grown) < 12 << 10, "kilobytes"


def test_the_size_limit_excludes_the_newline(tmp_path):
    lines = JsonLines(tmp_path / "x.jsonl", max_line_bytes=20)
    fits, over = {"n": "x" * 12}, {"n": "x" * 13}
    lines.append(fits)
    with pytest.raises(RecordError, match=r"21 bytes; a line .* may have 20"):
        lines.append({"small": 1}, over)
    lines.path.write_bytes(lines.path.read_bytes() + json.dumps(over, separators=(",", ":")).encode() + b"\n")
    assert values(lines.read()) == [fits]
    assert reasons(lines.read()) == {21: "the line has 21 bytes; the limit is 20"}
    assert list(lines.read_backwards()) == list(lines.read())[::-1]


def test_a_record_of_a_megabyte_is_written_and_read(lines):
    text = "я" * ((MAX_LINE_BYTES - 8) // 2)
    lines.append({"n": text})
    assert values(lines.read()) == values(lines.read_backwards()) == [{"n": text}]


UNWRITABLE = {
    "NaN": {"n": float("nan")},
    "Infinity": {"n": float("inf")},
    "half a surrogate pair": {"n": "\ud83d"},
    "half a surrogate pair in a key": {"\ud83d": 1},
    "a set": {"n": {1, 2}},
    "bytes": {"n": b"bytes"},
    "a number of 5,000 digits": {"n": 10**5000},
    "a key that is no text": {(1, 2): 3},
}


@pytest.mark.parametrize("record", UNWRITABLE.values(), ids=UNWRITABLE)
def test_a_record_that_could_not_be_read_is_not_written(lines, record):
    with pytest.raises(RecordError):
        lines.append({"n": 1}, record)
    assert list(lines.read()) == []
    assert not lines.path.exists() or lines.path.read_bytes() == b""


def test_a_circular_or_too_deep_record_is_rejected(lines):
    circle: dict = {}
    circle["n"] = circle
    deep: list = []
    for _ in range(5000):
        deep = [deep]
    for record in (circle, {"n": deep}):
        with pytest.raises(RecordError):
            lines.append(record)


def test_reasons_do_not_quote_the_line():
    for line in (b'{"key":"hunter2" x', b'{"key":"hunter2\xff"}', b'["hunter2"]', b'{"hunter2":1e999}'):
        with pytest.raises(RecordError) as caught:
            parse_json(line)
        assert "hunter2" not in str(caught.value)


def test_reading_continues_where_it_stopped(lines):
    lines.append(*({"n": n} for n in range(5)))
    whole = list(lines.read())
    for line in whole:
        assert list(lines.read(line.end)) == whole[line.value["n"] + 1 :]
    lines.append({"n": 5})
    assert values(lines.read(whole[-1].end)) == [{"n": 5}]


def test_a_follower_reads_a_line_when_it_is_complete(lines):
    lines.append({"n": 1})
    (first,) = lines.read()
    with lines.path.open("ab") as writer:
        writer.write(b'{"n":')
        writer.flush()
        (torn,) = lines.read(first.end)
        assert torn.torn
        assert torn.end == torn.offset == first.end
        writer.write(b"2}\n")
    assert values(lines.read(torn.end)) == [{"n": 2}]


@pytest.mark.parametrize("start", [3, 9, 16, 17, 1000])
def test_an_offset_inside_a_line_is_reported_as_a_replaced_file(lines, start):
    lines.append({"n": 1}, {"n": 2})
    found = list(lines.read(start))
    assert [type(line) for line in found] == ([] if start == 16 else [BadLine])
    assert start == 16 or ("truncated or replaced" in found[0].reason and found[0].ends_reading)


@pytest.mark.parametrize("kind", ["directory", "fifo", "link to nothing", "loop", "device", "forbidden"])
def test_something_other_than_a_file_is_counted_without_waiting(lines, kind):
    lines.path.parent.mkdir()
    if kind == "directory":
        lines.path.mkdir()
    elif kind == "fifo":
        os.mkfifo(lines.path)
    elif kind == "device":
        lines.path.symlink_to("/dev/zero")
    elif kind == "forbidden":
        lines.path.write_bytes(b"{}\n")
        lines.path.chmod(0)
        if os.access(lines.path, os.R_OK):
            pytest.skip("root may read everything")
    else:
        lines.path.symlink_to("nowhere/at all" if kind == "link to nothing" else lines.path.name)
    found = [*lines.read(), *lines.read_backwards()]
    assert [line.offset for line in found] == ([] if kind == "link to nothing" else [0, 0])
    assert all(isinstance(line, BadLine) and line.ends_reading for line in found)
    if kind != "link to nothing":
        with pytest.raises(StoreReadOnlyError, match="cannot be written"):
            lines.append({"n": 1})


@pytest.mark.parametrize("count", [0, 1, 2, 7, 5000, 10_000])
def test_the_tail_equals_the_end_of_a_full_read(lines, count):
    write(lines, b"".join(b'{"n":%d}\n%s' % (n, b"bad\n" if n % 3 == 0 else b"") for n in range(6000)) + b'{"n":')
    whole = list(lines.read())
    assert list(islice(lines.read_backwards(), count)) == whole[::-1][:count]
    assert whole[-1].torn


def test_the_tail_reads_only_the_end(lines, monkeypatch):
    write(lines, b'{"n":1}\n' * 500_000)
    taken = []
    pread = os.pread
    monkeypatch.setattr(os, "pread", lambda *arguments: taken.append(arguments[1]) or pread(*arguments))
    assert values(islice(lines.read_backwards(), 10)) == [{"n": 1}] * 10
    assert sum(taken) < lines.path.stat().st_size / 50


def test_an_append_goes_to_the_new_file_after_a_replacement(lines, monkeypatch):
    """An editor saves by renaming: whoever opened the file before, and waited for its lock, must notice."""
    import fcntl

    lines.append({"n": 1})
    flock = fcntl.flock
    replaced = []

    def replace_first(descriptor, operation):
        if not replaced:
            replaced.append(True)
            other = lines.path.with_name("other")
            other.write_bytes(b'{"n":"edited"}\n')
            other.replace(lines.path)
        flock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", replace_first)
    lines.append({"n": 2})
    assert values(lines.read()) == [{"n": "edited"}, {"n": 2}]


def test_an_append_excludes_every_other_writer(lines):
    lines.append({"n": 0})

    def record(offset):
        with lines.path.open("rb") as other, pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return {"n": offset}

    (appended,) = lines.append(record)
    assert appended.value == {"n": appended.offset}


def test_threads_and_processes_append_without_loss(lines):
    """Six writers, one of which tears a line now and then as a crash would; every acknowledged record is there."""
    program = f"""
import sys
from pathlib import Path
from klaw_journals.jsonl import JsonLines
for n in range(60):
    JsonLines(Path({str(lines.path)!r})).append({{"writer": sys.argv[1], "n": n, "text": "x" * (n * 97 % 5000)}})
"""
    processes = [subprocess.Popen([sys.executable, "-c", program, f"process {n}"]) for n in range(2)]

    def write_some(name):
        for n in range(60):
            lines.append({"writer": name, "n": n}, {"writer": name, "n": n + 0.5})

    threads = [threading.Thread(target=write_some, args=(f"thread {n}",)) for n in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(20):
        lines.append({"writer": "main"})
        with lines._locked() as descriptor:
            os.write(descriptor, b'{"torn":')
    for thread in threads:
        thread.join()
    assert [process.wait() for process in processes] == [0, 0]
    lines.append({"writer": "last"})
    found = list(lines.read())
    for writer, expected in [("process 0", 60), ("process 1", 60), ("thread 0", 120), ("thread 2", 120), ("main", 20)]:
        own = [value.get("n", 0) for value in values(found) if value.get("writer") == writer]
        assert len(own) == expected
        assert own == sorted(own), "each writer's own order"
    assert len(values(found)) == 2 * 60 + 3 * 120 + 20 + 1
    assert len(reasons(found)) == 20, "the torn ones, and nothing else"


def test_a_full_disk_is_reported_and_earlier_lines_stay(lines):
    lines.append({"n": 1})
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    child = os.fork()
    if child == 0:
        code = 70
        try:
            import signal

            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (20, limits[1]))
            try:
                lines.append({"n": "a text that does not fit"})
            except StoreFullError:
                code = 0
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    lines.append({"n": 2})
    assert values(lines.read()) == [{"n": 1}, {"n": 2}]
    assert list(reasons(lines.read())) == []


@pytest.mark.parametrize("write", ["append", "settle"])
def test_a_write_that_fails_leaves_no_part_of_a_line(lines, monkeypatch, write):
    lines.append({"n": 1})
    before = lines.path.read_bytes()

    def fill(descriptor, data):
        os.write(descriptor, data[:5])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(jsonl, "write_all", fill)
    with pytest.raises(StoreFullError):
        lines.append({"n": 2}) if write == "append" else lines.settle(lambda held: [*held, {"n": 2}])
    assert lines.path.read_bytes() == before


def test_an_error_of_a_full_disk_is_a_store_full_error(lines):
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("no /dev/full here")
    from klaw_core.files.atomic import write_all, writing_failed

    descriptor = os.open(full, os.O_WRONLY)
    try:
        write_all(descriptor, b"x")
    except OSError as error:
        failed = writing_failed(lines.path, error)
    finally:
        os.close(descriptor)
    assert isinstance(failed, StoreFullError)
    assert str(lines.path) in failed.message


def append_some(directory: Path, acknowledge) -> None:
    lines = JsonLines(directory / "chat" / "day.jsonl")
    for n in range(3):
        lines.append({"n": n, "text": "я" * 20})
        acknowledge(str(n))
    lines.append({"n": 3}, {"n": 4}, {"n": 5})
    acknowledge("3 4 5")


def check_crash(crash) -> None:
    """Hold what a crash left against what was acknowledged; then go on as the next start would."""
    lines = JsonLines(crash.directory / "chat" / "day.jsonl")
    acknowledged = [int(word) for words in crash.acknowledged for word in words.split()]
    found = list(lines.read())
    numbers = [value["n"] for value in values(found)]
    assert numbers[: len(acknowledged)] == acknowledged, crash.point
    assert numbers == list(range(len(numbers))), f"{crash.point}: in order, nothing torn taken for whole"
    assert len(reasons(found)) <= 1
    assert all(line.torn for line in found if isinstance(line, BadLine)), crash.point
    lines.append({"n": "next"})
    after = list(lines.read())
    assert values(after)[: len(numbers)] == values(found), crash.point
    assert values(after)[-1] == {"n": "next"}, crash.point
    assert len(values(after)) - len(numbers) <= 2, "the torn one may have been whole but for its end"


@pytest.mark.promise("D2")
def test_killed_at_every_point_of_an_append(tmp_path, cases):
    every = cases.every(7)
    crashes = list(kill_everywhere(append_some, tmp_path, every=every))
    cases.add(len(crashes))
    for crash in crashes:
        check_crash(crash)
    assert len(crashes) > 40 // every
    assert any(" byte of " in crash.point for crash in crashes)


@pytest.mark.promise("D1", "D20")
def test_the_power_cut_at_every_point_of_an_append(tmp_path):
    (tmp_path / "live").mkdir()
    crashes = list(cut_power_everywhere(append_some, tmp_path / "live", tmp_path / "copies"))
    for crash in crashes:
        check_crash(crash)
    assert len(crashes) > 15
    assert crashes[-1].acknowledged == ("0", "1", "2", "3 4 5")


def test_nothing_is_written_if_the_clock_shows_a_moment_that_cannot_be_represented(tmp_path, monkeypatch):
    journals = FileJournals(tmp_path)

    def overflow():
        raise OverflowError("timestamp too large to convert to C _PyTime_t")  # what Python says from 2262 on

    monkeypatch.setattr("klaw_journals.timestamps.time.time", overflow)
    writes = (
        lambda: journals.records("saved").append([{"id": "a"}]),
        lambda: journals.logs("chats").log("a", "b").append({"text": "a"}),
        lambda: journals.text("core").replace("a"),
    )
    for write in writes:
        with pytest.raises(StoreError, match="clock") as caught:
            write()
        assert caught.value.hint == "set its date"
    monkeypatch.undo()
    assert [path for path in tmp_path.rglob("*") if path.is_file() and path.stat().st_size] == []
