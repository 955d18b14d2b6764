"""The converters: the laws of every converter, what each makes of a file, and what hostile files can do."""

import io
import json
import os
import threading
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import ClassVar

import pytest
from documents_of_tests import (
    BOOK,
    LETTER,
    ORG,
    PAGE,
    PYTHON,
    RST,
    TIDES,
    WORD,
    archive,
    docx,
    epub,
    notebook,
    paragraph,
    pdf,
)

from klaw_core import ConversionError
from klaw_documents.converters import (
    AsciiDocConverter,
    CanvasConverter,
    CodeConverter,
    OrgConverter,
    ParsedConverter,
    RstConverter,
)
from klaw_documents.options import ParsedOptions
from klaw_documents.process import ParserProcess
from klaw_testing.converter import ConverterContract

WRITTEN = datetime(2024, 5, 6, 5, 8, 9, tzinfo=UTC)
LOG = pdf([["Ebb at six.", "Wind from the west."], [], ["Flood at noon."]], title="Harbour log")

for library in ("pypdfium2", "mammoth", "selectolax"):
    pytest.importorskip(library)


@pytest.fixture(scope="module")
def process():
    """One process for all tests, which ends with them."""
    process = ParserProcess(60, 1024)
    yield process
    process.close()


@pytest.fixture
def convert(process):
    """Convert a file by its kind."""

    def converted(kind, data):
        return ParsedConverter(kind, ParsedOptions(), process).convert(data, f"file.{kind}")

    return converted


class ParsedContract(ConverterContract):
    """The laws, of a converter that parses in a process of its own."""

    kind: ClassVar = ""
    examples: ClassVar = 25

    @pytest.fixture
    def converter(self, process):
        return ParsedConverter(self.kind, ParsedOptions(), process)


class TestPdf(ParsedContract):
    kind = "pdf"
    files: ClassVar = {"log.pdf": LOG}


class TestDocx(ParsedContract):
    kind = "docx"
    files: ClassVar = {"letter.docx": LETTER}


class TestHtml(ParsedContract):
    kind = "html"
    files: ClassVar = {"page.html": PAGE, "PAGE.HTM": PAGE}


class TestEpub(ParsedContract):
    kind = "epub"
    files: ClassVar = {"book.epub": BOOK}


class TestNotebook(ParsedContract):
    kind = "notebook"
    files: ClassVar = {"tides.ipynb": TIDES}


class TestOrg(ConverterContract):
    files: ClassVar = {"log.org": ORG}

    @pytest.fixture
    def converter(self):
        return OrgConverter()


class TestRst(ConverterContract):
    files: ClassVar = {"log.rst": RST}

    @pytest.fixture
    def converter(self):
        return RstConverter()


class TestAsciiDoc(ConverterContract):
    files: ClassVar = {"log.adoc": b"= Log\n:author: Ann\n:keywords: tide, moon\n\n== Ebb\n\nAt six.\n"}

    @pytest.fixture
    def converter(self):
        return AsciiDocConverter()


class TestCanvas(ConverterContract):
    files: ClassVar = {"plan.canvas": json.dumps({"nodes": [{"id": "1", "type": "text", "text": "Buy rope"}]}).encode()}

    @pytest.fixture
    def converter(self):
        return CanvasConverter()


def test_attributes_of_asciidoc_are_metadata():
    made = AsciiDocConverter().convert(TestAsciiDoc.files["log.adoc"], "log.adoc")
    assert (made.format, made.metadata) == ("asciidoc", {"author": "Ann", "tags": ("tide", "moon")})
    with pytest.raises(ConversionError):
        AsciiDocConverter().convert(b"-----BEGIN PGP SIGNATURE-----\n", "a.asc")


def test_a_canvas_is_its_cards_from_top_to_bottom_and_by_group():
    def card(key, kind, y, **more):
        return {"id": key, "type": kind, "x": 0, "y": y, "width": 10, "height": 10, **more}

    nodes = [
        card("t", "text", 20, text="# Plan\n\nBuy rope."),
        card("f", "file", 5, file="People/Ann.md", subpath="#Phone"),
        card("g", "group", 18, label="Soon"),
        card("u", "link", 50, url="https://example.org"),
    ]
    edges = [{"id": "e", "fromNode": "t", "toNode": "f", "label": "ask"}, {"id": "e2", "fromNode": "t"}]
    data = json.dumps({"nodes": nodes, "edges": edges}).encode()
    assert CanvasConverter().convert(data, "x.canvas").text == (
        "[[People/Ann.md#Phone]]\n\nhttps://example.org\n\n## Soon\n\n# Plan\n\nBuy rope.\n\n"
        "- Plan → [[People/Ann.md#Phone]]: ask\n"
    )
    with pytest.raises(ConversionError, match="not JSON"):
        CanvasConverter().convert(b"{", "x.canvas")


