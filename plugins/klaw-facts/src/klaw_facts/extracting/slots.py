"""Declared slots, such as name, home and deadline: patterns in English, Russian and Chinese.

A sentence has a slot only if a pattern matches. A question, a condition, a denial or a wish has none.
"""

from __future__ import annotations

import re
from functools import cache

from attrs import frozen

from klaw_facts.extracting import names
from klaw_facts.extracting.own_words import is_own_statement
from klaw_facts.values import normalised

_MONTHS = (
    r"(?i:january|february|march|april|may|june|july|august|september|october|november|december"
    r"|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)"
)
_DATE = (
    rf"(?:\d{{4}}-\d{{2}}-\d{{2}}|{_MONTHS}\.?\s+\d{{1,2}}(?:st|nd|rd|th)?(?:,?\s+\d{{4}})?"
    rf"|\d{{1,2}}(?:st|nd|rd|th)?\s+(?:of\s+)?{_MONTHS}(?:,?\s+\d{{4}})?"
    r"|\d{1,2}\s+(?:января|февраля|марта|апреля|мая|июня|июля|августа|сентября|октября|ноября|декабря)(?:\s+\d{4})?"
    r"|(?:\d{4}年)?\d{1,2}月\d{1,2}[日号])"
)
# A lower-case word is part of a name only before a capital: "Rio de Janeiro", but not "Lyon last week".
_PLACE = r"(?!(?:Apartment|Apt|Room|Suite|Floor|Building|Unit|Level|Phase|Stage)\b)[A-Z][\w’'-]*(?:(?:[ -](?:de|la|of|the|upon|am))*[ -](?!I\b)[A-Z][\w’'-]*)*(?:,\s+(?!I\b)[A-Z][\w’'-]*)*"
_NAME = r"[A-Z][\w’'-]+(?:\s+[A-Z][\w’'-]+){0,3}"
_RU_NAME = r"[А-ЯЁ][\w-]+(?:\s+[А-ЯЁ][\w-]+){0,2}"
# A time between the subject and the verb of a Chinese sentence.
_ZH_TIME = (
    r"(?:现在|已经|刚刚?|最近|上个?月|上个?周|上个?星期|去年|今年|昨天|前天|今天|明天|下个?月|下个?周|下个?星期|明年|\d{4}年(?:\d{1,2}月(?:\d{1,2}[日号])?)?|\d{1,2}月(?:\d{1,2}[日号])?"
    r"|[一二三四五六七八九十两\d]{1,3}(?:天|周|个星期|个月|年)前|[从自][^，。我]{2,12}?(?:起|开始)|开始|就){0,4}"
)
# The head of a title. "I was promoted to tears" has none.
_TITLE = (
    r"(?:lead|leader|manager|director|head|chief|engineer|developer|programmer|supervisor|officer|analyst|designer|architect|president|vp"
    r"|ceo|cto|cfo|coo|partner|associate|professor|captain|sergeant|lieutenant|editor|coordinator|consultant|foreman|chef|nurse|teacher"
    r"|principal|executive|specialist|administrator|scientist|secretary|accountant|producer|strategist|controller|superintendent)"
)
_END_OF_TITLE = (
    r"(?=\s+(?:last|this|next|yesterday|today|on|in|at|since|from|after|by|earlier|recently|two|three|\d+|because|and|but|so|when|which"
    r"|who|with|for|here|there|now|just|as)\b|\s*[,.;:!()—–]|\s*$)"
)
_RU_TITLE = (
    r"(?:руководител|начальник|директор|менеджер|инженер|лид|тимлид|разработчик|заместител|управляющ|координатор|аналитик|архитектор"
    r"|бригадир|капитан|профессор|редактор|вед[ую]щ|старш|главн)"
)
# The name of a program before its version: not a room, a plan or a place.
_PRODUCT = (
    r"(?P<topic>(?!(?:Room|Apartment|Apt|Suite|Floor|Level|Phase|Stage|Chapter|Tier|Plan|Class|Grade|Gate|Row|Seat|Area|Unit|Building|House|Section"
    r"|Page|Part|Step|Round|Team|Group|Zone|Line|Platform|Track|Lane|Season|Episode|Game|Over|About|Around|Nearly|Only|At|Under|Almost"
    rf"|{_MONTHS})\b)(?=[a-z]{{0,2}}[A-Z])[A-Za-z][\w.+#-]{{1,25}})"
)
_VERSION = (
    r"(?:version )?v?(?P<value>\d+(?:\.\d+)*)(?![\w%,:/-]|\.\d)"
    r"(?!\s*(?:st|nd|rd|th|years?|months?|weeks?|days?|hours?|minutes?|people|users|times|percent|am|pm|of|лет|год|дн|нед|месяц|час|чел|раз|мин)\w*)"
)
_TOPIC = r"(?P<topic>[\w][\w /-]{1,40}?)"

