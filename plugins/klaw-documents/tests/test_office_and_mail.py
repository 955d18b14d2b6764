"""Spreadsheets, presentations, tables, mail and subtitles: what they become, and what hostile ones can do."""

import io
import os
import signal
import sys
import zipfile
from datetime import UTC, datetime
from email.message import EmailMessage
from html import escape
from typing import ClassVar

import pytest
from documents_of_tests import DRAWING, MAIL, MAILBOX, SLIDE, SRT, VTT, archive, pptx, xlsx
from hypothesis import example, given
from hypothesis import strategies as st

from klaw_core import ConversionError
from klaw_documents import command, tables
from klaw_documents.command import CommandConverter
from klaw_documents.converters import ParsedConverter, SubtitleConverter, TableConverter
from klaw_documents.options import CommandOptions, ParsedOptions, TableOptions, TextOptions
from klaw_documents.parsers import mail
from klaw_documents.parsers import pptx as presentations
from klaw_documents.parsers.markup import markdown_of
from klaw_documents.process import ParserProcess
from klaw_documents.subtitles import text_of
from klaw_testing.converter import ConverterContract

for library in ("python_calamine", "selectolax"):
    pytest.importorskip(library)

CREW = [["Name", "Town"], ["Ann", "Bremen"], ["Bo", "Lyon"]]
BOOK = xlsx({"Crew": CREW, "Sums": [["What", "Sum"], ["Rope", ("1+1", 2)]]})
TALK = pptx([("Tides", "Ebb at six\nFlood at noon", "Speak slowly"), ("Boats", "The red one", "")])
TABLE = b"Name;Town\nAnn;Bremen\n\nBo;Lyon, France\n"


@pytest.fixture(scope="module")
def process():
    process = ParserProcess(60, 1024)
    yield process
    process.close()


@pytest.fixture
def convert(process):
    def converted(kind, data, name=""):
        return ParsedConverter(kind, ParsedOptions(), process).convert(data, name or f"file.{kind}")

    return converted


class ParsedContract(ConverterContract):
    kind: ClassVar = ""
    examples: ClassVar = 25

    @pytest.fixture
    def converter(self, process):
        return ParsedConverter(self.kind, ParsedOptions(), process)


class TestXlsx(ParsedContract):
    kind = "xlsx"
    files: ClassVar = {"crew.xlsx": BOOK}


class TestPptx(ParsedContract):
    kind = "pptx"
    files: ClassVar = {"talk.pptx": TALK}


class TestMail(ParsedContract):
    kind = "mail"
    files: ClassVar = {"meet.eml": MAIL, "box.mbox": MAILBOX}


class TestTables(ConverterContract):
    files: ClassVar = {"crew.csv": TABLE, "crew.tsv": b"Name\tTown\nAnn\tBremen\n"}

    @pytest.fixture
    def converter(self):
        return TableConverter()


class TestSubtitles(ConverterContract):
    files: ClassVar = {"film.srt": SRT, "film.vtt": VTT}

    @pytest.fixture
    def converter(self):
        return SubtitleConverter()


class TestCommand(ConverterContract):
    files: ClassVar = {"scan.png": b"The lantern is green.\n"}
    examples: ClassVar = 10

    @pytest.fixture
    def converter(self):
        return CommandConverter(CommandOptions(command=("cat", "{file}")))


def test_a_row_of_a_sheet_names_its_columns_and_a_formula_is_its_value(convert):
    made = convert("xlsx", BOOK)
    assert made.text == (
        "## Crew\n\n- Name: Ann; Town: Bremen\n- Name: Bo; Town: Lyon\n\n## Sums\n\n- What: Rope; Sum: 2\n"
    )


def test_slides_are_in_the_order_in_which_they_are_shown(convert):
    assert convert("pptx", TALK).text == (
        "## Slide 1: Tides\n\nEbb at six\nFlood at noon\n\nNotes: Speak slowly\n\n## Slide 2: Boats\n\nThe red one\n"
    )
    turned = pptx([("One", "first", ""), ("Two", "second", "")], order=[2, 1])
    assert convert("pptx", turned).text.index("second") < convert("pptx", turned).text.index("first")


