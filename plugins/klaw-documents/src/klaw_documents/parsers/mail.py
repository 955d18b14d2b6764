"""Mail: messages (``.eml``) and mailboxes (``.mbox``) with their headers and bodies; attachments are only named."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from email import policy
from email.headerregistry import HeaderRegistry
from email.message import EmailMessage
from email.parser import BytesHeaderParser, BytesParser
from email.utils import parsedate_to_datetime
from functools import lru_cache
from itertools import count
from typing import Any

from attrs import define, field

from klaw_core import Conversion, ConversionError
from klaw_documents.parsers.markup import escaped, markdown_of
from klaw_documents.parsers.values import clean, described, one_line

# A line that begins a message in a mailbox; in a message, such a line has a ">" before it.
_FROM = re.compile(rb"(?:\A|(?<=\n\n)|(?<=\n\r\n))From [^\r\n]*\r?\n")
_ESCAPED = re.compile(rb"^>(>*From )", re.MULTILINE)
_SHOWN = ("From", "To", "Cc", "Date")
_MAX_PARTS = 1_000
# The parser of messages asks for the type of each part about seven times, and would parse the header each time.
_POLICY = policy.default.clone(header_factory=lru_cache(256)(HeaderRegistry()))
_WESTERN = "windows-1252"


def parse(data: bytes, name: str) -> Conversion:
    """Return the messages as Markdown, each a section. Raise ConversionError."""
    decoder = _Decoder()
    if name.lower().endswith(".mbox"):
        starts = [match.span() for match in _FROM.finditer(data)]
        if not starts:
            raise ConversionError("is not a valid mailbox")
        ends = [*(start for start, _ in starts[1:]), len(data)]
        whole = (_ESCAPED.sub(rb"\1", data[begin:end]) for (_, begin), end in zip(starts, ends, strict=True))
        texts = [text for message in map(_message, whole) for text in _section(message, decoder)]
        if not texts:
            raise ConversionError("has no text")
        return Conversion("\n\n".join(texts) + "\n", "markdown", decoder.metadata)
    message = _message(data)
    if not any(map(message.__contains__, ("From", "Date", "Subject", "To"))):
        raise ConversionError("is not a valid message")
    text = "\n\n".join(_section(message, decoder)) + "\n"
    metadata = described(title=decoder.header(message, "Subject"), author=decoder.header(message, "From"))
    return Conversion(text, "markdown", {**metadata, **decoder.metadata}, _moment(message, decoder))


class _Message(EmailMessage):
    """A message. ``is_read``: its parts were read, not only its headers."""

    is_read = True


class _TooManyPartsError(Exception):
    """A message has so many parts that reading them would take minutes."""


def _message(data: bytes) -> _Message:
    """Parse a message; only its headers if it has too many parts, or if they are nested too deeply."""
    numbers = count()

    def make(policy: Any) -> _Message:
        if next(numbers) > _MAX_PARTS:
            raise _TooManyPartsError
        return _Message(policy)

    try:
        return _parsed(BytesParser, make, data)
    except (_TooManyPartsError, RecursionError):
        message = _parsed(BytesHeaderParser, _Message, data)
        message.is_read = False
        return message


def _parsed(parser: Any, make: Callable[[Any], _Message], data: bytes) -> _Message:
    """Return what a parser of the standard library makes; its types do not say that it uses ``make``."""
    found: _Message = parser(make, policy=_POLICY).parsebytes(data)
    return found


def _section(message: _Message, decoder: _Decoder) -> Iterator[str]:
    """Yield the parts of a message's text."""
    yield f"# {decoder.header(message, 'Subject') or '(no subject)'}"
    shown = {name: decoder.header(message, name) for name in _SHOWN}
    if lines := [f"{name}: {value}" for name, value in shown.items() if value]:
        yield "\n".join(lines)
    parts = _Parts(decoder)
    try:
        body = parts.read(message).text if message.is_read else None
    except RecursionError:
        body = None
    if body is None:
        yield f"(not read: more than {_MAX_PARTS:,} parts, or too deeply nested ones)"
        return
    if body:  # a heading in it is not one of the mailbox
        yield escaped(clean(body))
    if parts.attached:
        yield f"Attachments: {', '.join(map(one_line, parts.attached))}"


