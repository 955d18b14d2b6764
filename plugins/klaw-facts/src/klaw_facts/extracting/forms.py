"""The plain forms of statements of slots, in English, Russian and Chinese, and the words that they have."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from klaw_facts.extracting import names, plain
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
# A meal, a price and an exercise have such numbers, too: one point is enough for a program that is known.
_FULL_VERSION = r"(?:version |v)?(?P<value>(?:(?<=v)|(?<=version ))\d+(?:\.\d+)+|(?!\d{1,2}\.\d{1,2}\.(?:19|20)\d\d\b)\d+(?:\.\d+){2,})"
_SOFTWARE = (
    r"(?P<topic>python|ruby|rails|node(?:\.?js)?|npm|deno|bun|typescript|javascript|java|kotlin|scala|php|perl|golang|go|rust|swift|dart|flutter"
    r"|django|flask|fastapi|react|vue|angular|svelte|next(?:\.?js)?|laravel|symfony|spring(?: boot)?|postgres(?:ql)?|mysql|mariadb|sqlite|redis"
    r"|mongodb|elasticsearch|kafka|kubernetes|docker|terraform|ansible|jenkins|gitlab|git|nginx|apache|airflow|spark|pytorch|tensorflow|numpy"
    r"|pandas|ubuntu|debian|fedora|linux|windows|macos|ios|android|wordpress|tailwind|bootstrap|webpack|vite|elixir|erlang|haskell|julia|unity|godot|blender|klaw)"
)
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
# What has a day to which it can be moved, and no sofa or feast.
_TASK_TOPIC = rf"(?P<topic>(?:[\w/-]+ ){{0,3}}(?:{_TASK}|phase|trial|subscription|lease|test|exam|workshop|meeting|conference|course|training|interview|webinar|hackathon|talk|call|event|deadline|go-live|kick-?off|appointment))"
# No person, who has things of their own, and nothing that is one of many or none at all.
_A_THING = (
    r"(?!(?:(?:\w+ )?(?:(?:mother|father|mom|mum|dad|wife|husband|partner|son|daughter|brother|sister|cousin|uncle|aunt|friend|boss|colleague"
    r"|neighbou?r|teacher|student|pupil|classmate|flatmate|roommate|customer|client|competitor|competition|rival|enem(?:y|ies)|attacker|hacker|guy|man|woman|kid)s?"
    r"|people|children|world|internet|everything|anything|something|nothing|everyone|everybody|anyone|anybody|someone|somebody|nobody|none)"
    r"|his|her|their|your|its|no|neither|another|any|every|each|some|most|many|few|all|half|both|hardly|what(?:ever)?|who(?:ever)?)\b)"
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
# Who is at a shop for a week is a customer.
_SETTLED = rf" (?:(?P<time>(?!.*(?:day|week)){plain.SINCE})|{plain.FOR_YEARS})"
# Where somebody has a profession. A nurse "at Halloween" or "for a day" is none.
_FIRM = rf"(?P<firm>{_CAPITALS})"
_MATE = r"(?:wife|husband|partner|spouse|girlfriend|boyfriend|fianc[ée]e?)"
# Who is there may study, or be ill.
_NO_SCHOOL = r"(?!.*\b(?:universit|college|school|academy|institute|hospital|clinic)\w*)"
_ADVERB = r"(?: now| currently| still| already| just| finally)?"
# "Это Маша" after a greeting is the speaker, and else somebody in a picture.
_RU_HELLO = "(?:" + "|".join(f"(?<={word}[,!] )" for word in ("привет", "здравствуйте", "день", "вечер", "утро")) + ")"
_ZH_I = "我们?"

# (slot, kind, form, words): what has the form has one of the words. Kinds: "state", which is true now, perhaps since a time; "event", which happened at a time; "plan",
# which will be true at a time; "timeless"; and "zh-state", "zh-event" and "zh-plan" with {} for the time.
FORMS: tuple[tuple[str, str, str, tuple[str, ...]], ...] = (
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
    ("name", "timeless", rf"(?:я(?: ?[—–-])?|{_RU_HELLO}это) {_VALUE.format(f'(?-i:{names.RUSSIAN})')}", ("я", "это")),
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
        rf"{_I_HAVE_BEEN}(?:work(?:ing|ed)|employed) (?:at|for|by|with) (?:the )?{_ORGANISATION}{_LONG}",
        ("at ", "for ", "by ", "with "),
    ),
    (
        "employer",
        "timeless",
        rf"{_I_HAVE_BEEN}at{_NO_SCHOOL} (?:the )?{_ORGANISATION}{_SETTLED}",
        ("at ",),
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
        rf"{_I_HAVE} (?:started (?:working (?:at|for)|at{_NO_SCHOOL})|(?:got|landed|found|started) (?:a|my)(?: new)? job (?:at|with)) (?:the )?{_ORGANISATION}(?: as an? {plain.A_TITLE})?",
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
        rf"my (?:new )?(?:job )?title is {_VALUE.format(plain.A_TITLE)}|i(?: now)? work as an? (?P<value2>{plain.A_TITLE})(?: (?:at|for) (?:the )?{_FIRM})?",
        ("title", "work as"),
    ),
    (
        "job_title",
        "state",
        rf"i(?:['’]m| am)(?: now)? (?:an? )?{_VALUE.format(plain.A_PROFESSION)}(?: by (?:trade|profession))?(?: (?:at|for) (?:the )?{_FIRM})?",
        ("i'm", "i’m", "i am"),
    ),
    (
        "job_title",
        "timeless",
        rf"{_I_HAVE_BEEN}(?:(?:work(?:ing|ed) )?as )?(?:an? |the )?{_VALUE.format(plain.A_POSITION)}(?: (?:at|for) {_FIRM})?{_LONG}",
        ("ve",),
    ),
    (
        "job_title",
        "event",
        rf"{_I_HAVE} (?:became|become) (?:an? |the )?{_VALUE.format(plain.A_POSITION)}",
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
        rf"i(?:['’]m| am) (?:in|on) (?!(?:ART|WEST|[ECMP]T)\b){_VALUE.format(_ZONE)}(?: now)?",
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
        rf"(?:the |my |our ){_A_THING}{_TASK_TOPIC}(?: now)? (?:ends|finishes|targets(?: completion)?)(?: on| by| for)? {_VALUE.format(_DATE)}",
        ("end", "finishes", "targets"),
    ),
    (
        "deadline:",
        "timeless",
        rf"(?:the |my |our )(?P<topic>{_A_THING}(?!(?:old|last|next)\b)(?:(?!(?:is|was|are|not|no|never|if)\b)[\w/-]+ ){{0,3}}{_TASK}) is(?: now)? due(?: on| by)? {_VALUE.format(_DATE)}",
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
        rf"(?:i|we|they)(?:['’]ve| have)?(?: just)? (?:moved|pushed|shifted|postponed|rescheduled)(?: back)? (?:the |my |our )?{_A_THING}{_TASK_TOPIC}{_FROM} to {_VALUE.format(_DATE)}",
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
        rf"{_I_HAVE}(?: now)? (?:upgraded|migrated)(?: our| the| my)? (?P<topic>(?!to\b)[A-Z]?[\w.-]{{1,25}})(?: from v?[\d.]+)? to {_DOTTED}",
        ("upgraded", "migrated"),
    ),
    *(
        ("version:", kind, form.format(product=product, version=version), words)
        for product, version in ((_SOFTWARE, _DOTTED), (_PRODUCT, _FULL_VERSION))
        for kind, form, words in (
            (
                "event",
                rf"{_I_HAVE}(?: now)? (?:updated|moved|switched)(?: our| the| my)? {{product}}(?: from v?[0-9.]+)? to {{version}}",
                ("updated", "moved", "switched"),
            ),
            (
                "event",
                rf"{_I_HAVE}(?: now)? (?:moved|migrated|switched) to {{product}} {{version}}",
                ("moved", "migrated", "switched"),
            ),
            ("state", "(?:(?:the|our|my) )?{product} is(?: now)? (?:on|at) {version}", (" on ", " at ")),
            (
                "state",
                "(?:i|we)(?:['’]m| am|['’]re| are|['’]ve been| have been)?(?: currently| now)? (?:running|run|on) {product} {version}",
                ("run", "on "),
            ),
        )
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
        rf"(?:(?:i|we)(?:['’]m| am|['’]re| are|['’]ve been| have been)?(?: currently| now)? (?:using|use)|(?:our|my|the) {_A_THING}\w+ (?:now )?(?:uses|runs)) {_PRODUCT} {_DOTTED}{_OTHERS}",
        ("us", "run"),
    ),
    (
        "port:",
        "state",
        rf"(?:the |our |my )?(?P<topic>{_A_THING}(?!(?:old|former|previous|other|wrong|new)\b)[\w-]{{2,25}}(?: [\w-]{{2,25}})?) (?:now )?(?:(?:runs|listens|is(?: running| listening)?) on|uses) port (?P<value>\d{{2,5}})",
        ("port ",),
    ),
    (
        "home",
        "plan",
        rf"{plain.I_AND}(?:['’]m| am|['’]re| are|['’]ll| will)?(?: be)? (?:moving|relocating|move|relocate) to (?:the )?{_PLACE}",
        ("mov", "relocat"),
    ),
    (
        "employer",
        "plan",
        rf"i(?:['’]m| am|['’]ll| will)?(?: be)? (?:start working|starting work) (?:at|for) {_ORGANISATION}",
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
        rf"{plain.RU_I} (?:переезжаю|переезжаем|перееду|переедем) в {_RU_PLACE}",
        ("переезжа", "перееде", "перееду"),
    ),
    ("employer", "plan", rf"я выхожу на работу в {_RU_ORGANISATION}", ("работ",)),
    ("home", "zh-plan", rf"{_ZH_I}{{}}(?:将|要|会|将要)(?:搬到|搬去){_ZH_PLACE}", ("搬",)),
    ("employer", "zh-plan", rf"我{{}}(?:将|要|会|将要)加入{_ZH_ORGANISATION}(?:工作|上班)", ("加入",)),
)
# What is said of a time before the statement, and after it.
TIMES = {
    "state": (plain.SINCE, rf"(?:(?P<time>{plain.SINCE})|{plain.NOW})"),
    "event": (plain.AT, rf"(?:(?P<time>{plain.AT})|{plain.NOW})"),
    "plan": (plain.AT, rf"(?P<time>{plain.AT})"),
}


@cache
def patterns() -> tuple[tuple[str, str, re.Pattern[str]], ...]:
    """Return the slot, the kind and the pattern of each form, once for each place of a time."""
    return tuple(
        (slot, kind, lazy_pattern(pattern, re.IGNORECASE))
        for slot, kind, form, _ in FORMS
        for pattern in with_times(kind, form)
    )


@cache
def places_of_words() -> dict[str, list[int]]:
    """Return the places of the patterns of each word: a text that has a pattern has one of its words."""
    words_of = [words for _, kind, form, words in FORMS for _ in with_times(kind, form)]
    places: dict[str, list[int]] = {}
    for place, words in enumerate(words_of):
        for word in words:
            places.setdefault(word, []).append(place)
    return places


def with_times(kind: str, form: str) -> Iterator[str]:
    """Yield the patterns of a form; in Chinese a time is within it, and a plan needs one."""
    if kind.startswith("zh-"):
        yield rf"(?P<before>{plain.ZH_AT})[，,]?{form.replace('{}', f'{plain.ZH_NOW}?')}"
        yield form.replace("{}", rf"{plain.ZH_NOW}?(?P<time>{plain.ZH_AT}){plain.ZH_NOW}?")
        if kind != "zh-plan":
            yield form.replace("{}", f"(?:{plain.ZH_NOW})?")
        return
    yield form


@cache
def around(kind: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return what may stand before and after a form of a kind: a time at most, and company."""
    before, after = TIMES[kind]
    company = rf",? {plain.COMPANY}"
    still = rf"|{plain.STILL}" if kind == "state" else ""
    ends = rf"(?:,? {after}(?:{company})?|{company},? {after.replace('P<time>', 'P<time2>')}|{company})$"
    return re.compile(rf"(?:(?P<before>{before}){still}),? ", re.IGNORECASE), re.compile(ends, re.IGNORECASE)
