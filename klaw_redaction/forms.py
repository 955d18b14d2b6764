"""What a secret looks like: the patterns of its formats and names, and cheaper ones that are searched first."""

from __future__ import annotations

import json

# A key starts where no ASCII letter or digit precedes it; Chinese text has no space before a key. It also
# starts after an escape in JSON or in a URL, which may end with a letter: tools return JSON, with "\\n" as line end.
_BEGINS = r"(?:(?<![A-Za-z0-9])|(?<=\\[bfnrt])|(?<=\\u[0-9A-Fa-f]{4})|(?<=%[0-9A-Fa-f]{2}))"
_ENDS = r"(?![A-Za-z0-9_])"

_GITHUB = rf"{_BEGINS}(?:gh[pousr]_[A-Za-z0-9]{{36,}}|github_pat_[A-Za-z0-9_]{{22,}})"
# Telegram bots. Digits are common, so a lookahead for the whole token keeps long runs of digits fast.
_TELEGRAM = rf"(?=[0-9]{{8,10}}:[A-Za-z0-9_-]{{35}}{_ENDS}){_BEGINS}[0-9]{{8,10}}:[A-Za-z0-9_-]{{35}}"
_URL = r"(?<=://)[^/\s:@]{0,100}:[^/\s@]{1,100}(?=@)"
# https://docs.github.com/en/code-security/secret-scanning lists the formats of these vendors.
_VENDORS = (
    rf"{_BEGINS}(?:whsec_[A-Za-z0-9+/]{{24,}}=*|dop_v1_[a-f0-9]{{64}}|shp(?:at|ca|pa|ss)_[A-Fa-f0-9]{{32}}"
    r"|glsa_[A-Za-z0-9_]{32,}|lin_api_[A-Za-z0-9]{32,}|dckr_pat_[A-Za-z0-9_-]{20,}|gsk_[A-Za-z0-9]{32,}|r8_[A-Za-z0-9]{32,}"
    r"|GOCSPX-[A-Za-z0-9_-]{20,}|xapp-[A-Za-z0-9-]{20,}|xai-[A-Za-z0-9]{40,}|pplx-[A-Za-z0-9]{40,}|AGE-SECRET-KEY-1[0-9A-Z]{50,}"
    r"|SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}|ya29\.[A-Za-z0-9_-]{20,}"
    r"|[MNO][A-Za-z0-9_-]{22,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}"
    r"|figd_[A-Za-z0-9_-]{40,}|sbp_[A-Za-z0-9]{40,}|rnd_[A-Za-z0-9]{20,}|ntn_[A-Za-z0-9]{40,}|sntry[su]_[A-Za-z0-9+/=_-]{40,}"
    r"|nvapi-[A-Za-z0-9_-]{40,}|tskey-[a-z]{1,12}-[A-Za-z0-9_-]{16,}|sq0(?:atp|csp)-[A-Za-z0-9_-]{22,}"
    r"|pat-(?:na|eu)[0-9]-[A-Za-z0-9-]{30,}|hv[sbr]\.[A-Za-z0-9_-]{24,}|ATATT3[A-Za-z0-9+/=_-]{40,})"
)
_WEBHOOK = r"(?<=hooks\.slack\.com/services/)[A-Za-z0-9/_-]{20,}|(?<=/api/webhooks/[0-9]{17,20}/)[A-Za-z0-9_-]{30,}"

# What makes a signed URL valid: of a shared access signature of Azure, of S3 and its like, of CloudFront, of webhooks.
_SIGNATURE = (
    r"(?i)(?:[?&;]|\\u0026|%26|%3F)(?:x-[a-z]{1,8}-signature|q-signature|signature|hmac|sig)(?:[ ]?=[ ]?[\"']?|%3D)"
    r"\K(?=(?-i:[a-z_~.-]{0,80}(?:[0-9%+/]|[A-Z][a-z_~.-]{0,80}[A-Z0-9%+/])))[a-z0-9%+/_~-]{6,}+=*"
)

# A private key, or the lines of base64 of one without an end: what mentions only the beginning stays readable.
_BREAK = r"(?:[ \t>]|\r?\n|\\{1,4}[nr]){1,12}"
_PRIVATE_KEY = (
    r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?:(?:[^-]|-(?!----(?:BEGIN|END) ))*+"
    r"-----END [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
    rf"|(?:{_BREAK}(?:Proc-Type|DEK-Info|Version|Comment): [^\n\\]{{0,100}})*+"
    rf"(?:(?:{_BREAK}[A-Za-z0-9+/_-]{{24,}}+={{0,2}})++"
    r"(?:(?:\r?\n|\\{1,4}[nr])[ \t>]{0,4}[A-Za-z0-9+/]{1,24}={0,2}(?!\S))?)?)"
)
# Numbers of payment cards, by the ranges of ISO/IEC 7812. Their last digit is a checksum. Signs that rarely stand in
# them are the same between all groups; a line ends once, and neither before nor after it is another row of numbers.
_GAP = r"([ \t\u00a0]{2}|[.\u00a0\u2010-\u2015])"
_END_OF_LINE = r"[ \t]?\r?\n[ \t>]{0,4}"
CARD = (
    r"(?<![\w.,:/-])(?:(?:4\d{3}|5[1-5]\d\d|2(?:2[2-9]\d|[3-6]\d\d|7[01]\d|720|20[0-4])|6(?:011|4[4-9]\d|5\d\d|2\d\d)|35\d\d)"
    rf"(?:(?:[ -]?\d{{4}}){{3}}|{_GAP}\d{{4}}(?:\1\d{{4}}){{2}}(?!\1?\d)"
    rf"|(?<!\d\s\d{{4}})(?:[ -]\d{{4}}){{0,2}}{_END_OF_LINE}(?:\d{{4}}[ -]){{0,2}}\d{{4}}(?!\s\d))"
    rf"|3[47]\d\d(?:[ -]?\d{{6}}[ -]?\d{{5}}|{_GAP}\d{{6}}\2\d{{5}}))(?![\w-]|[.,]\d)"
)


