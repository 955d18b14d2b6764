"""Small files of every kind, made here: nothing of them is anybody's."""

import io
import json
import zipfile


def pdf(pages, *, title="", encrypted=False):
    """Return a PDF of pages of lines of text."""
    objects = {1: b"<< /Type /Catalog /Pages 2 0 R >>", 3: b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"}
    kids = []
    for number, lines in enumerate(pages):
        page, content = 5 + 2 * number, 6 + 2 * number
        kids.append(f"{page} 0 R")
        shown = "".join(f"({line}) Tj 0 -16 Td " for line in lines)
        stream = f"BT /F1 12 Tf 72 720 Td {shown}ET".encode("latin-1")
        objects[page] = (
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {content} 0 R "
            "/Resources << /Font << /F1 3 0 R >> >> >>"
        ).encode()
        objects[content] = b"<< /Length %d >>\nstream\n%b\nendstream" % (len(stream), stream)
    objects[2] = f"<< /Type /Pages /Kids [{' '.join(kids)}] /Count {len(kids)} >>".encode()
    objects[4] = f"<< /Title ({title}) /Author (Ada L.) /CreationDate (D:20240506070809+02'00') >>".encode()
    out, places = bytearray(b"%PDF-1.4\n"), {}
    for number in sorted(objects):
        places[number] = len(out)
        out += b"%d 0 obj\n%b\nendobj\n" % (number, objects[number])
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % places[number] for number in sorted(objects))
    locked = b"/Encrypt << /Filter /Standard /V 1 /R 2 /O (%b) /U (%b) /P -4 >> /ID [(a) (b)] " % (b"o" * 32, b"u" * 32)
    trailer = b"<< /Size %d /Root 1 0 R /Info 4 0 R %b>>" % (len(objects) + 1, locked if encrypted else b"")
    return bytes(out + b"trailer\n%b\nstartxref\n%d\n%%%%EOF\n" % (trailer, start))


def archive(members, *, first=()):
    """Return a ZIP archive; ``first`` are names of members that are stored as they are, before the others."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as target:
        for name in (*first, *(name for name in members if name not in first)):
            info = zipfile.ZipInfo(name, (2024, 5, 6, 7, 8, 8))
            info.compress_type = zipfile.ZIP_STORED if name in first else zipfile.ZIP_DEFLATED
            target.writestr(info, members[name])
    return data.getvalue()


WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"


def docx(body, *, title="Harbour", extra=None):
    """Return a Word document with this body of WordprocessingML."""
    relation = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"
    return archive(
        {
            "[Content_Types].xml": '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>',
            "_rels/.rels": (
                '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
                f'<Relationship Id="r1" Type="{relation}" Target="word/document.xml"/></Relationships>'
            ),
            "word/document.xml": f'<w:document xmlns:w="{WORD}"><w:body>{body}</w:body></w:document>',
            "docProps/core.xml": (
                '<c:coreProperties xmlns:c="x" xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:t="y">'
                f"<dc:title>{title}</dc:title><dc:creator>Ada L.</dc:creator>"
                "<t:created>2024-05-06T07:08:09Z</t:created></c:coreProperties>"
            ),
            **(extra or {}),
        }
    )


def paragraph(text, style=""):
    """Return a paragraph of WordprocessingML."""
    properties = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    return f'<w:p>{properties}<w:r><w:t xml:space="preserve">{text}</w:t></w:r></w:p>'


def cells(*rows):
    """Return a table of WordprocessingML."""
    lines = ("".join(f"<w:tc>{paragraph(cell)}</w:tc>" for cell in row) for row in rows)
    return f"<w:tbl>{''.join(f'<w:tr>{line}</w:tr>' for line in lines)}</w:tbl>"


LETTER = docx(
    paragraph("The harbour", "Heading1")
    + paragraph("Ships come &amp; go.")
    + paragraph("Dues", "Heading2")
    + cells(("ship", "due"), ("Anna", "12"))
)


def epub(chapters, *, opf=None, extra=None):
    """Return an e-book of chapters of XHTML."""
    items = "".join(
        f'<item id="c{number}" href="text/c%20{number}.xhtml" media-type="application/xhtml+xml"/>'
        for number, _ in enumerate(chapters)
    )
    order = "".join(f'<itemref idref="c{number}"/>' for number, _ in enumerate(chapters))
    package = opf or (
        '<package xmlns="http://www.idpf.org/2007/opf" xmlns:dc="http://purl.org/dc/elements/1.1/"><metadata>'
        "<dc:title>Tides</dc:title><dc:creator>Ada L.</dc:creator><dc:language>en</dc:language>"
        "<dc:date>2024-05-06</dc:date></metadata>"
        f"<manifest>{items}</manifest><spine>{order}</spine></package>"
    )
    container = (
        '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
        '<rootfile full-path="OPS/book.opf"/></rootfiles></container>'
    )
    return archive(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": container,
            "OPS/book.opf": package,
            **{f"OPS/text/c {number}.xhtml": chapter for number, chapter in enumerate(chapters)},
            **(extra or {}),
        },
        first=("mimetype",),
    )


BOOK = epub(
    [
        (
            "<?xml version='1.0' encoding='utf-8'?><html><head><title/></head><body><h1>Ebb</h1>"
            "<p>Water <a id='x'/>falls.</p></body></html>"
        ),
        "<html><body><h1>Flood</h1><p>Water rises.</p></body></html>",
    ]
)

PAGE = b"""<!DOCTYPE html><html><head><meta charset="utf-8"><title>Moorings</title>
<meta name="author" content="Ada L.">
<meta property="article:published_time" content="2024-05-06T07:08:09Z"><script>alert(1)</script></head><body>
<header>Site name</header><nav><a href="/">Home</a></nav>
<main><h1>Moorings<a class="headerlink" href="#m">\xc2\xb6</a></h1>
<p>A <b>bowline</b>,<br>tied <code>twice</code>.</p><ul><li>rope<ul><li>hemp</li></ul></li><li>chain</li></ul>
<ol><li>First</li><li>Second</li></ol><pre><code class="language-sh">tie --fast
  now</code></pre><table><tr><th>knot</th><th>use</th></tr><tr><td>bowline</td><td>a | b</td></tr></table>