# (slot, pattern): the group "value", and where the slot's name ends in ":" the group "topic".
_PATTERNS: tuple[tuple[str, str], ...] = (
    ("name", rf"\b[Mm]y (?:full )?name(?:'s| is| is now) (?P<value>{_NAME})|\b[Cc]all me (?P<value2>{_NAME})"),
    ("name", rf"\b[Мм]еня зовут (?P<value>{_RU_NAME})|我(?:的名字)?(?:叫|是叫)(?P<value2>[一-鿿]{{2,4}})"),
    ("name", names.ENGLISH),
    ("name", names.RUSSIAN),
    ("name", names.CHINESE),
    (
        "home",
        r"\b(?:I|[Ww]e)(?:'m| am| have|'ve|'re| are)? (?:now |just |currently |recently |still |finally )?"
        rf"(?:live|living|moved|relocated)(?: back| permanently)? (?:in|to) (?P<value>{_PLACE})",
    ),
    (
        "home",
        rf"\b(?:I|[Ww]e)(?:'ve| have)? (?:just |recently )?(?:moved|relocated) from {_PLACE} to (?P<value>{_PLACE})",
    ),
    ("home", rf"\b[Яя] (?:теперь |сейчас )?(?:живу в|переехала? в) (?P<value>{_RU_NAME})"),
    ("home", rf"我(?:们)?{_ZH_TIME}(?:住在|搬到了?|搬去了?)(?P<value>[一-鿿]{{2,8}}?)(?=[了，。,.！!]|$)"),
    (
        "employer",
        r"\bI(?:'m| am| have|'ve)? (?:now |just |currently |recently )?"
        rf"(?:work|working|started working|joined)(?: at| for)? (?P<value>{_PLACE})",
    ),
    (
        "employer",
        rf"\bI(?:'ve|’ve| have)?(?: just| recently| finally)? (?:got|gotten|landed|found|started) (?:a|my)(?: new)? job (?:at|with) (?P<value>{_PLACE})",
    ),
    (
        "employer",
        rf"\b[Яя] (?:теперь |сейчас |недавно )?(?:работаю|начала? работать|устроил(?:ся|ась)(?: на работу)?|переш(?:ёл|ел|ла)(?: на работу)?) в"
        rf" (?P<value>{_RU_NAME})"
        rf"|我{_ZH_TIME}在(?P<value2>[一-鿿A-Za-z]{{2,12}}?)(?:工作|上班)",
    ),
    (
        "job_title",
        r"\bmy (?:new )?(?:job )?title is (?P<value>[\w][\w -]{2,40})|\bI (?:now )?work as an? (?P<value2>[\w][\w -]{2,40})",
    ),
    (
        "job_title",
        r"\bмоя (?:новая )?должность\s*[—:-]\s*(?P<value>[\w][\w -]{2,40})|我的职位是(?P<value2>[一-鿿]{2,12})",
    ),
    (
        "job_title",
        r"\bI(?:'ve|’ve| have)?(?: just| recently| finally)? (?:was|got|been|am|have been)(?: just| recently| finally)? promoted to (?:an? |the )?"
        rf"(?P<value>(?i:(?:[\w/&-]+ ){{0,4}}{_TITLE}(?: of (?:[\w&-]+ ?){{1,3}}?)?)){_END_OF_TITLE}",
    ),
    (
        "job_title",
        rf"\b[Мм]еня (?:недавно |только что |наконец )?повысили до (?P<value>(?=(?:[\w-]+ ){{0,2}}{_RU_TITLE})[а-яё-]+(?: [а-яё-]+){{0,3}}?)"
        r"(?=\s*[,.!;]|\s*$|\s+(?:в|на|с|и|год|неделю|месяц|недавно|вчера|сегодня)\b)"
        rf"|我{_ZH_TIME}(?:被)?(?:升职为|晋升为|提拔为|升任|升为)(?P<value2>[一-鿿]{{0,8}}?(?:经理|主管|总监|组长|部长|主任|工程师|总裁|教授|院长|校长|店长))(?=[了，。,.！!]|$)",
    ),
    ("birthday", rf"\b[Mm]y birthday(?:'s| is)(?: on)? (?P<value>{_DATE})|\bI was born on (?P<value2>{_DATE})"),
    ("birthday", rf"\b[Мм]ой день рождения\s*[—:-]?\s*(?P<value>{_DATE})|我的生日是(?P<value2>{_DATE})"),
    ("partner", rf"\b[Mm]y (?:wife|husband|partner|spouse)(?:'s name)?(?: is|,| is called) (?P<value>{_NAME})"),
    (
        "partner",
        rf"\b[Мм]о(?:ю жену|его мужа) зовут (?P<value>{_RU_NAME})|我(?:妻子|丈夫|老公|老婆)叫(?P<value2>[一-鿿]{{2,4}})",
    ),
    ("timezone", r"\b[Mm]y time ?zone is (?P<value>(?:UTC|GMT)?[+-]?\d{0,2}:?\d{0,2}[\w/+-]*)"),
    (
        "language",
        r"\b(?:[Mm]y (?:native |first )?language is|[Pp]lease (?:answer|reply|write) in) (?P<value>[A-Z][a-z]+)",
    ),
    ("email", r"\b[Mm]y (?:new |work |personal )?e-?mail(?: address)?(?: is|:) (?P<value>[\w.+-]+@[\w-]+\.[\w.-]*\w)"),
    ("phone", r"\b[Mm]y (?:new )?(?:phone|mobile|cell)(?: number)?(?: is|:) (?P<value>\+?[\d][\d ()-]{5,}\d)"),
    (
        "deadline:",
        rf"\b(?:[Tt]he |[Mm]y |[Oo]ur ){_TOPIC} (?:deadline|due date|launch(?: date)?|release(?: date)?)"
        r"(?: is| was| has been| got| will be)?(?: now| again)?(?: on| by| set (?:to|for)| moved to| pushed to| extended to| changed to)?"
        rf" (?P<value>{_DATE})",
    ),
    (
        "deadline:",
        r"\b(?:deadline|due date|launch(?: date)?|release(?: date)?) (?:for|of) (?:the |my |our )?"
        rf"{_TOPIC}(?: is| was| has been| will be)?(?: now| again)?(?: on| by| set (?:to|for)| moved to| pushed to| extended to"
        rf"| changed to)? (?P<value>{_DATE})",
    ),
    (
        "deadline:",
        rf"\b(?:[Tt]he |[Mm]y |[Oo]ur ){_TOPIC}(?: now)? (?:ends|is due|finishes|targets(?: completion)?)(?: on| by| for)? (?P<value>{_DATE})",
    ),
    (
        "deadline:",
        r"\b(?:[Tt]he|[Mm]y|[Oo]ur) (?:deadline|due date|launch date|release date)(?: is| was| has(?: just| now)? been|'s been|’s been| got)(?: just| now| again| officially)?"
        r" (?:moved|pushed|shifted|postponed|rescheduled|extended|changed|delayed|brought forward)(?: back| out| up| forward)?"
        rf"(?: from .{{3,25}}?)? (?:to|until|till) (?P<value>{_DATE})"
        rf"|\b(?:[Tt]he|[Mm]y|[Oo]ur) (?:deadline|due date|launch date|release date) is now (?P<value2>{_DATE})",
    ),
    (
        "deadline:",
        r"\b(?:moved|pushed|shifted|postponed|rescheduled) (?:the |my |our )?"
        rf"(?P<topic>(?!(?:back|from|out|up|forward)\b)[\w][\w /-]{{1,40}}?)(?: from .{{3,25}}?)? to (?P<value>{_DATE})",
    ),
    (
        "deadline:",
        rf"\b(?:[Сс]рок|[Зз]апуск|[Рр]елиз|[Дд]едлайн)\s*(?P<topic>[\w -]{{0,30}}?)\s*(?:перен[её]с\w+ на|сдвинули на|[—:-]|теперь)\s*(?P<value>{_DATE})",
    ),
    (
        "deadline:",
        rf"(?P<topic>[一-鿿]{{0,8}}?)(?:截止日期|上线时间|发布日期)(?:改到了?|推迟到了?|是|定在)(?P<value>{_DATE})",
    ),
    (
        "version:",
        r"\b(?:upgraded|updated|migrated|moved|switched)(?: our| the| my)? (?P<topic>[A-Z]?[\w.-]{1,25}) to (?:version )?v?(?P<value>\d+(?:\.\d+)+)",
    ),
    (
        "version:",
        rf"\b(?:I|[Ww]e)(?:'ve|’ve| have)?(?: just| recently| finally| now)? (?:upgraded|updated) to {_PRODUCT} {_VERSION}",
    ),
    (
        "version:",
        rf"\b(?:I|[Ww]e)(?:'ve|’ve| have)?(?: just| recently| finally| now)? (?:upgraded|updated)(?: our| the| my)? {_PRODUCT}(?: from v?[\d.]+)? to {_VERSION}",
    ),
    (
        "version:",
        rf"\b(?:[Яя]|[Мм]ы) (?:недавно |только что |уже )?(?:переш[её]?ли|перешёл|перешел|перешла|обновились|обновился|обновилась|мигрировали) (?:на|до) {_PRODUCT} {_VERSION}",
    ),
    (
        "version:",
        rf"我们?{_ZH_TIME}(?:升级|更新)到?了?\s*(?P<topic>[A-Z][\w.+#-]{{0,25}}?)\s*(?P<value>\d+(?:\.\d+)*)(?=[了，。,.！!]|$)",
    ),
    (
        "version:",
        r"\b(?:using|running|on) (?P<topic>[A-Z][\w-]{1,25}(?:\.js)?) (?:version )?v?(?P<value>\d+(?:\.\d+)+)",
    ),
    ("port:", r"\b(?P<topic>[\w-]{2,25}) (?:now )?(?:runs|listens|is running|is listening) on port (?P<value>\d{2,5})"),
)
# What will be true: only with its date.
_PLANS: tuple[tuple[str, str], ...] = (
    (
        "home",
        r"\b(?:I|[Ww]e)(?:'m|’m| am|'re|’re| are|'ll|’ll| will)?(?: be)? (?:moving|relocating|move|relocate|live|living) (?:in|to)"
        rf" (?P<value>{_PLACE})",
    ),
    (
        "employer",
        r"\bI(?:'m|’m| am|'ll|’ll| will)?(?: be)? (?:join|joining|start|starting|work|working|start working|starting work)"
        rf"(?: at| for)? (?P<value>{_PLACE})",
    ),
    (
        "home",
        rf"\b(?:[Яя]|[Мм]ы) (?:переезжаю|переезжаем|перееду|переедем|буду жить|будем жить) в (?P<value>{_RU_NAME})",
    ),
    ("employer", rf"\b[Яя] (?:выхожу на работу|буду работать|перехожу) в (?P<value>{_RU_NAME})"),
    ("home", rf"我(?:们)?{_ZH_TIME}(?:将|要|会|将要)(?:搬到|搬去|住在)(?P<value>[一-鿿]{{2,8}}?)(?=[了，。,.！!]|$)"),
    (
        "employer",
        rf"我{_ZH_TIME}(?:将|要|会|将要)(?:加入|去)(?P<value>[一-鿿A-Za-z]{{2,12}}?)(?=工作|上班|[了，。,.！!]|$)",
    ),
)
# What people are called at or on, and no name.
_NO_NAME = re.compile(
    rf"(?:(?i:(?:mon|tues|wednes|thurs|fri|satur|sun)day|today|tonight|tomorrow|later|back|soon|again|anytime|when|maybe|crazy|noon|morning|evening|christmas|easter)"
    rf"|(?!April|June|May|August|Jan){_MONTHS}|{_MONTHS} \d|(?:April|June|May|August|January)(?= ?\d))\b"
)
# What people move to that is no place: a program, a team, a day. A capital inside a word is that of a program.
_NO_PLACE = re.compile(
    r"\b(?:(?:moved|moving|move|relocated) (?:back )?to|(?:live|living) in) (?:[A-Za-z]*[a-z][A-Z]\w*|[A-Z][A-Za-z]*(?:SQL|DB|OS|JS)\b|\w+\.\w+|[A-Z]\w*[\d+#]"
    r"|(?:Linux|Ubuntu|Debian|Fedora|Arch|Windows|Mac|Android|Apple|Python|Rust|Go|Golang|Java|Kotlin|Swift|Ruby|Rails|Django|Flask|React|Vue|Angular"
    r"|Svelte|Node|Deno|Bun|AWS|GCP|Tesla|Postgres|Oracle|Redis|Mongo|Cassandra|Kafka|Docker|Podman|Kubernetes|Terraform|Ansible|Git|Bitbucket|Jira|Confluence|Slack"
    r"|Teams|Zoom|Discord|Telegram|Signal|Notion|Obsidian|Evernote|Gmail|Outlook|Chrome|Firefox|Safari|Brave|Edge|Vim|Neovim|Emacs|Azure|Google|Amazon"
    r"|Heroku|Vercel|Netlify|Cloudflare|Spotify|Netflix|Mastodon|Bluesky|Sales|Marketing|Finance|Engineering|Support|Accounting|Legal|Product|Operations"
    r"|Trello|Figma|Outlook|Photoshop|Asana|Linear|Miro|Canva|Word|PowerPoint|Todoist|Minecraft|Roblox|Fortnite|Skyrim|Sims|Hope|Hell|Heaven|Paradise|Fear|Narnia|Mordor|Gondor|Rivendell|Hogwarts|Westeros|Gotham|Wakanda|Hogsmeade|Atlantis|Research|Design|Team|Plan|Option|Chapter|Step|Version|Sprint|Scrum|Agile|Excel|Sheets|Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday"
    r"|January|February|March|April|May|June|July|August|September|October|November|December|Easter|Christmas)\b)"
)
_UNSURE = re.compile(
    r"[?？]|\b(?:if|would|could|might|may be|maybe|perhaps|wish|want(?:ed)? to|used to|not|never|n't|n’t|imagine|suppose|planning|plan to"
    r"|hope|thinking|considering (?:us|mov|switch|upgrad|join|chang|work)ing)\b|\b(?:если|бы|может|хочу|хотел|раньше|не|никогда|думаю)\b|如果|可能|也许|想要|以前|没有|不",
    re.IGNORECASE,
)
_CORRECTED = re.compile(r"^(?:correction: |no, )?not (?:in |at )?[A-Z]\w+,(?= )", re.IGNORECASE)
# Words that refer to something else. Two sentences with "it" may be about different things, so neither ends the other.
_POINTERS = frozenset(
    re.findall(
        r"\w+",
        "it this that these those they them he she him her which what who one everything something anything all both mine "
        "ours он она оно они его её ее их это этот эта то тот та всё все 它 他 她 这 那 这个 那个",
    )
)
#: The connection of two statements in one sentence.
CONNECTION = re.compile(
    r"\s*[,;，；、]?\s+(?:and|but|и|а|но)\s+|\s*[,;]\s+|\s*[，；、]\s*(?:而且|并且)?|而且|并且", re.IGNORECASE
)
_TRAILING = re.compile(r"\s+(?:and|but|so|because|since|where|with|when|for|in|at|now|и|но|потому)\b.*$")


