"""The laws of chunking, for the Markdown chunker: on written Markdown, on notes, and on a directory of one's own.

KLAW_TEST_NOTES=~/notes pytest tests/property/test_chunker_laws.py
"""

import os
from pathlib import Path

import pytest

from klaw_core import TokenCounter
from klaw_notes.chunking import MarkdownChunker
from klaw_notes.options import MarkdownOptions
from klaw_testing.chunker import LAWS, MakeChunker, MarkdownChunkerContract, Trial

NOTES = sorted((Path(__file__).parent / "notes").glob("*.md"))
DIRECTORY = os.environ.get("KLAW_TEST_NOTES")


class TestMarkdownChunker(MarkdownChunkerContract):
    @pytest.fixture
    def make_chunker(self) -> MakeChunker:
        return lambda max_tokens, overlap_tokens: MarkdownChunker(MarkdownOptions(max_tokens, overlap_tokens))


@pytest.mark.parametrize("path", NOTES, ids=lambda path: path.stem)
@pytest.mark.parametrize("bounds", TestMarkdownChunker.bounds)
@pytest.mark.parametrize("counter", TestMarkdownChunker.counters)
def test_every_law_holds_for_the_sample_notes(path: Path, bounds: tuple[int, int], counter: TokenCounter) -> None:
    _check(path, bounds, counter)


@pytest.mark.skipif(not DIRECTORY, reason="KLAW_TEST_NOTES names no directory of notes")
def test_every_law_holds_for_a_directory_of_notes() -> None:
    paths = sorted(Path(DIRECTORY or "").rglob("*.md"))
    assert paths, f"no *.md under {DIRECTORY}"
    broken = []
    for path in paths:
        try:
            _check(path, (400, 80), TestMarkdownChunker.counters[0])
        except AssertionError as error:
            broken.append(f"{path}: {error}")
    assert not broken, "\n".join(broken)


def _check(path: Path, bounds: tuple[int, int], counter: TokenCounter) -> None:
    trial = Trial(MarkdownChunker(MarkdownOptions(*bounds)), path.read_bytes().decode(), *bounds, counter)
    for law in LAWS:
        law(trial)
