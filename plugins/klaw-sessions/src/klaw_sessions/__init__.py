"""Coding agents: their transcripts as sources of documents, and hooks that recall without being asked."""