def test_a_message_has_its_text_and_names_its_attachments(convert):
    made = convert("mail", MAIL, "meet.eml")
    assert made.text == (
        "# Café on the quay\n\nFrom: Jürgen <j@example.org>\nTo: crew@example.org\n"
        "Date: Mon, 06 May 2024 07:08:09 +0200\n\n"
        "We meet at the café at six.\n\\# not a heading\n\nAttachments: menu.pdf\n"
    )
    assert made.created_at == datetime(2024, 5, 6, 5, 8, 9, tzinfo=UTC)
    assert made.metadata == {"title": "Café on the quay", "author": "Jürgen <j@example.org>"}


def test_a_mailbox_is_its_messages(convert):
    text = convert("mail", MAILBOX, "box.mbox").text
    assert text == "# First\n\nFrom: a@example.org\n\nOne.\nFrom here on.\n\n# Second\n\nTwo.\n"


def test_a_message_of_html_only_is_read(convert):
    data = b"Subject: Menu\nContent-Type: text/html\n\n<h1>Fish</h1><script>steal()</script><p>with salt</p>"
    assert "with salt" in (text := convert("mail", data, "a.eml").text)
    assert "steal" not in text


def message(*parts, kind="mixed", subject="Outer"):
    """Return a message of parts: messages, or pairs of a type and a text."""
    made = EmailMessage()
    made["Subject"] = subject
    made["Content-Type"] = f"multipart/{kind}"
    for part in parts:
        if isinstance(part, EmailMessage):
            made.attach(part)
        else:
            text = EmailMessage()
            text.set_content(part[1], subtype=part[0])
            made.attach(text)
    return made


def body_of(message):
    """Return the text of a message below its heading."""
    return mail.parse(message.as_bytes(), "a.eml").text.split("\n\n", 1)[1]


HTML, PLAIN = ("html", "<p>Cast off</p>"), ("plain", "at six")


@pytest.mark.parametrize(
    ("given", "body"),
    [
        (message(HTML, PLAIN), "Cast off\n\nat six\n"),
        (message(PLAIN, HTML), "at six\n\nCast off\n"),
        (message(PLAIN, HTML, kind="alternative"), "at six\n"),
        (message(HTML, PLAIN, kind="alternative"), "at six\n"),
        (message(("plain", " "), HTML, kind="alternative"), "Cast off\n"),
        (message(message(PLAIN, HTML, kind="alternative"), ("plain", "The list")), "at six\n\nThe list\n"),
        (message(message(HTML, kind="related"), PLAIN, kind="alternative"), "at six\n"),
        (message(message(HTML, PLAIN), kind="alternative"), "Cast off\n\nat six\n"),
    ],
)
def test_only_one_of_alternatives_is_read_and_all_other_parts_in_order(given, body):
    assert body_of(given) == body


def test_an_attached_message_is_named_and_not_read():
    inner = message(("plain", "I said this"), subject="Inner")
    named, bare, bundle = EmailMessage(), EmailMessage(), message(("plain", "in a bundle"))
    named.set_content(inner, filename="said.eml")
    bare.set_content(inner)
    bundle["Content-Disposition"] = 'attachment; filename="bundle"'
    assert body_of(message(PLAIN, named, bare, bundle)) == "at six\n\nAttachments: said.eml, Inner, bundle\n"


def _bomb(number, text):
    """Return a message of this many parts; ``text`` makes a part of its number."""
    head = b'From: ann@example.org\nSubject: Tides\nContent-Type: multipart/mixed; boundary="b"\n\n'
    return head + b"".join(text % each for each in range(number))


