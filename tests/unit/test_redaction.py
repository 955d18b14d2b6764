"""What is struck out, what is left, and that no pattern can hold Klaw up."""

import json

import pytest
import regex
from hypothesis import assume, given
from hypothesis import strategies as st

from klaw_redaction import FILLER, REDACTED, UNREADABLE, Redactor, _Hints, forms
from klaw_redaction.forms import BUILTIN_PATTERNS, SHAPES
from klaw_redaction.readings import PATTERNS
from klaw_redaction.seeds import seed_phrases
from klaw_testing.laws import executed_lines

A, B = "Ab0" * 20, "x9Z" * 20
SECRETS = [
    f"sk-{A[:40]}",
    f"sk-ant-api03-{A[:40]}",
    f"ghp_{A[:36]}",
    f"github_pat_{A[:30]}",
    f"glpat-{A[:20]}",
    "AKIA" + "Q7" * 8,
    f"AIza{A[:35]}",
    f"xoxb-{A[:20]}",
    f"sk_live_{A[:24]}",
    f"hf_{A[:34]}",
    f"npm_{A[:36]}",
    f"pypi-{A[:55]}",
    f"123456789:{A[:35]}",
    f"eyJ{A[:12]}.{A[:20]}.{B[:20]}",
    f"-----BEGIN RSA PRIVATE KEY-----\n{A}\n{B}\n-----END RSA PRIVATE KEY-----",
    f"-----BEGIN PRIVATE KEY-----\n{A}",
]
SECRETS += [
    f"whsec_{A[:32]}",
    f"GOCSPX-{A[:28]}",
    f"SG.{A[:22]}.{B[:43]}",
    f"ya29.{A[:30]}",
    f"M{A[:23]}.{B[:6]}.{A[:27]}",
    "dop_v1_" + "0a" * 32,
    "AGE-SECRET-KEY-1" + "Q7" * 29,
    f"-----BEGIN PGP PRIVATE KEY BLOCK-----\n{A}\n-----END PGP PRIVATE KEY BLOCK-----",
    "4111 1111 1111 1111",
    "4111-1111-1111-1111",
    "5555555555554444",
    "378282246310005",
    f"figd_{A[:40]}",
    f"sbp_{A[:40]}",
    f"rnd_{A[:28]}",
    f"ntn_{A[:46]}",
    f"sntrys_{A[:60]}",
    f"nvapi-{A}abcd",
    f"tskey-auth-{A[:11]}CNTRL-{A[:30]}",
    f"sq0atp-{A[:22]}",
    f"pat-na1-{A[:8]}-{A[:4]}-{A[:4]}-{A[:4]}-{A[:12]}",
    f"hvs.{A[:24]}",
    f"ATATT3{A}",
]
#: A table, and the secret in it, which is below its name.
TABLES = [
    ("| service | password |\n|---|---|\n| router | hunter2 |", "hunter2"),
    ("| a | b | WLAN Passwort | c |\n|:--|:-:|--:|---|\n| r | anna | `hunter2`    | x |", "hunter2"),
    ("service | PIN\n--- | ---\ndoor | 4711", "4711"),
    ("| service | password |\n|---|---|\n| nas | none |\n| router | hunter2 |", "hunter2"),
    ("> | service | password |\n> |---|---|\n> | router | hunter2 |", "hunter2"),
    (" service | password \n---------+----------\n router  | hunter2\n(1 row)", "hunter2"),
    ("+---+----------+\n| s | password |\n+===+==========+\n| r | hunter2  |\n+---+----------+", "hunter2"),
    ("router | password\nnas | Tr0ub4dor98", "Tr0ub4dor98"),
    ("service,password\nnas,none\nrouter,Tr0ub4dor98", "Tr0ub4dor98"),
    ('```csv\nservice;API key\nmaps;"9f8e7d6c5b4a"\n```', "9f8e7d6c5b4a"),
    ("name\ttoken\nci\tabc-123-def-456", "abc-123-def-456"),
    (json.dumps({"x": "| a | password |\n|---|---|\n| r | hunter2 |"}), "hunter2"),
    ("| service | password | |---|---| | nas | none | | router | hunter2 |", "hunter2"),
    ("no key '| a | password ||---|---|| router | hunter2 |'", "hunter2"),
    ("no {a|b}: '| a | password |\\n|---|---|\\n| router | hunter2 |'", "hunter2"),
    ("there is no key 'name\\ttoken\\nci\\tabc-123-def-456' there", "abc-123-def-456"),
    (repr("service,token\nci,abc-123-def-456"), "abc-123-def-456"),
]
#: A text, and the secret in it, which is next to its name.
WORDS = "correct horse battery staple"
NAMED_SECRETS = [
    ("the PIN code:\n4711\n", "4711"),
    ("pass\u200bword: hunter2", "hunter2"),
    ("p\u00adassword: hunter2", "hunter2"),
    ("pass\u2060word is Tr0ub4\u200bdor98", "Tr0ub4\u200bdor98"),
    ("| pass\u200bword |\n|--|\n| hunter2 |", "hunter2"),
    (json.dumps("pass\u200bword: hunter2"), "hunter2"),
    (ascii("p\u00adassword: hunter2"), "hunter2"),
    ("recovery codes: 1. a1b2c3d4e5 2. f6g7h8i9j0", "a1b2c3d4e5"),
    ("https://b.example.com/k?Signature = 'aB3dE5fG'", "aB3dE5fG"),
    ("Cookie: sessionid=NFzwjj1pFycgkzgWTs56mYZWuERE3INf", "NFzwjj1pFycgkzgWTs56mYZWuERE3INf"),
    ("use Set-Cookie: sid=s3cr3tvalue; Path=/; HttpOnly", "s3cr3tvalue"),
    ("curl -H 'Cookie: theme=darkmode; sid=s3cr3tvalue' https://h.example", "darkmode; sid=s3cr3tvalue"),
    ('{"cookie": "sid=s3cr3tvalue"}', "s3cr3tvalue"),
    ("Recovery code: XK7PQ-4MNB2-ZZ81K-QW3ER-TY6UI", "XK7PQ-4MNB2-ZZ81K-QW3ER-TY6UI"),
    ("my backup codes are 12345678, 23456789 and 34567890.", "12345678"),
    ("Wiederherstellungscodes:\n  * a1b2c3d4e5\n  * f6g7h8i9j0", "a1b2c3d4e5"),
    ("códigos de recuperación: a1b2c3d4 e5f6g7h8", "a1b2c3d4"),
    ("codes de secours :\na1b2c3d4\ne5f6g7h8", "a1b2c3d4"),
    ("codici di recupero: a1b2c3d4e5", "a1b2c3d4e5"),
    ("резервные коды: 12345678 23456789", "12345678"),
    ("коды восстановления:\n12345678", "12345678"),
    ("恢复代码：a1b2c3d4e5", "a1b2c3d4e5"),
    ("2FA codes: abcd1234 efgh5678", "abcd1234"),
    ("https://a.blob.core.windows.net/c?sv=2022&sig=aB3dE5fG", "aB3dE5fG"),
    ("https://b.s3.amazonaws.com/k?AWSAccessKeyId=x&Signature=vjbyPxybdZ%3D&Expires=1", "vjbyPxybdZ"),
    ("https://b.s3.amazonaws.com/k?X-Amz-Signature=a1b2c3d4e5", "a1b2c3d4e5"),
    (r"https://x.example/c?a=1\u0026sig=aB3dE5fG", "aB3dE5fG"),
    ("password: hunter2", "hunter2"),
    ("Password = swordfish.", "swordfish"),
    ("my password is hunter2, ok", "hunter2"),
    ("The passwords are hunter2 and so on", "hunter2"),
    ("use password hunter22 there", "hunter22"),
    ("Password for the router: hunter2", "hunter2"),
    ("password (wifi) = correct-horse", "correct-horse"),
    ("**Password:** hunter2", "hunter2"),
    ("Password:\nhunter2", "hunter2"),
    ("`password`: `hunter2`", "hunter2"),
    ("| password | hunter22 |", "hunter22"),
    ('"password": "correct horse battery"', "correct horse battery"),
    ("password='p&ss;w,rd'", "p&ss;w,rd"),
    (r"{\"password\":\"hunter2\"}", "hunter2"),
    ("пароль: qwerty123", "qwerty123"),
    ("Пароль: солнышко", "солнышко"),
    ("Пароль от вайфая: солнышко!", "солнышко"),
    ("мой пароль это qwerty12", "qwerty12"),
    ("с паролем qwerty12", "qwerty12"),
    ("密码：abc123，谢谢", "abc123"),
    ("我的密码是abc12345。", "abc12345"),
    ("口令: 芝麻开门吧", "芝麻开门吧"),
    ("DB_PASSWORD=hunter2", "hunter2"),
    ("export PGPASSWORD='hunter2'", "hunter2"),
    ("REDIS_PASS=hunter2", "hunter2"),
    ("MYSQL_PWD=hunter2", "hunter2"),
    ("pass: hunter2", "hunter2"),
    ("Server=db;User Id=sa;Password=hunter2;Encrypt=true", "hunter2"),
    ("postgresql://h/db?user=anna&password=hunter2", "hunter2"),
    ("psql --password hunter2", "hunter2"),
    ("curl -u anna:hunter2 https://h", "hunter2"),
    ("aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "wJalrXUtnFEMI/K7MDENG"),
    ("JWT_SECRET=abc123def456", "abc123def456"),
    ("SECRET_KEY_BASE=0123456789abcdef", "0123456789abcdef"),
    ('api_key: "9f8e7d6c5b4a3210"', "9f8e7d6c5b4a3210"),
    ("apiKey=AbC123xyz789", "AbC123xyz789"),
    ("our API key is 9f8e7d6c5b4a", "9f8e7d6c5b4a"),
    ("the token is abc-123-def-456", "abc-123-def-456"),
    ("токен: abcd1234efgh", "abcd1234efgh"),
    ("API-ключ: abcd1234efgh", "abcd1234efgh"),
    ("密钥是abcd1234efgh", "abcd1234efgh"),
    ("AccountKey=abc123def456ghi789==;Endpoint=x", "abc123def456ghi789"),
    ("client_secret=abc123def", "abc123def"),
    ("Das Passwort ist Schwert4fisch", "Schwert4fisch"),
    ("WLAN-Passwort: Schwertfisch", "Schwertfisch"),
    ("Mein Kennwort lautet Schwert4fisch.", "Schwert4fisch"),
    ("La contraseña es tibur0nes", "tibur0nes"),
    ("contrasena: tiburones", "tiburones"),
    ("Le mot de passe est requin99", "requin99"),
    ("Mot de passe : requins", "requins"),
    ("senha: tubarao", "tubarao"),
    ("la password è Squalo79!", "Squalo79"),
    ("Wachtwoord: haaien", "haaien"),
    ("het wachtwoord is haai2024", "haai2024"),
    ("hasło: Rekiny", "Rekiny"),
    ("Moje hasło jest rekin2024", "rekin2024"),
    ("The password, which I always forget, is Zucchini9", "Zucchini9"),
    ("パスワード：samezame", "samezame"),
    ("パスワードは same2024x です", "same2024x"),
    ("WLAN-Schlüssel: Kn0blauch9", "Kn0blauch9"),
    ("the wifi key is Gl4cier77", "Gl4cier77"),
    ("the code for the garage door is 7395", "7395"),
    ("Code for our alarm: 7395", "7395"),
    ("the combination to my bike lock is 7395", "7395"),
    ("Der API-Schlüssel ist 9f8e7d6c5b4a", "9f8e7d6c5b4a"),
    ("sshpass -p hunter2 ssh h", "hunter2"),
    (f"https://a.blob.core.windows.net/c?sv=2022&sig={A[:43]}%3D", A[:43]),
    (json.dumps({"x": "Мой пароль: солнце12"})[1:-1], r"\u0441\u043e\u043b\u043d\u0446\u0435" + "12"),
    (json.dumps("La contraseña es tibur0nes"), "tibur0nes"),
    (json.dumps("密码：abc123"), "abc123"),
    (json.dumps("API-ключ: abcd1234efgh"), "abcd1234efgh"),
    (json.dumps("密钥是abcd1234efgh"), "abcd1234efgh"),
    ("token_ghp_" + A[:36], "ghp_" + A[:36]),
    ("API_KEY_2=9f8e7d6c5b4a", "9f8e7d6c5b4a"),
    ("Authorization: Basic YW5uYTpodW50ZXIy", "YW5uYTpodW50ZXIy"),
    ("https://hooks.slack.com/services/T00/B00/XXXXabcd1234", "T00/B00/XXXXabcd1234"),
    ("seed phrase: " + "apple river stone " * 4, "apple river stone apple"),
    *(
        (text.format("Tr0ub4dor98"), "Tr0ub4dor98")
        for text in (
            "My password for the router is {}.",
            "the password that I use is '{}'",
            "The password for api.example.com is {}",
            "I set the password to {}",
            "I changed the password for the router to {}",
            "the password has been changed to {}",
            "password -> {}",
            "password → {}",
            "Das Passwort für den Router ist {}",
            "das Passwort vom WLAN lautet {}",
            "Das Passwort wurde auf {} geändert",
            "Ich habe das Passwort auf {} gesetzt",
            "le mot de passe de l'imprimante est {}",
            "J'ai changé le mot de passe en {}",
            "la contraseña del wifi es {}",
            r"Das Passwort f\xfcr den Router ist {}",
            r"Ich habe das Passwort auf {} ge\xe4ndert",
            r"J'ai chang\u00e9 le mot de passe en {}",
            "Cambié la contraseña a {}",
            "пароль от роутера {}",
            "пароль от домашнего роутера: {}",
            "сменил пароль на {}",
            "поменяла пароль от роутера на {}",
            "mysql -u root -p{}",
            "mysqldump -h db --single-transaction -p'{}' shop",
            "mariadb -uroot -p{}",
            "redis-cli -h db -a {}",
            "PW={}",
            "DB_PW={}",
            "ｐａｓｓｗｏｒｄ：{}",
            "The token for the staging API is {}",
            "The API key for OpenWeather is {}",
            "Der Token für die Wetterstation ist {}",
            "токен для погоды {}",
        )
    ),
    ("Recovery phrase\n\n" + "apple river\nstone " * 4, "apple river"),
    *(
        (text.format("4711"), "4711")
        for text in (
            "the PIN of my card is {}",
            "PIN: {}",
            "PIN {}",
            "sim pin: {}",
            "pin number {}",
            "I changed my PIN to {}, and told nobody.",
            "{} is my PIN",
            "The alarm code for the house is {}.",
            "PUK = {}",
            "**CVC:** {}",
            "Die PIN lautet {}",
            "Geheimzahl: {}",
            "el PIN es {}",
            "le code PIN est {}",
            "ПИН-код: {}",
            "пин от карты {}",
            "门的 PIN 是 {}",
        )
    ),
    ("safe combination: 12-34-56", "12-34-56"),
    *(
        (text.format("hunter22horse"), "hunter22horse")
        for text in (
            "password:\n  {}",
            "password:\r\n\r\n  {}",
            "Password\n--------\n{}",
            "## Password\n\n{}",
            "- password:\n    - {}",
            "password: |\n  {}",
            "password: >-\n  {}",
            "The password is:\n\n    {}",
            "| password |\n|---|\n| {} |",
            "password:\n```\n{}\n```",
            "<dt>password</dt>\n<dd>{}</dd>",
            "Passwort\n{}",
        )
    ),
    *(
        (text.replace("VALUE", "Hx7R4jNX0JQz9"), "Hx7R4jNX0JQz9")
        for text in (
            "Authorization: Bearer VALUE",
            'authorization: "Bearer VALUE"',
            "**Authorization:** Bearer VALUE",
            "Proxy-Authorization: Digest VALUE",
            "curl -H 'Authorization: Bearer VALUE' https://h.example",
            "__Password:__ VALUE",
            "_pw_: VALUE",
            "`pw`: VALUE",
            "~~Password~~: VALUE",
            "***pw***: VALUE",
            "_Password_ is VALUE",
            "**API key**: VALUE",
            "__token__: VALUE",
            "_pass:_ VALUE",
            "*pw:* VALUE",
            '{"password":{"value":"VALUE"}}',
            '{"password": {"current": "VALUE"}}',
            '{\n  "password": {\n    "value": "VALUE"\n  }\n}',
            "password:\n  value: VALUE",
            '{"api_key": {"value": "VALUE"}}',
            "api_key:\n  value: VALUE",
            "password: {value: VALUE}",
            '{\\"password\\":{\\"value\\":\\"VALUE\\"}}',
            "my pw is VALUE",
            "the pass is VALUE",
            "my passcode is VALUE",
            "pw for the router is VALUE",
            "unlock code: VALUE",
            "gate code is VALUE",
            "lockbox code: VALUE",
            "Türcode: VALUE",
        )
    ),
    *(
        (text.replace("VALUE", "7379"), "7379")
        for text in (
            "my passcode is VALUE",
            "passcode VALUE",
            "pass code: VALUE",
            "voicemail pin VALUE",
            "my pin VALUE",
            "Die PIN der Karte ist VALUE",
            "Die PIN meiner Karte lautet VALUE",
            "ПИН VALUE",
            "пин-код VALUE",
            "ПИН карты VALUE",
            "пин карты VALUE",
            "ПИН: VALUE",
            "gate code VALUE",
            "gate code is VALUE",
            "lockbox code is VALUE",
            "lock box code VALUE",
            "door code VALUE",
            "the alarm code VALUE",
            "unlock code: VALUE",
            "entry code VALUE",
            "keypad code: VALUE",
            "Türcode VALUE",
            "Haustürcode: VALUE",
            "der Code für die Garage ist VALUE",
            "der Code vom Safe ist VALUE",
            "код от домофона VALUE",
            "код от сейфа: VALUE",
            "код для двери VALUE",
            "код от подъезда это VALUE",
            "the gate code is VALUE, and shut it",
        )
    ),
    ("\u041f\u0418\u041d \uff17\uff13\uff17\uff19", "\uff17\uff13\uff17\uff19"),
    ("PIN: \u0664\u0663\u0662\u0661", "\u0664\u0663\u0662\u0661"),
    *(
        (f"card {number} ok", number)
        for number in (
            "4111  1111  1111  1111",
            "4111.1111.1111.1111",
            "4111 1111\n1111 1111",
            "4111\n1111 1111 1111",
            "4111 1111 1111\n1111",
            "\uff14\uff11\uff11\uff11\uff11\uff11\uff11\uff11\uff11\uff11\uff11\uff11\uff11\uff11\uff11\uff11",
            "4111\u20131111\u20131111\u20131111",
            "\uff14\uff11\uff11\uff11 \uff11\uff11\uff11\uff11 \uff11\uff11\uff11\uff11 \uff11\uff11\uff11\uff11",
            "4111\xa01111\xa01111\xa01111",
            "3782  822463  10005",
            "3782.822463.10005",
        )
    ),
    ("api key:\n\nabcDEF123456ghiJKL", "abcDEF123456ghiJKL"),
    ("token\n  abcDEF123456ghiJKL", "abcDEF123456ghiJKL"),
    (f"passphrase: {WORDS}", WORDS),
]
PIECES = [
    "&sig=",
    json.dumps("пароль")[1:-1],
    json.dumps("密钥是")[1:-1],
    "contrase" + r"\u00f1a: ",
    "contraseña ",
    "CONTRASENA: ",
    "Kennwort ",
    "Mot de passe : ",
    "senha=",
    "wachtwoord ",
    "Hasło: ",
    "パスワードは",
    "WiFi key ",
    "code for the gate is ",
    "redis://:hunter2@db",
    "API-Schlüssel ",
    "sshpass -p ",
    "-",
    "postgres://anna:hunter2@db",
    "gho_",
    "ghs_",
    "github_pat_",
    A[:36],
    B,
    "1",
    "12345678",
    ":",
    "://",
    "anna",
    ":hunter2",
    "@db",
    " ",
    "\n",
    "%20",
    "Bearer ",
    "bEArer+",
    "rk_test_",
    "4111",
    " 1111",
    "password",
    "PASSWORD: ",
    "_pass=",
    "пароль ",
    "密码",
    "api key",
    "token=",
    " is ",
    "hunter22",
    "seed phrase: ",
    "apple river stone " * 4,
    "Authorization: Basic ",
    "-u a:",
    "\u0130",
    "ASIA",
    "xoxz-",
    "ｐａｓｓｗｏｒｄ",
    "pw=",
    " for the router is ",
    " пароль от роутера ",
    "I set the password to ",
    " is the password",
    "mysql -p",
    "redis-cli -a ",
    "hvs.",
    "tskey-auth-",
    "-----BEGIN PRIVATE KEY-----",
    "PIN",
    "пин ",
    "door code",
    " 4711",
    "passphrase: ",
    WORDS,
    "\n\n  ",
    "|\n|---|\n| ",
    "```",
]
HARMLESS = [
    "cd /home/anna/notes && PWD=/home/anna/notes/2026%20a pip install .",
    "OLDPWD=/home/anna/A1",
    "password: required",
    '"password": "string"',
    "1Password: vault",
    "password: ${DB}, password: {{ db }}, password: <yours>, password: ***, password: ...",
    "the password is wrong, and the password is stored in 1Password",
    "password = getpass(); password=settings.password; token = tokenizer.next1()",
    "max_tokens: 4096, token: str, token_count=12345678, keyword: apple",
    "API key: see 1Password. Password: 1Password",
    "密码：在1Password里",
    "пароль: хранится в сейфе",
    "Forgot your password? Both passwords: 3 of them",
    "secret: /run/secrets/db1",
    'api_key = os.environ["KEY1"]',
    "The token is in the vault of team1. The password has 12 characters.",
    "password policy and a passport",
    "The password-policy-2026.md file and https://example.org/password-reset?step=2 name no password",
    "notes/api-key-rotation-2026-q1.md, docs/secret-santa-2026/names-42.md, credentials-2026-template.yaml",
    "token-budget-2026-02.csv, secret-key-2026-rotation.md, secret_sharing_v2.py, private-key-format-pkcs8.txt",
    "/home/anna/Projects/secret-project-x42/README.md and the token-ring4network of 1985",
    "550e8400-e29b-41d4-a716-446655440000, sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "commit 3b18e512dba79e4c8300dd08aeb37f8e728b8dad fixes the token cache, 01ARZ3NDEKTSV4RRFFQ69G5FAV does not",
    "Das Passwort ist falsch, das Kennwort ist abgelaufen. Passwort: siehe 1Password",
    "La contraseña es obligatoria y debe tener 12 caracteres. Le mot de passe est requis.",
    "https://example.org/?a=1&sig=abc and a sentence with a signature",
    "4111 1111 1111 1112 is no card, nor is 1234567890123456, 1700000000000000 or 0.4111111111111111",
    "order 4111111111111111-7",
    "the password policy for the router is strict, and the token for the parking meter is free",
    "the key to success is patience, and my password manager is Bitwarden",
    "the API key for the service is missing, the API key for v2 is required, the token for team1 is rotated monthly",
    "the API key for OpenWeather is in the vault, and the password for the router is stored in 1Password",
    "the password for the router is long and the model is WRT54GL2",
    "the password to server42 is lost, and the password for the exam is due on 2026-02-24",
    "We changed the password hashing to argon2id, and I set the password hash to sha512crypt",
    "Fido2key is the password manager of the team. We use SHA256 as password hash.",
    "Das Passwort für den Router ist geheim. Das Passwort vom WLAN liegt in 1Password. Der Token für Zone2 ist gratis.",
    "le mot de passe du wifi est dans le coffre, et le mot de passe de l'imprimante est facile",
    "la contraseña del wifi es secreta, y la contraseña del wifi está en 1Password",
    "пароль от роутера лежит в сейфе, пароль от роутера в 1Password, токен для парковки бесплатный",
    "docker run --name mysql -p3306:3306 -d mysql8image1; mysql -P3306 -u root -p",
    "password -> Settings, the pw is on paper",
    "a phrase with a few words, and a seed phrase without any",
    "We met at 10:30 on 2026-02-24 at https://example.org/a?b=c:d@e.",
    "the sk-learn package, a ghp_ prefix, AKIA alone, and task-list",
    "The bearer of this letter is trustworthy.",
    "the password is on the sticky note, and the PIN is on it too",
    "pin the message, pin 2024 goals to the board, and connect GPIO pin 4 to pin 17",
    "The pin is 2000 years old; PIN: 3 digits; the PIN was changed in 2019, and has 4 digits",
    "PIN: 2026-02-24, pin code rules of 1999, the CVC of cards has 3 digits, the door codes of 2024",
    "the code for the lexer is 4711 lines, the key of the door is in room 7395, the error code of step 12 is 404",
    "https://example.org:8080/a@b, ftp://h/x:y@z and http://[::1]:80/@",
    "status code: 404, error code 2580, source code 4711, the code is 4711, zip code: 12345",
    "a bowling pin 1234. PIN: 123.45; the PIN is 4711/12, and not PIN: 2026/02",
    "Password:\n\nnotes-2026-02-24\n",
    "The opinion is 4711 to one. A spin of 1000. Access codes expire after 4711 days.",
    "passphrase rules: use four words",
    "passphrase: use four random words",
    "the passphrase is stored in the vault, and the passphrase is never written down anywhere",
    "The passphrase is seven words long. The passphrase generator makes random words.",
    "# Password\n\nIt is in 1Password since 2019.",
    "## Reset your password\n\n1. Open the page",
    "password:\n  type: string\n  minLength: 12",
    "password\n--------\nsee page12 of the manual",
    "token:\n  - type: bearer1\n",
    "Password\nhttps://example.org/reset1\nkeys/file2.pem",
    "commit 3b18e512dba79e4c8300dd08aeb37f8e728b8dad",
    "",
    "| model | token count |\n|---|---|\n| a | 4096 |\n| b | 128k |\n| c | 128k-2024x |",
    "| rule | password policy |\n|---|---|\n| length | at least 12 characters |\n| history | the last 5passwords2 |",
    "| field | password |\n|---|---|\n| type | string |\n| min | 8 |\n| required | yes |",
    "| service | password |\n|---|---|\n| bank | in Bitwarden |\n| post | see vault2 |\n| x | — |",
    "name, password, token\nanna, none, 12",
    "The form has a name, a password\nThe other has a city, number2x4y6",
    "service,password policy\nrouter,Tr0ub4dor98",
    "| token | id |\n|---|---|\n| the | 5 |",
    "Cookies: the site sets cookie=accepted, and a cookie policy",
    "The cookie recipe: flour=200g butter=150g",
    "cookie consent: required",
    "Backup codes:\n- printed\n- in drawer2\n- 2026-02-24 renewed",
    "Recovery codes are in the safe since 2024-05-06",
    "recovery codes: 1Password",
    "recovery codes: 10 codes, 8 digits each",
    "see the backup code review of pull12345678",
    "source codes 12345678, country codes: 12345678",
    "https://x.example/?sig=none&design=ab12cd34ef",
    "the pin is red",
    "area code 415",
    "the gate code review",
    "the gate code review of 2024 is due",
    "a bowling pin 1234.",
    "GPIO pin 4321 and",
    "status code 404",
    "entry codes 2024",
    "the door code was changed in 2019",
    "Authorization: Bearer <token>",
    "Authorization: Bearer $TOKEN",
    "Authorization: Bearer YOUR_TOKEN",
    "Authorization: required since 2024",
    "Authorization: see RFC7235",
    "authorization: role admin2",
    "the pass is 2500m high",
    "the pass is 1,500m high",
    "the mountain pass is closed",
    "the pass is open until 2024",
    "the ski pass is valid until 2026-02-24",
    "boarding pass is here",
    "the pass is https://shop.example/1",
    "pw is short for password",
    "the pw is on paper",
    '{"password":{"type":"string","minLength":12}}',
    '{"password": {"value": "required"}}',
    '{"password": {"description": "At least 12 characters"}}',
    "password:\n  required: true\n  value: string",
    "__password__ policy of 2024",
    "_password_hash2_ function",
    "password_reset5token",
    "pass_through2mode",
    "api_key_ is none",
    "a row 4100  4200  4300  4400  4500",
    "4111.1111.1111.1112",
    "version 4111.1111.1111.1111.2",
    "4100\n4200\n4300\n4400",
    "41111111\n11111111",
    "order 4111 1111\n1111 1112",
    "years 2221  2222  2223  2225",
    "call 4111 1111\n1111 1111 1111",
    "the code for the lexer is 4711",
    "код для лексера 4711",
    "код ответа 4040",
    "Code für die Tür fehlt",
    "der Code vom Parser ist 4711",
    "das Passwort der Datenbank ist geheim",
    "a code 7379",
    "the code review 7379",
    "lock code: LRU2Cache3",
    "unlock codes are sold",
    "пин 17 и 18",
    "pin 2024 goals to the board",
    "my pin 17",
    "the passcode is new",
    "passcode rules 2024 apply",
    "\uff12\uff10\uff12\uff16\u5e74\uff12\u6708\uff12\uff14\u65e5 \uff21\uff22\uff23",
    "order number 4711",
    "the data center entry code 7 rules",
    "in 2019 the entry code changed",
    "code of the gate is old",
    '{"pin": {"type": "number"}}',
    "mit dem Code der Garage 12",
    "~~password~~ dropped in v2beta1",
    "phone number 4111 1111",
    "table:\n4111 1111\n4222 2222\n4333 3333\n4444 4444",
    "Family \U0001f468\u200d\U0001f469\u200d\U0001f467 and the password policy",
]


@pytest.mark.parametrize("secret", SECRETS)
def test_each_line_of_a_document_keeps_its_number(secret):
    text = f"one\ntwo ({secret}) too\n\nthree"
    found = Redactor().lines(text)
    assert secret.split("\n")[0] not in found
    assert len(found.split("\n")) == len(text.split("\n"))
    assert "\nthree" in found


@pytest.mark.parametrize("secret", SECRETS)
def test_a_secret_is_redacted_and_the_text_around_it_stays(secret):
    assert Redactor().text(f"Use ({secret}) soon.") == f"Use ({REDACTED}) soon."


@pytest.mark.parametrize(
    "before",
    [
        "---\napi_key: none\n---\n",
        "The password: none\n---\n",
        "| token | kept |\n|---|---|\n| none | yes |\n",
        "+-------+------+\n| token | kept |\n+-------+------+\n| none  | yes  |\n+-------+------+\n",
    ],
    ids=["front matter", "heading", "table", "grid"],
)
def test_a_table_is_read_whatever_stands_above_it(before):
    found = Redactor().text(f"{before}| service | password |\n|---|---|\n| router | Zq7Yw3Xv90029Ut5 |\n\nx")
    assert "Zq7Yw3Xv90029Ut5" not in found
    assert "| router |" in found


WITH_HEADERS = (
    "name,password\nuser0,hunter2xK0\n",
    "| a | password |\n|---|---|\n| x | hunter2xK0 |",
    "| a | password | |---|---| | x | hunter2xK0 |",
)
#: Texts that grow with a number, of which another reading has much to look at.
GROWING = {
    "tables on one line": lambda n: "| password | a | |--|--| | " * n,
    "tables": lambda n: "| password | b |\n|---|---|\n" * n,
    "names in a row": lambda n: "password, " * n,
    "rows": lambda n: "name,password\n" + "u,hunter2xK0\n" * n,
    "words of wallets": lambda n: "legal winner thank year wave sausage worth useful legal winner thank yellow. A " * n,
    "words of a list": lambda n: "legal winner thank year " * n,
    "escapes": lambda n: "pass\\u200bword: " * n,
}


@pytest.mark.parametrize("name", GROWING)
def test_law_the_work_grows_with_the_text_and_not_faster(name):
    redact = Redactor().text
    redact(GROWING[name](20))  # what is compiled once
    small, large = (executed_lines(lambda n=n: redact(GROWING[name](n))) for n in (100, 400))
    assert small > 100
    assert large < 6 * small


@given(st.lists(st.sampled_from([*SECRETS, *HARMLESS, *PIECES, *WITH_HEADERS]), max_size=8).map("\n".join))
def test_law_what_is_redacted_stays_as_it_is(text):
    once = Redactor().text(text)
    assert Redactor().text(once) == once
    assert f"{REDACTED}]" not in once.replace(f"[{REDACTED}]", "")


def test_letters_that_are_longer_in_lower_case_move_no_place():
    text = "\u0130" * 20 + "\n\nname,password\nuser0,hunter2xK0\nuser1,hunter2xK1\n"
    found = Redactor().text(text)
    assert "hunter2" not in found
    assert "user1" in found


@given(st.lists(st.sampled_from([*SECRETS, *HARMLESS, *PIECES]), max_size=8).map("".join))
def test_law_no_matching_pattern_is_skipped(text):
    assume(not Redactor()._elsewhere(_Hints(text), 60))  # what another reading shows is redacted before
    expected = text
    for pattern in BUILTIN_PATTERNS:
        numbers = pattern == SHAPES[-1]
        expected = regex.sub(
            pattern,
            lambda match, numbers=numbers: match[0] if numbers and is_wrong_card(match[0]) else REDACTED,
            expected,
        )
    assume(not list(seed_phrases(expected.lower())))  # no pattern looks for them
    assert Redactor().text(text) == expected


def is_wrong_card(number):
    """Return whether the checksum of a card's number is wrong."""
    digits = [int(digit) for digit in number[::-1] if digit.isdigit()]
    return sum(digits[::2] + [sum(map(int, str(2 * digit))) for digit in digits[1::2]]) % 10 != 0


@pytest.mark.parametrize(("text", "secret"), NAMED_SECRETS)
def test_a_secret_is_recognised_by_its_name_and_the_name_stays(text, secret):
    for around in ("{}", "x\n{}", "One line.\n{}\nanother line", "{}\n", "({})"):
        given = around.format(text)
        found = Redactor().text(given)
        assert secret not in found
        assert found.startswith(given.partition(secret)[0])
        assert Redactor().text(found) == found


@pytest.mark.parametrize(("table", "secret"), TABLES)
def test_a_secret_in_a_table_is_recognised_by_the_header_of_its_column(table, secret):
    for around in ("{}", "x\n{}", "One line, with others.\n\n{}\n\nAnother line.", "{}\nanother line", "- a, b\n{}\n"):
        given = around.format(table)
        found = Redactor().text(given)
        before, _, after = given.partition(secret)
        assert found == f"{before}{REDACTED}{after}"
        assert Redactor().text(found) == found


@pytest.mark.parametrize(
    "text",
    [
        "passphrase: {}",
        "Pass phrase = {}",
        'passphrase: "{}"',
        "the passphrase for the disk is {}.",
        "Passphrase:\n{}\nThe end",
        "password: {}",
        "(Passphrase: {})",
    ],
)
def test_all_words_of_a_passphrase_are_redacted(text):
    for words in (WORDS, WORDS.title(), "anvil river orange seven lantern"):
        assert Redactor().text(text.format(words)) == text.format(REDACTED)


@pytest.mark.parametrize(
    "text",
    [
        "Recovery codes:\n\n1. {}\n2. {}\n3. {}\n\nKeep them safe.",
        "## Backup codes\n- {}\n- ~~{}~~\n- {}\nprint them",
        "GitHub recovery codes (printed):\n```\n{}   {}\n{}\n```\n",
        "BACKUP CODES\n[ ] {}\n[x] {}\n[ ] {}",
        "Emergency codes: {}, {} and {}.",
    ],
)
@pytest.mark.parametrize(
    "codes", [("a1b2c-3d4e5", "f6g7h-8i9j0", "abcde-fghij"), ("1234 5678", "2345 6789", "3456 7890"), ("12345678",) * 3]
)
def test_all_codes_of_a_list_are_redacted(text, codes):
    found = Redactor().text(text.format(*codes))
    assert REDACTED in found
    assert [code for code in codes if code in found] == []
    assert found.startswith(text.partition("{}")[0])
    assert "safe" not in text or found.endswith("Keep them safe.")


def test_the_invisible_characters_are_those_that_unicode_ignores():
    ignorable = regex.compile(r"\p{Default_Ignorable_Code_Point}")
    found = regex.compile(PATTERNS[0])
    characters = [chr(code) for code in range(0x110000)]
    assert [each for each in characters if bool(ignorable.match(each)) != bool(found.match(each))] == []


def test_only_what_is_secret_leaves_a_text_with_invisible_characters():
    around = "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645 \u2764\ufe0f"
    assert Redactor().text(f"gh\u200bp_{A[:36]} {around}") == f"{REDACTED} {around}"
    assert Redactor().text(f"{around}\npass\u200bword: hun\u200bter2, {around}") == (
        f"{around}\npass\u200bword: {REDACTED}, {around}"
    )


WALLETS = (
    "legal winner thank year wave sausage worth useful legal winner thank yellow",
    "letter advice cage absurd amount doctor acoustic avoid " * 2 + "letter always",
    (
        "void come effort suffer camp survey warrior heavy shoot primary clutch crush "
        "open amazing screen patrol group space point ten exist slush involve unfold"
    ),
)


@pytest.mark.parametrize("words", WALLETS)
@pytest.mark.parametrize(
    "text", ["{}", "mnemonic: {}", "Seed: {}.", "My wallet words are {}, and keep them", "x\n\n{}\n"]
)
@pytest.mark.parametrize("between", [" ", "\n", ", "])
def test_words_of_a_wallet_are_recognised_by_their_checksum(words, text, between):
    given = text.format(between.join(words.split()))
    assert Redactor().text(given) == text.format(REDACTED)
    assert Redactor().text(given.upper()) == text.upper().format(REDACTED)
    assert Redactor(forms.SHAPES).text(given) == given


def test_words_of_a_wallet_in_a_numbered_list_are_recognised():
    listed = "\n".join(f"{number}. {word}" for number, word in enumerate(WALLETS[0].split(), 1))
    assert Redactor().text(f"Wallet\n{listed}\nend") == f"Wallet\n1. {REDACTED}\nend"


@pytest.mark.parametrize("words", WALLETS)
def test_words_without_the_checksum_of_a_wallet_stay(words):
    rest = words.split()
    for text in (
        " ".join(rest[:11]),
        " ".join(["zone", *rest[1:]]),
        words.replace(f" {rest[4]}", " a", 1),
        "abandon " * 24,
    ):
        assert Redactor().text(text) == text


@pytest.mark.parametrize("text", HARMLESS)
def test_ordinary_text_stays(text):
    assert Redactor().text(text) == text
    assert Redactor().text(f"One line.\n- {text}\n") == f"One line.\n- {text}\n"


@given(st.lists(st.sampled_from([*SECRETS, *HARMLESS, *PIECES]), max_size=8).map("".join))
def test_law_filling_keeps_every_offset_and_redacting_again_changes_nothing(text):
    redactor = Redactor()
    filled = redactor.filled(text)
    assert len(filled) == len(text)
    assert all(new in {old, FILLER} for old, new in zip(text, filled, strict=True))
    assert (filled == text) is (redactor.text(text) == text)


def test_a_password_in_a_url_is_redacted_with_and_without_a_user():
    assert Redactor().text("redis://:p4ss@cache:6379/0 ftp://a:bcd@host") == (
        f"redis://{REDACTED}@cache:6379/0 ftp://{REDACTED}@host"
    )


def test_every_builtin_pattern_redacts_its_example():
    texts = [
        *SECRETS,
        f"Bearer {A}",
        "ftp://a:bcd@host",
        "Tr0ub4dor98 is the password",
        *(text for text, _ in NAMED_SECRETS),
    ]
    for pattern in BUILTIN_PATTERNS:
        assert any(Redactor([pattern]).text(text) != text for text in texts), pattern


def test_texts_in_metadata_are_redacted_at_any_depth():
    assert Redactor().metadata({f"ghp_{A[:36]}": 1, "deep": {f"ghp_{A[:36]}": 1}}) == {
        REDACTED: 1,
        "deep": {REDACTED: 1},
    }
    before = {"key": f"sk-{A}", "list": [1, None, True, {"deep": f"a ghp_{A[:36]}"}], "n": 1.5}
    after = {"key": REDACTED, "list": [1, None, True, {"deep": f"a {REDACTED}"}], "n": 1.5}
    assert Redactor().metadata(before) == after


@pytest.mark.parametrize(
    "text",
    [
        "Tr0ub4dor98 is the wifi password",
        "use `Tr0ub4dor98` as the password for the router.",
        "unknown: 'Tr0ub4dor98 is the password' (see the list)",
    ],
)
def test_a_password_is_recognised_in_front_of_its_name(text):
    assert Redactor().text(text) == text.replace("Tr0ub4dor98", REDACTED)


@pytest.mark.parametrize("between", ["\n", "\n> ", "\\n", " "])
def test_a_private_key_without_an_end_hides_its_lines_and_not_the_rest(between):
    begin = "-----BEGIN PRIVATE KEY-----"
    text = f"A file with {begin} is a key.\n\n{between.join((begin, A[:60], B[:60]))}\n\nThe rest stays."
    assert Redactor().text(text) == f"A file with {REDACTED} is a key.\n\n{REDACTED}\n\nThe rest stays."


def test_a_value_is_judged_beside_its_key_and_a_tag_beside_the_others():
    given = {
        "password": "swordfish",
        "api_key": A,
        "PIN": 1,
        "passcode": 48211,
        "https://a.example/k?sig": A[:9],
        "deep": {"wifi password": ["hunter2"]},
    }
    struck = dict.fromkeys(given, REDACTED) | {"PIN": 1, "deep": {"wifi password": [REDACTED]}}
    assert Redactor().metadata(given) == struck
    nested = {"password": {"value": "swordfish", "type": "string"}, "pin": {"current": 48211, "length": 5}}
    assert Redactor().metadata(nested) == {
        "password": {"value": REDACTED, "type": "string"},
        "pin": {"current": REDACTED, "length": 5},
    }
    assert Redactor().value(("password", "home", "Tr0ub4dor98")) == ("password", "home", REDACTED)
    assert Redactor().value(["Tr0ub4dor98", "wifi password"]) == [REDACTED, "wifi password"]


@pytest.mark.parametrize(
    "value",
    [
        {"password": "required", "token": "in the vault", "max_tokens": 4096, "passwords": 3, "password_changed": True},
        {"id": 4111111111111111, "tags": ["password", "Python3", "windows11", "oauth2", "sha256"]},
        {"tags": ["Tr0ub4dor98", "home"], "lines": ["Choose a password", "PostgreSQL16 is new"]},
    ],
)
def test_ordinary_values_stay_beside_their_keys(value):
    assert Redactor().metadata(value) == value


def test_a_pattern_that_takes_too_long_redacts_the_whole_text():
    assert Redactor([r"(?:a|a|aa)+$x"]).text("a" * 60 + "!") == UNREADABLE


def test_different_patterns_have_different_recipes():
    recipes = [Redactor(patterns).recipe for patterns in ((), ("a",), ("b",), ("a", "b"), BUILTIN_PATTERNS)]
    assert len(set(recipes)) == len(recipes)
