"""What is left of a forgotten text in the files of a home (``homes.py``)."""

from klaw_core.values.text import text_hash

# FTS5 shares the beginnings of neighbouring words: the end of the word is what must not be found.
WORD = "xylophonium"
END = b"ophonium"


def left_behind(home) -> list[str]:
    """Return the files that hold the word."""
    files = (path for path in (home.root / "data").rglob("*") if path.is_file())
    return sorted(path.name for path in files if END in path.read_bytes())


def database(home) -> bytes:
    return b"".join(path.read_bytes() for path in (home.root / "data").rglob("klaw.db*"))


def digests(home, *texts):
    """Return which of these texts the database still has the hash of."""
    found = database(home)
    return {text for text in texts if bytes.fromhex(text_hash(text)) in found}