class TestCode(ConverterContract):
    files: ClassVar = {
        "boats.py": PYTHON,
        "BOATS.RB": b"def tie; end\n",
        "windows.py": b"\xef\xbb\xbfx = 1\r\ny = 2\r\n",
    }

    @pytest.fixture
    def converter(self):
        return CodeConverter()


def test_a_pdf_has_a_page_break_between_pages(convert):
    made = convert("pdf", LOG)
    assert made.text == "Ebb at six.\nWind from the west.\n\f\n\n\f\nFlood at noon."
    assert made.format == "pages"
    assert made.metadata == {"title": "Harbour log", "author": "Ada L.", "pages": 3}
    assert made.created_at == WRITTEN


def test_a_word_document_keeps_headings_and_tables(convert):
    made = convert("docx", LETTER)
    assert (
        made.text
        == "# The harbour\n\nShips come & go.\n\n## Dues\n\n|  |  |\n| --- | --- |\n| ship | due |\n| Anna | 12 |\n"
    )
    assert made.metadata == {"title": "Harbour", "author": "Ada L."}
    assert made.created_at == datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)


def test_the_main_part_of_a_web_page_is_read(convert):
    made = convert("html", PAGE)
    assert made.text == (
        "# Moorings\n\nA bowline,\ntied `twice`.\n\n- rope\n   - hemp\n- chain\n\n1. First\n2. Second\n\n"
        "```sh\ntie --fast\n  now\n```\n\n| knot | use |\n| --- | --- |\n| bowline | a \\| b |\n\n> \\# not a heading\n"
    )
    assert made.metadata == {"title": "Moorings", "author": "Ada L."}
    assert made.created_at == datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)


@pytest.mark.parametrize(
    ("page", "text"),
    [
        (b"<p>plain", "plain\n"),
        (b"<body><nav>Menu</nav><header>Site</header><p>Body<footer>Imprint</footer>", "Body\n"),
        (b"<body><nav>Only a menu</nav></body>", None),
        (b"<body><header><h1>Only a header</h1></header>", "# Only a header\n"),
        (b"<main>x</main><div>" + b"A long text stands outside of main. " * 9 + b"</div>", "A long text"),
        ("<meta charset=windows-1251><p>Порт".encode("cp1251"), "Порт\n"),
        ("<p>Порт".encode("utf-16"), "Порт\n"),
        ("<p>café".encode("latin-1"), "café\n"),
        (b"<meta charset=nonsense><p>ascii", "ascii\n"),
        (b"<pre>```\nfence</pre>", "````\n```\nfence\n````\n"),
        (b"<table><tr><td>alone</td></tr></table>", "alone\n"),
        (b"<table><tr><td>a<table><tr><td>b<td>c</table><td>d</table>", "| a b c | d |"),
        (b"<ol><li><p>one<p>two<li>three</ol>", "1. one\n   two\n2. three\n"),
        (b"<dl><dt>ebb<dd>falls</dl>", "ebb\n\nfalls\n"),
        (b"<p hidden>no<p aria-hidden=true>no<p role=navigation>no<p>yes", "yes\n"),
        (b"<p>nul\x00 and \x0c page", "page"),
    ],
)
def test_web_pages_of_many_kinds_are_converted(convert, page, text):
    if text is None:
        with pytest.raises(ConversionError, match="has no text"):
            convert("html", page)
    else:
        assert text in convert("html", page).text


def test_an_e_book_is_read_in_order(convert):
    made = convert("epub", BOOK)
    assert made.text == "# Ebb\n\nWater falls.\n\n# Flood\n\nWater rises.\n"
    assert made.metadata == {"title": "Tides", "author": "Ada L.", "language": "en"}


def test_text_outputs_of_a_notebook_are_kept(convert):
    made = convert("notebook", TIDES)
    assert made.text == (
        "# Tides\nTwice a day.\n\n```python\nprint(1 + 1)\n```\n\n```text\n2\n<Figure>\nValueError: low\n```\n\nraw\n"
    )
    assert made.metadata == {"title": "Tides", "language": "python"}


def test_a_long_output_is_truncated(convert):
    outputs = [{"output_type": "stream", "text": "row\n" * 5000}]
    made = convert("notebook", notebook({"cell_type": "code", "source": "x", "outputs": outputs}))
    assert made.text.endswith("row\n…\n```\n")
    assert len(made.text) < 5000


