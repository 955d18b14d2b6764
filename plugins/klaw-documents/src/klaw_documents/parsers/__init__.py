"""The parsers of each kind of file, which run in a separate process."""
