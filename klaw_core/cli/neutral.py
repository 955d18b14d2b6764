"""Make untrusted text harmless for terminals, models, JSON, and tables that a spreadsheet opens.

The stream (:mod:`klaw_core.cli.streams`) applies :func:`neutral` to everything that is written to a terminal. The only
exception is text styled by rich: :class:`~klaw_core.cli.output.Output` cleans its parts before they are styled.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

#: Controls of C0 and C1 except line feed and tab, DEL, line separators, controls of direction, annotations.
CONTROLS = (
    *(code for code in range(32) if chr(code) not in "\n\t"),
    *range(127, 160),
    *(0x2028, 0x2029),
    *range(0x202A, 0x202F),
    *range(0x2066, 0x206A),
    *range(0xFFF9, 0xFFFC),
)
#: Direction marks of Arabic and Hebrew texts. The text is readable without them.
MARKS = (0x061C, 0x200E, 0x200F)
#: Everything that ends a line anywhere, except the line feed.
LINE_BREAKS = re.compile(r"\r\n?|[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")

#: Characters that nobody sees and models read, as the inside of a class of a pattern: spaces and joiners without a
#: width, fillers, selectors of variants, and tag characters, which are copies of ASCII. They can spell any text.
INVISIBLE = (
    r"\xad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0"
    r"\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_EMOJI = r"[\xa9\xae\u203c\u2049\u2100-\u27bf\u2900-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff]"
# Scripts in which joiners change what is read: Arabic, Syriac, N'Ko, those of India, Burma, Cambodia and Mongolia.
_JOINED = (
    r"[\u0600-\u0dff\u0f00-\u109f\u1780-\u17b3\u17b6-\u180a\u1810-\u18af\u1a20-\u1aff\u1b00-\u1bff\ua840-\ua8ff"
    r"\ua980-\ua9ff\uaa60-\uaaff\uabc0-\uabff\ufb50-\ufdff\ufe70-\ufefc\U00010a00-\U00011fff\U0001e900-\U0001e95f]"
)
# One of these is kept where a reader sees its effect; a further one behind it is not.
_NEEDED = (
    rf"(?<={_EMOJI})[\ufe0e\ufe0f]|(?<=[0-9#*])\ufe0f(?=\u20e3)|(?:(?<={_EMOJI})|(?<={_EMOJI}\ufe0f))\u200d(?={_EMOJI})"
    rf"|(?<={_JOINED})[\u200c\u200d]|(?<=[\u1820-\u18aa])[\u180b-\u180d\u180f]"
)
_INVISIBLE_OR_NEEDED = rf"({_NEEDED})|[{INVISIBLE}]"

_REMOVED = dict.fromkeys((*CONTROLS, *MARKS))
_TERMINAL = {**dict.fromkeys(CONTROLS, "\N{REPLACEMENT CHARACTER}"), **dict.fromkeys(MARKS, "")}
_ESCAPED_IN_JSON = re.compile("[" + "".join(map(re.escape, map(chr, (*CONTROLS[30:], *MARKS)))) + "\ud800-\udfff]")
_FORMULA = re.compile(r"[=+\-@\t\r]")


def neutral(text: str) -> str:
    """Replace characters that can control the terminal, and remove those that nobody sees; line breaks and tabs stay.

    What stays of the latter is as in :func:`visible`.
    """
    return _without_invisible(_harmless(text))


def neutral_parts(parts: Sequence[str]) -> list[str]:
    """Return the parts of one text as :func:`neutral` does: a joiner may be needed between two parts."""
    cleaned = [_harmless(part) for part in parts]
    whole = "".join(cleaned)
    if not _has_invisible(whole):
        return cleaned
    hidden = {match.start() for match in re.finditer(_INVISIBLE_OR_NEEDED, whole) if match[1] is None}
    done, found = 0, []
    for part in cleaned:
        found.append("".join(each for at, each in enumerate(part, start=done) if at not in hidden))
        done += len(part)
    return found


def visible(text: str) -> str:
    """Return a text for a model, without control characters and others that nobody sees.

    Every kind of line break is a line feed; tabs stay. Also a joiner stays in a script that needs it, and between two
    emoji, and so does the selector of a variant behind an emoji: U+200C, U+200D, U+FE0E, U+FE0F.
    """
    if text.isascii() and text.isprintable():
        return text
    return _without_invisible(LINE_BREAKS.sub("\n", text).translate(_REMOVED))


def visible_json(value: Any) -> Any:
    """Return JSON for a model: every text in it, also a key, as :func:`visible` returns it.

    Of keys that are then equal, the later ones get a number: ``name``, ``name (2)``.
    """
    if isinstance(value, str):
        return visible(value)
    if not isinstance(value, Mapping):
        return [visible_json(item) for item in value] if isinstance(value, list | tuple) else value
    made: dict[str, Any] = {key: None for key in value if visible(key) == key}
    for key, item in value.items():
        shown = name = visible(key)
        number = 2
        while name != key and name in made:
            name, number = f"{shown} ({number})", number + 1
        made[name] = visible_json(item)
    return made


def escaped_json(text: str) -> str:
    """Escape the characters in JSON that control a terminal or that nobody sees; they only occur in strings."""
    if text.isascii() and "\x7f" not in text:
        return text
    text = _ESCAPED_IN_JSON.sub(_escape, text)
    if not _has_invisible(text):
        return text
    return re.sub(_INVISIBLE_OR_NEEDED, lambda match: match[1] or _escape(match), text)


def csv_cell(text: str) -> str:
    """Return a CSV cell; text that a spreadsheet would treat as a formula is prefixed with an apostrophe."""
    return f"'{text}" if _FORMULA.match(text) else text


def one_line(text: str) -> str:
    """Return a text on one line, for lists with one name per line."""
    return " ".join(neutral(text).split("\n"))


def path_line(path: str) -> str:
    """Return a path on one line, for lists that programs read: what nobody sees in the name of a file stays."""
    return " ".join(_harmless(path).split("\n"))


def plain_lines(text: str) -> str:
    """Normalize line breaks to newlines, so that a margin can be added to every line."""
    return LINE_BREAKS.sub("\n", text)


def _harmless(text: str) -> str:
    return text.replace("\r\n", "\n").translate(_TERMINAL)


def _has_invisible(text: str) -> bool:
    return not text.isascii() and re.search(f"[{INVISIBLE}]", text) is not None


def _without_invisible(text: str) -> str:
    return re.sub(_INVISIBLE_OR_NEEDED, r"\1", text) if _has_invisible(text) else text


def _escape(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
