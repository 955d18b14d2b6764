"""The chunkers of documents and code: the laws of every chunker, and where each cuts."""

from typing import ClassVar

import pytest
from documents_of_tests import ORG, PYTHON, RST
from hypothesis import strategies as st

from klaw_core import PlainOptions, estimate_tokens
from klaw_documents.chunkers.asciidoc import AsciiDocChunker
from klaw_documents.chunkers.code import CodeChunker
from klaw_documents.chunkers.org import OrgChunker
from klaw_documents.chunkers.pages import PageChunker
from klaw_documents.chunkers.rst import RstChunker
from klaw_testing.chunker import ChunkerContract

ENDS = st.sampled_from(["\n", "\n\n", "\r\n", "\r", " "])


def made_of(*lines):
    """Return texts of these lines, and of any text, in any order."""
    line = st.one_of(st.sampled_from(lines), st.text(max_size=40))
    return st.lists(st.tuples(line, ENDS), max_size=25).map(lambda pairs: "".join(map("".join, pairs)))


class TestPageChunker(ChunkerContract):
    examples: ClassVar = 40

    @pytest.fixture
    def make_chunker(self):
        return lambda most, overlap: PageChunker(PlainOptions(most, overlap))

    def texts(self):
        return st.one_of(made_of("\f", "  \f", "A page of words.", "    indented"), super().texts())


class TestOrgChunker(ChunkerContract):
    examples: ClassVar = 40

    @pytest.fixture
    def make_chunker(self):
        return lambda most, overlap: OrgChunker(PlainOptions(most, overlap))

    def texts(self):
        return st.one_of(
            made_of("* One", "** TODO Two :tag:", "*** ", "***", "words of a body", " * x"), super().texts()
        )


class TestRstChunker(ChunkerContract):
    examples: ClassVar = 40

    @pytest.fixture
    def make_chunker(self):
        return lambda most, overlap: RstChunker(PlainOptions(most, overlap))

    def texts(self):
        return st.one_of(made_of("Title", "=====", "-----", "", "  =====", "words of a body", "::"), super().texts())


class TestCodeChunker(ChunkerContract):
    examples: ClassVar = 40
    language: ClassVar = "python"

    @pytest.fixture
    def make_chunker(self):
        pytest.importorskip("tree_sitter_python")
        return lambda most, overlap: CodeChunker(PlainOptions(most, overlap), self.language)

    def texts(self):
        lines = (
            "def tie(rope):",
            "    return 1",
            "class Boat:",
            "    def sail(self):",
            "        pass",
            "# why",
            "@dec",
            "x = 1; y",
            "'''",
        )
        return st.one_of(made_of(*lines), super().texts())


class TestJavaScriptChunker(TestCodeChunker):
    language: ClassVar = "javascript"

    def texts(self):
        lines = (
            "function tie() {",
            "}",
            "class A {",
            "  b() { return 1 }",
            "const f = () => {",
            "export {",
            "// why",
            "`${",
        )
        return made_of(*lines)


class TestUnknownLanguage(TestCodeChunker):
    language: ClassVar = ""


def cut(chunker, text):
    return [(span.heading, text[span.start : span.end]) for span in chunker.split(text, estimate_tokens)]


def test_empty_pages_are_counted():
    text = "one\n\f\n\n\f\n  three\nmore"
    assert cut(PageChunker(), text) == [(("Page 1",), "one"), (("Page 3",), "  three\nmore")]


def test_org_headings_have_no_keywords_and_tags():
    found = cut(OrgChunker(), ORG.decode())
    assert [heading for heading, _ in found] == [(), ("Repairs", "Mast"), ("Tides",)]
    assert found[1][1] == "* TODO [#A] Repairs :boat:\n** Mast\nThe mast is split."


def test_rst_titles_are_sections_and_tables_are_not():
    found = cut(RstChunker(), RST.decode())
    assert [heading for heading, _ in found] == [("Harbour",), ("Harbour", "Dues"), ("Harbour", "Moorings")]
    assert found[1][1].endswith("==== ====")


def code(language, text, most=400):
    pytest.importorskip("tree_sitter")
    chunker = CodeChunker(PlainOptions(most, 0)).variant(language)
    return [(".".join(heading), body) for heading, body in cut(chunker, text)]


def test_code_is_split_at_functions_and_classes():
    found = code("python", PYTHON.decode())
    assert [heading for heading, _ in found] == ["", "tie", "Boat"]
    assert found[1][1].startswith("# How a boat is tied.\n@os.fspath\ndef tie")


def test_each_method_of_a_large_class_is_a_chunk():
    found = code("python", PYTHON.decode(), most=24)
    assert [heading for heading, _ in found][-3:] == ["Boat", "Boat.sail", "Boat.sink"]
    assert found[-1][1] == "    def sink(self):\n        raise OSError"