def _escaped(*names: str) -> str:
    """Return a pattern for names as JSON, or a message in ASCII, may have them: with escapes."""
    forms = dict.fromkeys(form(name)[1:-1] for name in names for form in (json.dumps, ascii))
    return "|".join(form.replace("\\", r"\\") for form in forms if "\\" in form)


# What stands after the name of a password or a key is a secret, unless it is one of these words, refers to another
# place, or is code. All of this ignores case.
_OTHER_WORDS = (
    r"required|optional|strings?|str|text|varchar|none|null|nil|true|false|undefined|empty|your|their|this|that|with|from|when|what"
    r"|where|which|must|should|shall|will|would|could|cannot|please|enter|type|reset|changed?|forgot\w*|stored|kept|saved|same|sent"
    r"|only|been|wrong|incorrect|invalid|expired|missing|protected|hash(?:ed)?|encrypted|hidden|secret|password|token|field|redacted"
    r"|1password|bitwarden|lastpass|keepass\w*|keychain|dashlane|vault"
    r"|falsch\w*|ungültig\w*|abgelaufen|vergessen|geändert|erforderlich|gespeichert|siehe|liegt|steht|incorrect[ao]|obligatori[ao]"
    r"|requerid[ao]|olvid\w+|guardad[ao]|guardé|véase|requise?|oublié|enregistré|voir"
    r"|лежит|хранится|находится|смотри|спроси|нужен|забыл\w*|сменил?\w*|неверн\w*|правильн\w*|обязател\w*"
)
_REFERENCE = (
    r"(?:os|process|env|config|settings|self|args|options|request|form|data|user)\.|[\w.]{1,60}[(\[]|[$<{•]|%\w+%|\*{3}|\.{3}|x{4}|\[redacted"
    r"|(?:~|\.{0,2})/[\w.-]{1,100}(?:/|(?!\S))|[在见見问問存需必请請不错錯已]"
)
_VALUE = rf"(?!(?:{_OTHER_WORDS})(?![\w!@#$%^&*-]))(?!{_REFERENCE})(?!\\u(?:ff1a|662f))"
_LAST = r"[^\s\"'`.,;:!?)\]}>，。；！？、）」』]"  # a character other than punctuation after a value
_ESCAPE = r"\\(?!u[0-9A-Fa-f]{4})"  # a backslash that is not the beginning of a letter
_QUOTES = rf"(?:[\"'`*\]_~]|{_ESCAPE}){{0,4}}[ \t\u00a0]{{0,4}}"  # after a name
_MARKS = rf"(?:[*_~]|{_ESCAPE}){{0,3}}"
_EQUALS = rf"{_QUOTES}(?:[:=：＝]|=>|:=|\\uff1a){_MARKS}[ \t\u00a0]{{0,4}}\n?[ \t]{{0,4}}{_MARKS}"
# A hyphen that touches both words makes one word of them: "api-key-rotation-2026.md" is a name.
_IS = (
    rf"(?!(?<=[A-Za-z])(?!_{{1,3}}(?![^\W_]))\w)(?![-/?#]\w){_QUOTES}"
    r"(?:[=-]>|[:=：＝|→は—–是为為-]|\\uff1a|\\u662f|\\u2192|\b(?:is|was|are|ist|lautet|es|est|è|jest)\b(?: now)?|это)?"
    rf"{_MARKS}[ \t\u00a0]{{0,4}}(?:[*\"'`]|{_ESCAPE}){{0,3}}"
)
_SAYS = r"[ \t](?:is|was|ist|for|of|to|für|vom)[ \t]"
# A value inside an object of JSON or YAML, of which the name is that of the secret.
HOLDS = r"(?i:[$#_]?(?:value|val|plain(?:[_-]?text)?|raw|current|old|new|previous|secret|data))"
_INSIDE = rf"(?:[{{\[]?\s{{0,12}}(?:[\"']|{_ESCAPE}){{0,3}}{HOLDS}(?:[\"']|{_ESCAPE}){{0,3}}[ \t]?[:=][ \t]?{_MARKS})?+"
_HELD = rf"(?:[\"']?{HOLDS}[\"']?:[ \t]?[\"']?)?+"
# JSON may have escapes instead of letters.
_ESCAPED_PW_NAMES = _escaped("пароль", "Пароль", "contraseña", "Contraseña", "密码", "密碼", "口令")
_ESCAPED_KEY_NAMES = _escaped("токен", "Токен", "секрет", "API-ключ", "API-Schlüssel", "密钥", "密鑰", "令牌")
_PW_NAMES = (
    rf"(?<!1)(?:{_ESCAPED_PW_NAMES}|ｐａｓｓｗｏｒｄ|pass(?:wor[dt]|wd|phrase|code)|(?<=[/_-])pass|pwd|парол(?:ь|я|ем|ю)|密码|密碼|口令"
    r"|kennwort|contrase[ñn]a|mot de passe|senha|wachtwoord|hasło|パスワード"
    r"|(?<![^\W_])(?:wlan|wi-?fi|network|netzwerk|wpa[23]?)[ -]?(?:key|schlüssel)(?!\w))"
)
# Messages of errors may have escapes instead of letters.
_E, _A, _U = (rf"(?:{letter}|{_escaped(letter)})" for letter in "éäü")
_OF = rf"for|of|to|from|on|in|at|f{_U}r|von|vom|zum?|zur|bei|de|del|des|du|pour|para|d[aoe]|от|для|к|на|в|у"
_WHOSE = rf"(?:[ \t](?:{_OF}|is)\b[^:=：＝\n.]{{0,40}}|[ \t]?\([^)\n]{{1,40}}\))?"
_BE = rf"is|are|was|were|ist|war|lautet|es|est|era|è|to|jest|は|{_E}tait|{_E}|это|[-—–]|->|→"
_NOW = r"(?:[ \t](?:now|currently|jetzt|maintenant|ahora|теперь))?"
_OPENS = r"[ \t]{1,4}(?:[*\"'`]|\\(?!u)){0,3}"  # what may stand in front of a value
# "for the router is", "du wifi est": a few words without a pause, and a verb. Russian needs no verb.
_OF_SOMETHING_IS = (
    rf"(?:,?[ \t](?:(?:{_OF}|der|meiner|unserer|that|which|i|we|you)\b|d['’]\w{{1,30}})"
    rf"(?:[ \t](?!(?:{_BE})[ \t])[^\s:=：＝,;|]{{1,40}}+){{0,6}}+,?"
    rf"[ \t](?:{_BE}){_NOW}{_OPENS}"
    rf"|[ \t](?:от|для|к|на)(?:[ \t][а-яё-]{{1,30}}+){{1,2}}+{_OPENS})"
)
_CHANGED_TO = (
    rf"(?:[ \t](?:has|have|had|been|was|is|got|wurde|a|{_E}t{_E}|fue|ha|sido|se|был)){{0,3}}[ \t](?:(?:changed"
    rf"|set|reset|updated|rotated|chang(?:e|{_E})e?|modifi(?:e|{_E})e?|cambi\w{{1,4}}|измен[её]н|смен[её]н)[ \t]"
    rf"(?:to|en|à|a|por|на)|wurde[ \t]auf){_OPENS}"
)
_PASSWORD = (
    rf"(?i){_PW_NAMES}{_WHOSE}{_EQUALS}{_INSIDE}(?:[\"'`]\K(?!(?:{_OTHER_WORDS})[\"'`\\])(?!{_REFERENCE})[^\"'`\n]{{3,200}}(?=[\"'`])"
    rf"|\K{_VALUE}[^\s\"'`，。；！？、）」』]{{3,}}{_LAST})"
)
# Without a colon, a value is recognised by letters and digits. It does not begin with the sign that separates it.
_SAID_VALUE = (
    rf"(?![=:：＝]){_VALUE}(?=[^\s\"'`]{{0,40}}\d)(?=[^\s\"'`]{{0,40}}[^\W\d_])"
    rf"(?!(?:argon2|sha-?\d|md5|base64|pbkdf2|utf-?8|aes-?\d|1password|bcrypt|scrypt)\w{{0,8}}\b)[!-~]{{5,}}{_LAST}"
)
_SAID_PASSWORD = (
    rf"(?i)(?:{_PW_NAMES}|(?<![^\W_])(?:pass|pw)(?=[*_~`\"']{{0,3}}[ \t]?[:=])"
    rf"|(?<![^\W_])(?:pass(?=[ \t]is[ \t](?![\d.,:]+[a-z]{{0,3}}(?!\w))(?!\w+:/))|pw(?={_SAYS})))(?:s are)?"
    rf"(?:{_OF_SOMETHING_IS}|{_CHANGED_TO}|{_IS})\K{_SAID_VALUE}"
)
# "I set the password of the router to ...", "das Passwort auf ... geändert"
_SET_PASSWORD = (
    rf"(?i)(?:(?<!\w)(?:set|chang(?:ed?|ing)|reset|updated?|chang(?:e|{_E})|cambi(?:{_E}|o|ar|ó)|сменил[аи]?|поменял[аи]?"
    r"|поставил[аи]?)"
    rf"(?:[ \t](?!to[ \t])\w{{1,20}}+){{0,4}}?[ \t]{_PW_NAMES}"
    rf"(?:[ \t](?:{_OF})(?<!to|на|en|a)(?:[ \t](?!to[ \t]|на[ \t]|en[ \t])[\w'’-]{{1,30}}+){{1,4}}+)?"
    rf"[ \t](?:to|en|à|a|por|на){_OPENS}\K{_SAID_VALUE}"
    rf"|{_PW_NAMES}(?:[ \t]\w{{1,30}}+){{0,4}}?[ \t]auf{_OPENS}\K{_SAID_VALUE}"
    rf"(?=[\"'`*]{{0,3}}[ \t](?:ge{_A}ndert|gesetzt|zur{_U}ckgesetzt)))"
)
# "... is the password"
_TOLD_PASSWORD = (
    r"(?i)(?<![^\s\"'`*(])(?=[^\s\"'`]{0,60}\d)(?=[^\s\"'`]{0,60}[^\W\d_])(?=[!-~]{6})[^\s\"'`*:/]{6,60}+"
    r"(?=[\"'`*]{0,3}[ \t](?:is|was|ist|war|est|es|это|as|als)[ \t]"
    r"(?:(?:the|my|our|his|her|its|their|your|a|das|mein|unser|le|mon|notre|la|mi|nuestra|мой|наш)[ \t])?"
    rf"(?:[\w'’-]{{1,20}}+[ \t]){{0,2}}?{_PW_NAMES}(?:[^\w \t-]|[ \t]*\Z|[ \t](?:{_OF})[ \t]))"
)
# The password of these programs is an argument.
_CLIENT = (
    r"(?i)(?:(?<!\w)(?:mysql|mariadb)[a-z-]{0,10}(?:[ \t]+(?!-p\S)[^\s|;&]{1,60}+){0,8}?[ \t]+(?-i:-p)"
    r"|(?<!\w)redis-cli(?:[ \t]+(?!-a[ \t])[^\s|;&]{1,60}+){0,8}?[ \t]+(?-i:-a)[ \t])"
    r"[\"']?\K(?![\d:.]+(?!\S))[^\s\"'$]{3,}"
)
_DOORS = r"door|gate|garage|garagen|alarm|unlock|lock[ -]?box|key[ -]?box|entry|keypad|locker|(?:haus)?tür|tor"
# Numbers that open something. A sentence, a line or a bracket ends after the number, so a year or a length is none.
_PIN_NAME = (
    r"(?<![^\W_])(?:(?:pin|puk|cvv|cvc)2?|pass[ -]?code|пин)(?:[ -]?(?:code|number|nummer|кода?))?(?!\w)"
    rf"|(?<![^\W_])(?:{_DOORS}|safe|lock|access|security|sim|tresor|alarmanlagen|zugangs"
    r"|sicherheits)[ -]?code(?!\w)|(?<![^\W_])(?:safe|lock|padlock)[ -]combination(?!\w)|geheimzahl(?!\w)"
    r"|(?<!\w)(?:code|combination)[ \t](?:for|to|of)[ \t](?:[\w'’-]{1,20}+[ \t]){0,3}?"
    r"(?:door|gate|garage|alarm|safe|lock|locker|padlock|keypad|entrance|building|shed)(?!\w)"
    r"|(?<!\w)code[ \t](?:für|vom|zum|zur|der|des)[ \t](?:[\w'’-]{1,20}+[ \t]){0,2}?"
    r"(?:(?:haus|garagen)?tür|garage|alarmanlage|tor|safes?|tresors?|schloss|schlosses|schließfachs?|schlüsselbox)(?!\w)"
    r"|(?<!\w)код[ \t](?:от|для|к)[ \t](?:[а-яё-]{1,20}+[ \t]){0,2}?"
    r"(?:двер|домофон|сейф|подъезд|замк|гараж|ворот|калитк|сигнализац|шлагбаум)[а-яё]{0,4}(?!\w)"
)
_PIN_VALUE = r"(?:\d{3,8}|\d{1,2}(?:-\d{1,2}){2,3})[#*]?(?![\w-]|[.,:/]\d)"
_PIN_ENDS = (
    r"(?=[\"'`*]{0,3}[ \t]{0,4}(?:\Z|[\r\n.,;:!?)\]}>|<。，；！？）]"
    r"|(?:and|but|or|so|for|on|to|now|und|aber|für|y|para|et|pour|и|для)[ \t]))"
)
# After these names no verb is needed.
_BARE_PIN = (
    r"(?-i:PIN|PUK|CVV|CVC|ПИН)|pin (?:code|number)"
    r"|(?:voicemail|sim|card|phone|atm|debit|credit|bank|my|our|his|her)[ ]pin"
    rf"|pass[ -]?code|(?:{_DOORS})[ -]?code|пин[ -]?код|пин карты"
    r"|код (?:от|для|к) (?:двери|домофона|сейфа|подъезда|замка|гаража|ворот|сигнализации)"
)
_PIN = (
    rf"(?i)(?<![^\W_])(?:(?:{_PIN_NAME})(?:{_WHOSE}{_EQUALS}[\"'`]?|{_OF_SOMETHING_IS}|[ \t](?:{_BE}|to|auf|en|à|a|на)"
    rf"{_NOW}{_OPENS}|{_CHANGED_TO}|[ \t]?[是为為][ \t]?)|(?:{_BARE_PIN})[ \t])"
    rf"\K{_PIN_VALUE}{_PIN_ENDS}|(?<![\w.,:/-]){_PIN_VALUE}(?=[ \t](?:is|was|ist|war|est|es|это)[ \t]"
    r"(?:(?:the|my|our|his|her|its|their|your|die|meine|unsere|le|mon|la|mi|мой|наш)[ \t])?(?:[\w'’-]{1,20}+[ \t])"
    rf"{{0,2}}?(?:{_PIN_NAME}))"
)
# A code of letters and digits.
_CODE_WORD = (
    rf"(?i)(?<![^\W_])(?:{_DOORS})[ -]?code{_WHOSE}(?:{_EQUALS}|[ \t](?:is|ist|lautet)[ \t])[\"'`]?\K{_SAID_VALUE}"
)
#: So many lines below its name a value may be, and so many below the name of a list of codes.
LINES_BELOW = 3
LINES_OF_CODES = 40
# The value is alone on one of the next lines: under a heading, in a list, a block of YAML, a table or a fence.
_LINE = r"[ \t]*(?:[|>][-+]?|[*_`|]{1,3}|</?\w{1,20}>)?[ \t]*\r?\n"
_NEXT_LINES = rf"{_LINE}(?:[ \t]*(?:[-=|:+ ]{{3,80}}|`{{3}}\w{{0,12}}|~{{3}}|>)?[ \t]*\r?\n){{0,2}}+"
_ALONE = (
    rf"[ \t]*(?:[-*+>|`]{{1,2}}[ \t]*|</?\w{{1,20}}>[ \t]*){{0,2}}{_HELD}"
    r"\K(?=[^\s\"'`<|]{0,80}\d)(?=[^\s\"'`<|]{0,80}[^\W\d_])"
    rf"(?!\S*(?::/|\.[a-z]{{2,4}}(?!\w)))(?!\S{{0,20}}\d{{4}}-\d\d){_VALUE}[^\s\"'`<|]{{7,100}}?(?<![:,;(){{}}])"
    r"(?=[)\]\"'`|]{0,3}[ \t]*(?:</\w{1,20}>)?[ \t|)]*(?:\r?\n|\Z))"
)
_IS_OR_COLON = r"(?:[ \t](?:is|ist|lautet|es|est))?[ \t]?[:：=]?(?:\*\*|</\w{1,20}>)?"
_PASSWORD_BELOW = rf"(?i)(?:{_PW_NAMES})(?!\w){_WHOSE}{_IS_OR_COLON}{_NEXT_LINES}{_ALONE}"
# A passphrase of words. A sentence about one has a word that a list of random nouns has not.
_SENTENCE = (
    r"(?:a|an|the|and|or|for|from|with|without|of|in|on|at|to|by|as|if|is|are|was|be|been|has|have|had|not|never|no|only|also|still|too"
    r"|very|same|other|your|our|their|its|this|that|these|those|you|they|it|we|when|where|which|who|how|what|why|please|use|used|uses|see"
    r"|ask|must|should|may|can|will|would|could|shall|do|does|did|words?|letters?|characters?|digits?|symbols?|numbers?|minimum|maximum"
    r"|least|most|long|longer|short|random|strong|weak|secure|safe|secret|unknown|there|here"
    r"|above|below|under|inside|behind|der|die|das|ein|eine|und|oder|von|mit|nicht|ist|wird|siehe|les?|une?|des?|est|el|los|las|una|por|con"
    r"|password|passphrase|generator|policy|manager|\w{2,}(?:ed|ly|ing))"
)
_WORD = rf"(?!{_SENTENCE}(?![^\W_]))[^\W\d_]{{3,10}}"
_PASSPHRASE = (
    rf"(?i)(?:pass[ -]?phrase(?:{_WHOSE}{_EQUALS}[\"'`]?|{_OF_SOMETHING_IS}|[ \t](?:{_BE}){_NOW}{_OPENS})"
    rf"|{_PW_NAMES}{_EQUALS})\K{_WORD}(?:[ \t]{_WORD}){{3,11}}(?=[\"'`*]{{0,3}}[ \t]*(?:\Z|[\r\n.,;!?)\]}}>。，]))"
)
_KEY_NAME = (
    rf"(?:{_ESCAPED_KEY_NAMES}"
    r"|(?:api|access|account|shared|auth|private|signing|encryption|license|secret|master)[ _-]?key(?:[ _-]?id)?"
    r"|secret|token|credentials?|(?<=api[ -]?)(?:ключ|schlüssel)|токен|секрет|密钥|密鑰|令牌)"
    r"(?:[_-](?:base|id|key|value|prod|dev|test|live|\d(?!\d|-\w)))?"
)
_KEY_VALUE = r"(?=[A-Z0-9+/_.~=-]{0,80}\d)(?=[A-Z0-9+/_.~=-]{0,80}[A-Z])[A-Z0-9+/_.~-]{8,}+={0,2}(?![\w(\[])"
_NESTED = rf"(?:[{{\[]\s{{0,12}}[\"']?{HOLDS}[\"']?[ \t]?[:=][ \t]?[\"']?)?+"
_KEY = rf"(?i){_KEY_NAME}(?:{_OF_SOMETHING_IS}|{_IS}){_NESTED}\K{_VALUE}{_KEY_VALUE}"
_KEY_BELOW = (
    rf"(?i){_KEY_NAME}(?!\w){_IS_OR_COLON}{_NEXT_LINES}"
    rf"(?=[ \t>*+|`-]{{0,20}}{_HELD}[A-Z0-9+/_.~=-]{{8,200}}+[)\]\"'`|]{{0,3}}[ \t|)]*(?:\r?\n|\Z)){_ALONE}"
)
# The value of each cookie in a header is a session or a preference: all of them are removed.
_COOKIE = (
    r"(?i)(?<![^\W_])(?:set-)?cookie[\"'`*]{0,3}[ ]?[:=][ ]{0,3}[\"'`]?[!#$%&'*+.^_|~0-9a-z-]{1,60}="
    r"\K(?!(?:yes|no|true|false|accepted|essential)(?![^\s;,\"'`]))[^\s,\"'`]{6,4096}+"
    r"(?:[ ]?[!#$%&'*+.^_|~0-9a-z-]{1,60}=[^\s,\"'`]{1,4096}+){0,40}+"
)
_SCHEMES = r"bearer|token|digest|negotiate|ntlm|api-?key|key|oauth|dpop|hawk|jwt|bot|splunk"
_BASIC = (
    rf"(?i)authorization{_QUOTES}[:=]{_MARKS}[ ]{{0,3}}[\"'`]?(?:basic[ ]{{1,3}}\K[A-Z0-9+/]{{6,}}={{0,2}}"
    rf"|(?:{_SCHEMES})[ ]{{1,3}}\K{_VALUE}(?=[^\s\"'`]{{0,80}}\d)[A-Z0-9._~+/=:-]{{6,}})"
)
_ARGUMENT = r"(?:--password[ =]|\bsshpass[ ]-p[ ]?|(?<!\S)(?:-u|--user)[ =][\"']?[\w.@-]{1,60}:)[\"']?\K[^\s\"'$]{3,}"
SEED_PHRASE = (
    r"(?i)(?:(?:seed|recovery|mnemonic|backup)[ -]?phrase|(?:сид|мнемоническая)[ -]?фраза|助记词)[\"'`*]{0,3}"
    r"(?:[ \t]?[:=：]|[ \t](?:is|are)\b|[ \t]?[-—–]|是)?[\s\"'`*]{0,4}\K(?:[a-z]{3,8}[ ,\n]{1,3}){11,23}[a-z]{3,8}"
)
# Codes for one use each, on the line of their name or in a list below it, numbered, in columns or crossed out. A code
# has a digit; those after it may have none if their groups are of one length, unlike words with a hyphen.
CODES_NAME = (
    r"(?<![^\W_])(?:(?:recovery|backup|back-up|rescue|emergency|wiederherstellungs|notfall|ersatz|sicherungs)[ _-]?"
    r"codes?"
    r"|(?:one[ -]time|scratch|reset|2fa|mfa|totp|einmal)[ _-]?codes"
    r"|c[oó]digos?[ ]de[ ](?:recuperaci[oó]n|respaldo|seguridad|emergencia|recupera[cç][aã]o)"
    r"|codes?[ ]de[ ](?:r[eé]cup[eé]ration|secours|sauvegarde)|codici[ ]di[ ](?:recupero|backup|emergenza)"
    r"|(?:резервны[ей]|запасны[ей])[ ]код[ыа]?|код[ыа]?[ ]восстановления)(?!\w)"
    r"|(?:恢复|恢復|备用|備用|救援)(?:代|验证|驗證)?[码碼]"
)
_CODE = (
    rf"(?:{_VALUE}(?!(?:19|20)\d\d-[01]\d-[0-3]\d)(?=[a-z-]{{0,40}}\d)(?=(?:-?[a-z0-9]){{8}}|\d{{6}})"
    r"[a-z0-9]{2,32}+(?:-[a-z0-9]{2,12}+){0,7}+|\d{3,8}(?:[ ]\d{3,8}){1,5}+)(?![./@-]?\w)"
)
_LETTERS = r"(?:[a-z]{4}(?:-[a-z]{4}){1,4}+|[a-z]{5}(?:-[a-z]{5}){1,4}+|[a-z]{6}-[a-z]{6})(?![\w-])"
_AROUND = r"[*`~|\"',;]{0,4}"
_CODES_LINE = (
    r"[ \t]{0,8}(?:```\w{0,12}|~~~|[-=|:+ ]{3,80})?[ \t]{0,8}(?:\r?\n|\\{1,4}n)[ \t>]{0,8}"
    r"(?:(?:[-*+•|]|\(?\d{1,2}[.):])[ \t]{1,4}){0,2}"
    r"(?:\[[ x]?\][ \t]{1,4})?"
)
_AND = r"[ \t]{1,8}(?:(?:[|/]|and|und|et|y|и|\d{1,2}[.)])[ \t]{1,4})?"
_BETWEEN = rf"{_AROUND}(?:(?:{_CODES_LINE}){{1,3}}|{_AND}){_AROUND}"
CODES = (
    rf"(?i)(?:{CODES_NAME})(?:[ \t](?:{_OF})[ \t][^:=：\n]{{1,40}}|[ \t]?\([^)\n]{{1,40}}\))?{_QUOTES}"
    rf"(?:[:=：]|[ \t]?(?:{_BE})(?![^\W_])|[是为為])?{_MARKS}"
    rf"(?:[ \t]{{0,4}}{_AROUND}(?:\d{{1,2}}[.)][ \t]{{1,4}})?|(?:{_CODES_LINE}){{1,3}}{_AROUND})"
    rf"\K(?:{_LETTERS}{_BETWEEN}){{0,3}}{_CODE}(?:{_BETWEEN}(?:{_CODE}|{_LETTERS}))*+"
)