@pytest.mark.parametrize(
    "text",
    [
        b'--b\nContent-Type: multipart/mixed; boundary="c%d"\n\npre\n',
        b'--b\nContent-Type: multipart/mixed; boundary="b"\n\n--b\nContent-Type: text/plain\n\n%d\n',
        b"--b\nContent-Type: message/rfc822\n\n%d: x\n\n",
    ],
)
def test_of_a_message_with_very_many_parts_only_the_headers_are_read(monkeypatch, text):
    made = []

    def note(self, policy):
        made.append(self)
        EmailMessage.__init__(self, policy)

    monkeypatch.setattr(mail, "_MAX_PARTS", 50)
    monkeypatch.setattr(mail._Message, "__init__", note)
    found = mail.parse(_bomb(20_000, text), "a.eml")
    assert (
        found.text == "# Tides\n\nFrom: ann@example.org\n\n(not read: more than 50 parts, or too deeply nested ones)\n"
    )
    assert len(made) <= 53
    assert found.metadata["title"] == "Tides"


def test_of_deeply_nested_parts_only_the_headers_are_read():
    levels = b"".join(b'Content-Type: multipart/mixed; boundary="b%d"\n\n--b%d\n' % (each, each) for each in range(700))
    data = b"Subject: Tides\n" + levels + b"Content-Type: text/plain\n\nat six\n"
    mailbox = b"From ann\n" + data + b"\n\nFrom bo\nSubject: Boats\n\nThe red one\n"
    assert mail.parse(data, "a.eml").text.startswith("# Tides\n\n(not read: more than 1,000 parts")
    assert mail.parse(mailbox, "a.mbox").text.endswith("deeply nested ones)\n\n# Boats\n\nThe red one\n")


def test_the_type_of_a_part_is_parsed_once():
    parsed = mail._POLICY.header_factory.cache_info
    before = parsed().misses
    assert body_of(message(*[PLAIN] * 40)).count("at six") == 40
    assert parsed().misses - before < 20


def test_a_message_with_a_disposition_of_its_own_is_read():
    given = message(PLAIN)
    given["Content-Disposition"] = "attachment; filename=a.eml"
    assert body_of(given) == "at six\n"


def headings_of(text):
    """Return the headings of a text, as CommonMark has them."""
    tokens = pytest.importorskip("markdown_it").MarkdownIt("commonmark").enable("table").parse(text)
    return [tokens[at + 1].content for at, token in enumerate(tokens) if token.type == "heading_open"]


#: What begins blocks in Markdown and HTML, before, after and without words.
BLOCKS = (
    "# ## ``` ~~~~ <!-- --> <script> <pre> <? <!X <![CDATA[ <div> === = --- -- - > * + 1. 10) | |---| $$ %% \\ word"
)
PIECES = st.sampled_from([*BLOCKS.split(), "[a]:", "\t"])
TEXTS = st.lists(st.one_of(PIECES, st.sampled_from([" ", "  ", "    ", "\n", "\n\n"])), max_size=12).map("".join)


@given(TEXTS)
@example("```\ncode")
@example("> ```\ncode")
@example("<!-- comment")
@example("Title\n=====")
@example("Regards\n-- \nAnn")
@example("- Title\n  =")
@example("1. # item")
def test_no_text_of_a_message_changes_the_headings_of_the_others(text):
    plain, page = EmailMessage(), EmailMessage()
    plain.set_content(text)
    page.set_content(f"<p>{escape(text)}<br>{escape(text)}</p><pre>{escape(text)}</pre>{escape(text)}", subtype="html")
    table = EmailMessage()
    table.set_content(
        f"<table><caption>{escape(text)}</caption><tr><td>{escape(text)}</td></tr></table>", subtype="html"
    )
    between = [plain, page, table]
    for number, part in enumerate(between):
        part["Subject"] = f"Between {number}"
    whole = b"".join(b"From a Mon May  6 07:08:09 2024\n" + each.as_bytes() + b"\n" for each in (*between, *between))
    expected = [f"Between {number}" for number in (0, 1, 2, 0, 1, 2)]
    assert headings_of(mail.parse(whole, "box.mbox").text) == expected


@given(TEXTS)
@example("```\ncode")
@example("<!-- comment")
@example("=")
def test_no_text_of_a_page_changes_its_headings(text):
    text = escape(text)
    blocks = f"<p>{text}<br>{text}</p><ul><li>{text}<pre>{text}</pre></li></ul><blockquote>{text}</blockquote>"
    table = f"<table><caption>{text}</caption><tr><td>{text}</td></tr></table>"
    made = markdown_of(f"<h1>First</h1>{blocks}{table}<h1>Last</h1>{table}<p>{text}</p>")
    assert headings_of(made) == ["First", "Last"]


