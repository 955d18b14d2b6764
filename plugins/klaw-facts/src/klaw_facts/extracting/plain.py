"""The words that may stand around a statement in a message: closed lists, of which nothing changes what is stated.

English, Russian and Chinese.
"""

from __future__ import annotations

import re

from klaw_words.lazy_patterns import lazy_pattern

_MONTH = (
    r"(?:january|february|march|april|may|june|july|august|september|october|november|december"
    r"|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)\b\.?"
)
_RU_MONTH = r"(?:январ|феврал|март|апрел|ма[яйе]|июн|июл|август|сентябр|октябр|ноябр|декабр)[а-я]*"
_YEAR = r"(?:19|20)\d\d"
_WEEKDAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_DAY = (
    rf"(?:{_YEAR}-\d\d-\d\d|{_MONTH} \d{{1,2}}(?:st|nd|rd|th)?(?:,? {_YEAR})?"
    rf"|(?:the )?\d{{1,2}}(?:st|nd|rd|th)? (?:of )?{_MONTH}(?:,? {_YEAR})?|\d{{1,2}}\.\d{{1,2}}\.{_YEAR})"
)
_PERIOD = rf"(?:{_YEAR}|{_MONTH}(?:,? {_YEAR})?)"
_NAMED = rf"(?:week(?:end)?|month|year|{_MONTH}|{_WEEKDAY})"
_COUNT = r"(?:\d{1,3}|an?|one|two|three|four|five|six|seven|eight|nine|ten)"
_RU_SPAN = r"(?:год|месяц|неделю|(?:\d+|два|две|три|четыре|пять) (?:года?|лет|месяц\w*|недел\w+|дня|дней))"
#: When something happened, or will happen.
AT = (
    rf"(?:(?:in|from) (?:early |late )?{_PERIOD}|(?:on |from )?{_DAY}|on {_WEEKDAY}|(?:last|this|next) {_NAMED}"
    rf"|{_COUNT} (?:day|week|month|year)s? ago|(?:the )?day before yesterday|(?:the )?day after tomorrow|yesterday|today|tomorrow|in {_COUNT} (?:day|week|month|year)s?"
    rf"|(?:в|с) {_YEAR}(?:(?:-?м)? год[ау])?|(?:в|с) {_RU_MONTH}(?: {_YEAR}(?: года)?)?|(?:с )?\d{{1,2}} {_RU_MONTH}(?: {_YEAR}(?: года)?)?"
    rf"|(?:в|с) (?:прошл|эт|следующ)\w+ (?:год[уа]|месяц[еа])|(?:на|с) (?:прошл|эт|следующ)\w+ недел\w|вчера|позавчера|сегодня|завтра|послезавтра"
    rf"|{_RU_SPAN} назад)"
)
#: Since when something is so.
SINCE = (
    rf"(?:(?:since|as of|from) (?:(?:last )?{_NAMED}|{_PERIOD}|{_DAY}|yesterday)"
    rf"|с (?:{_YEAR}(?: года)?|{_RU_MONTH}(?: {_YEAR}(?: года)?)?|прошл\w+ (?:года|месяца|недели)|\d{{1,2}} {_RU_MONTH}(?: {_YEAR}(?: года)?)?))"
)
#: For how long something has been so, which says nothing that can be read.
LASTING = (
    rf"for (?:(?:about|over|almost|nearly) )?(?:the (?:last|past) )?{_COUNT} (?:year|month|week)s?(?: now| already)?"
)
#: The same, of years.
FOR_YEARS = LASTING.replace("(?:year|month|week)", "year")
#: At present, as everything that has no time.
NOW = (
    rf"(?:right now|now|these days|nowadays|currently|at the moment|at present|again|permanently|too|by the way|btw"
    rf"|for (?:about |over )?{_COUNT} (?:year|month|week)s? (?:now|already)|full[- ]time|part[- ]time"
    rf"|сейчас|теперь|снова|опять|уже {_RU_SPAN}|тоже)"
)
#: The same before a statement.
STILL = rf"(?:now|currently|at the moment|these days|теперь|сейчас|уже {_RU_SPAN})"
#: A time in a Chinese sentence, between the subject and the verb.
ZH_NOW = r"(?:现在|已经|目前|刚刚?|最近)"
ZH_AT = (
    r"(?:上个?月|上个?周|上个?星期|去年|今年|昨天|大?前天|今天|明天|大?[后後]天|下个?月|下个?周|下个?星期|明年|\d{4}年(?:\d{1,2}月(?:\d{1,2}[日号])?)?"
    r"|\d{1,2}月(?:\d{1,2}[日号])?|[一二三四五六七八九十两\d]{1,3}(?:天|周|个星期|个月|年)前|[从自](?:去年|今年|上个?月|昨天|明年|\d{4}年(?:\d{1,2}月(?:\d{1,2}[日号])?)?|\d{1,2}月(?:\d{1,2}[日号])?)(?:起|开始))"
)
_KIN = r"(?:wife|husband|partner|kids|children|son|daughter|sons|daughters|parents|family|girlfriend|boyfriend|dogs?|cats?)"
#: Who is there too.
COMPANY = (
    rf"(?:with (?:(?:my|our) )?(?:(?:two|three|four|\d) )?{_KIN}(?: and (?:my |our )?(?:(?:two|three|four|\d) )?{_KIN})?"
    r"|with (?-i:[A-Z][a-z]+)(?: and (?-i:[A-Z][a-z]+))?|с (?:женой|мужем|семь[её]й|детьми|родителями)|for work|for a new job)"
)
#: Of whom a statement tells: the speaker, alone or with others.
I_AND = rf"(?:i|we|my (?:{_KIN}) and i)"
RU_I = r"(?:я|мы|мы с (?:женой|мужем|семь[её]й))"