#: The formats of keys and tokens that are documented by their vendors, recognisable by their prefix or shape.
SHAPES = (
    rf"{_BEGINS}sk-[A-Za-z0-9_-]{{20,}}",  # OpenAI, Anthropic
    _GITHUB,
    rf"{_BEGINS}gl(?:pat|ptt|dt|rt|cbt|ft|soat|ffct|imt|agent|oas)-[A-Za-z0-9_-]{{20,}}",  # GitLab
    rf"{_BEGINS}(?:AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{{16}}{_ENDS}",  # AWS
    rf"{_BEGINS}AIza[0-9A-Za-z_-]{{35}}",  # Google
    rf"{_BEGINS}xox[a-z]-[A-Za-z0-9-]{{10,}}",  # Slack
    rf"{_BEGINS}(?:sk|rk|pk)_(?:live|test)_[0-9A-Za-z]{{16,}}",  # Stripe
    rf"{_BEGINS}hf_[A-Za-z0-9]{{30,}}",  # Hugging Face
    rf"{_BEGINS}npm_[A-Za-z0-9]{{36}}{_ENDS}",
    rf"{_BEGINS}pypi-[A-Za-z0-9_-]{{50,}}",
    _TELEGRAM,
    _VENDORS,
    _WEBHOOK,
    # JSON Web Token, perhaps without its end
    rf"{_BEGINS}eyJ[A-Za-z0-9_-]{{10,}}\.(?:[A-Za-z0-9_-]{{10,}}\.[A-Za-z0-9_-]{{10,}}|eyJ[A-Za-z0-9_-]{{10,}})",
    rf"(?i){_BEGINS}bearer(?:[ ]+|%20|\+)\K[A-Za-z0-9._~+/-]{{20,}}=*",
    _URL,  # a password in a URL
    _SIGNATURE,
    _PRIVATE_KEY,
    CARD,
)
#: Values of any form next to the name of a password or a key, in English, German, Spanish, French,
#: Portuguese, Italian, Dutch, Polish, Russian, Chinese and Japanese.
NAMED = (
    *(_PASSPHRASE, _PASSWORD, _SAID_PASSWORD, _SET_PASSWORD, _TOLD_PASSWORD, _PASSWORD_BELOW, _PIN, _CODE_WORD),
    *(_KEY, _KEY_BELOW, _BASIC, _ARGUMENT, _CLIENT, SEED_PHRASE, CODES, _COOKIE),
)
#: Everything that is a secret unless ``redact_secrets`` is false.
BUILTIN_PATTERNS = (*SHAPES, *NAMED)