@given(TEXTS)
@example("```\ncode")
@example("<!-- comment")
@example("Title\n=====")
def test_no_text_of_a_slide_changes_the_headings_of_the_others(text):
    talk = pptx([("One", escape(text), escape(text)), ("Two", escape(text), ""), ("Three", "", "")])
    assert headings_of(presentations.parse(talk, "").text) == ["Slide 1: One", "Slide 2: Two", "Slide 3: Three"]


@given(TEXTS)
@example("```\ncode")
@example("Title\n=====")
def test_no_subtitle_makes_a_heading_or_swallows_the_next(text):
    made = text_of(f"1\n00:01.000 --> 00:02.000\n{escape(text)}\n\n2\n10:00.000 --> 11:00.000\nlast words\n")
    assert headings_of(f"{made}\n# After\n") == ["After"]
    assert made.endswith("[0:10:00] last words\n")


@pytest.mark.parametrize(
    "text",
    [
        "<https://example.org>",
        "<ann@example.org> wrote",
        "> quoted",
        "- item",
        "1. item",
        "#tag",
        "a # b",
        "x = y",
        "a < b",
    ],
)
def test_what_changes_no_heading_stays_as_it_is(text):
    assert body_of(message(("plain", text))) == f"{text}\n"


@pytest.mark.parametrize(
    "head",
    [
        b"Content-Type: text/plain; charset=x-nobody",
        b"Content-Type: text/plain; charset==?",
        b"From: =?utf-8?b?////?= <",
        b"Date: yesterday or so",
        b"Content-Transfer-Encoding: base64",
        b"Content-Type: multipart/mixed; boundary=",
    ],
)
def test_a_broken_message_is_read_as_far_as_possible(convert, head):
    assert "# Hello" in convert("mail", b"Subject: Hello\n" + head + b"\n\nb\xffody\n", "a.eml").text


@pytest.mark.parametrize("charset", ["x-nobody", "unknown-8bit", "us-ascii", "utf-8", "rot13", None])
def test_other_bytes_are_windows_1252_and_it_is_said(convert, charset):
    kind = b"" if charset is None else f"Content-Type: text/plain; charset={charset}\n".encode()
    data = b"Subject: Gr\xfc\xdfe\nFrom: J\xfcrgen <j@example.org>\n" + kind + b"\nh\xe4llo \x80 5\n"
    found = convert("mail", data, "a.eml")
    assert found.text == "# Grüße\n\nFrom: Jürgen <j@example.org>\n\nhällo € 5\n"
    assert found.metadata == {"title": "Grüße", "author": "Jürgen <j@example.org>", "encoding": "windows-1252"}
    box = convert("mail", b"From a@example.org Mon May  6 07:08:09 2024\n" + data, "a.mbox")
    assert "hällo € 5" in box.text
    assert box.metadata == {"encoding": "windows-1252"}


@pytest.mark.parametrize(
    ("kind", "body", "text"),
    [
        ("charset=x-nobody", "häl€lo".encode(), "häl€lo"),
        ("charset=x-nobody", "hällo ".encode() + b"\xe4", "hällo \ufffd"),  # damaged UTF-8
        ("charset=koi8-r", "порт".encode("koi8-r"), "порт"),
        ("charset=euc-jp", "港".encode("euc-jp") + b"\xff", "港\ufffd"),
    ],
)
def test_bytes_of_a_known_encoding_are_no_guess(convert, kind, body, text):
    found = convert("mail", f"Subject: Hello\nContent-Type: text/plain; {kind}\n\n".encode() + body + b"\n", "a.eml")
    assert found.text == f"# Hello\n\n{text}\n"
    assert "encoding" not in found.metadata


