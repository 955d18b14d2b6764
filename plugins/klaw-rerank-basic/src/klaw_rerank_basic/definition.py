"""The extension ``definition``: what is named like the question comes before what mentions it.

A question that is only a name (``ConcurrentHashMap.computeIfAbsent``, ``Prototype Poisoning``) asks for the note,
section, symbol or term of that name. Words find its uses as well, and most of all index pages and lists of links, which
repeat it and define nothing. ``where is computeIfAbsent defined?`` asks for the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from pathlib import PurePosixPath

from attrs import frozen

from klaw_core import Preference, PreferringExtension, StoredChunk

_WEIGHT = 1.0  # of the best score, so that a definition comes first
_RELEVANCE = 0.5  # at least, also of a term in a long list, whose chunk is about many others

_TOKEN = re.compile(r"[^\W_]+(?:_+[^\W_]+)*")
_ENDINGS = (".md", ".mdx", ".html", ".htm", ".rst", ".txt", ".org", ".adoc")
# A heading such as `fs.readFile(path[, options], callback)`, `class click.Path(exists)` or `def make(self):`.
_SIGNATURE = re.compile(r"^(?:(?:class|def|function|method|static|const|async|type)\s+)*([\w$.:#]+)\s*(?:\(|$|:$)")
# A definition in a language of the kind of Python, C or JavaScript.
_DEFINED_SYMBOL = re.compile(
    r"^\s*(?:export |public |static |async )*(?:def|class|function|interface|struct|fn)\s+(\w+)"
)
# What documents a symbol in Sphinx: `.. autofunction:: run_process(command)`, `.. py:class:: trio.Nursery`.
_DIRECTIVE = re.compile(
    r"^\s*\.\. (?:\w+:)?(?:auto)?"
    r"(?:class|function|method|classmethod|staticmethod|property|attribute|exception|decorator"
    r"|data|module|type|struct|member|macro|var|enum|option|envvar|confval|setting|directive|role|describe|object"
    r"|command|program|term)::[ \t]+(?:(?:async|class|def|final) +)*(-{0,2}[\w$][\w$.:-]*)"
)
_KIND = "(?:function|class|method|struct|type|interface|constant|variable|macro|module|symbol)"
# A question for the place of a definition, in place of the name alone.
_WHERE = re.compile(
    rf"\W*(?:where(?:'s|\s+is|\s+are)?\s+(?:the\s+)?(?:{_KIND}\s+)?(?P<name>\S.*?)\s+(?:{_KIND}\s+)?"
    r"(?:defined|implemented|declared)"
    r"|(?:where\s+do(?:es)?\s+\w+\s+(?:define|implement|declare)|(?:(?:find|show|give)\s+(?:me\s+)?)?(?:the\s+)?"
    rf"(?:definition|implementation|declaration)\s+of)\s+(?:the\s+)?(?:{_KIND}\s+)?(?P<other>\S.*?)(?:\s+{_KIND})?)\W*",
    re.IGNORECASE,
)
_HEADING = re.compile(r" {0,3}#{1,6}[ \t]+(\S.*)")
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})[^\n]*\n.*?(?:^ {0,3}\1[`~]*[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_MAX_QUESTION = 200  # characters
_MAX_TERM = 40  # characters
_REFERENCES = (
    "index-all genindex py-modindex allclasses allclasses-index allpackages-index package-tree overview-tree "
    "package-use deprecated-list constant-values"
)
_REFERENCE_NAMES = frozenset(_REFERENCES.split())
_REFERENCE_FOLDERS = frozenset(("class-use", "doc-index", "index-files"))
_USES = re.compile(r"uses of (?:class|interface|package|enum|record|annotation)\b")
_LEADER = re.compile(r"(?:\.\s?){4,}\s*\d*\s*$|(?:\s\.){4,}")
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)|\[\[[^\]]*\]\]|https?://\S+")
_FEWEST_LINES, _LEADER_SHARE, _LINK_SHARE, _LINKED_CHARACTERS = 4, 0.3, 0.7, 0.6


@frozen
class Definitions(PreferringExtension):
    """Prefers chunks of a note, section or symbol whose name is the question."""

    name = "definition"

    def prefer(self, question: str, /) -> Preference | None:
        """Return the preference for a question; None if it has no letters or digits."""
        found = _WHERE.fullmatch(question[:_MAX_QUESTION])
        asked = _plain(question if found is None else found["name"] or found["other"])

        def defines(stored: StoredChunk) -> bool:
            text = stored.chunk.text
            named = asked in _names(stored) or asked in _terms(text)
            named = named or (_has_headings(stored) and asked in _within(text))
            return named and not is_listing(stored)

        return Preference(_WEIGHT, defines, relevance=_RELEVANCE) if asked else None


def is_listing(stored: StoredChunk) -> bool:
    """Return whether a chunk refers to other places only."""
    path = PurePosixPath(stored.path.casefold())
    if path.stem in _REFERENCE_NAMES or not _REFERENCE_FOLDERS.isdisjoint(path.parts):
        return True
    if any(_USES.match(part.casefold()) for part in stored.chunk.heading):
        return True
    return _refers(stored.chunk.text)


@lru_cache(512)
def _refers(text: str) -> bool:
    """Return whether most lines of a text end with dots before a page, or are links."""
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    if len(lines) < _FEWEST_LINES:
        return False
    leaders = sum(_LEADER.search(line) is not None for line in lines)
    if leaders >= _LEADER_SHARE * len(lines):
        return True
    return sum(map(_is_link, lines)) >= _LINK_SHARE * len(lines)


def _is_link(line: str) -> bool:
    words = line.strip(" \t-*+|>0123456789.")
    linked = sum(len(found[0]) for found in _LINK.finditer(words))
    return linked > 0 and linked >= _LINKED_CHARACTERS * len(words)


def _names(stored: StoredChunk) -> Iterator[str]:
    """Yield what a chunk is called: its file and title, its innermost heading, and the symbol that this defines."""
    path = stored.path.rpartition("/")[2]
    yield _plain(path)
    if path.casefold().endswith(_ENDINGS):
        yield _plain(path.rpartition(".")[0])
    for key in ("title", "aliases"):
        named = stored.metadata.get(key, ())
        several = named if isinstance(named, tuple) else (named,)
        yield from map(_plain, map(str, several))
    heading = stored.chunk.heading
    if not heading or stored.chunk.continues:  # a later piece of a long definition
        return
    yield _plain(heading[-1])
    if found := _SIGNATURE.match(heading[-1].strip("` ")):
        yield _plain(found[1])
        yield _plain(re.split(r"[.:#]+", found[1])[-1])
    if len(heading) > 1:  # a method of a class
        yield _plain(" ".join(heading[-2:]))


@lru_cache(512)
def _terms(text: str) -> frozenset[str]:
    """Return what a text defines outside of headings: names alone on a line, before an explanation, and symbols."""
    lines = text.splitlines()
    alone = (line for line, after in pairwise(lines) if len(line) <= _MAX_TERM and len(after) > len(line))
    symbols = (found[1] for line in lines if (found := _DEFINED_SYMBOL.match(line)))
    documented = [found[1] for line in lines if (found := _DIRECTIVE.match(line))]
    inner = (re.split(r"[.:]+", name.rstrip(".:"))[-1] for name in documented)
    return frozenset(map(_plain, (*alone, *symbols, *documented, *inner))) - {""}


def _has_headings(stored: StoredChunk) -> bool:
    return stored.chat_id is None and stored.path.casefold().endswith(_ENDINGS)


@lru_cache(512)
def _within(text: str) -> frozenset[str]:
    """Return the headings inside of a text: of sections so short that they share a chunk with the one above."""
    lines = _FENCE.sub("", text).splitlines()
    return frozenset(_plain(found[1]) for line in lines if (found := _HEADING.match(line))) - {""}


@lru_cache(1024)
def _plain(text: str) -> str:
    """Return the words of a name, without case and signs: ``Write-Plugin`` and ``write plugin`` are the same."""
    return " ".join(_TOKEN.findall(text.casefold()))
