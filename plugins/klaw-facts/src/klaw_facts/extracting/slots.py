"""Declared slots, such as name, home and deadline: the plain forms of statements, in English, Russian and Chinese.

A slot is taken from a message only if each sentence of it has a form that is known: a statement with a plausible value,
a time at most, and the end of the sentence; or a greeting, thanks, or one of a few others that change nothing. Whatever
else is said may make the statement somebody else's, or take it back: then it is in doubt, and there is no slot.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache, lru_cache

from attrs import evolve, frozen

from klaw_facts.extracting import endings, names, plain
from klaw_facts.extracting.organisations import is_organisation
from klaw_facts.extracting.places import is_place, key_of
from klaw_facts.extracting.sentences import Sentence, sentences
from klaw_facts.values import normalised
from klaw_words.dates import resolve
from klaw_words.lazy_patterns import lazy_pattern

_MONTHS = (
    r"(?:january|february|march|april|may|june|july|august|september|october|november|december"
    r"|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)"
)
_DATE = (
    rf"(?:\d{{4}}-\d{{2}}-\d{{2}}|{_MONTHS}\.?\s+\d{{1,2}}(?:st|nd|rd|th)?(?:,?\s+\d{{4}})?"
    rf"|\d{{1,2}}(?:st|nd|rd|th)?\s+(?:of\s+)?{_MONTHS}(?:,?\s+\d{{4}})?"
    r"|\d{1,2}\s+(?:января|февраля|марта|апреля|мая|июня|июля|августа|сентября|октября|ноября|декабря)(?:\s+\d{4})?(?=\s+года|\W|$)"
    r"|(?:\d{4}年)?\d{1,2}月\d{1,2}[日号])"
)
_VALUE = "(?P<value>{})"
_HAN = "(?-i:[一-鿿])"  # without case, or `re` looks for the other case of each of them
# A lower-case word is part of a name only before a capital: "Rio de Janeiro".
_CAPITALS = r"(?-i:[A-ZÀ-Ž][\w’'.-]*(?:(?: (?:de|la|of|the|upon|am))*,? [A-ZÀ-Ž][\w’'-]*)*)"
_RU_CAPITALS = r"(?-i:[А-ЯЁ][а-яё-]+(?:[ -](?:на-)?[А-ЯЁ][а-яё-]+){0,2})"
_NAME = r"(?-i:(?!(?:I|The|A)\b)[A-ZÀ-Ž][a-zß-ž’'-]+(?:[ -](?:(?:de|van|von|der|la|el) )?[A-ZÀ-Ž][\w’'-]*){0,3})"
_RU_NAME = r"(?-i:[А-ЯЁ][а-яё-]+(?: [А-ЯЁ][а-яё-]+){0,2})"
# Days and months, at which people are called.
_DAY_NAME = r"(?!(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day|january|february|march|july|september|october|november|december|today|tonight|tomorrow|later|back|again|christmas|easter)\b)"
_PLACE, _RU_PLACE, _ZH_PLACE = _VALUE.format(_CAPITALS), _VALUE.format(_RU_CAPITALS), _VALUE.format(f"{_HAN}{{2,12}}?")
_ORGANISATION = _VALUE.format(r"(?-i:[A-ZÀ-Ž0-9][\w&’'.+-]*(?: (?:of |and |& |de )?[A-ZÀ-Ž0-9][\w&’'.+-]*){0,4})")
_LATIN_ORGANISATION = r"(?-i:[A-Z][\w&.-]*(?: [A-Z][\w&.-]*){0,3})"
# Well-known employers without letters of another alphabet, and names beside what they are.
_RU_ORGANISATION = _VALUE.format(
    rf"(?:(?:компании|фирме|банке|агентстве|университете|издательстве) )?«?(?:{_LATIN_ORGANISATION}|(?:Яндекс|Сбер|Сбербанк|Озон|Газпром|Роснефт|Лукойл|Ростелеком|Росатом|Авито|Тинькофф)[а-яё]{{0,2}}"
    rf"|(?<=компании )«?{_RU_CAPITALS}|(?<=фирме )«?{_RU_CAPITALS}|(?<=компании «){_RU_CAPITALS}|(?<=фирме «){_RU_CAPITALS})»?"
)
_ZH_COMPANIES = (
    r"(?:谷歌|微软|苹果公司|亚马逊|华为|腾讯|阿里巴巴|百度|京东|美团|字节跳动|小米公司|联想|中兴|网易|滴滴|拼多多|比亚迪|大疆|海尔|格力"
    r"|西门子|博世|英特尔|三星|索尼|丰田|特斯拉|中国移动|中国电信|中国联通|中国银行|工商银行|建设银行|农业银行|招商银行|平安保险)"
)
_ZH_ORGANISATION = _VALUE.format(
    rf"{_ZH_COMPANIES}(?:公司)?|[A-Za-z][\w .&-]{{1,20}}|(?P<where>{_HAN}{{2,5}})(?:大学|医院|银行|日报)"
)
_LANGUAGES = (
    r"(?:English|German|French|Spanish|Italian|Portuguese|Dutch|Danish|Swedish|Norwegian|Finnish|Polish|Czech|Slovak|Hungarian|Romanian|Bulgarian"
    r"|Greek|Turkish|Russian|Ukrainian|Serbian|Croatian|Slovenian|Estonian|Latvian|Lithuanian|Arabic|Hebrew|Persian|Hindi|Urdu|Bengali|Tamil|Telugu|Marathi|Gujarati|Punjabi|Kannada|Malayalam"
    r"|Chinese|Mandarin|Cantonese|Japanese|Korean|Vietnamese|Thai|Indonesian|Malay|Swahili|Catalan|Basque|Irish|Welsh)"
)
_RU_TITLE = (
    r"(?=(?:[\w-]+ ){0,2}(?:руководител|начальник|директор|менеджер|инженер|лид|тимлид|разработчик|заместител|управляющ|координатор|аналитик"
    r"|архитектор|бригадир|капитан|профессор|редактор|вед[ую]щ|старш|главн))[а-яё-]+(?: [а-яё-]+){0,3}?"
)
_ZH_TITLE = rf"{_HAN}{{0,8}}?(?:经理|主管|总监|组长|部长|主任|工程师|总裁|教授|院长|校长|店长|老师|医生|护士|律师|设计师|程序员)"
_ZH_PROFESSION = r"(?:老师|医生|护士|工程师|程序员|律师|设计师)"
_ZH_LANGUAGES = r"(?:中文|汉语|普通话|粤语|英文|英语|德语|法语|西班牙语|俄语|日语|韩语|意大利语|葡萄牙语|阿拉伯语)"
_RU_LANGUAGES = r"(?:русск|английск|немецк|французск|испанск|итальянск|китайск|японск|татарск|украинск|белорусск|казахск|польск|турецк)"
_EMAIL = r"[A-Za-z0-9_.+-]+@(?:[A-Za-z0-9-]+[.])+[A-Za-z]{2,}"
_PHONE = r"[+(]?[0-9][0-9 ()-]{5,}[0-9]"
_ZONE = (
    r"(?-i:(?:UTC|GMT)(?:[+-][0-9]{1,2}(?::[0-9]{2})?)?|[+-][0-9]{2}:?[0-9]{2}|[ECMP][SD]?T|AK[SD]T|HST|BST|WES?T|CES?T|EES?T|MSK|IST|PKT"
    r"|ICT|SGT|HKT|JST|KST|A[EC][SD]T|AWST|NZ[SD]T|SAST|BRT|ART"
    r"|(?:Africa|America|Antarctica|Arctic|Asia|Atlantic|Australia|Europe|Indian|Pacific)/[A-Z][A-Za-z_/-]+)"
)
# The name of a program before its version: not a room, a plan or a place.
_PRODUCT = (
    r"(?P<topic>(?!(?:Room|Apartment|Apt|Suite|Floor|Level|Phase|Stage|Chapter|Tier|Plan|Class|Grade|Gate|Row|Seat|Area|Unit|Building|House|Section"
    r"|Page|Part|Step|Round|Team|Group|Zone|Line|Platform|Track|Lane|Season|Episode|Game|Route|Highway|Interstate|Road|Channel|Exit|Heat|Over|About|Around|Nearly|Only|At|Under|Almost"
    rf"|{_MONTHS})\b)(?-i:[a-z]{{0,2}}[A-Z])[\w.+#-]{{1,25}})"
)
_VERSION = r"(?:version )?v?(?P<value>\d+(?:\.\d+)*)"
_DOTTED = r"(?:version )?v?(?P<value>\d+(?:\.\d+)+)"
_OTHERS = r"(?:,? (?:and )?[A-Z][\w.+#-]{1,25} v?\d+(?:\.\d+)+)*(?: for (?:my|our|the) (?:\w+ )?(?:app|project|website|site|layout|styling|server))?"
_TOPIC = (
    r"(?P<topic>(?!(?:is|was|are|not|no|never|if)\b)[\w/-]{2,}(?: (?!(?:is|was|are|not|no|never|if)\b)[\w/-]+){0,3})"
)
# What is due when somebody has to hand it in or pay it. A baby, a train and a cow are due, too.
_TASK = (
    r"(?:report|paper|thesis|dissertation|essay|homework|assignment|coursework|project|proposal|application|budget|plan|audit|draft|review|presentation"
    r"|slides|manuscript|article|chapter|translation|invoice|bill|payment|rent|tax(?:es)?|return|contract|offer|bid|tender|grant|alpha|beta|release"
    r"|milestone|feature|sprint|design|prototype|deliverables?|feedback|evaluation|survey|portfolio|renewal|form|registration|statement|summary"
    r"|documentation|docs|spec|specification|code|patch|fix|migration|newsletter|brochure|book|script|demo|submission|permit|abstract|poster"
    r"|minutes|estimate|quote|forecast|roadmap|website|app|launch)"
)
_DUE = r"(?:deadline|due date|launch(?: date)?|release(?: date)?)"
_IS = (
    r"(?: (?:is|will be)(?: now)?(?: on| by| set (?:to|for))?"
    r"|(?: (?:has been|was|is|got)(?: now| again)?)? (?:set (?:to|for)|moved to|pushed to|extended to|changed to))"
)
_MOVED = r"(?:moved|pushed|shifted|postponed|rescheduled|extended|changed|delayed|brought forward)(?: back| out| up| forward)?"
_FROM = rf"(?: from {_DATE})?"

_I = rf"{plain.I_AND}(?:['’]m| am| are|['’]re)?"
_I_HAVE = rf"{plain.I_AND}(?:['’]ve| have)?(?: just| recently| finally)?"
_I_HAVE_BEEN = rf"{plain.I_AND}(?:['’]ve| have)(?: now)? (?:been )?"
_LONG = rf" (?:(?P<time>{plain.SINCE})|{plain.LASTING})"
_MATE = r"(?:wife|husband|partner|spouse|girlfriend|boyfriend|fianc[ée]e?)"
_ADVERB = r"(?: now| currently| still| already| just| finally)?"
_ZH_I = "我们?"

# (slot, kind, form, words): what has the form has one of the words. Kinds: "state", which is true now, perhaps since a time; "event", which happened at a time; "plan",
# which will be true at a time; "timeless"; and "zh-state", "zh-event" and "zh-plan" with {} for the time.
_FORMS: tuple[tuple[str, str, str, tuple[str, ...]], ...] = (
    (
        "name",
        "timeless",
        rf"my (?:full )?name(?:['’]s| is| is now) {_VALUE.format(_NAME)}(?:,? (?:and )?(?:i(?:['’]m| am) )?from {_CAPITALS})?",
        ("name",),
    ),
    (
        "name",
        "timeless",
        rf"(?:please|you can|you may|just|everyone can|people can),? call me {_DAY_NAME}{_VALUE.format(_NAME)}",
        ("call me",),
    ),
    ("name", "timeless", rf"call me {_DAY_NAME}{_VALUE.format(f'(?-i:{names.ENGLISH})')}", ("call me",)),
    (
        "name",
        "timeless",
        rf"(?:i(?:['’]m| am)|myself) {_VALUE.format(f'(?-i:{names.ENGLISH})')}(?:,? from {_CAPITALS})?",
        ("i'm", "i’m", "i am", "myself"),
    ),
    (
        "name",
        "timeless",
        rf"(?:меня зовут|мо[её] имя(?: ?[—–-])?) {_VALUE.format(_RU_NAME)}(?:,? (?:и )?я из {_RU_CAPITALS})?",
        ("зовут", "имя"),
    ),
    ("name", "timeless", rf"(?:я(?: ?[—–-])?|это) {_VALUE.format(f'(?-i:{names.RUSSIAN})')}", ("я", "это")),
    ("name", "timeless", rf"我(?:的名字)?(?:叫|是|是叫){_VALUE.format(names.CHINESE)}", ("我",)),
    (
        "home",
        "state",
        rf"{_I}{_ADVERB} (?:live|living|based|reside|residing) in (?:the )?{_PLACE}",
        ("live", "living", "based", "resid"),
    ),
    (
        "home",
        "state",
        rf"(?:my|our) home is in (?:the )?{_PLACE}|{_I} an? residents? of (?:the )?{_PLACE.replace('value', 'value2')}",
        ("home", "resident"),
    ),
    (
        "home",
        "timeless",
        rf"{_I_HAVE_BEEN}(?:lived|living|based|resided|residing) in (?:the )?{_PLACE}{_LONG}",
        ("liv", "based", "resid"),
    ),
    ("home", "timeless", rf"{_I} (?:live|living) (?P<time>{plain.SINCE}) in {_PLACE}", ("liv",)),
    (
        "home",
        "event",
        rf"{_I_HAVE} (?:moved|relocated)(?: back| permanently)?(?: from (?:the )?{_CAPITALS})? to (?:the )?{_PLACE}",
        ("moved", "relocated"),
    ),
    (
        "home",
        "state",
        rf"(?:{plain.RU_I} )?(?:(?:теперь|сейчас|всё ещё|по-прежнему) )?(?:живу|жив[её]м) в {_RU_PLACE}",
        ("жив",),
    ),
    (
        "home",
        "event",
        rf"{plain.RU_I}(?: недавно| только что| наконец)? переехал[аи]?(?: из {_RU_CAPITALS})? в {_RU_PLACE}",
        ("переехал",),
    ),
    ("home", "zh-state", rf"(?:{_ZH_I}{{}}(?:居?住在)|我们?家在){_ZH_PLACE}", ("住在", "家在")),
    ("home", "zh-event", rf"{_ZH_I}{{}}(?:(?:从{_HAN}{{2,5}})?搬(?:到|去)了?){_ZH_PLACE}了?", ("搬",)),
    (
        "employer",
        "state",
        rf"{_I}{_ADVERB} (?:(?:work|working)(?: remotely| full[- ]time| part[- ]time)? (?:at|for|in)|employed (?:at|by|with)) (?:the )?{_ORGANISATION}(?: as an? {plain.A_TITLE})?(?: in (?P<where>{_CAPITALS}))?",
        ("work", "employed"),
    ),
    ("employer", "timeless", rf"my (?:new )?employer is (?:the )?{_ORGANISATION}", ("employer",)),
    (
        "employer",
        "timeless",
        rf"{_I_HAVE_BEEN}(?:(?:work(?:ing|ed)|employed) )?(?:at|for|by|with) (?:the )?{_ORGANISATION}{_LONG}",
        ("at ", "for ", "by ", "with "),
    ),
    (
        "employer",
        "timeless",
        rf"{_I} (?:work|working) (?P<time>{plain.SINCE}) (?:at|for) (?:the )?{_ORGANISATION}",
        ("work",),
    ),
    (
        "employer",
        "event",
        rf"{_I_HAVE} (?:started (?:working )?(?:at|for)|(?:got|landed|found|started) (?:a|my)(?: new)? job (?:at|with)) (?:the )?{_ORGANISATION}(?: as an? {plain.A_TITLE})?",
        ("started", "job"),
    ),
    ("employer", "event", rf"{_I_HAVE} joined {_ORGANISATION} as an? {plain.A_TITLE}", ("joined",)),
    ("employer", "state", rf"(?:я )?(?:(?:теперь|сейчас) )?работаю в {_RU_ORGANISATION}", ("работаю",)),
    (
        "employer",
        "event",
        rf"я(?: недавно)? (?:начала? работать|устроил(?:ся|ась)(?: на работу)?) в {_RU_ORGANISATION}",
        ("работать", "устроил"),
    ),
    ("employer", "zh-state", rf"我{{}}在{_ZH_ORGANISATION}(?:工作|上班|(?:做|当|担任){_ZH_TITLE})", ("在",)),
    ("employer", "zh-state", rf"我{{}}就职于{_ZH_ORGANISATION}", ("就职于",)),
    ("employer", "zh-event", rf"我{{}}开始在{_ZH_ORGANISATION}(?:工作|上班)", ("开始",)),
    (
        "job_title",
        "state",
        rf"my (?:new )?(?:job )?title is {_VALUE.format(plain.A_TITLE)}|i(?: now)? work as an? (?P<value2>{plain.A_TITLE})(?: (?:at|for) {_CAPITALS})?",
        ("title", "work as"),
    ),
    (
        "job_title",
        "state",
        rf"i(?:['’]m| am)(?: now)? (?:an? )?{_VALUE.format(plain.A_PROFESSION)}(?: by (?:trade|profession))?(?: (?:at|for) (?:the )?{_CAPITALS})?",
        ("i'm", "i’m", "i am"),
    ),
    (
        "job_title",
        "timeless",
        rf"{_I_HAVE_BEEN}(?:(?:work(?:ing|ed) )?as )?(?:an? |the )?{_VALUE.format(plain.A_TITLE)}(?: (?:at|for) {_CAPITALS})?{_LONG}",
        ("ve",),
    ),
    (
        "job_title",
        "event",
        rf"{_I_HAVE} (?:became|become) (?:an? |the )?{_VALUE.format(plain.A_TITLE)}",
        ("beca", "beco"),
    ),
    (
        "job_title",
        "state",
        rf"(?:я )?работаю {_VALUE.format(plain.RU_AS_PROFESSION)}|я(?: ?[—–-])? (?P<value2>{plain.RU_PROFESSION})",
        ("я", "работаю"),
    ),
    ("job_title", "timeless", rf"我是(?:一[名位个])?{_VALUE.format(_ZH_PROFESSION)}", ("我是",)),
    (
        "job_title",
        "timeless",
        rf"моя (?:новая )?должность ?(?:[—:-] ?)?{_VALUE.format(_RU_TITLE)}|我的职位是(?P<value2>{_ZH_TITLE})",
        ("должность", "职位"),
    ),
    (
        "job_title",
        "event",
        rf"i(?:['’]ve| have)?(?: just| recently| finally)? (?:was|got|been|have been)(?: just| recently| finally)? promoted to (?:an? |the )?{_VALUE.format(plain.A_TITLE)}(?: at {_CAPITALS})?",
        ("promoted",),
    ),
    (
        "job_title",
        "event",
        rf"меня (?:недавно |только что |наконец )?повысили до {_VALUE.format(_RU_TITLE)}",
        ("повысили",),
    ),
    (
        "job_title",
        "zh-event",
        rf"我{{}}(?:被)?(?:升职为|晋升为|提拔为|升任|升为){_VALUE.format(_ZH_TITLE)}了?",
        ("我",),
    ),
    (
        "birthday",
        "timeless",
        rf"my (?:birthday|b-?day|date of birth|birth date)(?:['’]s| is| falls)(?: on)?(?: the)? {_VALUE.format(_DATE)}|i was born(?: on)?(?: the)? (?P<value2>{_DATE})",
        ("my b", "my date", "born"),
    ),
    (
        "birthday",
        "timeless",
        rf"(?:(?:мой|у меня) день рождения|я родил(?:ся|ась)) ?(?:[—:-] ?)?{_VALUE.format(_DATE)}(?: года)?|我(?:的生日是|出?生于)(?P<value2>{_DATE})",
        ("день рождения", "родил", "生"),
    ),
    (
        "partner",
        "timeless",
        rf"my {_MATE}(?:['’]s name is| is called) {_VALUE.format(_NAME)}",
        ("name", "called"),
    ),
    (
        "partner",
        "timeless",
        rf"my {_MATE} is {_VALUE.format(f'(?-i:{names.ENGLISH})')}",
        ("wife", "husband", "partner", "spouse", "friend", "fianc"),
    ),
    ("partner", "state", rf"i(?:['’]m| am) married to {_VALUE.format(f'(?-i:{names.ENGLISH})')}", ("married",)),
    (
        "partner",
        "event",
        rf"{_I_HAVE} (?:(?:got )?married to|married) {_VALUE.format(f'(?-i:{names.ENGLISH})')}",
        ("married",),
    ),
    (
        "partner",
        "timeless",
        rf"мо(?:ю (?:жену|девушку)|его (?:мужа|парня)) зовут {_VALUE.format(_RU_NAME)}|我的?(?:妻子|丈夫|老公|老婆|女朋友|男朋友)叫(?P<value2>{names.CHINESE})",
        ("зовут", "叫"),
    ),
    (
        "timezone",
        "timeless",
        rf"my time ?zone is {_VALUE.format(_ZONE)}|i(?:['’]m| am) in the (?P<value2>{_ZONE}) time ?zone",
        ("zone",),
    ),
    (
        "timezone",
        "timeless",
        rf"мой часовой пояс ?(?:[—:-] ?)?{_VALUE.format(_ZONE)}|我的?时区是(?P<value2>{_ZONE})",
        ("пояс", "时区"),
    ),
    (
        "timezone",
        "timeless",
        rf"i(?:['’]m| am) (?:in|on) (?!(?:ART|[ECMP]T)\b){_VALUE.format(_ZONE)}(?: now)?",
        ("i'm", "i’m", "i am"),
    ),
    (
        "language",
        "timeless",
        rf"(?:my (?:(?:native |first |preferred )?language|mother tongue) is|(?:please (?:always )?|always )(?:answer|reply|respond|write)(?: to me)? in|i(?:['’]m| am) a native speaker of)"
        rf" {_VALUE.format(f'(?-i:{_LANGUAGES})')}(?: from now on)?",
        ("language", "tongue", "please", "always", "speaker"),
    ),
    (
        "language",
        "timeless",
        rf"мой родной язык ?(?:[—:-] ?)?{_VALUE.format(_RU_LANGUAGES + 'ий')}|请?(?:总是|一直|以后都?)?用(?P<value2>{_ZH_LANGUAGES})(?:回答|回复)我?",
        ("язык", "用"),
    ),
    ("language", "timeless", rf"我的?母语是{_VALUE.format(_ZH_LANGUAGES)}", ("母语",)),
    (
        "email",
        "timeless",
        rf"(?:my (?:new |work |personal )?(?:e-?)?mail(?: address| id)?(?: is|:)|(?:you can )?(?:e?mail|reach|contact) me at) {_VALUE.format(_EMAIL)}"
        rf"|(?:моя (?:электронная )?почта|我的?(?:电子)?(?:邮箱|邮件)(?:地址)?是) ?(?:[—:-] ?)?(?P<value2>{_EMAIL})",
        ("@",),
    ),
    (
        "phone",
        "timeless",
        rf"(?:my (?:new )?(?:(?:tele)?phone|mobile|cell)(?: number)?(?: is|:)|my number is|(?:you can )?(?:call|reach|text) me (?:on|at)) {_VALUE.format(_PHONE)}"
        rf"|(?:мой (?:номер )?телефона?|我的?(?:手机|电话)(?:号码?)?是) ?(?:[—:-] ?)?(?P<value2>{_PHONE})",
        ("phone", "mobile", "cell", "number", "me ", "телефон", "手机", "电话"),
    ),
    (
        "deadline:",
        "timeless",
        rf"(?:the |my |our ){_TOPIC} {_DUE}{_IS} {_VALUE.format(_DATE)}",
        ("deadline", "due date", "launch", "release"),
    ),
    (
        "deadline:",
        "timeless",
        rf"(?:the |my |our )?{_DUE} (?:for|of) (?:the |my |our )?{_TOPIC}{_IS} {_VALUE.format(_DATE)}",
        ("deadline", "due date", "launch", "release"),
    ),
    (
        "deadline:",
        "timeless",
        rf"(?:the |my |our ){_TOPIC}(?: now)? (?:ends|finishes|targets(?: completion)?)(?: on| by| for)? {_VALUE.format(_DATE)}",
        ("end", "finishes", "targets"),
    ),
    (
        "deadline:",
        "timeless",
        rf"(?:the |my |our )(?P<topic>(?!(?:old|last|next)\b)(?:(?!(?:is|was|are|not|no|never|if)\b)[\w/-]+ ){{0,3}}{_TASK}) is(?: now)? due(?: on| by)? {_VALUE.format(_DATE)}",
        (" due",),
    ),
    (
        "deadline:",
        "timeless",
        rf"(?:the|my|our) {_DUE}(?: is| was| has(?: just| now)? been|['’]s been| got)?(?: just| now| again| officially)? {_MOVED}{_FROM} (?:to|until|till) {_VALUE.format(_DATE)}",
        ("deadline", "due date", "launch", "release"),
    ),
    (
        "deadline:",
        "timeless",
        rf"(?:the|my|our) {_DUE}(?: is now(?: on)?| is set (?:to|for)) {_VALUE.format(_DATE)}",
        ("deadline", "due date", "launch", "release"),
    ),
    (
        "deadline:",
        "timeless",
        rf"(?:i|we|they)(?:['’]ve| have)?(?: just)? (?:moved|pushed|shifted|postponed|rescheduled)(?: back)? (?:the |my |our )?(?P<topic>(?!(?:back|from|out|up|forward)\b)[\w][\w /-]{{1,40}}?){_FROM} to {_VALUE.format(_DATE)}",
        ("moved", "pushed", "shifted", "postponed", "rescheduled"),
    ),
    (
        "deadline:",
        "timeless",
        rf"(?:срок|запуск|релиз|дедлайн)\s*(?P<topic>[\w -]{{0,30}}?)\s*(?:перен[её]с\w+ на|сдвинули на|[—:-]|теперь)\s*{_VALUE.format(_DATE)}",
        ("срок", "запуск", "релиз", "дедлайн"),
    ),
    (
        "deadline:",
        "timeless",
        rf"(?P<topic>[\w -]{{0,20}}?)(?:的)?(?:截止日期|上线时间|发布日期)(?:改到了?|推迟到了?|是|定在){_VALUE.format(_DATE)}",
        ("截止日期", "上线时间", "发布日期"),
    ),
    (
        "version:",
        "event",
        rf"{_I_HAVE}(?: now)? (?:upgraded|updated|migrated|moved|switched)(?: our| the| my)? (?P<topic>(?!to\b)[A-Z]?[\w.-]{{1,25}})(?: from v?[\d.]+)? to {_DOTTED}",
        ("upgraded", "updated", "migrated", "moved", "switched"),
    ),
    (
        "version:",
        "event",
        rf"{_I_HAVE}(?: now)? (?:upgraded|updated|downgraded|rolled back) to {_PRODUCT} {_VERSION}",
        ("graded", "updated", "rolled"),
    ),
    (
        "version:",
        "event",
        rf"{_I_HAVE}(?: now)? (?:moved|migrated|switched) to {_PRODUCT} {_DOTTED}",
        ("moved", "migrated", "switched"),
    ),
    ("version:", "state", rf"(?:(?:the|our|my) )?{_PRODUCT} is(?: now)? (?:on|at) {_DOTTED}", (" on ", " at ")),
    (
        "version:",
        "event",
        rf"{_I_HAVE}(?: now)? (?:upgraded|updated)(?: our| the| my)? {_PRODUCT}(?: from v?[\d.]+)? to {_VERSION}",
        ("upgraded", "updated"),
    ),
    (
        "version:",
        "event",
        rf"{plain.RU_I}(?: недавно| только что| уже)? (?:переш[её]?ли|переш[её]л|перешла|обновились|обновился|обновилась|мигрировали) (?:на|до) {_PRODUCT} {_VERSION}",
        ("перешл", "перешёл", "перешел", "обновил", "мигрировал"),
    ),
    (
        "version:",
        "zh-event",
        rf"{_ZH_I}{{}}(?:升级|更新)到?了?\s*(?P<topic>[A-Z][\w.+#-]{{0,25}}?)\s*{_VALUE.format(r'[0-9]+(?:[.][0-9]+)*')}了?",
        ("升级", "更新"),
    ),
    (
        "version:",
        "state",
        rf"(?:(?:i|we)(?:['’]m| am|['’]re| are|['’]ve been| have been)?(?: currently| now)? (?:using|use|running|run|on)|(?:our|my|the) \w+ (?:now )?(?:uses|runs)) {_PRODUCT} {_DOTTED}{_OTHERS}",
        ("us", "run", "on "),
    ),
    (
        "port:",
        "state",
        r"(?:the |our |my )?(?P<topic>(?!(?:old|former|previous|other|wrong|new)\b)[\w-]{2,25}(?: [\w-]{2,25})?) (?:now )?(?:(?:runs|listens|is(?: running| listening)?) on|uses) port (?P<value>\d{2,5})",
        ("port ",),
    ),
    (
        "home",
        "plan",
        rf"{plain.I_AND}(?:['’]m| am|['’]re| are|['’]ll| will)?(?: be)? (?:moving|relocating|move|relocate|live|living) (?:in|to) (?:the )?{_PLACE}",
        ("mov", "relocat", "liv"),
    ),
    (
        "employer",
        "plan",
        rf"i(?:['’]m| am|['’]ll| will)?(?: be)? (?:start working|starting work|working|work) (?:at|for) {_ORGANISATION}",
        ("work",),
    ),
    (
        "employer",
        "plan",
        rf"i(?:['’]m| am|['’]ll| will)?(?: be)? (?:join|joining) {_ORGANISATION} as an? {plain.A_TITLE}",
        ("join",),
    ),
    (
        "home",
        "plan",
        rf"{plain.RU_I} (?:переезжаю|переезжаем|перееду|переедем|буду жить|будем жить) в {_RU_PLACE}",
        ("переезжа", "перееде", "перееду", "жить"),
    ),
    ("employer", "plan", rf"я (?:выхожу на работу|буду работать) в {_RU_ORGANISATION}", ("работ",)),
    ("home", "zh-plan", rf"{_ZH_I}{{}}(?:将|要|会|将要)(?:搬到|搬去|住在){_ZH_PLACE}", ("搬", "住在")),
    ("employer", "zh-plan", rf"我{{}}(?:将|要|会|将要)(?:加入|去){_ZH_ORGANISATION}(?:工作|上班)", ("加入", "去")),
)
# What is said of a time before the statement, and after it.
_TIMES = {
    "state": (plain.SINCE, rf"(?:(?P<time>{plain.SINCE})|{plain.NOW})"),
    "event": (plain.AT, rf"(?:(?P<time>{plain.AT})|{plain.NOW})"),
    "plan": (plain.AT, rf"(?P<time>{plain.AT})"),
}
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
_OTHER_WORDS = frozenset(
    [
        "hope",
        "java",
        "mission",
        "mobile",
        "nice",
        "normal",
        "orange",
        "page",
        "paradise",
        "reading",
        "split",
        "victoria",
    ]
)
_MISSPELT = ("im ", "i m ", "ive ", "dont ", "s name")
_SPELLINGS = (
    (lazy_pattern(r"\bi ?m\b", re.IGNORECASE), "I'm"),
    (lazy_pattern(r"\bive\b", re.IGNORECASE), "I've"),
    (lazy_pattern(r"\bdont\b", re.IGNORECASE), "don't"),
    (lazy_pattern(r"\b(wife|husband|partner|girlfriend|boyfriend)s (?=name)", re.IGNORECASE), r"\1's "),
)
_NOTHING = lazy_pattern(r"[ ,.»«]*(?:right now|now|currently|at the moment|these days|工作|上班)?了?", re.IGNORECASE)
_COMMON_NAME = lazy_pattern(f"{names.ENGLISH}|{names.RUSSIAN}")
_IN_PROGRAM = lazy_pattern(r"[а-яё一-鿿]|\bwork(?:ing)?(?: remotely)? in ", re.IGNORECASE)
# Names and addresses that stand for anybody's.
_PLACEHOLDER = lazy_pattern(
    r"\b(?:doe|mustermann|musterfrau|bloggs|lastname|surname)$|^(?:user|name|foo|bar|test|someone|you|your[._]?(?:name|email))@",
    re.IGNORECASE,
)
_FEW_DIGITS = 2
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
    if stated is None or stated.slot not in {"name", "home"}:
        return stated is not None
    if stated.slot == "name":
        is_common = _COMMON_NAME.fullmatch(stated.value) is not None
        return is_common and (" " not in stated.value or "i'm" not in stated.said.casefold())
    return stated.value.casefold() not in _OTHER_WORDS


def _is_bare(stated: Stated) -> bool:
    """Return whether a statement has nothing after its value except a time: "not at Acme full-time" denies no employer."""
    rest = stated.said.rpartition(stated.value)[2].replace(stated.time, "", 1)
    return _NOTHING.fullmatch(rest) is not None


def _words_of(value: str) -> list[str]:
    """Return the words of a value without what it is in, and without the endings of cases."""
    return key_of(normalised(value).partition(",")[0]).split()


def _stated(clause: str) -> Stated | None:
    """Return what a clause states that has one of the plain forms as a whole."""
    small = clause.casefold()
    spans: dict[str, list[tuple[int, int, str]]] = {}
    with_a_word = {place for word, places in _places_of_words().items() if word in small for place in places}
    for slot, kind, pattern in map(_patterns().__getitem__, sorted(with_a_word)):
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
    if kind in _TIMES:
        before, after = _around(kind)
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
    if not _is_plausible(slot, value, groups.get("where"), match[0]) or (slot.endswith(":") and topic in _POINTERS):
        return None
    name = f"{slot}{topic}" if slot.endswith(":") else slot
    time = time or groups.get("time") or groups.get("before") or ""
    return Stated(name, value, *match.span(), match[0], time, kind.endswith("event"), kind.endswith("plan"))


def _is_plausible(slot: str, value: str, where: str | None, said: str) -> bool:
    """Return whether a value is known to be one of its slot, or says so: a home is a known place, a date is a day."""
    if slot == "home":
        return is_place(value)
    if slot in {"name", "partner"}:
        return names.is_name(value) and not _PLACEHOLDER.search(value)
    if slot in {"email", "phone"}:
        return not _PLACEHOLDER.search(value) and (slot == "email" or not _is_invented(value))
    if slot in {"birthday", "deadline:"}:
        return resolve(value, _ANY_DAY) is not None
    return slot != "employer" or (_is_employer(value, said) and (where is None or is_place(where)))


def _is_invented(phone: str) -> bool:
    """Return whether a phone number is one of those that stand for any: of two digits, or of all of them in order."""
    digits = "".join(filter(str.isdigit, phone))
    return len(set(digits)) <= _FEW_DIGITS or digits in _IN_ORDER


def _is_employer(value: str, said: str) -> bool:
    """Return whether a value is a known organisation; in Russian and Chinese one also works "in" a program."""
    if not value.isascii() and _OTHER_LETTERS.search(value):  # as their forms have it
        return not is_place(value)
    return is_organisation(value, may_be_program=_IN_PROGRAM.search(said) is not None)


@cache
def _patterns() -> tuple[tuple[str, str, re.Pattern[str]], ...]:
    return tuple(
        (slot, kind, lazy_pattern(pattern, re.IGNORECASE))
        for slot, kind, form, _ in _FORMS
        for pattern in _with_times(kind, form)
    )


@cache
def _places_of_words() -> dict[str, list[int]]:
    """Return the places of the patterns of each word: a text that has a pattern has one of its words."""
    words_of = [words for _, kind, form, words in _FORMS for _ in _with_times(kind, form)]
    places: dict[str, list[int]] = {}
    for place, words in enumerate(words_of):
        for word in words:
            places.setdefault(word, []).append(place)
    return places


def _with_times(kind: str, form: str) -> Iterator[str]:
    """Yield the patterns of a form; in Chinese a time is within it, and a plan needs one."""
    if kind.startswith("zh-"):
        yield rf"(?P<before>{plain.ZH_AT})[，,]?{form.replace('{}', f'{plain.ZH_NOW}?')}"
        yield form.replace("{}", rf"{plain.ZH_NOW}?(?P<time>{plain.ZH_AT}){plain.ZH_NOW}?")
        if kind != "zh-plan":
            yield form.replace("{}", f"(?:{plain.ZH_NOW})?")
        return
    yield form


@cache
def _around(kind: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return what may stand before and after a form of a kind: a time at most, and company."""
    before, after = _TIMES[kind]
    company = rf",? {plain.COMPANY}"
    still = rf"|{plain.STILL}" if kind == "state" else ""
    ends = rf"(?:,? {after}(?:{company})?|{company},? {after.replace('P<time>', 'P<time2>')}|{company})$"
    return re.compile(rf"(?:(?P<before>{before}){still}),? ", re.IGNORECASE), re.compile(ends, re.IGNORECASE)