#: The heads of titles and names of professions.
TITLE = (
    r"(?:lead|leader|manager|director|head|chief|engineer|developer|programmer|supervisor|officer|analyst|designer|architect|president|vp"
    r"|ceo|cto|cfo|coo|partner|associate|professor|captain|sergeant|lieutenant|editor|coordinator|consultant|foreman|chef|nurse|teacher"
    r"|principal|executive|specialist|administrator|scientist|secretary|accountant|producer|strategist|controller|superintendent|doctor|dentist"
    r"|lawyer|student|researcher|driver|cook|waiter|waitress|baker|carpenter|electrician|plumber|mechanic|technician|pharmacist|therapist"
    r"|psychologist|journalist|translator|photographer|librarian|gardener|farmer|firefighter|paramedic|midwife|cashier|clerk|receptionist|tutor|pilot|vet|surgeon|barista|hairdresser|paralegal)"
)
# Professions that say what a person works as, and what may stand before them.
_PROFESSION = (
    r"(?:engineer|developer|programmer|analyst|designer|architect|accountant|consultant|chef|nurse|teacher|scientist|secretary|doctor|dentist"
    r"|lawyer|researcher|baker|carpenter|electrician|plumber|mechanic|technician|pharmacist|therapist|psychologist|journalist|translator|photographer"
    r"|librarian|gardener|farmer|firefighter|paramedic|midwife|cashier|clerk|receptionist|tutor|pilot|vet|veterinarian|surgeon|barista|waiter|waitress|welder|physiotherapist|social worker|police officer|civil servant|butcher|florist|bricklayer"
    r"|hairdresser|paralegal|professor|salesperson|optician|radiographer|nutritionist|economist|geologist|biologist|chemist|physicist|statistician)"
)
_FIELD = (
    r"(?:senior|junior|lead|staff|freelance|self-employed|licensed|registered|software|data|civil|mechanical|electrical|chemical|industrial|structural"
    r"|network|systems?|security|web|frontend|backend|full[- ]stack|mobile|machine learning|graphic|interior|product|ux|school|primary school"
    r"|secondary school|high school|kindergarten|maths?|music|language|physics|history|english|tax|management|financial|business|research|veterinary"
    r"|dental|truck|taxi|bus|train|airline|landscape|sous|pastry|assistant|associate|social)"
)
#: What somebody works as.
A_PROFESSION = rf"(?:{_FIELD} ){{0,2}}{_PROFESSION}"
_NO_CLUB = r"(?!(?:[\w&-]+ ){0,2}(?:club|team|band|choir|society|association|league|parish|class|family|house)\b)"
_AREA = (
    rf"(?:{_FIELD}|team|project|products?|marketing|sales|account|office|hr|human resources|operations|engineering|it|qa|test|store|shop|regional"
    r"|national|deputy|vice|general|executive|managing|creative|art|technical|scrum|community|content|communications|finance|legal|policy"
    r"|program(?:me)?|quality|customer (?:service|success)|principal|chief|head)"
)
#: A short title.
A_TITLE = (
    rf"(?:(?!(?:no|not|never|former|ex|aspiring|fake)\b)[\w/&-]+ ){{0,3}}{TITLE}(?: of {_NO_CLUB}(?:[\w&-]+ ?){{1,3}})?"
)
#: What somebody has become, which may be "a better driver", too.
A_POSITION = rf"(?:{A_PROFESSION}|(?:{_AREA} ){{0,2}}(?!(?:student|driver|cook)\b){TITLE}(?: of {_NO_CLUB}(?:[\w&-]+ ?){{1,3}})?)"
RU_PROFESSION = r"(?:врач|учитель(?:ница)?|инженер|программист|разработчик|дизайнер|юрист|медсестра|бухгалтер)"
#: The same after "работаю".
RU_AS_PROFESSION = (
    r"(?:врачом|учителем|учительницей|инженером|программистом|разработчиком|дизайнером|юристом|медсестрой|бухгалтером|менеджером|аналитиком"
    r"|поваром|продавцом|водителем|переводчиком)"
)
_RU_WORK = rf"(?:студент\w*|{RU_PROFESSION})"

