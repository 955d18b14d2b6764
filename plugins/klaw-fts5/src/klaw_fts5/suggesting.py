"""Did you mean: words of a question that no chunk holds, each with the word of the index that is one slip away.

Loaded only where a search found nothing good. Every text that one slip makes of a word (a letter too many, too few or
another one, or two neighbours swapped) is cut to its stem as the index has it, and looked up in order: one
look-up, to which the index answers with the next term that it holds, tells of all stems before that one that they are
not there. So the work depends on the length of the word, and not on how many words the index holds. Where many words
are looked up in one state of the index, all of its terms are read, unless they are very many.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property
from operator import itemgetter

import apsw
from attrs import frozen

from klaw_core.words.query import Term
from klaw_core.words.treatment import fold, index_text
from klaw_fts5.exact import ExactSearch
from klaw_fts5.knowledge import MOST_TERMS
from klaw_fts5.tokenizer import Tokenizer

#: Returns the texts of chunks, by key.
ReadTexts = Callable[[Sequence[int]], Sequence[str]]

_WORD = re.compile(r"[^\W\d_]+")
# A slip in a shorter word makes another word, and a longer one is no word.
_SHORTEST, _LONGEST = 5, 24
# So many words of a question are looked at, and so many stems and chunks for a word that may be meant.
_MOST_WORDS, _MOST_STEMS, _MOST_CHUNKS = 8, 6, 3
_LATIN = "abcdefghijklmnopqrstuvwxyz"
_CYRILLIC = "абвгдежзийклмнопрстуфхцчшщъыьэюя"
# To look up one word takes as long as to read the terms of so many chunks.
_ROWS_A_WORD = 800
# Counted no further: which of several words is meant, a thousand chunks say as well as a million.
_ENOUGH = 1_000


@frozen(eq=False)
class Suggester:
    """Suggests what was meant, from the words of one collection. ``read`` gives the texts of chunks.

    ``has`` says whether any chunk holds a term: the search has just asked that of the words of the question, and who
    answered it may still know. ``rows`` is how many chunks there are, 0 if what is known of them is not kept.
    """

    connection: apsw.Connection
    searcher: ExactSearch
    read: ReadTexts
    has: Callable[[Term], bool]
    rows: int = 0

    def suggest(self, text: str) -> str | None:
        """Return the question with the words corrected that no chunk holds; None if there is none, or one cannot be.

        What holds a word that is unknown and near to none is in another language, or about something else: what its
        other words are near to is chance.
        """
        unknown = [match for match in _WORD.finditer(text) if self._is_unknown(match[0])]
        if not unknown or len(unknown) > _MOST_WORDS:
            return None
        pieces: list[str] = []
        done = 0
        for match in unknown:
            meant = self._meant(fold(match[0]))
            if meant is None:
                return None
            pieces += [text[done : match.start()], meant]
            done = match.end()
        return "".join([*pieces, text[done:]])

    @cached_property
    def _tokenize(self) -> Tokenizer:
        return Tokenizer(self.connection)

    def _is_unknown(self, word: str) -> bool:
        """Return whether a word may be a slip: no chunk holds it, and to the index it is a word."""
        if not _SHORTEST <= len(word) <= _LONGEST or self.has(_term(word)):
            return False
        return any(self._stems([word]))

    def _meant(self, word: str) -> str | None:
        """Return the word one slip away that most chunks hold."""
        known = self.searcher.known
        meant = known.meant(word)
        if meant is None:
            meant = self._nearest(word) or ""
            known.keep_meant(word, meant)
        return meant or None

    def _nearest(self, word: str) -> str | None:
        slips = list(dict.fromkeys(_slips(word)))
        stems = self._stems(slips)
        present = self._terms_among(set(stems))
        by_stem: dict[str, list[str]] = {}
        for slip, stem in zip(slips, stems, strict=True):
            if stem in present:
                by_stem.setdefault(stem, []).append(slip)
        held = [(self.searcher.count(_term(same[0]), _ENOUGH), same) for same in by_stem.values()]
        for count, same in sorted(held, key=itemgetter(0), reverse=True)[:_MOST_STEMS]:
            if count and (written := self._written(same)) is not None:
                return written
        return None

    def _written(self, slips: Sequence[str]) -> str | None:
        """Return which of these spellings of one stem stands in a chunk that holds it: not all of them are words."""
        keys = list(self.searcher.best((_term(slips[0]),), _MOST_CHUNKS, None))
        texts = self.read(keys)
        plain = [text.lower() for text in texts if text.isascii()]
        others = {fold(word) for text in texts if not text.isascii() for word in _WORD.findall(text)}
        return next((slip for slip in slips if slip in others or any(_stands_in(slip, text) for text in plain)), None)

    def _terms_among(self, stems: AbstractSet[str]) -> AbstractSet[str]:
        """Return those of the stems that are terms of the index.

        Each word is looked up, until that has taken as long as to read all terms; then they are read, once.
        """
        known = self.searcher.known
        if known.terms is None:
            sql = self.searcher.sql
            self.connection.execute(sql.vocabulary)
            try:
                known.looked_up += 1
                if known.has_many_terms or known.looked_up * _ROWS_A_WORD < self.rows or not self.rows:
                    return self._present(stems)
                known.keep_terms([term for (term,) in self.connection.execute(sql.terms, (MOST_TERMS + 1,))])
                if known.terms is None:
                    return self._present(stems)
            finally:
                self.connection.execute(sql.drop_vocabulary)
        return known.terms.intersection(stems)

    def _present(self, stems: Iterable[str]) -> set[str]:
        """Return those of the stems that are terms of the index."""
        present: set[str] = set()
        following = b""
        for stem in sorted(filter(None, stems)):  # which UTF-8 orders in the same way
            if stem.encode() < following:
                continue
            row = self.connection.execute(self.searcher.sql.next_term, (stem,)).fetchone()
            if row is None:
                break
            following = row[0]
            if following == stem.encode():
                present.add(stem)
        return present

    def _stems(self, words: Sequence[str]) -> list[str]:
        """Return what the index has for each word, letters only; nothing for what is not one word to it."""
        joined = " ".join(words)
        if joined.isascii():  # left as it is, and each is one word
            return self._tokenize.terms(joined.encode())
        terms = self._tokenize.each([index_text(word).strip().encode() for word in words])
        return [found[0].decode("utf-8", "replace") if len(found) == 1 else "" for found in terms]


def _term(word: str) -> Term:
    return Term((index_text(word).strip(),), literal=True)


def _stands_in(word: str, text: str) -> bool:
    """Return whether a word stands in a text of ASCII, between what are no letters."""
    # Most texts are told from each other without a look at every word of them.
    return word in text and re.search(rf"(?<![a-z]){re.escape(word)}(?![a-z])", text) is not None


def _slips(word: str) -> Iterator[str]:
    """Yield everything that is one slip away from a word, swapped neighbours first."""
    letters = next((script for script in (_LATIN, _CYRILLIC) if any(letter in script for letter in word)), "")
    splits = [(word[:place], word[place:]) for place in range(len(word) + 1)]
    yield from (head + tail[1] + tail[0] + tail[2:] for head, tail in splits if len(tail) > 1)
    yield from (head + letter + tail for head, tail in splits for letter in letters)
    yield from (head + tail[1:] for head, tail in splits if tail)
    yield from (head + letter + tail[1:] for head, tail in splits if tail for letter in letters)
