"""Conversations: append-only JSON Lines files, one per chat and day, from which the rows in klaw.db are derived."""
