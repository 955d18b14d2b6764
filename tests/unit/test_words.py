"""One word for one thing: words that the glossary replaces do not come back into messages, pages and docstrings."""

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import klaw_core
import klaw_journals
import klaw_tools

ROOT = Path(klaw_core.__file__).parent.parent

#: Words and phrases, and what to write instead.
REPLACED = {
    r"passages?": "chunk",
    r"legs?": "retriever",
    r"mend(?:s|ed|ing)?": "fix",
    r"anew": "again",
    r"whoever": "a person who",
    r"begun": "started",
    r"is no key of": "invalid key",
    r"names no": "is not a",
    r"holds no": "contains no",
    r"so many": "at most N",
    r"from then on": "from WHEN on",
    r"nobody can be asked": "stdin is not a terminal",
    r"would bring it back": "would add it again",
    r"str(?:uck|ikes?) out": "redacted",
    r"for good": "permanently",
    r"t(?:akes?|ook) the place of": "replaces",
    r"put(?:s|ting)? off": "postponed",
}
_WORD = re.compile(rf"(?<![\w/-])(?:{'|'.join(REPLACED)})(?![\w-])", re.IGNORECASE)

#: Decisions and the changelog are history. E5 models expect the prefix "passage: "; `Begun` is a class; results of DSPy
#: have ``.passages``.
HISTORY = ("docs/decisions/", "CHANGELOG.md")
EXCEPTIONS = re.compile(
    r"'?passages?: |relevant passages: |[\"'`]passages?[\"'`]|#passages?|\)\.passages\b|Passages of conversations"
    r"|Message \| Begun|brought forward\|put off\|"
)


def replaced_words(text: str) -> list[str]:
    return [match.group() for match in _WORD.finditer(EXCEPTIONS.sub("", text))]


def pages() -> list[str]:
    places = ("README.md", "docs/**/*.md", "plugins/*/README.md")
    found = (path.relative_to(ROOT).as_posix() for place in places for path in ROOT.glob(place))
    return sorted(page for page in found if not page.startswith(HISTORY))


def modules() -> list[str]:
    places = ("klaw_*/**/*.py", "plugins/*/src/**/*.py")
    found = {path.relative_to(ROOT).as_posix() for place in places for path in ROOT.glob(place)}
    return sorted(found - {"klaw_redaction/bip39.py"})  # a list of words of a standard


def shown_strings(source: str) -> Iterator[str]:
    """Yield the strings of a module that can be shown: not docstrings, and with a space in them."""
    tree = ast.parse(source)
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        is_string = isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings
        if is_string and " " in node.value.strip():
            yield node.value


@pytest.mark.parametrize("page", pages())
def test_pages_use_the_words_of_the_glossary(page):
    prose = re.sub(r"^```.*?^```", "", (ROOT / page).read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)

    assert not replaced_words(prose)


def test_messages_use_the_words_of_the_glossary():
    found = {
        (module, text)
        for module in modules()
        for text in shown_strings((ROOT / module).read_text("utf-8"))
        if replaced_words(text)
    }

    assert not found


def test_docstrings_of_public_names_use_the_words_of_the_glossary():
    found = {
        (name, word)
        for library in (klaw_core, klaw_journals, klaw_tools)
        for name in library.__all__
        for word in replaced_words(inspect.getdoc(getattr(library, name)) or "")
    }

    assert not found


def test_the_check_detects_each_forbidden_word():
    assert replaced_words("A passage is begun anew.") == ["passage", "begun", "anew"]
    assert not replaced_words("A chunk of the prefix 'passage: ' starts again.")