# Slow patterns, each with a looser one that is searched first. If the looser one is not found, the pattern cannot match
# either. The looser pattern takes a fifth to a thirtieth of the time.
LOOSER = {
    _VENDORS: (
        r"(?:whsec|dop_v1|shp[acps][ats]|glsa|lin_api|dckr_pat|gsk|r8|figd|sbp|rnd|ntn|sntry[su])_"
        r"|(?:GOCSPX|xapp|xai|pplx|-KEY|nvapi|tskey|sq0(?:atp|csp)|pat-(?:na|eu)[0-9])-"
        r"|(?:SG|ya29|hv[sbr]|\.[\w-]{6})\.|ATATT3"
    ),
    _WEBHOOK: r"hooks\.slack\.com/services/|/api/webhooks/",
    _GITHUB: r"g(?:h[pousr]|ithub_pat)_",
    _TELEGRAM: r"[0-9]:[A-Za-z0-9_-]{35}",
    _URL: r"://[^/\s:@]{0,100}:[^/\s@]{1,100}@",
    # The value alone, which is rarer than the name: "key" and "code" are in every third text.
    _PIN: rf"(?i){_PIN_VALUE}(?:{_PIN_ENDS}|(?=[ \t](?:is|was|ist|war|est|es|это)[ \t]))",
    _KEY: rf"(?i){_KEY_VALUE}",
}

