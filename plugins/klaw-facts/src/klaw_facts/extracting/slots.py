"""Declared slots, such as name, home and deadline: the plain forms of statements, in English, Russian and Chinese.

A slot is taken from a message only if each sentence of it has a form that is known: a statement with a plausible value,
a time at most, and the end of the sentence; or a greeting, thanks, or one of a few others that change nothing. Whatever
else is said may make the statement somebody else's, or take it back: then it is in doubt, and there is no slot.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import lru_cache

from attrs import evolve, frozen

from klaw_facts.extracting import endings, forms, names, plain
from klaw_facts.extracting.organisations import is_organisation
from klaw_facts.extracting.places import is_place, key_of
from klaw_facts.extracting.sentences import Sentence, sentences
from klaw_facts.values import normalised
from klaw_words.dates import resolve
from klaw_words.lazy_patterns import lazy_pattern

# Words that refer to something else. Two sentences with "it" may be about different things, so neither ends the other.
_POINTERS = frozenset(
    re.findall(
        r"\w+",
        "it this that these those they them he she him her which what who one everything something anything all both mine "
        "ours он она оно они его её ее их это этот эта то тот та всё все 它 他 她 这 那 这个 那个",
    )
)
#: The connection of two clauses in one sentence.
CONNECTION = lazy_pattern(
    r"\s*[,;，；、]?\s+(?:and|but|so|и|а|но)\s+|\s*[,;:!]\s+|\s*[，；、]\s*(?:而且|并且)?|而且|并且", re.IGNORECASE
)
_ITEM = lazy_pattern(r"\s*(?:[-•]\s+)?")
_OTHER_LETTERS = lazy_pattern(r"[а-яё一-鿿]", re.IGNORECASE)
_VERB = lazy_pattern(
    r"(?:(?:also|now|currently|then|recently|just) )?(?:live|living|work|working|moved|started|left|quit|got|was born)\b",
    re.IGNORECASE,
)
_ZH_VERB = lazy_pattern(r"(?:现在)?(?:住在|搬到|在|就职于|是|叫)")
# Places that are more often something else, if they have no capital.
_OTHER_WORDS = "hope java mission mobile nice normal orange page paradise reading split victoria"
_MISSPELT = ("im ", "i m ", "ive ", "dont ", "s name")
_SPELLINGS = (
    (lazy_pattern(r"\bi ?m\b", re.IGNORECASE), "I'm"),
    (lazy_pattern(r"\bive\b", re.IGNORECASE), "I've"),
    (lazy_pattern(r"\bdont\b", re.IGNORECASE), "don't"),
    (lazy_pattern(r"\b(wife|husband|partner|girlfriend|boyfriend)s (?=name)", re.IGNORECASE), r"\1's "),
)
_NOTHING = lazy_pattern(r"[ ,.»«]*(?:right now|now|currently|at the moment|these days|工作|上班)?了?", re.IGNORECASE)
_PARTLY = lazy_pattern(
    r"\b(?:just|recently|finally|already|still|remotely|full[- ]time|part[- ]time|back|permanently)\b", re.IGNORECASE
)
_COMMON_NAME = lazy_pattern(f"{names.ENGLISH}|{names.RUSSIAN}")
_WORKS_IN = lazy_pattern(r"\bwork(?:ing)?(?: remotely)? in ", re.IGNORECASE)
_IN_PROGRAM = lazy_pattern(r"[а-яё一-鿿]|\bwork(?:ing)?(?: remotely)? in ", re.IGNORECASE)
# Names and addresses that stand for anybody's.
_PLACEHOLDER = lazy_pattern(
    r"\b(?:doe|mustermann|musterfrau|bloggs|lastname|surname)$|^(?:user|name|foo|bar|test|someone|you|(?:your|first|last|full)?[._]?name[._]?\w*|your[._]?email)@|@(?:your)?(?:company|domain)\.",
    re.IGNORECASE,
)
_FEW_DIGITS = 2
_A_PHONE = lazy_pattern("phone|mobile|cell|телефон|手机|电话", re.IGNORECASE)
_DAY_OR_HOURS = lazy_pattern(
    r"\d{4}-\d{1,2}-\d{1,2}|\d{1,2}[- ]\d{1,2}[- ]\d{4}|\d{1,2} ?\d\d[ -]+\d{1,2} ?\d\d|\d{1,3}(?: 000)+"
)
_IN_ORDER = "0123456789012345678909876543210"
_PROGRAM = lazy_pattern(r"^(?: {4}|\t)", re.MULTILINE)
_ANY_DAY = datetime(2000, 1, 1, tzinfo=UTC)
_MAX_CHARACTERS = 600
_MAX_SENTENCES = 8
_MAX_CLAUSES = 6
_MAX_CLAUSE_CHARACTERS = 160


@frozen
class Stated:
    """The slot and the value that characters ``start`` to ``end`` of a text state: ``said``.

    ``time``: the words that say when; empty if there are none. ``is_event``: it happened then; otherwise it is so since
    then. ``is_planned``: it says what will be true. ``is_ended``: it says that this is true no more; no value then
    means that none of the slot is.
    """

    slot: str
    value: str
    start: int
    end: int
    said: str
    time: str = ""
    is_event: bool = False
    is_planned: bool = False
    is_ended: bool = False

    @property
    def slot_and_value(self) -> tuple[str, str] | None:
        """The slot and the value that a fact with this statement has; None for what is no more."""
        return None if self.is_ended else (self.slot, self.value)

    def ends(self, value: str) -> bool:
        """Return whether it says that a value of its slot is true no more, perhaps with fewer words: "Anna" ends "Anna Berg"."""
        if not self.is_ended:
            return False
        mine = _words_of(self.value)
        return _words_of(value)[: len(mine)] == mine


def slot_of(text: str) -> tuple[str, str] | None:
    """Return the slot and the value that a text states; None if it does not clearly state one."""
    found = stated_in(text)
    return None if found is None or found.is_planned else found.slot_and_value


def stated_in(text: str) -> Stated | None:
    """Return the first that a text states, also if it is only planned; None if it does not clearly state a slot."""
    return next(iter(all_stated_in(text)), None)


def ended_in(text: str) -> tuple[Stated, ...]:
    """Return what a text says to be so no more."""
    return tuple(item for item in all_stated_in(text) if item.is_ended)


@lru_cache(256)
def all_stated_in(text: str) -> tuple[Stated, ...]:
    """Return everything that a whole message states; nothing if any part of it is of a form that is not known.

    Nothing, too, if it states two values of a slot.
    """
    if len(text) > _MAX_CHARACTERS or _PROGRAM.search(text):
        return ()
    found: list[Stated] = []
    place = count = 0
    for count, sentence in enumerate(sentences(text), 1):
        clauses = _clauses_of(sentence)
        if clauses is None or count > _MAX_SENTENCES or not _ITEM.fullmatch(text, place, sentence.start):
            return ()
        found += clauses
        place = sentence.end
    values = {(item.slot, item.is_ended, normalised(item.value)): item for item in reversed(found)}
    is_one_each = len({(slot, is_ended) for slot, is_ended, _ in values}) == len(values)
    return tuple(reversed(values.values())) if is_one_each and not text[place:].strip() else ()


def statements(text: str) -> tuple[str, ...]:
    """Return the parts of a sentence that state different slots; the whole sentence if it states fewer than two.

    "My name is Ada and I live in Paris" states two. Each part reaches to the next one, so that only the connecting
    words between them are left out.
    """
    found = [item for item in all_stated_in(text) if not item.is_planned]
    if len(found) < 2:  # noqa: PLR2004  # two statements
        return (text,)
    starts = [0, *(item.start for item in found[1:])]
    ends = [*(item.end for item in found[:-1]), len(text)]
    return tuple(text[start:end] for start, end in zip(starts, ends, strict=True))


def _clauses_of(sentence: Sentence) -> list[Stated] | None:
    """Return what the clauses of a sentence state, with their places in its message; None if one is not known."""
    text = plain.without_end(sentence.text)
    cuts = [*CONNECTION.finditer(text)]
    if len(cuts) >= _MAX_CLAUSES:
        return None
    begins, ends = [0, *(cut.end() for cut in cuts)], [*(cut.start() for cut in cuts), len(text)]
    found = _parsed(text, begins, ends)
    if found is None:
        return None
    return [evolve(item, start=item.start + sentence.start, end=item.end + sentence.start) for item in found]


def _parsed(text: str, begins: list[int], ends: list[int], *, is_joined: bool = False) -> list[Stated] | None:
    """Return what clauses state that begin and end at these places; a clause is as long as it can be.

    ``is_joined``: they follow others, and may share their subject: "I live in Lyon and work at Acme".
    """
    if not begins:
        return []
    for count in range(len(begins), 0, -1):
        start, end = begins[0], ends[count - 1]
        if end - start > _MAX_CLAUSE_CHARACTERS:
            continue
        clause = text[start:end]
        stated = _all_stated(clause)
        if not stated and is_joined and (whole := _with_subject(clause)):
            stated = _all_stated(whole)
        if not stated and not plain.is_beside(clause):
            continue
        rest = _parsed(text, begins[count:], ends[count:], is_joined=True)
        if rest is not None:
            return [*(evolve(item, start=start, end=end, said=clause) for item in stated), *rest]
    return None


def _with_subject(clause: str) -> str:
    """Return a clause without a subject with that of the clauses before it, if it is the speaker."""
    if _VERB.match(clause) is not None:
        return f"I {clause}"
    return f"我{clause}" if _ZH_VERB.match(clause) is not None else ""


def _spelt(clause: str) -> Iterator[str]:
    """Yield a clause as it may be spelt with care, if it has no apostrophes, or no capitals or only them."""
    small = clause.casefold()
    has_case = clause not in {clause.lower(), clause.upper()}
    if any(sign in small for sign in _MISSPELT):
        for pattern, spelling in _SPELLINGS:
            clause = pattern.sub(spelling, clause)
        if has_case:
            yield clause
    if not has_case:
        yield clause.title()
        yield clause.upper()


def _all_stated(clause: str) -> list[Stated]:
    """Return what a clause states, or says to be so no more."""
    stated = _stated(clause)
    if stated is None:
        stated = next(filter(_is_sure, map(_stated, _spelt(clause))), None)
    if stated is not None:
        return [stated]
    slots, time = endings.slots_without_value(clause)
    ended = [Stated(slot, "", 0, len(clause), clause, time, is_event=True) for slot in slots]
    if not ended:
        ended = [item for item in map(_stated, endings.denied(clause)) if item is not None and _is_bare(item)][:1]
    return [evolve(item, end=len(clause), said=clause, is_ended=True) for item in ended]


def _is_sure(stated: Stated | None) -> bool:
    """Return whether a value without its capitals is no other word, as far as that is known: "i moved to mobile"."""
    if stated is not None and stated.slot == "timezone":
        return "zone" in stated.said.casefold()
    if stated is None or stated.slot not in {"name", "home"}:
        return stated is not None
    if stated.slot == "name":
        is_common = _COMMON_NAME.fullmatch(stated.value) is not None
        return is_common and (" " not in stated.value or "i'm" not in stated.said.casefold())
    return stated.value.casefold() not in _OTHER_WORDS.split()


def _is_bare(stated: Stated) -> bool:
    """Return whether a statement has nothing but its value and a time: "not at Acme full-time" denies no employer."""
    before, _, rest = stated.said.rpartition(stated.value)
    return not _PARTLY.search(before) and _NOTHING.fullmatch(rest.replace(stated.time, "", 1)) is not None


def _words_of(value: str) -> list[str]:
    """Return the words of a value without what it is in, and without the endings of cases."""
    return key_of(normalised(value).partition(",")[0]).split()


def _stated(clause: str) -> Stated | None:
    """Return what a clause states that has one of the plain forms as a whole."""
    small = clause.casefold()
    spans: dict[str, list[tuple[int, int, str]]] = {}
    with_a_word = {place for word, places in forms.places_of_words().items() if word in small for place in places}
    for slot, kind, pattern in map(forms.patterns().__getitem__, sorted(with_a_word)):
        if kind not in spans:
            spans[kind] = [*_spans(clause, kind)]
        for start, end, time in spans[kind]:
            match = pattern.fullmatch(clause, start, end)
            found = None if match is None else _stated_by(match, slot, kind, time)
            if found is not None:
                return evolve(found, start=0, end=len(clause), said=clause)
    return None


def _spans(clause: str, kind: str) -> Iterator[tuple[int, int, str]]:
    """Yield the parts of a clause that may be a form of a kind, with the words of the time around it."""
    start, end = plain.end_of_lead(clause), len(clause)
    if kind in forms.TIMES:
        before, after = forms.around(kind)
        tail, head = after.search(clause, start), before.match(clause, start)
        time = "" if tail is None else tail["time"] or tail["time2"] or ""
        if head is not None:
            if tail is not None and not time:
                yield head.end(), tail.start(), head["before"] or ""
            yield head.end(), end, head["before"] or ""
        if tail is not None and (time or kind != "plan"):
            yield start, tail.start(), time
    if kind != "plan":
        yield start, end, ""


def _stated_by(match: re.Match[str], slot: str, kind: str, time: str) -> Stated | None:
    """Return what a match of a form states; None if its value is not one of the slot."""
    groups = match.groupdict()
    value = (groups.get("value") or groups["value2"]).strip(" ,.«»")
    topic = normalised(groups.get("topic") or "").strip(" -:") or "main"
    if not _is_plausible(slot, value, groups, match[0]) or (slot.endswith(":") and topic in _POINTERS):
        return None
    name = f"{slot}{topic}" if slot.endswith(":") else slot
    time = time or groups.get("time") or groups.get("before") or ""
    return Stated(name, value, *match.span(), match[0], time, kind.endswith("event"), kind.endswith("plan"))


def _is_plausible(slot: str, value: str, groups: dict[str, str | None], said: str) -> bool:
    """Return whether a value is known to be one of its slot, or says so: a home is a known place, a date is a day."""
    if slot == "home":
        return is_place(value)
    if slot in {"name", "partner"}:
        return names.is_name(value) and not _PLACEHOLDER.search(value)
    if slot in {"email", "phone"}:
        return not _PLACEHOLDER.search(value) and (
            slot == "email" or not (_is_invented(value) or _is_time(value, said))
        )
    if slot in {"birthday", "deadline:"}:
        return resolve(value, _ANY_DAY) is not None
    return _is_theirs(slot, value, groups, said)


def _is_theirs(slot: str, value: str, groups: dict[str, str | None], said: str) -> bool:
    """Return whether an employer, or that of a title, is one, and a port is that of a program, not of Tom."""
    if slot == "port:":
        return not any(map(names.is_given, (groups["topic"] or "").split()))
    where, firm = groups.get("where"), groups.get("firm")
    if slot == "job_title":
        return firm is None or is_organisation(firm)
    return slot != "employer" or (_is_employer(value, said) and (where is None or is_place(where)))


def _is_invented(phone: str) -> bool:
    """Return whether a phone number is one of those that stand for any: of two digits, or of all of them in order."""
    digits = "".join(filter(str.isdigit, phone))
    return len(set(digits)) <= _FEW_DIGITS or digits in _IN_ORDER


def _is_time(phone: str, said: str) -> bool:
    """Return whether digits may be a day or hours: "call me at 10 30 - 11 30"; a sentence about a phone has a number."""
    return _A_PHONE.search(said) is None and _DAY_OR_HOURS.fullmatch(phone) is not None


def _is_employer(value: str, said: str) -> bool:
    """Return whether a value is a known organisation; in Russian and Chinese one also works "in" a program."""
    if not value.isascii() and _OTHER_LETTERS.search(value):  # as their forms have it
        return not is_place(value)
    if _WORKS_IN.search(said) is not None and is_place(value.removeprefix("City of ")):
        return False
    return is_organisation(value, may_be_program=_IN_PROGRAM.search(said) is not None)