@frozen
class Stated:
    """The slot and the value that characters ``start`` to ``end`` of a sentence state: ``said``.

    ``is_planned``: it says what will be true.
    """

    slot: str
    value: str
    start: int
    end: int
    said: str
    is_planned: bool = False


def slot_of(text: str) -> tuple[str, str] | None:
    """Return the slot and the value that a sentence states; None if it does not clearly state one."""
    found = stated_in(text)
    return None if found is None or found.is_planned else (found.slot, found.value)


def stated_in(text: str) -> Stated | None:
    """Return what a sentence states, also if it is only planned; None if it does not clearly state a slot."""
    if _UNSURE.search(_CORRECTED.sub("", text)):
        return None
    planned = {False: _compiled(), True: _compiled_plans()}
    found = ((is_planned, item) for is_planned, patterns in planned.items() for item in patterns)
    for is_planned, (slot, pattern) in found:
        match = next((match for match in pattern.finditer(text) if _is_stated(text, slot, match)), None)
        if match is None:
            continue
        groups, value = match.groupdict(), _value(match)
        name = slot
        if slot.endswith(":"):
            topic = normalised(groups.get("topic") or "").strip(" -:") or "main"
            if topic in _POINTERS:
                continue
            name = f"{slot}{topic}"
        return Stated(name, value, *match.span(), match[0], is_planned)
    return None


