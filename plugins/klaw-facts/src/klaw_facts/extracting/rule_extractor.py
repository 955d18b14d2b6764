"""The extractor ``rules``: sentences of a message, word for word, that look like facts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from klaw_facts.extracting.candidates import Candidate, SourceMessage
from klaw_facts.extracting.rules import MOST_PER_MESSAGE, THRESHOLD, category_of, score
from klaw_facts.extracting.sentences import sentences
from klaw_facts.extracting.slots import slot_of


def extract(messages: Sequence[SourceMessage]) -> Iterator[Candidate]:
    """Yield the best sentences of each message, in their order."""
    for message in messages:
        scored = []
        for sentence in sentences(message.content):
            slot = slot_of(sentence.text)
            points = score(sentence.text) + (2.0 if slot else 0.0)
            if points >= THRESHOLD:
                scored.append((points, sentence, slot))
        best = sorted(scored, key=lambda item: -item[0])[:MOST_PER_MESSAGE]
        for _, sentence, slot in sorted(best, key=lambda item: item[1].start):
            name, value = slot or (None, None)
            text = sentence.text
            yield Candidate(message, text, text, category_of(text), name, value, when=text)
