"""The hook implementations of klaw-sessions: sources of transcripts and an extension. Factories import the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import TYPE_CHECKING

from klaw_core import Component, ComponentContext, NoOptions, hookimpl
from klaw_sessions.options import SessionOptions

if TYPE_CHECKING:
    from klaw_sessions.archive import SessionSource
    from klaw_sessions.extension import Sessions
    from klaw_sessions.source import TranscriptSource


def _transcripts(module: str, name: str) -> Callable[[SessionOptions, ComponentContext], TranscriptSource]:
    def make(options: SessionOptions, _context: ComponentContext) -> TranscriptSource:
        from klaw_sessions.source import TranscriptSource

        return TranscriptSource.of(getattr(import_module(module), name), options)

    return make


def _archive(module: str, name: str) -> Callable[[SessionOptions, ComponentContext], SessionSource]:
    def make(options: SessionOptions, _context: ComponentContext) -> SessionSource:
        from klaw_sessions.archive import SessionSource

        return SessionSource.of(getattr(import_module(module), name), options)

    return make


#: The agents: the name of the source, its factory, and what the user reads of it.
_AGENTS = (
    ("claude-code", _transcripts("klaw_sessions.claude_code", "CLAUDE_CODE"), "the transcripts of Claude Code"),
    ("codex", _transcripts("klaw_sessions.codex", "CODEX"), "the transcripts of Codex"),
    ("copilot-cli", _transcripts("klaw_sessions.copilot", "COPILOT_CLI"), "the transcripts of Copilot CLI"),
    ("cursor", _transcripts("klaw_sessions.cursor", "CURSOR"), "the transcripts of Cursor's agent"),
    ("gemini-cli", _transcripts("klaw_sessions.gemini_cli", "GEMINI_CLI"), "the transcripts of Gemini CLI"),
    ("jsonl", _transcripts("klaw_sessions.plain", "PLAIN"), "transcripts in JSON Lines: role, content, timestamp"),
    ("aider", _archive("klaw_sessions.aider", "AIDER"), "the chats of Aider in your projects"),
    ("cline", _archive("klaw_sessions.cline", "CLINE"), "the sessions of Cline"),
    ("opencode", _archive("klaw_sessions.opencode", "OPENCODE"), "the sessions of OpenCode"),
)


def _sessions(_options: NoOptions, context: ComponentContext) -> Sessions:
    from klaw_sessions.extension import Sessions
    from klaw_sessions.failures import FailureLog

    return Sessions(FailureLog.of(context.data_dir))


@hookimpl
def klaw_extensions() -> Iterable[Component[NoOptions, Sessions]]:
    """Yield the extension ``sessions``."""
    yield Component("sessions", NoOptions, _sessions, api=2, summary="failures of agents' hooks")


@hookimpl
def klaw_sources() -> Iterable[Component[SessionOptions, TranscriptSource | SessionSource]]:
    """Yield the transcripts of each agent."""
    for name, make, summary in _AGENTS:
        yield Component(name, SessionOptions, make, api=2, summary=summary)
