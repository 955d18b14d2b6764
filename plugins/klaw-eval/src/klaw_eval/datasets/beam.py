"""BEAM: long chats of a user with an assistant, and questions of ten abilities with messages as evidence.

Tavakoli et al., *Beyond a Million Tokens* (2025). A folder has one folder per chat, with ``chat.json`` (batches of
turns) and ``q.json`` (questions by ability). Only the first message of a batch has a date, so the messages of a batch
get times one minute apart. Questions without evidence, those of abstention, are left out.
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

CHAT, QUESTIONS = "chat.json", "q.json"
UPDATES = "knowledge_update"
_START = datetime(2024, 1, 1, 9, tzinfo=UTC)
_PAUSE = timedelta(minutes=1)
_ANCHOR = "%B-%d-%Y"


class _Message(msgspec.Struct, frozen=True):
    role: str
    id: int
    content: str
    time_anchor: str | None = None


class _Batch(msgspec.Struct, frozen=True):
    turns: list[list[_Message]]


class _Asked(msgspec.Struct, frozen=True):
    question: str
    source_chat_ids: Any = None


def read(path: Path) -> Dataset:
    """Return the chats and questions of a folder, with one index per chat and unit turn. Raise DatasetError."""
    places = sorted((place.parent for place in path.glob(f"*/{CHAT}")), key=_number)
    left_out = OmittedQuestions()
    corpora = tuple(_corpus(place, left_out) for place in places)
    setting = f"one index for each of {counted(len(corpora), 'chat')}"
    return Dataset(path.resolve().name, "turn", setting, corpora, dict(left_out))


def _number(place: Path) -> tuple[int, str]:
    return (int(place.name) if place.name.isdecimal() else 0, place.name)


def _corpus(place: Path, left_out: OmittedQuestions) -> Corpus:
    name = f"beam/{place.name}"
    turns = tuple(_turns(place / CHAT, name))
    refuse_repeated(place / CHAT, (turn.id for turn in turns), "messages")
    by_ability = read_json(place / QUESTIONS, dict[str, list[_Asked]], "BEAM's questions by ability")
    questions = [
        question
        for ability, asked in by_ability.items()
        for number, item in enumerate(asked)
        if (question := _question(f"{name}/{ability}/{number}", item, ability, name, left_out))
    ]
    return Corpus(place.name, talks=(Conversation(f"beam_{place.name}", turns),), questions=tuple(questions))


def _question(name: str, asked: _Asked, ability: str, chat: str, left_out: OmittedQuestions) -> Question | None:
    gold = {f"{chat}/{number}": 1.0 for number in _numbers(asked.source_chat_ids)}
    if left_out.reason(asked.question, gold):
        return None
    said = asked.source_chat_ids if isinstance(asked.source_chat_ids, dict) and ability == UPDATES else {}
    current = tuple(f"{chat}/{number}" for number in _numbers(said.get("updated_info")))
    outdated = tuple(f"{chat}/{number}" for number in _numbers(said.get("original_info")))
    only = tuple(item for item in outdated if item not in current)
    return Question(name, asked.question, gold, ability, chat, side=chat, current=current, outdated=only)


def _numbers(value: object) -> Iterator[int]:
    """Yield the message numbers in nested lists and objects."""
    if isinstance(value, bool):
        return
    if isinstance(value, int):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _numbers(item)


def _turns(path: Path, name: str) -> Iterator[Turn]:
    batches = convert(read_json(path, Any, "a BEAM chat"), list[_Batch], path, "batches")
    moment = _START
    for number, batch in enumerate(batches, start=1):
        messages = [message for turn in batch.turns for message in turn]
        anchor = next((message.time_anchor for message in messages if message.time_anchor), None)
        moment = _day(anchor, path) if anchor else moment + timedelta(days=1)
        for message in messages:
            role = message.role if message.role in {"user", "assistant"} else "user"
            speaker = "User" if role == "user" else "Assistant"
            yield Turn(f"{name}/{message.id}", f"{name}/batch-{number}", role, speaker, message.content, moment)
            moment += _PAUSE


def _day(anchor: str, path: Path) -> datetime:
    try:
        return datetime.strptime(re.sub(r"\s", "", anchor), _ANCHOR).replace(hour=9, tzinfo=UTC)
    except ValueError as error:
        raise DatasetError(f"{path}: expected a day like 'March-15-2024', got {anchor!r}") from error
