"""A directory of documents, through a memory: what is indexed, found, opened, converted again and forgotten."""

import os
from importlib.metadata import EntryPoint, entry_points

import pytest
from attrs import evolve
from documents_of_tests import BOOK, LETTER, ORG, PAGE, PYTHON, RST, TIDES, pdf

from klaw_core import Memory, discover, load_config

for library in ("pypdfium2", "mammoth", "selectolax"):
    pytest.importorskip(library)

FILES = {
    "log.pdf": pdf([["Ebb at six."], ["Flood at noon.", "Wind from the west."]]),
    "sub/letter.docx": LETTER,
    "page.HTML": PAGE,
    "book.epub": BOOK,
    "tides.ipynb": TIDES,
    "log.org": ORG,
    "log.rst": RST,
    "boats.py": PYTHON,
    "note.md": b"# Note\n\nA note.\n",
    "torn.pdf": b"%PDF-1.4 torn",
}


@pytest.fixture
def open_memory(tmp_path):
    points = [point for point in entry_points(group="klaw") if point.value != "klaw_documents.plugin"]
    registry = discover(points=[*points, EntryPoint("documents", "klaw_documents.plugin", "klaw")])

    def opened(**converters):
        overrides = {"memory": {"embedding": {"type": "none"}, "converters": converters}}
        config = load_config(data_dir=tmp_path / "data", environment={"KLAW_CONFIG": os.devnull}, overrides=overrides)
        return Memory.open(evolve(config, cache_dir=tmp_path / "cache"), registry=registry)

    return opened


@pytest.fixture
def documents(tmp_path):
    for name, data in FILES.items():
        path = tmp_path / "papers" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return tmp_path / "papers"


def test_a_directory_of_documents_is_indexed(open_memory, documents, tmp_path):
    with open_memory() as memory:
        report = memory.index(documents)
        assert (report.added, [item.reason for item in report.skipped]) == (8, ["is not a valid PDF"])
        assert memory.workspaces.unread("papers") == {".py": 1}
        assert memory.workspaces.kinds("papers")[".docx"] == 1
        for question, path, heading in (
            ("flood wind", "log.pdf", ("Page 2",)),
            ("Anna due", "sub/letter.docx", ("The harbour",)),
            ("bowline twice", "page.HTML", ("Moorings",)),
            ("water rises", "book.epub", ("Ebb",)),
            ("mast split", "log.org", ("Repairs", "Mast")),
            ("rope moorings", "log.rst", ("Harbour", "Moorings")),
        ):
            found = memory.search(question, mode="fts", limit=20)
            assert (f"papers/{path}", heading) in [(result.path, result.heading) for result in found], question
        assert memory.get("papers/log.pdf#page=2").content == "Flood at noon.\nWind from the west."
        assert memory.index(documents).unchanged == 8
        memory.forget("papers/log.pdf")
        texts = b"".join(path.read_bytes() for path in (tmp_path / "cache").rglob("*") if path.is_file())
        assert len(texts) > 0
        kept = len([path for path in (tmp_path / "cache").rglob("*") if path.is_file()])
        assert kept == 5, "four conversions and one reason; Org, reStructuredText and notes are not converted"


def test_code_is_read_on_request(open_memory, documents):
    pytest.importorskip("tree_sitter_python")
    with open_memory(code={"on_request": False}) as memory:
        memory.index(documents)
        (found, *_) = memory.search("sink raise", mode="fts")
        assert (found.path, found.heading) == ("papers/boats.py", ("Boat",))
        assert found.metadata == {"language": "Python"}
        assert memory.get("papers/boats.py", found.start_line, 1).content == "class Boat:\n"


def test_web_pages_can_be_read_only_on_request(open_memory, documents):
    with open_memory(html={"on_request": True}) as memory:
        memory.index(documents)
        assert ".html" in memory.workspaces.unread("papers")


def test_a_converted_file_has_the_day_of_its_name_its_field_or_its_last_change(open_memory, tmp_path):
    papers = tmp_path / "papers"
    papers.mkdir()
    (papers / "2026-02-24 kiln.rst").write_text("The kiln was cold.\n")
    (papers / "field.rst").write_text(":Date: 2025-05-10\n:date: 2020-01-01\n\nThe kiln was hot.\n")
    (papers / "plain.rst").write_text("The kiln was sold.\n")

    def days(memory):
        return {
            result.path.rpartition("/")[2]: result.created_at.date().isoformat() for result in memory.search("kiln")
        }

    with open_memory() as memory:
        for moment, day in ((1_600_000_000, "2020-09-13"), (1_700_000_000, "2023-11-14")):
            for path in papers.iterdir():
                os.utime(path, (moment, moment))
            memory.index(papers)
            assert days(memory) == {"2026-02-24 kiln.rst": "2026-02-24", "field.rst": "2025-05-10", "plain.rst": day}
