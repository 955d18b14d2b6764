"""Strings that Python can hold and no file can."""


def has_surrogates(text: str) -> bool:
    """Return whether the text holds a lone surrogate, which no file and no database can."""
    return not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text)