@define
class _Decoder:
    """Decodes headers and bodies. Bytes without a known character set are UTF-8, or else a guess: Windows-1252."""

    _is_guessed: bool = field(default=False, init=False)

    @property
    def metadata(self) -> Mapping[str, str]:
        """The metadata that says that an encoding was guessed; empty if none was."""
        return {"encoding": _WESTERN} if self._is_guessed else {}

    def header(self, message: Any, name: str) -> str:
        """Return a header on one line; what cannot be decoded as it was written."""
        given = next((str(given) for key, given in message.raw_items() if key.lower() == name.lower()), "")
        try:
            data = given.encode("utf-8", "surrogateescape")  # the parser of messages keeps other bytes in this way
            if (guessed := self._guessed(data)) is None:
                return one_line(str(message.get(name, "")))
            return one_line(str(message.policy.header_factory(name, " ".join(guessed.split()))))
        except Exception:  # noqa: BLE001  # the parser of headers raises anything
            return one_line(given)

    def content(self, part: Any) -> str:
        """Return the text of a part; bytes that its character set does not have are replaced."""
        data = part.get_payload(decode=True) or b""
        charset = "utf-8"
        with suppress(Exception):  # an unknown character set
            named = codecs.lookup(part.get_content_charset(charset)).name
            data.decode(named, "replace")
            charset = "utf-8" if named == "ascii" else named
        if charset == "utf-8" and (guessed := self._guessed(data)) is not None:
            return guessed
        return str(data.decode(charset, "replace"))

    def _guessed(self, data: bytes) -> str | None:
        """Return text in Windows-1252; None if it is UTF-8, or was and is damaged."""
        with suppress(UnicodeDecodeError):
            data.decode("utf-8")
            return None
        with suppress(UnicodeDecodeError):
            text = data.decode(_WESTERN)
            if data.decode("utf-8", "ignore").isascii():
                self._is_guessed = True
                return text
        return None


@define
class _Body:
    text: str = ""
    is_plain: bool = True


@define
class _Parts:
    """Reads the parts of a message, and notes what is attached, which is not read."""

    decoder: _Decoder
    attached: list[str] = field(factory=list)
    _number: int = field(default=0, init=False)

    def read(self, part: Any) -> _Body:
        """Return the text of a part: one of alternatives, or all of its parts in their order."""
        self._number += 1
        kind, file = part.get_content_type(), _file_of(part)
        is_whole = self._number == 1  # a message is not its own attachment
        if (is_whole or not file) and part.get_content_maintype() == "multipart" and part.is_multipart():
            bodies = [body for body in map(self.read, part.get_payload()) if body.text]
            if kind == "multipart/alternative":
                return next((body for body in bodies if body.is_plain), bodies[0] if bodies else _Body())
            return _Body("\n\n".join(body.text for body in bodies), all(body.is_plain for body in bodies))
        if not file and kind in {"text/plain", "text/html"}:
            is_plain, text = kind == "text/plain", self.decoder.content(part)
            return _Body((text if is_plain else markdown_of(text)).strip(), is_plain)
        self.attached.append(file or self._subject_of(part) or kind)
        return _Body()

    def _subject_of(self, part: Any) -> str:
        """Return the subject of an attached message; empty if it has none."""
        if part.get_content_type() != "message/rfc822" or not part.is_multipart():
            return ""
        return self.decoder.header(part.get_payload(0), "Subject")


def _file_of(part: Any) -> str:
    with suppress(Exception):  # as above
        return part.get_filename() or ("attachment" if part.get_content_disposition() == "attachment" else "")
    return "attachment"


def _moment(message: EmailMessage, decoder: _Decoder) -> datetime | None:
    try:
        moment = parsedate_to_datetime(decoder.header(message, "Date"))
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