def test_the_paragraphs_of_subtitles_begin_with_their_time():
    assert SubtitleConverter().convert(SRT, "a.srt").text == (
        "[0:00:01] The tide turns at dawn.\n\n[1:02:03] Cast off!\n"
    )
    assert SubtitleConverter().convert(VTT, "a.vtt").text == "[0:00:01] Ann: Is the lantern lit? Bo: It is & bright.\n"


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (TABLE, ["- Name: Ann; Town: Bremen", "- Name: Bo; Town: Lyon, France"]),
        (b'Name,Said\nAnn,"Cast off,\nnow"\n', ["- Name: Ann; Said: Cast off, now"]),
        (b"1,2\n3,4\n", ["- 1; 2", "- 3; 4"]),
        (b"Prices\nFish,7\n", ["- Prices", "- Fish; 7"]),
        (b"Name,Town\n", ["- Name; Town"]),
        (b"Name,,Town\nAnn,7,Bremen\n", ["- Name: Ann; 7; Town: Bremen"]),
        (b"a,a,\n1,2,3\n", ["- a: 1; a: 2; 3"]),
        (b"Name,Phone,phone\nAnn,1,2\n", ["- Name: Ann; Phone: 1; phone: 2"]),
        (b"yes,yes,no\nyes,no,no\n", ["- yes; yes; no", "- yes; no; no"]),
        ("Name;Café\nAnn;1\n".encode("windows-1252"), ["- Name: Ann; Café: 1"]),
        ("Name\tTown\nAnn\tKöln\n".encode("utf-16"), ["- Name: Ann; Town: Köln"]),
        (b'Name,Sum\nEve,"=HYPERLINK(""http://x"")"\n', ['- Name: Eve; Sum: =HYPERLINK("http://x")']),
    ],
)
def test_rows_of_tables(data, lines):
    assert TableConverter().convert(data, "a.csv").text.splitlines() == lines


def test_a_guessed_encoding_is_in_the_metadata():
    data = "Name;Café\nAnn;1\n".encode("windows-1252")
    assert TableConverter().convert(data, "a.csv").metadata == {"encoding": "windows-1252"}


def test_the_names_of_columns_do_not_multiply_a_table():
    data = f"{'a' * 100_000},{'b' * 100_000}\n".encode() + b"1,2\n" * 1000
    assert len(TableConverter().convert(data, "a.csv").text) < 200_000


class Counted:
    """Names of columns, which count how many of them were read."""

    def __init__(self, count):
        self.count, self.read = count, 0

    def __len__(self):
        return self.count

    def __iter__(self):
        for number in range(self.count):
            self.read += 1
            yield f"column {number}"


def test_a_row_reads_only_the_names_of_its_own_cells(monkeypatch):
    names = Counted(1000)
    monkeypatch.setattr(tables, "_names", lambda _cells, **_: names)
    rows = [["heading"], *[["1", "2"]] * 50]
    assert list(tables.rows_as_text(rows)) == ["- column 0: 1; column 1: 2"] * 50
    assert names.read == 100


@pytest.mark.parametrize(
    ("kind", "data", "reason"),
    [
        ("xlsx", b"PK no", "is not a valid spreadsheet"),
        ("xlsx", b"rows", "is not a valid spreadsheet"),
        ("xlsx", xlsx({"Empty": []}), "has no text"),
        ("pptx", archive({"word/document.xml": ""}), "is not a valid presentation"),
        ("pptx", b"slides", "is not a valid presentation"),
        ("pptx", pptx([("", "", "")]), "has no text"),
        (
            "pptx",
            archive({"ppt/presentation.xml": '<!DOCTYPE x [<!ENTITY a "aaaa">]><x>&a;</x>'}),
            "declares XML entities",
        ),
        (
            "pptx",
            archive({"ppt/presentation.xml": "", "ppt/slides/slide1.xml": "0" * (257 * 2**20)}),
            "unpacks to more",
        ),
        ("xlsx", archive({"xl/workbook.xml": "0" * (257 * 2**20)}), "unpacks to more"),
        ("mail", b"no header\n\nbody", "is not a valid message"),
    ],
)
def test_what_is_refused(convert, kind, data, reason):
    with pytest.raises(ConversionError, match=reason):
        convert(kind, data, "a.eml" if kind == "mail" else "")


