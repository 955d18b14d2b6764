"""Statements that a value is one no more: "I no longer live in Lyon", "I quit my job at Acme", 我不在华为工作了.

Each of them says of a plain statement that it is not so. So it is rewritten to that statement, and the plain forms
decide about it. English, Russian and Chinese.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from klaw_facts.extracting import plain
from klaw_words.lazy_patterns import lazy_pattern

_I = rf"(?P<who>{plain.I_AND})(?:['’]ve| have)?(?: just| recently| finally| now)?"
_LEFT = (
    r"(?:(?:left|quit)(?: my (?:old )?job (?:at|with))?|lost my job (?:at|with)|resigned from|retired from"
    r"|(?:was|got|been) (?:fired|laid off|let go|made redundant) (?:by|from|at))"
)
_MATE = "(?:wife|husband|partner|girlfriend|boyfriend)"
_DISMISSED = "(?:fired me|laid me off|let me go|made me redundant)"
_GONE = "(?:died|passed away|left me|dumped me)"
_DAY_OF_WEEK = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_PARTED = r"(?:broke up|split up|separated|(?:got |are |have )?divorced)"
# (form, statement, words): what says that a statement is not so, and that statement. What has the form has a word.
_DENIALS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    (r"\b(?:no longer|do not|don['’]?t) ", "", ("no longer", "do not", "don")),
    (r"\bdoes(?: not|n['’]?t) (?P<does>\w+)", r"\g<does>s", ("does",)),
    (r"(?:(?<=\bi['’]m)|\b(?P<is>is|am|are|have))(?: not|n['’]t) ", r"\g<is> ", (" not ", "n't ", "n’t ")),
    (rf"{_I} moved (?:out of|away from|out from)\b", r"\g<who> moved to", ("moved out", "moved away")),
    (
        rf"{_I} {_LEFT}\b",
        r"\g<who> started working at",
        ("left", "quit", "lost my job", " from", "fired", "laid off", "let go", "redundant"),
    ),
    (
        rf"{_I}(?:['’]m| am|['’]ll| will)? (?:leaving|leave|quitting)\b",
        r"\g<who> will start working at",
        ("leav", "quitting"),
    ),
    (
        r"(?P<of>[\w&.' -]+) (?:fired me|laid me off|let me go)",
        r"I started working at \g<of>",
        ("fired me", "laid me off", "let me go"),
    ),
    (rf"(?P<of>\w+) and I {_PARTED}", r"I married \g<of>", (" and i ",)),
    (
        rf"(?:my {_MATE} )?(?P<of>\w+) {_GONE}",
        r"I married \g<of>",
        ("died", "passed away", "left me", "dumped me"),
    ),
    (rf"{_I} left (?P<of>.+) for (?:good|ever)", r"\g<who> moved to \g<of>", (" for ",)),
    (
        rf"{_I} (?:gave up|given up|sold) (?:my|our|the) (?:flat|house|home|apartment|room) in",
        r"\g<who> moved to",
        ("gave up", "given up", "sold"),
    ),
    (
        rf"my last day (?:at|with) (?P<of>.+?) (?:was|is) (?:on )?(?P<on>{plain.AT}|{_DAY_OF_WEEK})",
        r"I started working at \g<of> \g<on>",
        ("my last day",),
    ),
    (
        rf"(?P<on>{plain.AT}|{_DAY_OF_WEEK}) (?:was|is) my last day (?:at|with)(?P<of>.+)",
        r"I started working at\g<of> \g<on>",
        ("my last day",),
    ),
    (
        rf"{_I} (?:broke up with|split up with|separated from|(?:got )?divorced(?: from)?)\b",
        r"\g<who> married",
        (" up with", "separated", "divorced"),
    ),
    (r"\b(?:больше|уже) не |\bне (?=живу|жив[её]м|работаю)", "", ("не ",)),
    (r"\b(?:съехал[аи]?|переехал[аи]?) из", "переехал в", ("ехал",)),
    (r"\b(?:уволил(?:ся|ась)|уш[её]л|ушла) из", "начал работать в", ("л из", "ла из", "лся из", "лась из")),
    (r"(?:已经|现在|早就)?不再?(?=居?住在|在|叫)(?P<rest>.+?)了?$", r"\g<rest>", ("不",)),
    (r"从(?P<rest>.+?)(?:搬走|搬出来?)了?$", r"搬到\g<rest>", ("从",)),
    (r"(?:从(?P<rest>.+?)(?:离职|辞职)|离开了?(?P<of>.+?))了?$", r"开始在\g<rest>\g<of>工作", ("离", "辞职")),
)
_AM, _HAVE = "i(?:['’]m| am)(?: now| currently)?", "i(?:['’]ve| have)?(?: just| recently)?"
_WE = r"(?:we|my (?:wife|husband|partner|girlfriend|boyfriend) and i)(?: just| recently)?"
# (forms, slots, words): what says that slots have no value any more.
_WITHOUT: tuple[tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]], ...] = (
    (
        (
            rf"{_AM} (?:single(?: again)?|divorced|widowed)",
            rf"{_HAVE} got(?:ten)? divorced",
            rf"{_WE} {_PARTED}",
            rf"{_AM} a widow(?:er)?",
            rf"my {_MATE} (?:has )?(?:just )?{_GONE}",
            "я (?:развел(?:ся|ась)|разв[её]лся|развед[её]н|разведена|не замужем|не женат)",
            "我们?(?:离婚|分手|单身)了?",
        ),
        ("partner",),
        (
            "single",
            "divorced",
            "widow",
            "died",
            "passed away",
            " me",
            "separated",
            " up",
            "разв",
            "не замужем",
            "не женат",
            "离婚",
            "分手",
            "单身",
        ),
    ),
    (
        (
            rf"{_AM} (?:unemployed|jobless|out of work(?! (?:today|tomorrow|now)\b))",
            rf"{_HAVE} (?:lost|quit|left) my job",
            rf"{_HAVE} (?:was|got|been) (?:fired|laid off|made redundant)",
            rf"(?:they|my (?:boss|employer|company)) (?:have |has |just )?{_DISMISSED}",
            "меня уволили",
            "я (?:уволил(?:ся|ась)|безработн(?:ый|ая))",
            "我(?:失业|辞职|离职|被裁|被解雇)了?",
        ),
        ("employer",),
        (
            *("jobless", "unemployed", "out of work", "my job", "fired", "laid", "let me go", "redundant"),
            *("уволил", "безработн", "失业", "辞职", "离职", "被裁", "被解雇"),
        ),
    ),
    (
        (rf"{_AM} (?:homeless|of no fixed abode)", r"я бездомн(?:ый|ая)", "我(?:现在)?无家可归"),
        ("home",),
        ("homeless", "abode", "бездомн", "无家可归"),
    ),
    (
        (rf"{_AM} retired", rf"{_HAVE} retired", "я (?:вышел|вышла|теперь|уже)? ?на пенси[июя]", "我(?:已经)?退休了?"),
        ("employer", "job_title"),
        ("retired", "на пенси", "退休"),
    ),
)
_WHEN = rf"(?:,? (?:(?P<time>{plain.AT}|{plain.SINCE})|{plain.NOW}))?"
_ANY_MORE = lazy_pattern(r",? any ?(?:more|longer)\b", re.IGNORECASE)
_DENIED = tuple((words, lazy_pattern(form, re.IGNORECASE), statement) for form, statement, words in _DENIALS)
_NO_MORE = tuple(
    (words, lazy_pattern(rf"(?:{'|'.join(forms)}){_WHEN}", re.IGNORECASE), slots) for forms, slots, words in _WITHOUT
)


def denied(clause: str) -> Iterator[str]:
    """Yield the statements that a clause may say to be so no more, in the words in which they would be said."""
    small = clause.casefold()
    for words, pattern, statement in _DENIED:
        if any(word in small for word in words):
            said, count = pattern.subn(statement, clause, count=1)
            if count:
                yield " ".join(_ANY_MORE.sub("", said).split())


def slots_without_value(clause: str) -> tuple[tuple[str, ...], str]:
    """Return the slots of which a clause says that they have no value any more, and the words that say when."""
    small = clause.casefold()
    for words, pattern, slots in _NO_MORE:
        if any(word in small for word in words):
            match = pattern.fullmatch(clause, plain.end_of_lead(clause))
            if match is not None:
                return slots, match["time"] or ""
    return (), ""
