"""The profile: a few lines in every context that describe a person and their instructions.

The order of the lines does not depend on time, so that the profile's bytes change only with its content.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from klaw_core import estimate_tokens
from klaw_facts.extracting.statements import is_plain_statement
from klaw_facts.fold import State
from klaw_facts.options import FactsOptions
from klaw_facts.values import Fact
from klaw_tools.frames import one_line

_LASTING = frozenset({"identity", "rule", "relationship", "preference"})


def profile_lines(state: State, options: FactsOptions, now: datetime) -> list[tuple[str, str]]:
    """Return the ids and lines of the profile of the rules: facts of slots, then pinned ones, then lasting ones."""
    fixed, free = profile_facts(state, options, now)
    return within([(fact, profile_line(fact)) for fact in (*fixed, *free)], options)


def profile_facts(state: State, options: FactsOptions, now: datetime) -> tuple[list[Fact], list[Fact]]:
    """Return the facts that are always in the profile, and those that may use the remaining space; by weight.

    Facts of single-valued slots, pinned facts and facts of a person are always in it. Of the sentences that rules
    extracted, only instructions, allergies and diets can be in it: the others are not worth their tokens in each
    prompt.
    """
    fixed: list[Fact] = []
    free: list[Fact] = []
    for fact in state.visible(now).values():
        if not fact.is_trusted:
            continue
        if options.is_single(fact.slot) or fact.is_pinned:
            fixed.append(fact)
        elif fact.category == "rule" or (_says_who(fact) if fact.is_bare_quotation else fact.category in _LASTING):
            (fixed if fact.is_by_person else free).append(fact)

    def rank(fact: Fact) -> tuple[int, float, str]:
        group = 0 if options.is_single(fact.slot) else 1 if fact.is_pinned else 2
        return group, -fact.importance, fact.id

    return sorted(fixed, key=rank), sorted(free, key=rank)


def _says_who(fact: Fact) -> bool:
    return fact.category == "identity" and is_plain_statement(fact.text)


def profile_line(fact: Fact) -> str:
    """Return the line of a fact in the profile: the value of a slot, or its text."""
    who = "" if fact.subject == "user" else f"{fact.subject}: "
    return f"{who}{fact.slot}: {fact.value}" if fact.slot and fact.value else f"{who}{fact.text}"


def within(lines: Iterable[tuple[Fact, str]], options: FactsOptions) -> list[tuple[str, str]]:
    """Return the first lines that fit in the profile, one per slot of a subject, with the ids of their facts."""
    chosen: list[tuple[Fact, str]] = []
    used = 0
    seen: set[tuple[str, str, str]] = set()
    for fact, line in lines:
        if fact.slot and (fact.who, fact.subject, fact.slot) in seen:
            continue
        tokens = estimate_tokens([line])[0]
        if used + tokens > options.profile_tokens:
            break
        used += tokens
        chosen.append((fact, one_line(line)))
        if fact.slot:
            seen.add((fact.who, fact.subject, fact.slot))
    return [(fact.id, line) for fact, line in sorted(chosen, key=lambda item: (item[0].slot or "~", item[0].id))]
