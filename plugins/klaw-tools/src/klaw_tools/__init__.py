"""Tools for language models, and the context of a prompt."""

from klaw_tools.tools import run_tool

__all__ = ["run_tool"]
