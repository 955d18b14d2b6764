"""The user's own questions for their own index: one line of JSON each, with the path or text of the answer.

{"question": "what did we decide about auth", "path": "notes/auth.md"}
{"question": "which port does staging use", "text": "staging listens on 8443", "category": "facts"}
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from klaw_eval.datasets.reading import OmittedQuestions, read_lines
from klaw_eval.errors import DatasetError
from klaw_eval.values import Corpus, Dataset, Question


class _QuestionRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    question: str
    path: str | list[str] = ()  # type: ignore[assignment]  # msgspec wants an immutable default
    text: str | list[str] = ()  # type: ignore[assignment]  # as above
    category: str = ""


def read(path: Path) -> Dataset:
    """Return the questions of a file, for the existing index. Raise DatasetError.

    A path is that of a result (``notes/a.md``); a text must be in the right chunk. Either may be a list.
    """
    left_out = OmittedQuestions()
    questions = []
    seen: dict[str, int] = {}
    for number, asked in read_lines(path, _QuestionRecord, 'a question {"question", "path" or "text", "category"}'):
        paths, texts = _listed(asked.path), _listed(asked.text)
        if bool(paths) == bool(texts):
            both = "both" if paths else "neither"
            raise DatasetError(f'{path}:{number}: a question needs "path" or "text", this one has {both}')
        gold = dict.fromkeys(paths or texts, 1.0)
        if left_out.reason(asked.question, gold):
            continue
        # The id is the question itself, so that it stays in its half if lines are added.
        times = seen[asked.question] = seen.get(asked.question, 0) + 1
        name = asked.question if times == 1 else f"{asked.question} ({times})"
        questions.append(Question(name, asked.question, gold, asked.category, contains=texts))
    units = {"chunk" if question.contains else "document" for question in questions}
    corpus = Corpus(path.stem, questions=tuple(questions))
    unit = " or ".join(sorted(units))
    return Dataset(path.stem, unit, "your own index, as it is", (corpus,), dict(left_out), own=True)


def _listed(value: str | list[str]) -> tuple[str, ...]:
    found = (value,) if isinstance(value, str) else tuple(value)
    return tuple(item for item in found if item.strip())
