"""Subtitles, SubRip and WebVTT, as paragraphs that begin with their time: ``[0:01:02] …``.

https://www.w3.org/TR/webvtt1/; SubRip has no specification.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape

from attrs import define, field

from klaw_core import ConversionError

_TIME = r"(?:(\d{1,4}):)?(\d{1,2}):(\d{1,2})[.,]\d{1,3}"
_CUE = re.compile(rf"^[ \t]*{_TIME}[ \t]*-->[ \t]*{_TIME}", re.MULTILINE)
_VOICE = re.compile(r"<v(?:\.[^ >]*)?[ \t]+([^<>]{1,100})>")
_MARKUP = re.compile(r"<[^<>]{0,200}>|\{\\[^{}]{0,200}\}")
_MAX_SECONDS, _MAX_PAUSE, _MAX_CHARACTERS = 60, 5, 800  # of a paragraph


@define
class _Paragraph:
    start: int
    end: int
    lines: list[str] = field(factory=list)

    def has_room(self, start: int) -> bool:
        """Return whether a cue at this second continues it."""
        is_short = sum(map(len, self.lines)) < _MAX_CHARACTERS
        return is_short and start - self.start < _MAX_SECONDS and start - self.end <= _MAX_PAUSE

    def text(self) -> str:
        """Return it with its time."""
        minutes, seconds = divmod(self.start, 60)
        hours, minutes = divmod(minutes, 60)
        return f"[{hours}:{minutes:02}:{seconds:02}] {' '.join(self.lines)}"


def text_of(data: str) -> str:
    """Return the spoken text. Raise ConversionError if there is none."""
    paragraphs: list[_Paragraph] = []
    last: list[str] = []
    for start, end, lines in _cues(data):
        new = [line for line in lines if line not in last]  # captions that roll repeat the line before
        last = lines or last
        if not new:
            continue
        if not paragraphs or not paragraphs[-1].has_room(start):
            paragraphs.append(_Paragraph(start, end))
        paragraphs[-1].lines += new
        paragraphs[-1].end = end
    if not paragraphs:
        raise ConversionError("has no text")
    return "\n\n".join(paragraph.text() for paragraph in paragraphs) + "\n"


def _cues(data: str) -> Iterator[tuple[int, int, list[str]]]:
    """Yield the seconds of the start and the end of each cue, and its lines."""
    found = list(_CUE.finditer(data))
    for number, match in enumerate(found):
        until = found[number + 1].start() if number + 1 < len(found) else len(data)
        # The rest of the line has settings; the text ends at an empty line, after which the next cue has its number.
        _, _, body = data[match.end() : until].partition("\n")
        text = re.split(r"\n[ \t]*\n", body, maxsplit=1)[0] if body.strip() and body.lstrip(" \t")[:1] != "\n" else ""
        spoken = (_plain(line) for line in text.split("\n"))
        yield _seconds(match, 1), _seconds(match, 4), [line for line in spoken if line]


def _seconds(match: re.Match[str], first: int) -> int:
    hours, minutes, seconds = (int(match[number] or 0) for number in range(first, first + 3))
    return hours * 3600 + minutes * 60 + seconds


def _plain(line: str) -> str:
    return " ".join(unescape(_MARKUP.sub("", _VOICE.sub(r"\1: ", line))).split())
