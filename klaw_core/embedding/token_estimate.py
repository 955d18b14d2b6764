"""Estimate token counts for embedders without an accessible tokenizer."""

import re
from collections.abc import Sequence

# Up to five Latin letters or digits of one run, or one other character that is not white space. Word-piece and
# byte-pair tokenizers split text at the ends of such runs before they look at their vocabulary.
_TOKEN = re.compile(r"[A-Za-z0-9]{1,5}|\S")


def estimate_tokens(texts: Sequence[str], /) -> list[int]:
    """Estimate each text's token count: one per five letters of a word, one per other character.

    The estimate is too high rather than too low for every language in common vocabularies, so that a text that seems
    to fit does fit. It is subadditive, as ``Embedder.count_tokens`` must be.
    """
    return [len(_TOKEN.findall(text)) for text in texts]
