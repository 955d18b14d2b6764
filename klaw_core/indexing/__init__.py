"""The index flow: a source in, an index that agrees with it out."""
