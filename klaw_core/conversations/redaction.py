"""Redaction of messages before they reach klaw.db: API keys, tokens, and the user's own patterns."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any

from attrs import define, field

from klaw_core.values.config import ConversationSettings
from klaw_core.values.text import text_hash

#: Replaces a secret.
REDACTED = "[redacted]"
#: Replaces the whole text if a pattern times out, so that no secret in it is shown.
UNREADABLE = "[redacted: a pattern took too long]"
_TIMEOUT_SECONDS = 0.5
_CHARACTERS_PER_SECOND = 500_000

# A key starts where no ASCII letter, digit or underscore precedes it; Chinese text has no space before a key. It also
# starts after an escape in JSON or in a URL, which may end with a letter: tools return JSON, with "\\n" as line end.
_BEGINS = r"(?:(?<![A-Za-z0-9_])|(?<=\\[bfnrt])|(?<=\\u[0-9A-Fa-f]{4})|(?<=%[0-9A-Fa-f]{2}))"
_ENDS = r"(?![A-Za-z0-9_])"

_GITHUB = rf"{_BEGINS}(?:gh[pousr]_[A-Za-z0-9]{{36,}}|github_pat_[A-Za-z0-9_]{{22,}})"
# Telegram bots. Digits are common, so a lookahead for the whole token keeps long runs of digits fast.
_TELEGRAM = rf"(?=[0-9]{{8,10}}:[A-Za-z0-9_-]{{35}}{_ENDS}){_BEGINS}[0-9]{{8,10}}:[A-Za-z0-9_-]{{35}}"
_URL = r"(?<=://)[^/\s:@]{1,100}:[^/\s@]{1,100}(?=@)"
# Slow patterns, each with a looser one that is searched first. If the looser one is not found, the pattern cannot match
# either. The looser pattern takes a fifth to a thirtieth of the time.
_LOOSER = {
    _GITHUB: r"g(?:h[pousr]|ithub_pat)_",
    _TELEGRAM: r"[0-9]:[A-Za-z0-9_-]{35}",
    _URL: r"://[^/\s:@]{1,100}:[^/\s@]{1,100}@",
}

#: The documented formats of keys and tokens, each recognizable by its prefix or shape.
BUILTIN_PATTERNS = (
    rf"{_BEGINS}sk-[A-Za-z0-9_-]{{20,}}",  # OpenAI, Anthropic
    _GITHUB,
    rf"{_BEGINS}glpat-[A-Za-z0-9_-]{{20,}}",  # GitLab
    rf"{_BEGINS}(?:AKIA|ASIA)[0-9A-Z]{{16}}{_ENDS}",  # AWS
    rf"{_BEGINS}AIza[0-9A-Za-z_-]{{35}}",  # Google
    rf"{_BEGINS}xox[a-z]-[A-Za-z0-9-]{{10,}}",  # Slack
    rf"{_BEGINS}(?:sk|rk|pk)_(?:live|test)_[0-9A-Za-z]{{16,}}",  # Stripe
    rf"{_BEGINS}hf_[A-Za-z0-9]{{30,}}",  # Hugging Face
    rf"{_BEGINS}npm_[A-Za-z0-9]{{36}}{_ENDS}",
    rf"{_BEGINS}pypi-[A-Za-z0-9_-]{{50,}}",
    _TELEGRAM,
    rf"{_BEGINS}eyJ[A-Za-z0-9_-]{{10,}}\.[A-Za-z0-9_-]{{10,}}\.[A-Za-z0-9_-]{{10,}}",  # JSON Web Token
    rf"(?i){_BEGINS}bearer(?:[ ]+|%20|\+)\K[A-Za-z0-9._~+/-]{{20,}}=*",
    _URL,  # a password in a URL
    r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----(?s:.*?)(?:-----END [A-Z ]{0,40}PRIVATE KEY-----|\Z)",
)
_BUILTIN = frozenset(BUILTIN_PATTERNS)

# Is found in every text in which one of the patterns above matches, and in few others: one pass over a text instead of
# one for each pattern. Each branch begins with a character that is rare in texts.
_HINT = re.compile(
    r"_(?:(?<=gh[pousr]_)|(?<=github_pat_)|(?<=hf_)|(?<=npm_)|(?<=_live_)|(?<=_test_))[0-9A-Za-z_]{16}"
    r"|-(?:(?<=sk-)|(?<=glpat-)|(?<=xox[a-z]-)|(?<=pypi-))[0-9A-Za-z_-]{10}"
    r"|-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----"
    r"|A(?:KIA|SIA)[0-9A-Z]{16}|AIza[0-9A-Za-z_-]{35}"
    r"|J(?<=eyJ)[0-9A-Za-z_-]{10}"
    r"|:(?<=[0-9]:)[0-9A-Za-z_-]{35}"
    r"|://[^/:@]{1,100}:[^/@]{1,100}@"
    r"|b[Ee][Aa][Rr][Ee][Rr](?:[ ]|%20|\+)|B[Ee][Aa][Rr][Ee][Rr](?:[ ]|%20|\+)"
)


@define(frozen=True, slots=False)
class Redactor:
    """Replaces everything that matches a pattern of the library ``regex``.

    If a pattern takes longer than half a second, the whole text is replaced.
    """

    patterns: Sequence[str] = field(default=BUILTIN_PATTERNS, converter=tuple)

    @cached_property
    def recipe(self) -> str:
        """A hash of the patterns; rows with another recipe must be made again."""
        return text_hash("\0".join((REDACTED, *self.patterns)))[:16] if self.patterns else ""

    def text(self, text: str) -> str:
        """Return the text with every match replaced."""
        return self._replaced(text, REDACTED)

    def lines(self, text: str) -> str:
        """Return the text with every match replaced and line numbers preserved. Longer texts have a longer timeout."""
        found = self._replaced(text, _replace_lines, max(_TIMEOUT_SECONDS, len(text) / _CHARACTERS_PER_SECOND))
        return found if found != UNREADABLE else UNREADABLE + "\n" * text.count("\n")

    def _replaced(self, text: str, by: str | Callable[[Any], str], timeout: float = _TIMEOUT_SECONDS) -> str:
        has_hint = None
        for pattern in self.patterns if text else ():
            if pattern in _BUILTIN:
                has_hint = _HINT.search(text) is not None if has_hint is None else has_hint
                if not has_hint:
                    continue
            looser, compiled = _compiled(pattern)
            try:
                if looser is not None and not looser.search(text, timeout=timeout):
                    continue
                text, count = compiled.subn(by, text, timeout=timeout)
            except TimeoutError:
                return UNREADABLE
            has_hint = None if count else has_hint
        return text

    def metadata(self, value: Mapping[str, Any]) -> dict[str, Any]:
        """Return a JSON object in which all strings except keys are redacted, at any depth."""
        return {key: self._value(item) for key, item in value.items()}

    def _value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return self.metadata(value)
        return [self._value(item) for item in value] if isinstance(value, list) else value


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> tuple[Any, Any]:
    """Return a looser pattern to search first (or None), and the pattern."""
    import regex  # type: ignore[import-untyped]  # it ships no types; few texts need it

    looser = _LOOSER.get(pattern)
    return None if looser is None else regex.compile(looser), regex.compile(pattern)


def _replace_lines(match: Any) -> str:
    secret: str = match[0]
    return REDACTED + "\n" * secret.count("\n")


def redactor_of(settings: ConversationSettings) -> Redactor:
    """Return the redactor for the configured patterns."""
    patterns = (*(BUILTIN_PATTERNS if settings.redact_secrets else ()), *settings.redact)
    return Redactor(patterns)