def test_a_notebook_of_version_3_is_read(convert):
    old = {
        "worksheets": [
            {"cells": [{"cell_type": "heading", "level": 2, "source": "Ebb"}, {"cell_type": "code", "input": "1"}]}
        ]
    }
    assert convert("notebook", json.dumps(old).encode()).text == "## Ebb\n\n```python\n1\n```\n"


def test_org_keywords_are_metadata():
    assert OrgConverter().convert(ORG, "log.org").metadata == {"title": "Harbour log", "tags": ("sea", "work", "boat")}


#: The list of a book's encrypted files, and the beginning of an office document with a password.
ENCRYPTED = '<encryption xmlns:e="x"><e:CipherReference URI="OPS/text/c%200.xhtml"/></encryption>'
LOCKED = b"\xd0\xcf\x11\xe0" + bytes(600) + "EncryptedPackage".encode("utf-16-le") + bytes(400)


@pytest.mark.parametrize(
    ("kind", "data", "reason"),
    [
        ("pdf", b"no PDF", "is not a valid PDF"),
        ("pdf", pdf([["secret"]], encrypted=True), "is encrypted: save a copy without its password"),
        ("pdf", pdf([[], []]), "has no text: its 2 pages are blank or images"),
        ("docx", b"PK\x03\x04 torn", "is not a valid Word document"),
        ("docx", archive({"a.txt": "x"}), "is not a valid Word document"),
        ("docx", docx(""), "has no text"),
        ("epub", b"", "is not a valid EPUB"),
        ("epub", archive({"a": "b"}), "is not a valid EPUB"),
        ("epub", archive({"META-INF/encryption.xml": "<x/>"}), "is protected against copying"),
        (
            "epub",
            epub(["<p>\x8f\x1d</p>"], extra={"META-INF/encryption.xml": ENCRYPTED}),
            "is protected against copying",
        ),
        ("docx", LOCKED, "is encrypted: save a copy without its password"),
        ("pptx", LOCKED, "is encrypted: save a copy without its password"),
        ("epub", epub([]), "has no text"),
        ("html", b"<script>only()</script>", "has no text"),
        ("notebook", b"{", "is not a valid notebook: it is not JSON"),
        ("notebook", b"[]", "is not a valid notebook: it has no cells"),
        ("notebook", notebook(), "has no text"),
    ],
)
def test_an_unreadable_file_has_a_reason(convert, kind, data, reason):
    with pytest.raises(ConversionError) as caught:
        convert(kind, data)
    assert caught.value.message.startswith(reason)
    assert not caught.value.keep


def test_a_book_whose_fonts_are_encrypted_is_read(convert):
    fonts = ENCRYPTED.replace("text/c%200.xhtml", "serif.otf")
    assert convert("epub", epub(["<p>Ebb</p>"], extra={"META-INF/encryption.xml": fonts})).text == "Ebb\n"


