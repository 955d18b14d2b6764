"""The plain forms in which people say something of themselves: what may stand around a statement.

Everything else around it may make it somebody else's, or not true; then it is in doubt, and nothing is taken from it.
English, Russian and Chinese.
"""

from __future__ import annotations

import re

_MONTHS = (
    r"(?:january|february|march|april|may|june|july|august|september|october|november|december"
    r"|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)"
)
_RU_MONTHS = r"(?:январ|феврал|март|апрел|ма[яйе]|июн|июл|август|сентябр|октябр|ноябр|декабр)[а-я]*"
_YEAR = r"(?:19|20)\d\d"
_COUNT = r"(?:\d{1,3}|an?|a couple of|one|two|three|four|five|six|seven|eight|nine|ten)"
#: A time that has a date.
DATED = (
    rf"(?:\b(?:in|since|from|as of|on|back in)\s+(?:early |late )?(?:{_YEAR}-\d\d-\d\d|{_YEAR}\b(?! ?years)|{_MONTHS}\b\.?(?:\s+\d{{1,2}}(?:st|nd|rd|th)?\b)?(?:,?\s+\d{{4}})?"
    rf"|(?:the )?\d{{1,2}}(?:st|nd|rd|th)?\s+(?:of\s+)?{_MONTHS}\b(?:,?\s+\d{{4}})?|\d{{1,2}}\.\d{{1,2}}\.{_YEAR})"
    rf"|\b(?:since |from |earlier )?(?:last|this|next)\s+(?:week(?:end)?|month|year|night|spring|summer|autumn|fall|winter|{_MONTHS}|(?:mon|tues|wednes|thurs|fri|satur|sun)day)\b"
    rf"|\b(?:in|since|from) (?:the )?(?:early |late )?(?:spring|summer|autumn|fall|winter)\b|\b(?:с |со )?\d{{1,2}} {_RU_MONTHS}\b(?: {_YEAR})?(?: года)?"
    rf"|\b(?:about |around )?{_COUNT}\s+(?:day|week|fortnight|month|year)s?\s+ago\b|\b(?:since |the day before )?yesterday\b|\btoday\b|\btomorrow\b|\b(?:in|from now in) {_COUNT} (?:day|week|month|year)s?\b"
    rf"|\b(?:в|с)\s+(?:{_YEAR}(?:\s+год[ауе]?\w*)?|{_RU_MONTHS}\b(?:\s+{_YEAR})?(?:\s+год[ауе])?|(?:прошл|эт|следующ)\w+\s+(?:год[уа]|месяц[еа]|недел[еи]))|\b(?:на|с) (?:прошл|эт|следующ)\w+ недел\w"
    r"|\b(?:вчера|сегодня|завтра|позавчера)\b|\b(?:год|месяц|неделю|(?:\d+|два|две|три|четыре|пять) (?:год[а]?|лет|месяц\w*|недел\w+|дн\w+)) назад\b"
    r"|昨天|前天|今天|明天|明年|今年|去年|前年|上个?月|上个?周|下个?月|下个?周|(?:\d{4}年)(?:\d{1,2}月)?(?:\d{1,2}[日号])?|\d{1,2}月(?:\d{1,2}[日号])?)"
)
_PRESENT = (
    rf"(?:\b(?:right now|now|these days|nowadays|currently|at the moment|at present|again|still|already|permanently|too|as well|recently|lately|just|finally|then"
    rf"|full[- ]?time|part[- ]?time|for (?:about |over |almost )?(?:{_COUNT}|several|many|a few) (?:year|month|week)s? (?:now|already)"
    r"|since (?:birth|then)|by the way|btw|mostly|теперь|сейчас|уже(?: год| (?:\d+|два|две|три|много) (?:год[а]?|лет|месяц\w*))?|снова|опять|недавно|наконец|тоже|пока)\b"
    r"|现在|目前|最近|已经|刚刚?|后来|了)"
)
#: A time before a statement that leaves it true.
TIMES = rf"(?:{DATED}|{_PRESENT}|[从自][^，。我]{{1,16}}(?:起|开始)|этим летом|этой (?:весной|осенью|зимой))"
_OWN = r"(?:wife|husband|partner|spouse|family|kids?|children|son|daughter|sons|daughters|parents|mother|father|mom|mum|dad|brother|sister|cats?|dogs?|pets?|girlfriend|boyfriend|fianc[ée]e?|roommates?|flatmates?|friends?|grandparents|grandmother|aunt|uncle|twins?|baby|cousin)"
_WITH = rf"with (?:(?:my|our|a|two|three|four|\d+) )(?:\w+ ){{0,2}}{_OWN}(?:,? and (?:(?:my|our|a|two|three|\d+) )?(?:\w+ )?{_OWN})?\b|with (?-i:[A-Z])\w+(?: and (?-i:[A-Z])\w+)?"
_TAIL = re.compile(
    rf"[\s,(—–-]*(?:{DATED}|{_PRESENT}|{_WITH}|(?:near|close to|next to|not far from|outside of) (?:the )?[\w-]+(?: [A-Z]\w+)?"
    r"|for (?:work|love|good|(?:a|my) (?:new )?(?:job|studies|family|work|school|university|wife|husband))\b|because of [^,.;]{1,40}"
    r"|с (?:мо(?:ей|им|ими) )?(?:женой|мужем|семь[её]й|детьми|мамой|родителями|друзьями|кошкой|собакой|сыном|дочерью|братом|сестрой)\b"
    r"|[和跟]我?(?:妻子|丈夫|老公|老婆|家人|父母|孩子|朋友|女朋友|男朋友)(?:一起)?)",
    re.IGNORECASE,
)
_PLACE = r"(?-i:[A-Z])[\w’'-]+(?: (?-i:[A-Z])[\w’'-]+)*"
_TAILS_OF = {
    slot: re.compile(
        rf"[\s,]*(?:in (?:the )?{_PLACE}|as an? (?!child|kid|teen|baby|boy|girl|toddler|young|joke)[\w -]{{2,30}}|from home|at {_PLACE}|for {_PLACE})",
        re.IGNORECASE,
    )
    for slot in ("employer", "job_title")
}
_TAILS_OF["name"] = re.compile(
    r"[\s,]*(?:from [\w ]{1,30}|(?:nice|pleased|happy|glad|good) to (?:meet|see|be) [\w ]{1,20}|ваш\w* [\w ]{1,30}|из [\w ]{1,30}|(?:очень )?приятно[\w ]{0,30}|\d+ years old|很高兴认识大家|很高兴认识你)",
    re.IGNORECASE,
)
_TAILS_OF["home"] = re.compile(rf"[\s,]*from {_PLACE}", re.IGNORECASE)
#: The next clause of a sentence.
_NEXT_CLAUSE = re.compile(
    r"[\s,;:)—–-]*(?:(?:and|but|because|so|where|which|though|although|и|а|но|потому|поэтому|где)\b|(?:since|as|while) (?:i|my|we)\b"
    r"|[,;—–-] ?(?:i|i['’]\w+|my|we|our|her|his|he|she|it|it['’]s|they|who|can|could|please|what|which|how|do|is|am|one|(?:an?|the) (?!few|long|lot|while|couple|some|year|month|week|day|decade|joke|lie|test|child|kid|boy|girl)\w+|я|мы|меня|у|мо[йяиё]|мне|моя)\b"
    r"|(?:who|whom) \w+|(?<=[,，；;])\s*(?:我|你|也|还|而且|但|因为|所以|天气|在|这|很|是|有|请|喜欢|想)|[，；]\s*(?:我|也|还|而且|但|因为|所以|天气|在|这|很|有|请|喜欢|想)|而且|并且)",
    re.IGNORECASE,
)
_DOUBT = re.compile(
    r"(?:^|\s)/(?:s|j|jk|sarc\w*|irony|joke)\b|;-?\)|[😉🙃😂🤣😜😝🤪😏🤡]|\b(?:lol|lmao|rofl|haha\w*|hehe\w*|jk|yeah,? right|(?:oh|yeah|yes),? sure|as if|i wish|(?:the|a) (?:pope|queen|king|emperor)|sarcas\w+|iron(?:y|ic\w*)"
    r"|if only|my line (?:in|is)|(?:in|from|of) (?:the|that|this|my|a|an|our) (?:\w+ )?(?:movie|film|novel|story|book|game|chapter|simulation|roleplay|role-play|campaign|scenario|exercise|dreams?|head|mind|play|song|series|script)"
    r"|as (?:the|they|people|he|she) (?:\w+ )?(?:goes|go|begins?|says?|said|saying|starts?)|so (?:they|he|she|people|i(?: am|['’]m)? told|it|the|my)\b[^.]{0,60}\b(?:says?|claims?|thinks?|believes?|told|goes|seems)|(?:it|that|this|they|he|she|who) (?:says?|claims?|thinks?|believes?)(?: (?:here|there|so))?(?=\W*$)|roleplay|on paper|alter ego|pen name|stage name|ха-?ха\w*|якобы|по документам|не шутка)\b|哈哈|逗你|游戏|才怪",
    re.IGNORECASE,
)
#: A joke, or a correction of oneself, in words that stand at the end of a clause or after it.
JOKE = r"(?:kidding|joking|scratch that|wait,? no|no,? wait|psych|as if)"
_TAKES_BACK = re.compile(
    rf"[\s.!…。！—–-]*(?:(?:(?:just|only|oh),? ?)?(?:{JOKE}|not really)\b|not\b|no\b|nah|nope|correction|or rather|rather|i mean|sorry|wait|oops|gotcha|haha\w*|lol|jk|psych|kidding|joking|scratch|strike|apologies|my (?:bad|mistake|fault)"
    r"|(?:that|this|it)(?:['’]s| is| was)(?: just| only| all)? (?:a |an |the |my )?(?:tests?|jokes?|wrong|lie|old|example|error|mistake|typo|false|fiction|dream|draft|quote|lyric)\b"
    r"|нет\b|шучу|шутка|пошутил|ой\b|извини|точнее|вернее|прости|ошиб|不对|错了|开玩笑|逗你|骗你|哦不|抱歉|更正)",
    re.IGNORECASE,
)
_MEANT = re.compile(
    r"\b(?:i meant|i should have said|just kidding|only kidding|scratch that|strike that|made that up|был[ао]? шутк|имел[а]? в виду)\b|我是说|开玩笑",
    re.IGNORECASE,
)
_SHORT = re.compile(
    r"\W*(?:thanks|thank you|thx|cheers|please|help|hi|hello|bye|best|regards|great|nice|ok(?:ay)?|yes|yay|finally|спасибо|привет|谢谢|你好|any\b|and\b|i\b|we\b|my\b|it\b|what|why|how|where|who)",
    re.IGNORECASE,
)
_SPEAKER = re.compile(
    r"\W*(?:i|i['’]\w+|my|we|we['’]\w+|our|he|she|her|his|it|they|there|thank|thanks|okay|ok|can you|could you|you|tom|я|мы|мой|моя|мои|мо[юе]|нас|у меня|меня|мне|это|"
    r"(?:я|我|咱|我们))(?:\b|(?<=[一-鿿]))(?! (?:wish|dream\w*|was told|read|pretend\w*|hear\w*)\b)",
    re.IGNORECASE,
)
_TOLD = re.compile(r"\W*(?:(?:i|i['’]\w+|we|we['’]\w+|я|мы|меня|у меня|мне|can you|could you)\b|[我咱])", re.IGNORECASE)
_PROGRAM = re.compile(r"(?: {4}|\t|[ \t]*(?:\||#|//|/\*|<[\w/]|\$ |%|--|;;|>>>))|[^|\n]*\|")
_CLOCK = re.compile(r"(?!.*\b(?i:i|my|we|я)\b).{0,60}\b\d{1,2}:\d\d\b(?::\d\d)?.{0,20}$")
_FORWARDED = re.compile(
    r"\W*(?:begin |start of )?(?:forwarded|original|quoted|copied|pasted)\b|.{0,200}\b(?:wrote|writes|said|says|написал\w*|пишет)\b[^.!?]{0,80}:\s*$|.{0,200}(?:写道|说)[:：]\s*$",
    re.IGNORECASE,
)
_BLOCK = re.compile(r"\s*(?:>|```|~~~|[-*•]\s|\d{1,3}[.)]\s)")
_END = re.compile(r"[^\w]*$")
_TAILS = 4
_FEW_WORDS = 2


