"""Detect that a message of one line is code: a statement, a query, JSON, markup or a command. In doubt, it is not.

A line of prose can begin like code ("git push fails again", "select a winner"), so each form is matched as a whole.
"""

from __future__ import annotations

import json
import re

_STATEMENT = re.compile(
    r"(?:async )?def \w+\(.*\).*:.*|class \w+(?:\(.*\))?:.*|from [a-z_][\w.]* import [\w*]+(?:(?: as|,) ?\w+)*"
    r"|import [a-z_]\w*(?:\.\w+)*(?: as \w+)?;?|(?:for|while|if|elif|with) .*[()\[\]=<>].*:.*"
    r"|@\w+(?:\.\w+)*(?:\(.*\))?"
    r"|(?:const|let|var|val|auto|int|float|double|String|bool) \w+(?: ?: ?\w+)? ?= ?\S.*"
    r"|(?:export |public |private |static |async )*(?:function|func|fn) \w*(?:<.*>)?\(.*"
    r"|#include ?[<\"].*|[a-z_][A-Za-z0-9_.]*\((?:.*[\"'\d,=].*)?\);?"
    r"|[\w.\[\]\"']+ ?[-+*/|&:]?= ?(?:[\"'\[{(].*|[\w.]+\(.*\));?|[^.!?]*[(){}\[\]=<>][^.!?]*;"
    r"|<(?P<tag>[A-Za-z][\w-]*)(?: [^>]*)?>.*</(?P=tag)>|<[A-Za-z][\w-]*(?: [^>]*)?/?>"
    r"|>>> .*|\$ \S.*"
)
_QUERY = re.compile(
    r"(?:SELECT\b.*\bFROM|INSERT INTO|UPDATE\b.*\bSET|DELETE FROM|(?:CREATE|ALTER|DROP) (?:TABLE|INDEX|VIEW))\b.*"
    r"|(?i:select\b.*\bfrom\b.*|insert into\b.*|update\b.*\bset\b.*|delete from\b.*|(?:create|drop) table\b.*);"
)
_COMMAND = re.compile(
    r"git (?:add|commit|push|pull|clone|status|diff|log|checkout|switch|branch|merge|rebase|stash|fetch|reset|init)"
    r"|(?:npm|pnpm|yarn) (?:install|i|run|test|start|ci|add|init)"
    r"|(?:pip[3x]?|cargo|brew) (?:install|build|run|test|add)"
    r"|uv (?:run|pip|sync|add|tool|venv)|(?:sudo )?(?:apt|apt-get) (?:install|update|upgrade)"
    r"|docker(?:-compose| compose)? (?:run|build|ps|pull|push|exec|up|down|logs|stop|start|images)"
    r"|kubectl (?:get|apply|delete|describe|logs|exec|create|scale|rollout)"
    r"|systemctl (?:--user )?(?:start|stop|restart|status)"
    r"|(?:ls|cp|mv|rm|cd|mkdir|chmod|grep|cat|tail|head|curl|wget|ssh|scp|tar|python3?|node|sudo \w+)"
    r"(?= (?:-|/|~|\.{1,2}/|https?:|\S+\.\w+\b))"
)
# Words of a report about a command: "git push fails", "npm install is slow".
_PROSE = frozenset(
    re.findall(
        r"\w+",
        "an the my our your this that these it its i we you they he she is are was were be been does do did not no can "
        "could should would will must may has have had and or but so because since when while after before then than "
        "with without for of about like fail fails failed failing break breaks broke broken hang hangs hung work works "
        "worked crash crashes crashed take takes took say says said give gives gave throw throws threw error errors "
        "again still always never now instead slow fast please help me us each every once twice works use uses used "
        "using need needs want",
    )
)
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
_MAX_WORDS = 12
_MAX_CHARACTERS = 400  # of a line but JSON: a pattern may take time that is quadratic in its length


def is_code_line(line: str) -> bool:
    """Return whether a line, without white space around it, is code as a whole."""
    if line[0] in "{[" and _is_json(line):
        return True
    if len(line) > _MAX_CHARACTERS:
        return False
    if _QUERY.fullmatch(line):
        return True
    if _COMMAND.match(line):
        words = [word.casefold().strip(".,:;!") for word in _QUOTED.sub(" ", line).split()]
        return len(words) <= _MAX_WORDS and _PROSE.isdisjoint(words)
    return _STATEMENT.fullmatch(line) is not None


def _is_json(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict | list)
    except (ValueError, RecursionError):
        return False