def bomb(name):
    """Return an archive of 300 kB with a member of 288 MiB of zeros."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as target, target.open(name, "w") as member:
        for _ in range(288):
            member.write(bytes(2**20))
    return data.getvalue()


def lying_bomb():
    """Return an archive whose member says that it is small and unpacks to 300 MiB."""
    data = bytearray(archive({"word/document.xml": bytes(300 * 2**20)}))
    size = (300 * 2**20).to_bytes(4, "little")
    while (place := data.find(size)) >= 0:
        data[place : place + 4] = (1000).to_bytes(4, "little")
    return bytes(data)


LAUGHS = (
    '<?xml version="1.0"?><!DOCTYPE l [<!ENTITY a "ha">'
    + "".join(f'<!ENTITY {chr(98 + i)} "{f"&{chr(97 + i)};" * 10}">' for i in range(9))
    + "]>"
)


@pytest.mark.parametrize(
    ("kind", "data", "reason"),
    [
        ("docx", lambda: bomb("word/document.xml"), "unpacks to more than 268,435,456 bytes"),
        ("epub", lambda: bomb("META-INF/container.xml"), "unpacks to more than 268,435,456 bytes"),
        ("docx", lambda: archive({"word/document.xml": bytes(65 * 2**20)}), "larger than 67,108,864 bytes"),
        ("docx", lying_bomb, "damaged"),
        (
            "docx",
            lambda: docx("", extra={"word/document.xml": f'{LAUGHS}<w:document xmlns:w="{WORD}">&j;</w:document>'}),
            "declares XML entities",
        ),
        (
            "docx",
            lambda: docx("", extra={"word/document.xml": f"{LAUGHS}<x/>".encode("utf-16")}),
            "declares XML entities",
        ),
        ("epub", lambda: epub([], opf=f"{LAUGHS}<package>&j;</package>"), "declares XML entities"),
        ("docx", lambda: archive({f"word/{number}": "" for number in range(20_001)}), "more than 20,000 files"),
        ("notebook", lambda: b'{"cells": ' + b"[" * 1_000_000, "."),
        (
            "docx",
            lambda: docx("<w:tbl><w:tr><w:tc>" * 30_000 + paragraph("x") + "</w:tc></w:tr></w:tbl>" * 30_000),
            ".",
        ),
    ],
    ids=[
        "bomb",
        "bomb of a book",
        "large member",
        "lying bomb",
        "laughs",
        "laughs in UTF-16",
        "laughs of a book",
        "files",
        "JSON",
        "tables",
    ],
)
def test_a_hostile_file_is_rejected(convert, kind, data, reason):
    with pytest.raises(ConversionError, match=reason):
        convert(kind, data())


def test_deep_nesting_is_read(convert):
    made = convert("html", b"<div>" * 5_000 + b"the bottom" + b"</div>" * 5_000)
    assert made.text == "the bottom\n"
    assert "the bottom" in convert("html", b"<ul><li><blockquote>" * 1_000 + b"the bottom").text


def test_a_file_that_takes_too_long_is_ended_and_the_next_is_read():
    process = ParserProcess(1.5, 1024)
    try:
        with pytest.raises(ConversionError, match=r"takes longer than 1.5 seconds to read") as caught:
            # For each element the parser looks through all that are open.
            process.parse("html", b"<div>" * 300_000, "page.html")
        assert caught.value.keep, "another time it may be read"
        process.timeout_seconds = 60
        assert process.parse("html", PAGE, "page.html").text.startswith("# Moorings")
    finally:
        process.close()


def test_a_file_that_needs_too_much_memory_is_rejected_and_the_next_is_read():
    process = ParserProcess(120, 200)
    try:
        with pytest.raises(ConversionError, match=r"needs more than 200 MiB of memory to read|its parser crashed"):
            process.parse("html", b"<p>" + b"<b>x</b>" * 3_000_000, "page.html")
        assert process.parse("html", b"<p>small", "page.html").text == "small\n"
    finally:
        process.close()


def test_a_file_that_crashes_its_parser_is_named_and_the_next_is_read(process):
    process.parse("html", b"<p>first", "page.html")
    os.kill(process._process.pid, 9)  # between two files: the file has no part in it
    assert process.parse("html", b"<p>second", "page.html").text == "second\n"


def test_the_process_is_replaced_after_many_files(process, monkeypatch):
    monkeypatch.setattr("klaw_documents.process._FILES", 2)
    process.close()
    for _ in range(3):
        process.parse("html", b"<p>x", "page.html")
    assert process._served == 1


def test_threads_take_turns(process):
    found = {}

    def read(number):
        found[number] = process.parse("html", f"<p>{number}".encode(), "page.html").text

    threads = [threading.Thread(target=read, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {number: f"{number}\n" for number in range(8)}


def test_a_child_of_a_fork_has_a_process_of_its_own(process):
    process.parse("html", b"<p>x", "page.html")
    parents = process._process.pid
    reader, writer = os.pipe()
    if (child := os.fork()) == 0:
        try:
            text = process.parse("html", b"<p>child", "page.html").text
            os.write(writer, text.encode() if process._process.pid != parents else b"the parent's")
            process.close()
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        assert pipe.read() == b"child\n"
    os.waitpid(child, 0)
    assert process.parse("html", b"<p>parent", "page.html").text == "parent\n"


def test_no_module_is_imported_from_the_current_directory(process, tmp_path, monkeypatch):
    (tmp_path / "selectolax.py").write_text("raise SystemExit('taken')")
    monkeypatch.chdir(tmp_path)
    process.close()
    assert process.parse("html", b"<p>x", "page.html").text == "x\n"


def test_a_missing_package_is_named(tmp_path):
    script = tmp_path / "pypdfium2.py"
    script.write_text("raise ModuleNotFoundError('No module named pypdfium2', name='pypdfium2')")
    process = ParserProcess(60, 1024)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(tmp_path))
        try:
            with pytest.raises(ConversionError, match="cannot be read without the package pypdfium2") as caught:
                process.parse("pdf", LOG, "log.pdf")
            assert caught.value.keep
        finally:
            process.close()


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="the environment of a process is not readable here")
def test_the_process_has_no_keys_in_its_environment(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "s3cret")
    monkeypatch.setenv("LC_TIME", "C")
    process = ParserProcess(60, 1024)
    try:
        assert ParsedConverter("html", ParsedOptions(), process).convert(PAGE, "page.html").text
        environment = Path(f"/proc/{process._process.pid}/environ").read_bytes()
    finally:
        process.close()
    assert b"s3cret" not in environment
    assert b"LC_TIME=C" in environment