def ends(after: str, slot: str) -> bool:
    """Return whether the words of a sentence after a statement leave it as it is: none, a few, or another clause."""
    own = _TAILS_OF.get(slot)
    for _ in range(_TAILS):
        if _END.match(after):
            return True
        tail = _TAIL.match(after) or (own.match(after) if own else None)
        if tail is None:
            break
        after = after[tail.end() :]
    return _END.match(after) is not None or _NEXT_CLAUSE.match(after) is not None


def is_doubtful(text: str) -> bool:
    """Return whether a sentence has a sign of a joke or of fiction."""
    return _DOUBT.search(text) is not None


def goes_on(after: str) -> bool:
    """Return whether a message goes on after a sentence without taking it back; a short remark may do so."""
    rest = after.lstrip(" \n\t.!…。！")
    following = re.split(r"[.!?…。！？\n]", rest, maxsplit=1)[0]
    is_short = (
        bool(following) and len(following.split()) <= _FEW_WORDS and following.isascii() and not _SHORT.match(following)
    )
    return not (_TAKES_BACK.match(after) or _MEANT.search(after) or _DOUBT.match(following) or is_short)


def is_of_speaker(clause: str) -> bool:
    """Return whether a clause is one in which somebody tells of the speaker or of somebody near."""
    return _SPEAKER.match(clause) is not None and _DOUBT.search(clause) is None


def is_told(line: str) -> bool:
    """Return whether a line without an end is what the speaker says, and no title."""
    return _TOLD.match(line) is not None and is_of_speaker(line)


def is_of_program(line: str) -> bool:
    """Return whether a line has the form of a program, a heading or a table."""
    return _PROGRAM.match(line) is not None


def is_head(line: str) -> bool:
    """Return whether a line has the form of the head of a message that was copied."""
    return _CLOCK.match(line.strip()) is not None or _FORWARDED.match(line) is not None


def is_block(line: str) -> bool:
    """Return whether a line begins a quotation, a program or an item."""
    return _BLOCK.match(line) is not None


def is_sentence(line: str) -> bool:
    """Return whether a line ends as a sentence does."""
    return line.rstrip(' *_"”»)').endswith((".", "!", "?", "…", ",", "。", "！", "？", "，", ";"))
