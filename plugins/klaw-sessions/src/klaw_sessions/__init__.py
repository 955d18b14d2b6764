"""Coding agents: their transcripts as sources of documents, and hooks that give them memory without a tool call."""