<blockquote><p># not a heading</p></blockquote></main><footer>Imprint</footer></body></html>"""


def notebook(*cells, **metadata):
    """Return a Jupyter notebook."""
    return json.dumps({"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}).encode()


TIDES = notebook(
    {"cell_type": "markdown", "source": ["# Tides\n", "Twice a day."]},
    {
        "cell_type": "code",
        "source": "print(1 + 1)",
        "outputs": [
            {"output_type": "stream", "text": ["2\n"]},
            {"output_type": "display_data", "data": {"image/png": "aGFyYm91cg==", "text/plain": "<Figure>"}},
            {"output_type": "error", "ename": "ValueError", "evalue": "low", "traceback": ["\x1b[31mx\x1b[0m"]},
        ],
    },
    {"cell_type": "raw", "source": "raw"},
    title="Tides",
    language_info={"name": "python"},
)

ORG = b"""#+TITLE: Harbour log
#+filetags: :sea:work:
Before all.
* TODO [#A] Repairs :boat:
** Mast
The mast is split.
* Tides
Ebb at six.
"""

RST = b"""\
=======
Harbour
=======

Ships.

Dues
----

Twelve.

==== ====
a    b
==== ====

Moorings
--------
Rope.
"""

PYTHON = b'''"""Boats."""

import os

LIMIT = 3


# How a boat is tied.
@os.fspath
def tie(rope):
    """Tie it."""
    return rope * LIMIT


class Boat:
    """A boat."""

    def sail(self):
        def inner():
            return 1
        return inner()

    def sink(self):
        raise OSError
'''


SHEET = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
SLIDE = "http://schemas.openxmlformats.org/presentationml/2006/main"
DRAWING = "http://schemas.openxmlformats.org/drawingml/2006/main"
RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def _related(targets, kind="x"):
    rows = "".join(
        f'<Relationship Id="r{key}" Type="{RELATIONS}/{kind}" Target="{to}"/>' for key, to in targets.items()
    )
    return f'<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{rows}</Relationships>'


def xlsx(sheets):
    """Return a workbook: for each name of a sheet its rows of values, of which a tuple is a formula and its value."""
    members = {
        "_rels/.rels": _related({1: "xl/workbook.xml"}, "officeDocument"),
        "xl/_rels/workbook.xml.rels": _related(
            {n: f"worksheets/sheet{n}.xml" for n in range(1, len(sheets) + 1)}, "worksheet"
        ),
    }
    listed = "".join(f'<sheet name="{name}" sheetId="{n}" r:id="r{n}"/>' for n, name in enumerate(sheets, start=1))
    members["xl/workbook.xml"] = f'<workbook xmlns="{SHEET}" xmlns:r="{RELATIONS}"><sheets>{listed}</sheets></workbook>'
    for number, rows in enumerate(sheets.values(), start=1):
        body = "".join(f'<row r="{n}">{"".join(_cells(row, n))}</row>' for n, row in enumerate(rows, start=1))
        members[f"xl/worksheets/sheet{number}.xml"] = (
            f'<worksheet xmlns="{SHEET}"><sheetData>{body}</sheetData></worksheet>'
        )
    return archive(members)


def _cells(row, number):
    for column, value in enumerate(row):
        place = f'r="{chr(65 + column)}{number}"'
        if isinstance(value, tuple):
            yield f"<c {place}><f>{value[0]}</f><v>{value[1]}</v></c>"
        elif isinstance(value, str):
            yield f'<c {place} t="inlineStr"><is><t>{value}</t></is></c>'
        else:
            yield f"<c {place}><v>{value}</v></c>"


def pptx(slides, *, order=None):
    """Return a presentation of slides, each a title, a text and notes; ``order`` are their numbers as shown."""
    shown = order or range(1, len(slides) + 1)
    listed = "".join(f'<p:sldId id="{255 + n}" r:id="r{n}"/>' for n in shown)
    members = {
        "ppt/presentation.xml": f'<p:presentation xmlns:p="{SLIDE}" xmlns:r="{RELATIONS}">'
        f"<p:sldIdLst>{listed}</p:sldIdLst></p:presentation>",
        "ppt/_rels/presentation.xml.rels": _related({n: f"slides/slide{n}.xml" for n in shown}),
    }
    for number, (title, text, notes) in enumerate(slides, start=1):
        members[f"ppt/slides/slide{number}.xml"] = _shapes({"title": title, "body": text, "sldNum": str(number)})
        members[f"ppt/slides/_rels/slide{number}.xml.rels"] = _related({1: f"../notesSlides/notesSlide{number}.xml"})
        members[f"ppt/notesSlides/notesSlide{number}.xml"] = _shapes({"body": notes})
    return archive(members)


def _shapes(texts):
    run = "<a:p><a:r><a:t>{}</a:t></a:r></a:p>"
    shapes = "".join(
        f'<p:sp><p:nvSpPr><p:nvPr><p:ph type="{kind}"/></p:nvPr></p:nvSpPr>'
        f"<p:txBody>{''.join(map(run.format, text.splitlines()))}</p:txBody></p:sp>"
        for kind, text in texts.items()
    )
    return f'<p:sld xmlns:p="{SLIDE}" xmlns:a="{DRAWING}"><p:cSld><p:spTree>{shapes}</p:spTree></p:cSld></p:sld>'


MAIL = b"""From: =?utf-8?q?J=C3=BCrgen?= <j@example.org>
To: crew@example.org
Date: Mon, 6 May 2024 07:08:09 +0200
Subject: =?utf-8?q?Caf=C3=A9_on_the_quay?=
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="b"

--b
Content-Type: multipart/alternative; boundary="c"

--c
Content-Type: text/plain; charset="iso-8859-1"
Content-Transfer-Encoding: quoted-printable

We meet at the caf=E9 at six.
# not a heading
--c
Content-Type: text/html; charset="utf-8"

<p>We meet <b>elsewhere</b>.</p>
--c--
--b
Content-Type: application/pdf; name="menu.pdf"
Content-Disposition: attachment; filename="menu.pdf"
Content-Transfer-Encoding: base64

AAAA
--b--
"""
MAILBOX = (
    b"From a@example.org Mon May  6 07:08:09 2024\nSubject: First\nFrom: a@example.org\n\nOne.\n>From here on.\n\n"
    b"From b@example.org Tue May  7 07:08:09 2024\nSubject: Second\n\nTwo.\n"
)
SRT = b"""1
00:00:01,000 --> 00:00:03,500
<i>The tide</i> turns

2
00:00:03,600 --> 00:00:05,000
The tide turns
at dawn.

3
01:02:03,000 --> 01:02:04,000
{\\an8}Cast off!
"""
VTT = b"""WEBVTT - Harbour

NOTE nobody says this

intro
00:01.000 --> 00:03.500 align:start position:0%
<v Ann>Is the <c.loud>lantern</c> lit?

00:04.000 --> 00:05.000
<v Bo>It is &amp; bright.
"""
