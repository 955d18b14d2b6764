"""The hook implementations of klaw-sessions: two sources of transcripts and an extension. Factories import the rest."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from klaw_core import Component, ComponentContext, NoOptions, hookimpl
from klaw_sessions.options import SessionOptions

if TYPE_CHECKING:
    from klaw_sessions.extension import Sessions
    from klaw_sessions.source import TranscriptSource


def _claude_code(options: SessionOptions, _context: ComponentContext) -> TranscriptSource:
    from klaw_sessions.claude_code import CLAUDE_CODE
    from klaw_sessions.source import TranscriptSource

    return TranscriptSource.of(CLAUDE_CODE, options)


def _codex(options: SessionOptions, _context: ComponentContext) -> TranscriptSource:
    from klaw_sessions.codex import CODEX
    from klaw_sessions.source import TranscriptSource

    return TranscriptSource.of(CODEX, options)


def _sessions(_options: NoOptions, context: ComponentContext) -> Sessions:
    from klaw_sessions.extension import Sessions
    from klaw_sessions.failures import FailureLog

    return Sessions(FailureLog.of(context.data_dir))


@hookimpl
def klaw_extensions() -> Iterable[Component[NoOptions, Sessions]]:
    """Yield the extension ``sessions``."""
    yield Component("sessions", NoOptions, _sessions, api=2, summary="failures of agents' hooks")


@hookimpl
def klaw_sources() -> Iterable[Component[SessionOptions, TranscriptSource]]:
    """Yield the transcripts of Claude Code and of Codex."""
    yield Component("claude-code", SessionOptions, _claude_code, api=2, summary="the transcripts of Claude Code")
    yield Component("codex", SessionOptions, _codex, api=2, summary="the transcripts of Codex")