_SIGNS = r"[\s>.\u00a0\u2010-\u2015-]{0,7}"  # between the groups of a card's number
# Is found in every text in which one of the shapes matches, and in few others: one pass over a text instead of one for
# each pattern. Each branch begins with a character, so that others are skipped fast; most are rare in texts.
HINT = (
    r"_(?=[0-9A-Za-z_+/-]{16})(?:(?<=gh[pousr]_)|(?<=github_pat_)|(?<=hf_)|(?<=npm_)|(?<=_live_)|(?<=_test_)|(?<=whsec_)"
    r"|(?<=dop_v1_)|(?<=shp[acps][ats]_)|(?<=glsa_)|(?<=lin_api_)|(?<=dckr_pat_)|(?<=gsk_)|(?<=r8_)|(?<=figd_)|(?<=sbp_)|(?<=rnd_)|(?<=ntn_)"
    r"|(?<=sntry[su]_))"
    r"|-(?=[0-9A-Za-z_-]{10})(?:(?<=sk-)|(?<=gl[pdrcfsio][a-z]-)|(?<=gl[pdrcfsio][a-z]{2}-)|(?<=gl[a-z]{4}-)|(?<=glagent-)"
    r"|(?<=xox[a-z]-)|(?<=pypi-)|(?<=GOCSPX-)|(?<=xapp-)|(?<=xai-)|(?<=pplx-)|(?<=-KEY-)|(?<=nvapi-)|(?<=tskey-)"
    r"|(?<=sq0atp-)|(?<=sq0csp-)|(?<=pat-na[0-9]-)|(?<=pat-eu[0-9]-))"
    r"|-----BEGIN [A-Z ]{0,40}PRIVATE KEY"
    r"|\.(?=[0-9A-Za-z_-]{6})(?:(?<=SG\.)|(?<=ya29\.)|(?<=hv[sbr]\.)|(?=[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27}))"
    r"|/services/|/api/webhooks/"
    r"|=(?:(?<=[Ss][Ii][Gg]=)|(?<=[Tt][Uu][Rr][Ee]=)|(?<=[Hh][Mm][Aa][Cc]=)|(?<=[Ss][Ii][Gg] =)"
    r"|(?<=[Tt][Uu][Rr][Ee] =))|%(?:(?<=[Ss][Ii][Gg]%)|(?<=[Tt][Uu][Rr][Ee]%)|(?<=[Hh][Mm][Aa][Cc]%))"
    r"|A(?:KIA|SIA|BIA|CCA)[0-9A-Z]{16}|AIza[0-9A-Za-z_-]{35}|ATATT3[0-9A-Za-z+/=_-]{40}"
    r"|J(?<=eyJ)[0-9A-Za-z_-]{10}"
    r"|:(?<=[0-9]:)[0-9A-Za-z_-]{35}"
    r"|://[^/:@]{0,100}:[^/@]{1,100}@"
    r"|b[Ee][Aa][Rr][Ee][Rr](?:[ ]|%20|\+)|B[Ee][Aa][Rr][Ee][Rr](?:[ ]|%20|\+)"
    + "".join(rf"|{first}(?=[0-9]{{3}}{_SIGNS}[0-9]{{4,6}}{_SIGNS}[0-9]{{4}})" for first in "23456")
)

