"""A timeline of facts as an SVG: a row for each, a bar from when it began to be true until it ended."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from html import escape

from klaw_facts.validity import validity
from klaw_facts.values import Fact

_LEFT, _CHART, _RIGHT, _TOP, _ROW, _BAR = 230, 520, 50, 46, 34, 18
_LABEL_CHARACTERS = 30
_TICKS = 5
_NOT_IN_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufffe\uffff]")
_STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#24292f}.d{font-size:11px;fill:#57606a}.g{stroke:#d0d7de}"
    ".now{fill:#1f6feb}.was{fill:#9aa4b0}.no{fill:none;stroke:#9aa4b0;stroke-dasharray:4 3}"
)


def draw_timeline(facts: Sequence[Fact], now: datetime | None = None) -> str:
    """Return a timeline of facts, in their order. What is true now is blue, what was retracted is only an outline."""
    now = now or datetime.now(UTC)
    begins = [_begin(fact, now) for fact in facts]
    first = min(begins, default=now)
    last = max([now, *begins, *(fact.valid_to for fact in facts if fact.valid_to is not None)])
    span = max(last - first, timedelta(days=1))
    height = _TOP + _ROW * len(facts) + 16
    parts = [*_axis(first, span, height)]
    for number, (fact, begin) in enumerate(zip(facts, begins, strict=True)):
        parts += _row(fact, begin, now, (first, span), _TOP + _ROW * number)
    width = _LEFT + _CHART + _RIGHT
    box = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    body = "\n".join(parts)
    background = f'<rect width="{width}" height="{height}" fill="#fff"/>'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {box}>\n<style>{_STYLE}</style>\n{background}\n{body}\n</svg>\n'


def _escaped(text: str) -> str:
    """Return a text as XML can hold it: there is no way to write control characters."""
    return escape(_NOT_IN_XML.sub("\N{REPLACEMENT CHARACTER}", text))


def _begin(fact: Fact, now: datetime) -> datetime:
    return fact.valid_from or fact.created_at or now


def _axis(first: datetime, span: timedelta, height: int) -> Iterator[str]:
    """Yield lines of equal distance with their days; days that would stand there twice are left out."""
    shown = ""
    for number in range(_TICKS):
        day = (first + span * number / (_TICKS - 1)).date().isoformat()
        x = _LEFT + _CHART * number / (_TICKS - 1)
        yield f'<line class="g" x1="{x:.1f}" y1="28" x2="{x:.1f}" y2="{height - 10}"/>'
        if day != shown:
            yield f'<text class="d" x="{x:.1f}" y="20" text-anchor="middle">{day}</text>'
        shown = day


def _row(fact: Fact, begin: datetime, now: datetime, scale: tuple[datetime, timedelta], top: int) -> Iterator[str]:
    first, span = scale
    end = fact.valid_to or max(now, begin)
    left = _LEFT + _CHART * ((begin - first) / span)
    width = max(_CHART * ((end - begin) / span), 3)
    label = " ".join((fact.value or fact.text).split())
    short = label if len(label) <= _LABEL_CHARACTERS else f"{label[: _LABEL_CHARACTERS - 1]}…"
    kind = "no" if fact.retracted_at or fact.is_archived else "now" if fact.is_valid_at(now) else "was"
    told = f"{fact.subject}: {fact.text} ({validity(fact)}, {fact.id})"
    yield f"<g><title>{_escaped(told)}</title>"
    yield f'<text x="{_LEFT - 12}" y="{top + _BAR - 4}" text-anchor="end">{_escaped(short)}</text>'
    yield f'<rect class="{kind}" x="{left:.1f}" y="{top}" width="{width:.1f}" height="{_BAR}" rx="3"/></g>'