def test_a_sheet_with_a_cell_at_the_far_end_does_not_take_all_memory(convert):
    far = xlsx({"Far": [["x"]]})
    sheet = (
        '<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>'
        '<row r="1"><c r="A1"><v>1</v></c></row><row r="1048576"><c r="XFD1048576"><v>2</v></c></row>'
        "</sheetData></worksheet>"
    )
    with zipfile.ZipFile(io.BytesIO(far)) as given:
        members = {name: given.read(name) for name in given.namelist()}
    with pytest.raises(ConversionError):
        convert("xlsx", archive({**members, "xl/worksheets/sheet1.xml": sheet}))
    assert convert("xlsx", BOOK).text


def test_messages_in_messages_in_messages_end_nothing(convert):
    data = b"Subject: Hello\nContent-Type: message/rfc822\n\n" * 5_000
    assert "# Hello\n\n(not read:" in convert("mail", data, "a.eml").text
    assert convert("mail", data[: len(data) // 1_000] + b"Hello", "a.eml").text


def test_a_slide_with_a_table(convert):
    cell = "<a:tc><a:txBody><a:p><a:r><a:t>{}</a:t></a:r></a:p></a:txBody></a:tc>"
    rows = (["Name", "Town"], ["Ann", "Bremen"])
    table = "".join(f"<a:tr>{''.join(map(cell.format, row))}</a:tr>" for row in rows)
    slide = f'<p:sld xmlns:p="{SLIDE}" xmlns:a="{DRAWING}"><a:tbl>{table}</a:tbl></p:sld>'
    made = convert("pptx", archive({"ppt/presentation.xml": "<x/>", "ppt/slides/slide1.xml": slide}))
    assert made.text == "## Slide 1\n\n- Name: Ann; Town: Bremen\n"


class TestACommandOfTheUser:
    @staticmethod
    def python(code, **options):
        return CommandConverter(CommandOptions(command=(sys.executable, "-c", code, "{file}"), **options))

    def test_it_gets_the_file_or_its_bytes(self):
        code = "import sys; print(open(sys.argv[1]).read(), sys.argv[1][-4:])"
        assert self.python(code).convert(b"scan", "my scan.png").text == "scan .png\n"
        piped = CommandConverter(CommandOptions(command=("cat",)))
        assert piped.convert(b"scan", "a.png").text == "scan\n"

    def test_without_a_command_it_reads_nothing(self):
        assert not CommandConverter(CommandOptions()).patterns

    def test_another_command_converts_again(self):
        assert self.python("1").version != self.python("2").version

    def test_it_gets_no_key_unless_it_is_named(self, monkeypatch):
        monkeypatch.setenv("SOME_API_KEY", "k")
        code = "import os; print(os.environ.get('SOME_API_KEY'))"
        assert self.python(code).convert(b"x", "a.png").text == "None\n"
        assert self.python(code, environment=("SOME_API_KEY",)).convert(b"x", "a.png").text == "k\n"

    @pytest.mark.parametrize(
        ("code", "reason"),
        [
            ("raise SystemExit(3)", "ended with the exit status 3$"),
            ("raise SystemExit('\\n no\\a model \\nmore')", "ended with the exit status 1: no model$"),
            ("import sys; sys.exit('no picture: ' + sys.argv[1])", "exit status 1: no picture: file.png$"),
            ("import sys; sys.exit('x' * 1000000)", "exit status 1: x{200}$"),
            ("import os, time; os.close(1); time.sleep(60)", "longer than 0.5 seconds"),
            ("import os, time; os.close(1); os.close(2); time.sleep(60)", "longer than 0.5 seconds"),
            ("", "has no text"),
            ("import time; time.sleep(60)", "longer than 0.5 seconds"),
            ("import subprocess; subprocess.run(['sleep', '60'])", "longer than 0.5 seconds"),
            ("while True: print('x' * 1000000)", "has more than|longer than"),
        ],
    )
    def test_what_fails_is_an_error_with_its_reason(self, code, reason):
        with pytest.raises(ConversionError, match=reason):
            self.python(code, timeout_seconds=0.5 if "0.5" in reason or "than" in reason else 60).convert(b"x", "a.png")

    @pytest.fixture(params=["by_selector", "by_threads"])
    def reader(self, request, monkeypatch):
        monkeypatch.setattr(command, "_reader_of", getattr(command, request.param))

    #: Leaves a process in a session of its own: it writes its number at first, and at its end, after 30 seconds.
    LEFT = (
        "import os, sys, time; from pathlib import Path; place = Path(sys.argv[1])\n"
        "(place / 'new').write_text(str(os.getpid())); (place / 'new').rename(place / 'begun')\n"
        "time.sleep(30); (place / 'ended').touch()"
    )

    @pytest.mark.usefixtures("reader")
    @pytest.mark.parametrize(
        ("streams", "printed"),
        [("", ""), ("stdout=subprocess.DEVNULL,", "hi\n")],
        ids=["its output", "only its errors"],
    )
    def test_a_process_that_it_leaves_in_another_session_does_not_hold_it(self, tmp_path, streams, printed):
        code = (
            f"import subprocess, sys, time, os; command = [sys.executable, '-c', {self.LEFT!r}, {str(tmp_path)!r}]\n"
            f"subprocess.Popen(command, {streams} start_new_session=True)\n"
            f"while not os.path.exists({str(tmp_path / 'begun')!r}): time.sleep(0.01)\n"
            "print('hi')"
        )
        converter = self.python(code, timeout_seconds=60 if printed else 3)
        try:
            if printed:
                assert converter.convert(b"x", "a.png").text == printed
            else:
                with pytest.raises(ConversionError, match="longer than 3 seconds") as failed:
                    converter.convert(b"x", "a.png")
                assert failed.value.keep
            assert not (tmp_path / "ended").exists()
        finally:
            os.kill(int((tmp_path / "begun").read_text()), signal.SIGTERM)

    @pytest.mark.usefixtures("reader")
    def test_what_it_says_of_errors_does_not_stop_it(self):
        code = "import sys; sys.stderr.write('x' * 1000000); print('y' * 1000000); sys.stderr.write('z' * 1000000)"
        assert self.python(code).convert(b"x", "a.png").text == "y" * 1_000_000 + "\n"

    @pytest.mark.skipif(sys.platform == "win32", reason="a script for sh")
    def test_a_program_of_the_working_directory_is_run(self, tmp_path, monkeypatch):
        script = tmp_path / "ocr.sh"
        script.write_text('#!/bin/sh\ncat "$1"\n')
        script.chmod(0o755)
        monkeypatch.chdir(tmp_path)
        converter = CommandConverter(CommandOptions(command=("./ocr.sh", "{file}")))
        assert converter.convert(b"scan", "a.png").text == "scan\n"

    def test_a_missing_program_is_named_and_tried_again_later(self):
        with pytest.raises(ConversionError, match="nowhere-at-all is not installed") as failed:
            CommandConverter(CommandOptions(command=("nowhere-at-all",))).convert(b"x", "a.png")
        assert failed.value.keep

    def test_its_files_are_indexed_and_a_path_of_a_pattern_is_refused(self):
        with pytest.raises(ValueError, match="not a pattern of file names"):
            CommandOptions(patterns=("scans/*.png",))


def test_data_is_read_on_request_and_subtitles_always():
    assert TableConverter().on_request
    assert not TableConverter(TableOptions(on_request=False)).on_request
    assert not SubtitleConverter().on_request
    assert SubtitleConverter(TextOptions(on_request=True)).on_request


@pytest.mark.parametrize(
    ("rows", "first"),
    [
        ([["Region", "2019", "2020", "2021"], ["North", "4", "8", "3"]], "- Region: North; 2019: 4; 2020: 8; 2021: 3"),
        ([["Ada", "1", "2"], ["Ben", "3", "4"]], "- Ada; 1; 2"),
        ([["Ada", "36", "1815"], ["Ben", "4", "1900"]], "- Ada; 36; 1815"),
        ([["Ada", "1", "3"]], "- Ada; 1; 3"),
    ],
)
def test_a_first_row_with_numbers_names_columns_if_these_are_a_series(rows, first):
    assert next(tables.rows_as_text(rows)) == first