def _value(match: re.Match[str]) -> str:
    """Return the value that a match states, without the words that follow it."""
    return _TRAILING.sub("", match[_group(match)].strip(" ,.;:")).strip()


def _group(match: re.Match[str]) -> str:
    return "value" if match.groupdict().get("value") else "value2"


def _is_stated(text: str, slot: str, match: re.Match[str]) -> bool:
    """Return whether a match is the speaker's own statement, and its value may be one of the slot."""
    value, (start, end) = _value(match), match.span(_group(match))
    if not value or (slot == "home" and _NO_PLACE.search(match[0])) or (slot == "name" and not _is_name(match, value)):
        return False
    is_last = end == match.end()  # only then words after the value are part of the match
    return is_own_statement(text, match.start(), start + len(value) if is_last else match.end(), slot=slot)


def _is_name(match: re.Match[str], value: str) -> bool:
    """Return whether a value may be a name: no day or month, and after "call me" a name that is common, or asked for."""
    if _NO_NAME.match(value):
        return False
    is_asked = re.search(
        r"(?:please|you can|you may|just|everyone can|people can)[ ,]*$", match.string[: match.start()], re.IGNORECASE
    )
    return not match[0].lower().startswith("call me") or is_asked is not None or names.is_common(value)


def statements(text: str) -> tuple[str, ...]:
    """Return the parts of a sentence that state different slots; the whole sentence if it states fewer than two.

    "My name is Ada and I live in Paris" states two. Each part reaches to the next one, so that only the connecting
    words between them are left out.
    """
    parts, start = [], 0
    for place in sorted({match.start() for _, pattern in _compiled() for match in pattern.finditer(text)}):
        before = [cut for cut in CONNECTION.finditer(text, start) if cut.start() > start and cut.end() <= place]
        if before and slot_of(text[start : before[-1].start()]):
            parts.append(text[start : before[-1].start()])
            start = before[-1].end()
    parts.append(text[start:])
    stated = {found[0] for part in parts if (found := slot_of(part))}
    return tuple(parts) if len(stated) == len(parts) else (text,)


@cache
def _compiled() -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((slot, re.compile(pattern)) for slot, pattern in _PATTERNS)


@cache
def _compiled_plans() -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((slot, re.compile(pattern)) for slot, pattern in _PLANS)