SAMPLES = {
    "bash": ("tie() {\n  echo 1\n}\n", ["tie"]),
    "c": (
        "#include <a.h>\nstruct boat { int mast; };\nstatic int *tie(int rope)\n{\n  return 0;\n}\n",
        ["", "boat", "tie"],
    ),
    "cpp": ("namespace sea {\ntemplate <class T>\nclass Boat { void sail(); };\nvoid Boat::sail() {}\n}\n", ["sea"]),
    "csharp": ("using System;\nclass Boat {\n  void Sail() { }\n}\n", ["", "Boat"]),
    "go": (
        "package sea\n\n// Sail goes.\nfunc (b *Boat) Sail() {\n}\n\ntype Boat struct {\n}\n",
        ["", "Boat.Sail", "Boat"],
    ),
    "java": ("package sea;\npublic class Boat {\n  void sail() {}\n}\n", ["", "Boat"]),
    "javascript": (
        "import a from 'a'\nexport const tie = (rope) => {\n  return rope\n}\nclass Boat {}\n",
        ["", "tie", "Boat"],
    ),
    "php": ("<?php\nfunction tie($rope) {\n  return 1;\n}\n", ["tie"]),
    "ruby": ("require 'a'\nmodule Sea\n  class Boat\n    def sail; end\n  end\nend\n", ["", "Sea"]),
    "rust": (
        "use a;\n/// Sails.\n#[inline]\nfn sail() {}\nimpl Boat for Sloop {\n  fn tie() {}\n}\n",
        ["", "sail", "Boat for Sloop"],
    ),
    "tsx": ("export function Tie() {\n  return <p/>\n}\n", ["Tie"]),
    "typescript": ("interface Boat { mast: number }\nexport default class Sloop {\n}\n", ["Boat", "Sloop"]),
}


LATER = """def outer(text):
    first = prepare(text)

    def inner():
        return first

    last = "%s"
    return last

@overload
def twice(a): ...

@overload
def twice(b): ...
"""


def test_what_does_not_begin_with_the_head_of_its_symbol_continues_it():
    pytest.importorskip("tree_sitter_python")
    chunker = CodeChunker(PlainOptions(20, 0)).variant("python")
    text = LATER % ("a word " * 9)
    spans = list(chunker.split(text, lambda texts: [len(each.split()) for each in texts]))
    heads = [text[span.start : span.end].lstrip() for span in spans if span.heading and span.continues is None]
    twice = "@overload\ndef twice"
    assert [head.split("(")[0] for head in heads] == ["def outer", "def inner", twice, twice]
    assert {span.continues for span in spans if span.heading == ("outer",)} == {None, "code"}


@pytest.mark.parametrize("language", SAMPLES)
def test_symbols_are_found_in_every_language(language):
    pytest.importorskip(f"tree_sitter_{language.replace('csharp', 'c_sharp').replace('tsx', 'typescript')}")
    text, headings = SAMPLES[language]
    found = code(language, text)
    assert [heading for heading, _ in found if heading or language != "php"] == headings
    for _, body in found:
        assert body in text
        assert text[: text.index(body)].endswith("\n") or text.startswith(body)


def test_minified_and_nested_code_is_split_in_bounded_time():
    text = "function a(){return 1};" * 20_000
    assert {heading for heading, _ in code("javascript", text)} <= {"", "a"}
    deep = "".join(f"{' ' * depth}def f{depth}():\n" for depth in range(400))
    assert code("python", deep)
    assert code("javascript", "(" * 100_000)


def names_of(chunker, text):
    return [(heading.line, heading.level, heading.names) for heading in chunker.headings(text)]


def test_headlines_of_org_are_called_by_their_visible_text_and_their_custom_id():
    text = (
        "intro\n* First\n** DONE [#A] Sub heading [2/3]  :tag:\n:PROPERTIES:\n:CUSTOM_ID: one\n:END:\nText.\n"
        "* [[https://example.org][Linked]]\n:CUSTOM_ID: not a property\n"
    )
    assert names_of(OrgChunker(), text) == [
        (2, 1, ("First",)),
        (3, 2, ("Sub heading", "Sub heading [2/3]", "one")),
        (8, 1, ("Linked", "[[https://example.org][Linked]]")),
    ]


def test_titles_of_restructuredtext_have_the_levels_of_their_adornments():
    text = "Guide\n=====\n\nSetup\n-----\n\ntext\n\nUse\n-----\n\nMore\n=====\n"
    assert names_of(RstChunker(), text) == [
        (1, 1, ("Guide",)),
        (4, 2, ("Setup",)),
        (9, 2, ("Use",)),
        (12, 1, ("More",)),
    ]


ADOC = """= Harbour
:author: Ann

Intro.

[[moor]]
== Moorings

----
== no title
----

=== Knots

Bowline.

Ropes
-----

Hemp.
"""


def test_asciidoc_titles_are_sections_and_blocks_are_not():
    found = [(heading.line, heading.level, heading.names) for heading in AsciiDocChunker().headings(ADOC)]
    assert found == [
        (1, 1, ("Harbour",)),
        (7, 2, ("Moorings", "moor")),
        (13, 3, ("Knots",)),
        (17, 2, ("Ropes",)),
    ]


class TestAsciiDocChunker(ChunkerContract):
    examples: ClassVar = 40

    @pytest.fixture
    def make_chunker(self):
        return lambda most, overlap: AsciiDocChunker(PlainOptions(most, overlap))

    def texts(self):
        return st.one_of(made_of(*ADOC.splitlines()), super().texts())


def test_functions_classes_and_methods_are_sections_of_code():
    pytest.importorskip("tree_sitter_python")
    boat = "class Boat:\n    def sail(self):\n        pass\n\n    # why\n    def moor(self):\n        pass\n"
    code = f"import os\n\n{boat}\nmain()\n"
    found = [(each.line, each.level, each.names) for each in CodeChunker(language="python").headings(code)]
    assert found == [
        (3, 1, ("Boat",)),
        (4, 2, ("sail", "Boat > sail")),
        (7, 2, ("moor", "Boat > moor")),
        (11, 1, ()),
    ]
