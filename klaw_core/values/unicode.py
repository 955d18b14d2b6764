"""Strings that cannot be encoded."""


def has_surrogates(text: str) -> bool:
    """Return whether the text contains a lone surrogate, which UTF-8 cannot encode."""
    return not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text)
