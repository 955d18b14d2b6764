"""Read files of test sets: typed JSON and lines, with errors that name the file and the line."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from klaw_eval.errors import DatasetError

T = TypeVar("T")

_MAX_QUESTION_CHARACTERS = 10_000  # a search rejects longer questions
_BYTE = re.compile(r"\(byte (\d+)\)")


def read_bytes(path: Path) -> bytes:
    """Return the content of a regular file. Raise DatasetError."""
    if path.exists() and not path.is_file():
        raise DatasetError(f"{path} is not a file")
    try:
        return path.read_bytes()
    except OSError as error:
        raise DatasetError(f"{path} cannot be read: {error.strerror or error}") from error


def read_text(path: Path) -> str:
    """Return the text of a file in UTF-8 or, as in old collections, Latin-1, with LF line ends."""
    content = read_bytes(path).replace(b"\r\n", b"\n")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("latin-1")


def read_json(path: Path, form: type[T], wanted: str) -> T:
    """Return the JSON of a file as the type ``form``; ``wanted`` names the format in the error. Raise DatasetError."""
    content = read_bytes(path).removeprefix(b"\xef\xbb\xbf")
    try:
        return msgspec.json.decode(content, type=form)
    except msgspec.ValidationError as error:
        raise DatasetError(f"{path} is not {wanted}: {error}") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        found = _BYTE.search(str(error))
        line = content.count(b"\n", 0, int(found[1])) + 1 if found else 1
        raise DatasetError(f"{path}:{line}: not valid JSON: {error}") from error


def read_lines(path: Path, form: type[T], wanted: str) -> Iterator[tuple[int, T]]:
    """Yield the object in each line that is not blank, with the line's number. Raise DatasetError."""
    decoder = msgspec.json.Decoder(form)
    for number, line in enumerate(read_bytes(path).removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        if line.strip():
            try:
                yield number, decoder.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                raise DatasetError(f"{path}:{number}: not {wanted}: {error}") from error


def convert(value: Any, form: type[T], path: Path, place: str) -> T:
    """Return a part of decoded JSON as the type ``form``. Raise DatasetError, which names ``place``."""
    try:
        return msgspec.convert(value, form)
    except msgspec.ValidationError as error:
        raise DatasetError(f"{path}, {place}: {error}") from error


class OmittedQuestions(Counter[str]):
    """Counts the questions that are left out, by reason."""

    def reason(self, text: str, gold: Iterable[str]) -> bool:
        """Return whether a question must be left out; count it if so."""
        if not text.strip():
            self["without text"] += 1
        elif len(text) > _MAX_QUESTION_CHARACTERS:
            self[f"longer than {_MAX_QUESTION_CHARACTERS:,} characters"] += 1
        elif not any(True for _ in gold):
            self["without a readable gold id"] += 1
        else:
            return False
        return True


def refuse_repeated(path: Path, ids: Iterable[str], what: str) -> None:
    """Raise DatasetError if an id occurs twice, because figures would be meaningless."""
    twice = [name for name, count in Counter(ids).items() if count > 1]
    if twice:
        raise DatasetError(f"{path}: {len(twice)} duplicate ids of {what}, the first is {twice[0]!r}")
