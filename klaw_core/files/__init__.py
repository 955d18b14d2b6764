"""The files that people own: where they are, how they are written and read."""