# Begins in each of the names that JSON may have with escapes.
_ESCAPE_HINT = (
    r"\\(?=(?i:u(?:04[13]f\\u0430\\u0440|00f1a|00fcssel|5bc6|53e3|4ee4|04[24]2\\u043e\\u043a|0441\\u0435\\u043a"
    r"|043a\\u043b\\u044e)|x(?:f1a|fcssel)))"
)

# A match of NAMED is on a line on which this matches in lower case, or begins there. Each branch begins with its rarest
# letter, which also tells the pattern. A key is only looked for where a digit follows.
_FOLLOWED = r"(?![a-z])(?=[^0-9]{0,100}[0-9])"
_CALLED = r"[\"'`*\]\\_~]{0,4}[ \t\u00a0]{0,4}[:=：＝(|]"
NAME_HINT = (
    rf"p(?:ass(?:w|ph|[ -]?co|{_CALLED}|[ \t]is[ \t])|wd|w(?:{_CALLED}|{_SAYS})"
    r"|hrase(?:(?<=[dypcs][ -]phrase)|(?<=[dypcs]phrase))"
    r"|(?:in(?<![^\W_]pin)|uk(?<![^\W_]puk))(?:(?!\w)|2|code|nummer))|парол|пин(?<![^\W_]пин)|密码"
    r"|密碼|口令|s(?:enha|shpass)|ñ(?<=contraseñ)a|n(?<=contrasen)a|w(?:(?<=kennw)ort|achtwoord)|hasło|パスワード"
    rf"|e(?<=mot de passe)|ü(?<=schlü)ssel|{_ESCAPE_HINT}"
    rf"|k(?:ey{_FOLLOWED}(?:(?<=[ist_ -]key)|(?<=[dnregth]key))|(?<=tok)en{_FOLLOWED})"
    r"|c(?:v[vc](?<![^\W_]cv.)|ode(?:(?<=[reykmdsnx][ -]code)|(?<=[reykmdsnx]code)"
    r"|(?=[ \t](?:for|to|of|für|vom|zum|zur|der|des)[ \t]))(?!\w)"
    r"|ode(?=s?(?!\w))(?:(?<=[yphezlast]code)|(?<=[yphezlast][ _-]code)|(?=s?[ ]de[ ]))|odici[ ]di"
    r"|[oó]digos?[ ]de|ombination(?:(?<=[ek][ -]combination)|(?=[ \t](?:for|to|of)[ \t])))|g(?=eheimzahl)"
    rf"|c(?:(?<=sec)ret{_FOLLOWED}|redential)|ключ|к(?:(?<=ток)ен|(?<=сек)рет|од(?=[аы]?[ ]восст)"
    r"|од(?:(?<=ны[ей][ ]код)|(?=[ \t](?:от|для|к)[ \t])))|密钥|密鑰|令牌|恢[复復]|备用|備用|救援"
    r"|ｐ(?=ａｓｓｗｏｒｄ)|q(?<=mysq)l|b(?<=mariadb)|-(?<=redis-)cli"
    r"|k(?<=cook)ie|z(?<=authoriz)|-u[ =]|--user|фраза|助记词"
)
# Patterns that need fewer lines below the name: no line end is in a match of the first, and one in that of the other.
ON_NEAR_LINES = {_KEY: 0, _PIN: 1}
PHRASES = frozenset({"phrase", "фраза", "助记词"})
FIRST_LETTERS = {
    **dict.fromkeys(NAMED[:6], "psñnweп密口\\ｐhパkü"),
    _PIN: "pcgпк",
    _CODE_WORD: "c",
    _KEY: "kcüк密令\\",
    _KEY_BELOW: "kcüк密令\\",
    _BASIC: "z",
    _ARGUMENT: "ps-",
    _CLIENT: "qb-",
    SEED_PHRASE: "pф助",
    CODES: "cкв恢备備救",
    _COOKIE: "k",
}
