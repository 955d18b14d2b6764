"""What was said, kept as JSON lines: a file for each chat and day, append-only, the truth that klaw.db mirrors."""
