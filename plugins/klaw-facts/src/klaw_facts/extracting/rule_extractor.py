"""The extractor ``rules``: verbatim sentences that look like facts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from klaw_facts.extracting.candidates import Candidate, SourceMessage
from klaw_facts.extracting.own_words import is_copied
from klaw_facts.extracting.rules import MAX_PER_MESSAGE, THRESHOLD, category_of, score
from klaw_facts.extracting.sentences import sentences
from klaw_facts.extracting.slots import stated_in, statements
from klaw_facts.extracting.verify import MAX_QUOTE_CHARACTERS


def extract(messages: Sequence[SourceMessage]) -> Iterator[Candidate]:
    """Yield the best sentences of each message, in their order."""
    for message in messages:
        scored = []
        for sentence in sentences(message.content):
            if len(sentence.text) > MAX_QUOTE_CHARACTERS or is_copied(message.content, sentence.start, sentence.end):
                continue
            stated = stated_in(sentence.text) is not None
            points = score(sentence.text) + (2.0 if stated else 0.0)
            if stated or points >= THRESHOLD:
                scored.append((points, sentence))
        best = sorted(scored, key=lambda item: -item[0])[:MAX_PER_MESSAGE]
        for _, sentence in sorted(best, key=lambda item: item[1].start):
            for text in statements(sentence.text):
                yield Candidate(message, text, text, category_of(text), when=text)
