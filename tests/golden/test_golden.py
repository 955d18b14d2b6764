"""What Klaw prints and answers is what the files in ``expected`` say."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))
from cases import COMMANDS, MCP_TOOLS, REST, TOOLS, WITHOUT
from golden import EXPECTED, FILES, OPT_IN, UPDATE, difference, found, leaves
from world import made, masked


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    with made(tmp_path_factory.mktemp("golden")) as world:
        yield world


@pytest.mark.parametrize("name", FILES)
def test_what_is_printed_and_answered_is_as_before(world, name):
    text = difference(name, found(name, world))
    assert not text, f"\n{text}\n\nIf this is meant, and said in CHANGELOG.md: {UPDATE}"


def test_every_file_has_something_that_computes_it():
    assert {path.relative_to(EXPECTED).with_suffix("").as_posix() for path in EXPECTED.rglob("*.txt")} == set(FILES)


@pytest.mark.needs("klaw-conversations", "klaw-facts")
def test_every_command_has_a_case_or_a_reason():
    called = [line.partition("<")[0].split() for lines in COMMANDS.values() for line in lines]
    paths = {path for path, _ in leaves()}
    ways = {max((path for path in paths if tuple(words[: len(path)]) == path), key=len, default=()) for words in called}
    reasons = {tuple(name.split()) for name in WITHOUT}
    assert paths == ways | reasons
    assert not ways & reasons


def test_every_tool_has_a_call_and_every_operation_a_request(world):
    table = pytest.importorskip("klaw_serve.table")
    world.renew()
    with world.open() as memory:
        assert set(memory.toolbox(allow=OPT_IN)) <= {name for name, _ in TOOLS}
    assert {name for name, _ in MCP_TOOLS} - {name for name, _ in TOOLS} == set()
    requests = [(method, path.partition("?")[0].split("/")) for method, path, _ in REST]
    for operation in table.offered(read_only=False).values():
        parts = operation.path.split("/")
        alike = [
            method == operation.method
            and len(given) == len(parts)
            and all(own.startswith("{") or own == other for own, other in zip(parts, given, strict=True))
            for method, given in requests
        ]
        assert any(alike), operation.name


def test_the_mask_hides_only_what_differs_between_runs(world):
    assert masked("notes/a.md of 2020-02-24, 12 notes, relevance 0.38", world) == (
        "notes/a.md of 2020-02-24, 12 notes, relevance 0.38"
    )
    assert masked(f'{world.home}/x took 3.2 s, {{"seconds": 0.01, "score": 0.123456789}}', world) == (
        '~/x took <n> s, {"seconds": <n>, "score": 0.12346}'
    )
