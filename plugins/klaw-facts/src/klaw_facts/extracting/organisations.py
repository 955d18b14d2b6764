"""Known employers, and names that say by themselves what they are: "Acme Ltd", "the University of Oslo"."""

from __future__ import annotations

from functools import cache

from klaw_facts.extracting.known import parts_of, without_accents
from klaw_facts.extracting.places import is_place
from klaw_words.lazy_patterns import lazy_pattern

# Legal forms, of https://en.wikipedia.org/wiki/List_of_legal_entity_types_by_country.
_LEGAL = lazy_pattern(
    r"(?:,? (?:inc|incorporated|ltd|limited|llc|llp|gmbh|ag|se|plc|corp|corporation|kgaa|n\.v|s\.a|s\.p\.a|spa|sarl|nv"
    r"|bv|oyj|asa|& co|and co|& co\. kg)\.?)+$"
)
_INSTITUTION = lazy_pattern(
    r".+ (?:university|institute of technology|medical cent(?:er|re)|hospital|airlines|airways"
    r"|(?:city|county|town|borough) council)|max planck institute.*|fraunhofer .+"
    r"|(?:.+ )?(?:central|national|federal|reserve|world|development|investment|savings|commercial|cooperative) bank"
    r"|ministry of (?:(?:the )?(?:interior|environment)|agriculture|culture|defen[cs]e|education"
    r"|energy|finance"
    r"|foreign affairs|health|housing|justice|labou?r|science|tourism|trade|transport)(?: .+)?"
)
# The University of Life and the City of God are nowhere, the West Bank is no bank.
_OF_PLACE = lazy_pattern(r"(?:university|city|bank) of (?:the )?(?P<last>.+)|(?P<first>.+) bank")
# Programs in which people work, too: "Я работаю в Zoom".
_PROGRAMS = """
1password adobe autodesk dropbox elastic facebook figma github gitlab instagram linkedin mongodb oracle salesforce sap
sas shopify slack snowflake square tiktok twitter youtube zoom
"""


def is_organisation(name: str, *, may_be_program: bool = False) -> bool:
    """Return whether a name is one of a known organisation, or says what it is.

    ``may_be_program``: the sentence may also tell of a program of this name; then it is none.
    """
    key = without_accents(name).casefold().removeprefix("the ")
    short = _LEGAL.sub("", key)
    if may_be_program and key in _PROGRAMS.split():
        return False
    if short in _known() or short != key or _INSTITUTION.fullmatch(key) is not None:
        return True
    named = _OF_PLACE.fullmatch(key)
    return named is not None and (named["first"] in _known() or _has_place(named["last"] or named["first"]))


def _has_place(words: str) -> bool:
    """Return whether the first words or the last ones are a known place: "California, Berkeley"."""
    parts = words.replace(",", "").title().split()
    return any(
        is_place(" ".join(part)) for length in range(1, len(parts) + 1) for part in (parts[:length], parts[-length:])
    )


@cache
def _known() -> frozenset[str]:
    return frozenset(name.casefold() for part in parts_of("organisations.txt", ";") for name in part)
