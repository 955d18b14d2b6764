"""Snippets: the part of a chunk that fits a question best, with the matching words marked.

Snippets only show results. They are computed from texts alone, so a match here may differ from a match in a retriever,
which may use stemming, synonyms or vectors.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from attrs import field, frozen

if TYPE_CHECKING:
    from klaw_core.values.search import SearchResult

#: The maximum length of a snippet in characters, including ellipses.
SNIPPET_CHARACTERS = 300

#: A function from windows of a text to the index of the one to show; None means the first.
ChooseWindow: TypeAlias = Callable[[Sequence[str]], int | None]

_ELLIPSIS = "…"
# Adjacent windows overlap by half, so that each sentence is in one of them. Texts too long for this have gaps.
_MAX_WINDOWS = 16
# The number of texts whose words are cached, about 10 kB each.
_TEXTS_KEPT = 128
# The maximum number of characters by which an edge is moved to a word boundary.
_SLACK = 24
_MIN_STEM_CHARACTERS = 4
_STEM_SHARE = 0.7
# Kana, Han and Hangul, of which pairs of characters are matched instead of words.
_CJK = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003134f"
_FIRST_CJK = "\u3040"
_WORD = re.compile(r"(?P<cjk>(?!))|\w+")
_JOINERS = {"\u200d", "\ufe0e", "\ufe0f"}
_LEADING_HEADINGS = re.compile(r"\A(?:\s*#{1,6}[ \t][^\n]*(?:\n|\Z))+")
_HEADING = re.compile(r"\s{0,3}#{1,6}[ \t]+(?=\S)")
_BULLET = re.compile(r"\s*[-*+][ \t]+")
_INDENT = re.compile(r"\A[ \t]+")
_FENCE = re.compile(r"\s{0,3}(?:```|~~~)")
# A query of Obsidian, whose result and not whose text a person reads.
_QUERY = re.compile(r"\s{0,3}(?:```+|~~~+)[ \t]*(?:dataview|dataviewjs|query|tasks|base)\b")
# Links, of which a person reads the label: ``[label](address)``, ``[[page|label]]``, ``![[picture]]``.
_LINK = re.compile(r"!?\[\[([^\[\]|\n]{1,200})(?:\|([^\[\]\n]{1,200}))?\]\]|!?\[([^\[\]\n]{0,200})\]\([^()\s]{1,500}\)")
# A line that has only links to other notes, to walk from day to day.
_NAVIGATION = re.compile(r"[\s<>|«»‹›←→◀▶•·:/-]*(?:!?\[\[[^\[\]\n]{1,200}\]\][\s<>|«»‹›←→◀▶•·:/-]*){2,20}+")
_QUOTE = re.compile(r"\A(?:\s{0,3}>[ \t]?)+")
# A fence, a thematic break, or the delimiter row of a table.
# The possessive quantifiers keep the time linear for a long line of dashes and bars.
_RULE = re.compile(r"\s*+(?:(?:```|~~~)\S*|(?:[-*_][ \t]*+){3,}+|[:|]?[ \t:|]*+-[ \t:-]*+\|[ \t:|-]*+)\s*+\Z")
# English and Russian words that are in nearly every question. Marking them would hide the informative words.
_COMMON = """
a about an and are as at be but by can could d did do does for from had has have how i in is it its ll m me my of on or
our re s should so t than that the their them then there these they this to us ve was we were what when where which
who why will with would you your
а был была были было быть в вы где для до и из или как какая какие какой когда кто ли мы на не но о об он она они от по
почему с то у что это я
"""
_COMMON_WORDS = frozenset(_COMMON.split())


@frozen
class Snippet:
    """A part of a text, and the ``(start, end)`` of each matching word in it: ordered, without overlaps."""

    text: str
    marks: tuple[tuple[int, int], ...] = ()


@frozen(eq=False, repr=False)
class _Terms:
    """The terms to find: whole words, stems (the beginnings of words), and pairs of CJK characters.

    ``beginnings`` are the first characters of the stems; most words of a text have none of them, so no stem is tried.
    ``known`` caches the term of each word.
    """

    words: frozenset[str]
    stems: frozenset[str]
    cjk: frozenset[str]
    longest_stem: int
    beginnings: frozenset[str]
    known: dict[str, str] = field(factory=dict, init=False)

    def match(self, word: str) -> str:
        """Return the term that matches a folded word, or an empty string."""
        if word in self.words:
            return word
        if word[:_MIN_STEM_CHARACTERS] not in self.beginnings:
            return ""
        for length in range(_MIN_STEM_CHARACTERS, min(len(word), self.longest_stem) + 1):
            if word[:length] in self.stems:
                return word[:length]
        return ""


class _Match(NamedTuple):
    start: int
    end: int
    term: str


@frozen(eq=False, repr=False)
class ShownText:
    """A text as snippets show it, and the matches of a question in it. Several snippets can be made of it."""

    text: str
    matches: Sequence[_Match]

    def snippet(self, max_characters: int = SNIPPET_CHARACTERS, choose: ChooseWindow | None = None) -> Snippet:
        """Return a snippet of the text; see :func:`make_snippet`."""
        text, matches = self.text, self.matches
        if len(text) <= max_characters:
            return Snippet(text, _joined(matches))
        if matches or choose is None:
            first, last = _densest(matches, max_characters - 2 * len(_ELLIPSIS))
            start, end = _window(text, first, last, max_characters)
        else:
            windows = _windows(text, max_characters)
            start, end = windows[choose([text[first:last] for first, last in windows]) or 0]
        shown = [match for match in matches if start <= match.start and match.end <= end]
        before, after = (_ELLIPSIS if start else ""), (_ELLIPSIS if end < len(text) else "")
        shift = len(before) - start
        marks = tuple((first + shift, last + shift) for first, last in _joined(shown))
        return Snippet(f"{before}{text[start:end]}{after}", marks)


def show_text(content: str, query: str) -> ShownText:
    """Return a text as snippets show it, and the matches of the query in it.

    The words of the last texts are cached, for contexts: the questions of a chat find the same chunks again and again.
    """
    text, words = _indexed(content)
    terms = _terms(query)
    return ShownText(text, list(_matches(text, terms)) if words is None else words.matches(terms))


@frozen(eq=False, repr=False)
class _Words:
    """The folded words of a text, by their first characters, with the places where each is."""

    places: Mapping[str, Sequence[tuple[int, int]]]
    beginnings: Mapping[str, Sequence[str]]

    def matches(self, terms: _Terms) -> Sequence[_Match]:
        """Return what :func:`_matches` finds in the text."""
        found = {word: word for word in terms.words if word in self.places}
        for beginning in terms.beginnings:
            for word in self.beginnings.get(beginning, ()):
                if term := terms.match(word):
                    found[word] = term
        return sorted(_Match(*place, term) for word, term in found.items() for place in self.places[word])


@lru_cache(_TEXTS_KEPT)
def _indexed(content: str) -> tuple[str, _Words | None]:
    """Return a text as snippets show it, and its words; None instead of words if it has CJK characters."""
    text = _shown(content).strip()
    if _has_cjk(text):
        return text, None
    places: dict[str, list[tuple[int, int]]] = {}
    beginnings: dict[str, list[str]] = {}
    for token in _WORD.finditer(text):
        word = _fold(token[0])
        if word not in places:
            places[word] = []
            beginnings.setdefault(word[:_MIN_STEM_CHARACTERS], []).append(word)
        places[word].append(token.span())
    return text, _Words(places, beginnings)


def make_snippet(
    content: str, query: str, max_characters: int = SNIPPET_CHARACTERS, choose: ChooseWindow | None = None
) -> Snippet:
    """Return the part of ``content`` with the most distinct words of ``query``, in at most ``max_characters`` (>= 20).

    Prose becomes one line with single spaces; lines of code and rows of tables remain lines. Markdown marks at the
    start of lines are removed, except those of tasks (``[x]``, ``[ ]``). An ellipsis shows where the text was cut. If
    no word matches, the snippet is the window that ``choose`` returns, or the start. The time is linear in the content.
    """
    text = _shown(content).strip()
    return ShownText(text, list(_matches(text, _terms(query)))).snippet(max_characters, choose)


def snippet_of(
    result: SearchResult, query: str, choose: ChooseWindow | None = None, clean: Callable[[str], str] = str
) -> Snippet:
    """Return the snippet of a result in at most SNIPPET_CHARACTERS, without headings that are in its heading path.

    ``choose`` is called only if the result has a similarity. ``clean`` is applied to the text before it is cut.
    """
    body = _LEADING_HEADINGS.sub("", result.content) if result.heading else result.content
    choose = None if result.similarity is None else choose
    return make_snippet(clean(body if body.strip() else result.content), query, SNIPPET_CHARACTERS, choose)


def find_marks(text: str, query: str) -> tuple[tuple[int, int], ...]:
    """Return the ``(start, end)`` of every word of ``text`` that matches ``query``, in order."""
    return _joined(list(_matches(text, _terms(query))))


def _shown(content: str) -> str:
    """Return Markdown as snippets show it: prose on one line, lines of code and rows of tables as lines.

    Headings end in a colon, bullets become ``•``, links their labels. Thematic breaks, fences, queries of Obsidian and
    lines that only link to other notes are removed.
    """
    parts: list[str] = []
    is_code = is_query = after_line = False
    for line in content.splitlines():
        if _FENCE.match(line):
            is_query = not is_code and _QUERY.match(line) is not None
            is_code = not is_code
            continue
        if is_query or (not is_code and "]]" in line and _NAVIGATION.fullmatch(line)):
            continue
        is_line = is_code or line.lstrip().startswith("|")
        if not is_code and _RULE.match(line):
            continue
        text = " ".join(line.split()) if not is_code else _INDENT.sub(_spaces, line.rstrip())
        text = text if is_code else " ".join(_plain(text).split())
        if text.strip():
            parts += ["\n" if parts and (is_line or after_line) else " " if parts else "", text]
            after_line = is_line
    return "".join(parts)


def _spaces(indent: re.Match[str]) -> str:
    return indent[0].expandtabs(4) if indent[0].strip(" \t") == "" else indent[0]


def _plain(line: str) -> str:
    if heading := _HEADING.match(line):
        title = _plain(line[heading.end() :].rstrip("# \t")) if "]" in line else line[heading.end() :].rstrip("# \t")
        return title if title.endswith((":", ".", "?", "!")) else f"{title}:"
    line = _QUOTE.sub("", line)
    if "](" in line or "]]" in line:
        line = _LINK.sub(lambda link: link[2] or (link[1] or link[3] or "").replace("#", " > "), line)
    if bullet := _BULLET.match(line):
        return f"• {line[bullet.end() :]}"
    return line.strip().strip("|") if line.lstrip().startswith("|") else line


@lru_cache(maxsize=1)  # all results of a search have the same question
def _terms(query: str) -> _Terms:
    tokens = list(_tokens(query))
    words = [token[0].casefold() for token in tokens if not token["cjk"]]
    telling = [_fold(word) for word in words if word not in _COMMON_WORDS] or [_fold(word) for word in words]
    stems = frozenset(stem for word in telling if (stem := _stem(word)))
    runs = [token["cjk"] for token in tokens if token["cjk"]]
    pairs = frozenset(run[at : at + 2] for run in runs for at in range(max(1, len(run) - 1)))
    beginnings = frozenset(stem[:_MIN_STEM_CHARACTERS] for stem in stems)
    return _Terms(frozenset(telling), stems, pairs, max(map(len, stems), default=0), beginnings)


def _tokens(text: str) -> Iterator[re.Match[str]]:
    """Yield the words and the runs of CJK characters of a text."""
    return (_word_or_cjk() if _has_cjk(text) else _WORD).finditer(text)


def _has_cjk(text: str) -> bool:
    return not text.isascii() and max(text) >= _FIRST_CJK


@cache
def _word_or_cjk() -> re.Pattern[str]:
    # Compiled at the first use, because that takes as long as a search in a small collection.
    return re.compile(rf"(?P<cjk>[{_CJK}]+)|[^\W{_CJK}]+")


def _stem(word: str) -> str:
    """Return the first letters of a word, which related words share; nothing for short words and identifiers."""
    if len(word) < _MIN_STEM_CHARACTERS or not word.isalpha():
        return ""
    return word[: max(_MIN_STEM_CHARACTERS, int(len(word) * _STEM_SHARE))]


def _fold(word: str) -> str:
    """Return a word in lower case and without accents, as full-text indexes compare words."""
    if word.isascii():
        return word.lower()
    decomposed = unicodedata.normalize("NFKD", word.casefold())
    return "".join(character for character in decomposed if not unicodedata.combining(character))


def _matches(text: str, terms: _Terms) -> Iterator[_Match]:
    """Yield every match, in order of its start."""
    known = terms.known
    for token in _tokens(text):
        if token.lastgroup:
            yield from _pairs(token[0], token.start(), terms.cjk)
            continue
        word = token[0]
        if (term := known.get(word)) is None:
            term = known[word] = terms.match(_fold(word))
        if term:
            yield _Match(*token.span(), term)


def _pairs(run: str, offset: int, wanted: frozenset[str]) -> Iterator[_Match]:
    for at in range(len(run)):
        for length in (2, 1):
            if len(piece := run[at : at + length]) == length and piece in wanted:
                yield _Match(offset + at, offset + at + length, piece)
                break


def _joined(matches: Sequence[_Match]) -> tuple[tuple[int, int], ...]:
    """Return the spans of matches; overlapping ones (pairs of CJK characters) are joined."""
    spans: list[tuple[int, int]] = []
    for match in matches:
        if spans and match.start < spans[-1][1]:
            spans[-1] = (spans[-1][0], max(spans[-1][1], match.end))
        else:
            spans.append((match.start, match.end))
    return tuple(spans)


def _densest(matches: Sequence[_Match], width: int) -> tuple[int, int]:
    """Return the start and end of the span of at most ``width`` characters with the most distinct terms.

    If several are equal, the one with the most matches is returned, then the first; ``(0, 0)`` without matches.
    """
    best, best_value = (0, 0), (0, 0)
    counts: dict[str, int] = {}
    first = 0
    for last, match in enumerate(matches):
        counts[match.term] = counts.get(match.term, 0) + 1
        while match.end - matches[first].start > width and first < last:
            term = matches[first].term
            counts[term] -= 1
            if not counts[term]:
                del counts[term]
            first += 1
        value = (len(counts), last - first + 1)
        if value > best_value:
            best, best_value = (matches[first].start, match.end), value
    return best


def _window(text: str, first: int, last: int, max_characters: int) -> tuple[int, int]:
    """Return a window of ``text`` around ``first..last``, with edges between words, and space for two ellipses."""
    width = max_characters - 2 * len(_ELLIPSIS)
    middle = (first + min(last, first + width)) // 2
    start = max(0, min(middle - width // 2, len(text) - width))
    end = min(len(text), start + width)
    if start:
        space = next((at for at in range(start - 1, min(start + _SLACK, first)) if text[at].isspace()), -1)
        start = space + 1 if space >= 0 else _next_character(text, start)
    if end < len(text):
        least = max(end - _SLACK, last, start + 1)
        space = next((at for at in range(end, least - 1, -1) if text[at].isspace()), -1)
        end = space if space >= 0 else _previous_character(text, end)
    return start, max(start, end)


def _windows(text: str, max_characters: int) -> Sequence[tuple[int, int]]:
    """Return windows that cover a text longer than a snippet, in order."""
    half = (max_characters - 2 * len(_ELLIPSIS)) // 2
    steps = min(-(-(len(text) - 2 * half) // half), _MAX_WINDOWS - 1)
    centres = (half + step * (len(text) - 2 * half) // steps for step in range(steps + 1))
    return [_window(text, centre, centre, max_characters) for centre in centres]


def _next_character(text: str, at: int) -> int:
    """Return the first offset from ``at`` on that is not inside a combined character."""
    while at < len(text) and _continues(text, at):
        at += 1
    return at


def _previous_character(text: str, at: int) -> int:
    """Return the last offset up to ``at`` that is not inside a combined character."""
    while at > 0 and _continues(text, at):
        at -= 1
    return at


def _continues(text: str, at: int) -> bool:
    """Return whether the character at ``at`` belongs to the one before it."""
    return at < len(text) and (
        unicodedata.combining(text[at]) > 0 or text[at] in _JOINERS or (at > 0 and text[at - 1] == "\u200d")
    )
