"""The estimate of tokens is the count of a regular expression, and adds up over pieces between white space."""

import re
import sys

from hypothesis import given
from hypothesis import strategies as st

from klaw_core import estimate_tokens

_TOKEN = re.compile(r"[A-Za-z0-9]{1,5}|\S")
_texts = st.text(
    st.one_of(st.characters(), st.sampled_from("aZ09 \t\n\u00a0\u3000\u2028\x1c\x85é日🙂.,-")), max_size=60
)


@given(_texts)
def test_an_estimate_counts_five_letters_or_one_other_character_as_a_token(text):
    assert estimate_tokens([text]) == [len(_TOKEN.findall(text))]


def test_every_character_agrees_with_the_regular_expression():
    every = [f"ab{chr(code)}cdefgh" for code in range(sys.maxunicode + 1)]
    assert estimate_tokens(every) == [len(_TOKEN.findall(text)) for text in every]


@given(st.lists(_texts, max_size=5), st.sampled_from([" ", "\n", "\n\n  ", "\u3000"]))
def test_estimates_of_words_add_up(pieces, between):
    assert estimate_tokens([between.join(pieces)])[0] == sum(estimate_tokens(pieces))
