"""Where documents come from, and back from a result to its document."""
