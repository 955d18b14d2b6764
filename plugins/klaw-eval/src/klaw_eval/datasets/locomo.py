"""LoCoMo: long conversations of two people, and questions with turns as evidence.

Maharana et al., *Evaluating Very Long-Term Conversational Memory of LLM Agents* (ACL 2024). A file is a list of
samples, each a conversation with its questions. Evidence is every match of ``D:?<session>:<turn>``, because some
entries contain several ids or typing errors.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec

from klaw_core.cli.kit import counted
from klaw_eval.datasets.reading import OmittedQuestions, convert, read_json, refuse_repeated
from klaw_eval.errors import DatasetError
from klaw_eval.values import Conversation, Corpus, Dataset, Question, Turn

UNITS = ("session", "turn")

_TURN = re.compile(r"D:?([0-9]{1,9}):([0-9]{1,9})")
_SESSION = re.compile(r"session_([0-9]{1,9})")
_TIME = "%I:%M %p on %d %B, %Y"
_PAUSE = timedelta(seconds=30)  # between two turns, so that their times have an order
_CATEGORIES = {1: "1 multi-hop", 2: "2 temporal", 3: "3 open-domain", 4: "4 single-hop", 5: "5 adversarial"}

_IN_WORDS = (1, 4)  # categories whose answers are literally in the conversation, unlike dates and opinions


class _TurnRecord(msgspec.Struct, frozen=True):
    speaker: str
    text: str
    dia_id: str = ""


class _QuestionRecord(msgspec.Struct, frozen=True):
    question: str
    evidence: list[str] = []
    category: int = 0
    answer: Any = None


class _Sample(msgspec.Struct, frozen=True):
    conversation: dict[str, Any]
    qa: list[_QuestionRecord]
    sample_id: str = ""


def read(path: Path, unit: str = "session", *, pooled: bool = False) -> Dataset:
    """Return the conversations and questions of a file. Raise DatasetError.

    ``unit`` is the meaning of a gold id: a turn, or its session. With ``pooled``, one index has all conversations.
    """
    samples = read_json(path, list[_Sample], "a list of LoCoMo conversations")
    names = [sample.sample_id or f"conversation-{number}" for number, sample in enumerate(samples, start=1)]
    refuse_repeated(path, names, "conversations")
    left_out = OmittedQuestions()
    corpora = tuple(_corpus(path, name, sample, unit, left_out) for name, sample in zip(names, samples, strict=True))
    setting = f"one index for each of {counted(len(corpora), 'conversation')}"
    if pooled:
        setting = f"one index for all of {counted(len(corpora), 'conversation')}"
        corpora = (
            Corpus(
                "pooled",
                talks=tuple(talk for corpus in corpora for talk in corpus.talks),
                questions=tuple(question for corpus in corpora for question in corpus.questions),
            ),
        )
    categories = {question.category for corpus in corpora for question in corpus.questions}
    answerable = tuple(name for name in _CATEGORIES.values() if not name.startswith("5"))
    combined = {"1-4": answerable} if _CATEGORIES[5] in categories else {}
    return Dataset(path.stem, unit, setting, corpora, dict(left_out), combined)


def _corpus(path: Path, name: str, sample: _Sample, unit: str, left_out: OmittedQuestions) -> Corpus:
    turns = tuple(_turns(path, name, sample.conversation))
    refuse_repeated(path, (turn.id for turn in turns), "turns")
    questions = []
    for number, asked in enumerate(sample.qa):
        places = [(int(session), int(turn)) for session, turn in _TURN.findall(" ".join(asked.evidence))]
        gold = {f"{name}/D{session}" + (f":{turn}" if unit == "turn" else ""): 1.0 for session, turn in places}
        if not left_out.reason(asked.question, gold):
            category = _CATEGORIES.get(asked.category, str(asked.category))
            answer = str(asked.answer) if asked.category in _IN_WORDS and asked.answer is not None else ""
            questions.append(Question(f"{name}/{number}", asked.question, gold, category, group=name, answer=answer))
    return Corpus(name, talks=(Conversation(name, turns),), questions=tuple(questions))


def _turns(path: Path, name: str, conversation: dict[str, Any]) -> Iterator[Turn]:
    """Yield the turns of every session, half a minute apart, starting at the date of the session."""
    sessions = sorted((int(found[1]), key) for key in conversation if (found := _SESSION.fullmatch(key)))
    for number, key in sessions:
        place = f"{name}, {key}"
        said = convert(conversation[key] or [], list[_TurnRecord], path, place)
        times = _times(len(said), conversation.get(f"{key}_date_time"), path, place)
        for index, (item, ts) in enumerate(zip(said, times, strict=True), start=1):
            found = _TURN.fullmatch(item.dia_id)
            turn = int(found[2]) if found else index
            role = "assistant" if item.speaker == conversation.get("speaker_b") else "user"
            session = f"{name}/D{number}"
            yield Turn(f"{session}:{turn}", session, role, item.speaker, item.text, ts)


def _times(count: int, written: object, path: Path, place: str) -> list[datetime]:
    """Return the times of the ``count`` turns of a session, given its date. Raise DatasetError."""
    if not count:
        return []
    try:
        start = datetime.strptime(str(written), _TIME).replace(tzinfo=UTC)
        return [start + index * _PAUSE for index in range(count)]
    except (ValueError, OverflowError) as error:
        wanted = "expected a date like '1:56 pm on 8 May, 2023'"
        raise DatasetError(f"{path}, {place}: {wanted}, got {written!r}") from error