#: What may stand before a statement, in any number.
LEAD = (
    r"(?:(?:(?:hi|hello|hey),? (?-i:[A-Z][a-z]+(?=[,!]))|(?:no|nope|нет|不|不对|不是)(?=[,，])|hi|hello|hey|hiya|good (?:morning|afternoon|evening)|thanks|thank you|yes|yeah|ok|okay|well|um|uh|so|also|and|actually|anyway|sorry|correction|i have news"
    r"|by the way|btw|fyi|for your information|for the record|just so you know|in short|as (?:you know|i (?:said|told you))|dear team|morning"
    r"|(?:some |good |great |big )?news|update|about me|(?:fun |quick )?fact|ps|nb|i(?:'m| am) (?:happy|glad|proud|excited) to (?:say|report) that"
    r"|(?:please )?(?:note|remember|keep in mind)(?: that)?|to answer your question|i (?:want to|should|wanted to) (?:say|mention|tell you) that"
    r"|привет|всем привет|здравствуйте?|добрый (?:день|вечер)|доброе утро|да|извините|извини|кстати|запомни|запомните|обо мне|вообще-то"
    r"|你好|您好|大家好|嗨|抱歉|对不起|对了|其实|顺便说一下|顺便|请?记住|另外|事实上)"
    r"(?: (?:there|all|everyone|everybody|klaw|assistant)\b)?[,，:：!！]?\s*(?<![a-zа-яё]))"
)

# Sentences and clauses beside a statement that leave it as it is.
_BESIDE = (
    r"(?:(?:hi|hello|hey|hiya|good (?:morning|afternoon|evening)|morning|greetings)(?:,? (?:there|all|everyone|everybody|klaw|assistant|team|(?-i:[A-Z][a-z]+)))?"
    r"|(?:thanks|thank you|many thanks|thx|cheers)(?: a lot| so much| very much| for (?:your|the) help| in advance)?|yes|yeah|yep|ok|okay|great|please|yes,? please"
    r"|(?:it(?:'s| is) )?(?:nice|pleased|good|happy|glad) to (?:meet|see) you(?: all)?|how are you(?: doing)?(?: today)?\?"
    r"|(?:can|could) you (?:please )?help(?: me)?(?: please)?\?|i need (?:some |your )?help|what(?:'s| is) the weather(?: like)?(?: there| here| today| tomorrow)?\?"
    r"|(?:please )?(?:remember|note|save|store) (?:this|that|it)(?: please)?|(?:please )?(?:update|remember) my (?:profile|address|details|data)"
    rf"|(?:i(?:'m| am)|we(?:'re| are)) (?:new here|back|married|retired|single|\d{{1,2}}(?: years old)?|an? (?:(?:software|data|civil|school|retired) )?{TITLE})"
    r"|i(?:'ve| have)? (?:have |got )?(?:an?|one|two|three|four|some) (?:cats?|dogs?|kids?|children|sons?|daughters?|brothers?|sisters?)"
    r"|(?:(?:i|we) )?(?:really )?(?:like|love) (?:it|it here|it there|this city|the city)|i(?:'m| am) from (?-i:[A-Z]\w+(?: [A-Z]\w+)?)"
    r"|it(?:'s| is) (?:very |so )?(?:cold|hot|rainy|sunny|windy|nice|warm)(?: here| there)?(?: today)?|we have (?:a baby|kids|two kids)"
    r"|привет|всем привет|здравствуйте?|добрый (?:день|вечер)|доброе утро|спасибо(?: большое)?|да|приятно познакомиться|рада? знакомству"
    rf"|мне \d{{1,2}} (?:лет|год|года)|я {_RU_WORK}|у меня (?:есть )?(?:(?:одна|две|три|один|два|\d) )?(?:кошк\w|собак\w|сын\w*|дочь|дочери|дет\w+)"
    r"|как дела\?|помоги(?:те)? мне(?:,? пожалуйста)?|запомни(?:те)?(?: это)?(?:,? пожалуйста)?"
    r"|你好|您好|大家好|嗨|谢谢|谢谢你|是的|很高兴(?:认识|见到)(?:你|大家|您)|请?记住(?:这个)?|天气很(?:热|冷|好)|我今年\d{1,2}岁|我是(?:学生|老师|医生|护士|工程师|程序员|律师|设计师))"
)
#: The end of a sentence: a point, and at most a friendly sign.
_END = lazy_pattern(r"\s*[.!。！]*(?:\s*(?::-?\)|[🙂😊🎉👍]))?\s*$")
_IS_BESIDE = lazy_pattern(rf"(?:{LEAD}+\s*)?{_BESIDE}", re.IGNORECASE)
_IS_LEAD = lazy_pattern(rf"{LEAD}*", re.IGNORECASE)


def without_end(sentence: str) -> str:
    """Return a sentence without its end, if it ends as a statement does. A question keeps its mark."""
    return _END.sub("", sentence)


def end_of_lead(clause: str) -> int:
    """Return where the words end that may stand before a statement."""
    lead = _IS_LEAD.match(clause)
    return 0 if lead is None else lead.end()


def is_beside(clause: str) -> bool:
    """Return whether a clause is of those that may stand beside a statement: a greeting, thanks, or about the speaker."""
    return _IS_BESIDE.fullmatch(clause) is not None or 0 < end_of_lead(clause) == len(clause)
