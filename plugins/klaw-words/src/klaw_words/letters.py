"""Letters that a search does not tell apart, because people write one for the other.

- Latin letters that Unicode does not decompose, and the ASCII letters for them, are those of the transform
  ``Latin-ASCII`` in CLDR (https://github.com/unicode-org/cldr/blob/main/common/transforms/Latin-ASCII.xml): ``ł`` is
  found as ``l``. Letters that Unicode decomposes (``é``) are the tokenizer's.
- A Greek letter loses its marks: capitals are written without accents (``Αθήνα``, ``ΑΘΗΝΑ``).
- An Arabic letter loses its hamza or madda (``أ``, ``إ``, ``آ``: ``ا``), which Unicode decomposes, too. ``ة`` and ``ى``
  are typed as ``ه`` and ``ي``, as in Lucene's normalisation of Arabic; Persian ``ی`` and ``ک`` are other code points
  for ``ي`` and ``ك``.

Everything else stays apart: Cyrillic ``й`` and ``и``, and kana with and without their marks, are different letters.
"""

from __future__ import annotations

import unicodedata

# Folded letters only, so small ones.
_LATIN = {
    "æ": "ae",
    "œ": "oe",
    "þ": "th",
    "ƕ": "hv",
    "ƣ": "oi",
    **dict(zip("ðøđħıłŋĸŧƀȼǥɇɉɍⱥⱦɏƶɨʉ", "dodhilnqtbcgejratyziu", strict=True)),
    **dict(zip("ɓƈɖɗɛƒɠɦƙɲƥʠƭʈʋⱳƴȥⱪⱬƚ", "bcddefghknpqttvwyzkzl", strict=True)),
}
_ARABIC = {"ة": "ه", "ى": "ي", "ی": "ي", "ې": "ي", "ک": "ك", "ٱ": "ا", "ہ": "ه", "ھ": "ه"}  # these letters are meant
_MARKED = ("\u0370", "\u03ff"), ("\u1f00", "\u1fff"), ("\u0600", "\u06ff")


def plain_letter(character: str, /) -> str:
    """Return the letter or letters as which a folded character is searched for; itself in most cases."""
    if character in _LATIN:
        return _LATIN[character]
    if not any(first <= character <= last for first, last in _MARKED):
        return character
    letter = unicodedata.normalize("NFD", character)[0]
    return _ARABIC.get(letter, letter)
