"""Credentials are told by their form; talk about credentials is not one.

Every token here is put together when the test runs, so that no file holds anything a scanner would take for real.
"""

from __future__ import annotations

import base64
import itertools
import random
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.events._errors import BadArgument
from muniment.gate._secret_rules import RULES
from muniment.gate._secrets import SecretHit, StructuredScanner, mask, rule_names

SCANNER = StructuredScanner()
ALNUM = string.ascii_letters + string.digits
HEX = "0123456789abcdef"
UPPER = string.ascii_uppercase + "234567"


def some(length: int, alphabet: str = ALNUM, seed: int = 1) -> str:
    """Letters of an alphabet, with a digit in front where there are digits; the same for the same seed."""
    text = "".join(random.Random(f"{seed}{length}{alphabet}").choices(alphabet, k=length - 1))
    return ("7" if "7" in alphabet else alphabet[0]) + text


def encoded(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def fence(kind: str, *, body: str = "") -> str:
    return f"-----BEGIN {kind}-----\n{body}\n-----END {kind}-----"


JWT = ".".join([encoded('{"alg":"HS256"}'), encoded('{"sub":"1234567890"}'), some(43)])

EXAMPLES = {
    "aws-access-key-id": "AKIA" + some(16, UPPER),
    "github-token": "gh" + "p_" + some(36),
    "github-fine-grained-token": "github" + "_pat_" + some(22) + "_" + some(59),
    "gitlab-token": "gl" + "pat-" + some(20),
    "slack-token": "xo" + "xb-" + some(12, string.digits) + "-" + some(24),
    "slack-webhook": "https://hooks." + "slack.com/services/T" + some(8) + "/B" + some(8) + "/" + some(24),
    "stripe-key": "sk" + "_live_" + some(24),
    "stripe-webhook-secret": "wh" + "sec_" + some(32),
    "anthropic-key": "sk-" + "ant-api03-" + some(93) + "AA",
    "openai-key": "sk-" + "proj-" + some(48),
    "google-api-key": "AI" + "za" + some(35),
    "google-oauth-secret": "GOC" + "SPX-" + some(28),
    "google-oauth-token": "ya" + "29." + some(60),
    "npm-token": "np" + "m_" + some(36),
    "pypi-token": "py" + "pi-AgEI" + some(90),
    "sendgrid-key": "S" + "G." + some(22) + "." + some(43),
    "huggingface-token": "h" + "f_" + some(34),
    "digitalocean-token": "do" + "p_v1_" + some(64, HEX),
    "shopify-token": "sh" + "pat_" + some(32, HEX),
    "databricks-token": "da" + "pi" + some(32, HEX),
    "vault-token": "hv" + "s." + some(90),
    "telegram-bot-token": some(10, string.digits) + ":A" + "A" + some(33),
    "mailgun-key": "ke" + "y-" + some(32, HEX),
    "docker-token": "dckr" + "_pat_" + some(27),
    "atlassian-token": "ATA" + "TT3" + some(180),
    "linear-key": "lin" + "_api_" + some(40),
    "notion-token": "nt" + "n_" + some(46),
    "figma-token": "fi" + "gd_" + some(40),
    "postman-key": "PM" + "AK-" + some(24, HEX) + "-" + some(34, HEX),
    "groq-key": "gs" + "k_" + some(52),
    "xai-key": "xa" + "i-" + some(80),
    "replicate-token": "r" + "8_" + some(37),
    "perplexity-key": "pp" + "lx-" + some(48),
    "age-secret-key": "AGE-" + "SECRET-KEY-1" + some(58, string.ascii_uppercase),
    "twilio-key": "S" + "K" + some(32, HEX),
    "jwt": JWT,
    "private-key": fence("RSA PRIVATE " + "KEY", body=some(64) + "\n" + some(64)),
    "url-password": "postgresql://app:" + some(12) + "@db.example.org:5432/prod",
    "connection-string-password": "Server=db.example.org;Database=prod;User Id=app;Pass" + f"word={some(10)};",
    "authorization-header": "Authorization: Bearer " + some(40),
    "assigned-credential": "DB_PASS" + f"WORD={some(12)}",
}


def rules_in(text: str) -> list[str]:
    return [hit.rule for hit in SCANNER.find(text)]


def test_every_rule_has_an_example_here() -> None:
    assert set(EXAMPLES) == rule_names()
    assert len(RULES) == len(rule_names())


@pytest.mark.parametrize("rule", sorted(EXAMPLES))
def test_each_format_is_found_alone_in_prose_and_in_code(rule: str) -> None:
    secret = EXAMPLES[rule]
    for text in (
        secret,
        f"Use {secret} for now, Ann.",
        f'{{"note": "{secret}"}}',
        f"äöü 漢字 {secret}\n",
        f"({secret})",
    ):
        assert rules_in(text) == [rule], text


@pytest.mark.parametrize("rule", sorted(EXAMPLES))
def test_masking_leaves_nothing_to_find_and_the_rest_as_it_was(rule: str) -> None:
    text = f"before {EXAMPLES[rule]} after"
    masked = mask(text, SCANNER.find(text))
    assert f"[secret: {rule}]" in masked
    assert masked.startswith("before ")
    assert masked.endswith(" after")
    assert rules_in(masked) == []


@pytest.mark.parametrize("rule", sorted(EXAMPLES))
def test_a_rule_can_be_exempted_by_itself(rule: str) -> None:
    assert rule not in [hit.rule for hit in StructuredScanner(exempt=[rule]).find(EXAMPLES[rule])]


def test_an_unknown_exemption_is_refused() -> None:
    with pytest.raises(BadArgument, match="no such rule: aws"):
        StructuredScanner(exempt=["aws"])
    assert StructuredScanner(exempt=rule_names()).find(EXAMPLES["jwt"]) == []


@pytest.mark.parametrize(
    "text",
    [
        "There is no API key in the build.",
        "The password is stored in the vault; ask Ann for the token.",
        "Password: see the safe. API key: none. Token: not yet issued.",
        "We reset every password on 2026-03-12, and the secret: nobody noticed.",
        "auth: OAuth2.0, token: bitcoin2024",
        "password = input('Password: ')",
        "api_key = os.environ['API_KEY_2']; token = getenv(\"TOKEN_1\")",
        "DB_PASSWORD=${DB_PASSWORD_2}  API_KEY=<your-key-1>  SECRET_KEY={{ key_1 }}  PASSWORD=********",
        "api_key=your_api_key_1234, password=changeme123, password: example1234",
        "private key: ~/.ssh/id_ed25519, access key: id_rsa2, secret_key: /run/secrets/key1",
        "postgres://localhost:5432/db and https://example.org:8443/a@b and mailto:ann@example.org",
        "postgres://user:<password>@host/db, postgres://user:${PASS}@host/db, redis://u:****@h",
        "ssh://git@github.com/org/repo.git git@github.com:org/repo.git",
        "A PEM file begins with -----BEGIN PRIVATE KEY----- and then comes the body.",
        fence("PUBLIC KEY", body=some(60) + "="),
        f"commit {some(40, HEX)}, sha256 {some(64, HEX)}, md5 {some(32, HEX)}",
        "id 550e8400-e29b-41d4-a716-446655440000, trace 01ARZ3NDEKTSV4RRFFQ69G5FAV",
        "sk-learn-pipelines-and-other-estimators, risk-management-in-practice-2026, task-1234567890123456789012",
        "hf_hub, npm_config, ghp_ is the prefix, xoxb- too, and AKIA is how they begin; eyJ is base64",
        "key: value, monkey=banana123, keyboard: qwerty123456, author: bob12345",
        "Ratio 3:1; Room: B12345; order=4711abc; class Foo(pass_=x1y2z3)",
        "Authorization: Bearer <token>; Authorization: Basic realm",
        "",
    ],
)
def test_talk_about_credentials_is_left_alone(text: str) -> None:
    assert rules_in(text) == []


@pytest.mark.parametrize(
    "line",
    [
        "password: {}",
        "Password = '{}'",
        'api_key: "{}"',
        '"client_secret": "{}"',
        "export AWS_SECRET_ACCESS_KEY={}",
        "dbPassword={}",
        "--api-key={}",
        "secret_key := {}",
        "passphrase => {}",
        "my access token: {}",
    ],
)
def test_a_credential_is_found_by_the_name_it_is_assigned_to(line: str) -> None:
    value = some(20)
    text = line.format(value)
    hits = SCANNER.find(text)
    assert [text[hit.start : hit.end] for hit in hits] == [value]


def test_only_the_password_of_a_url_is_hidden() -> None:
    text = "postgresql://app:" + some(12) + "@db.example.org/prod"
    assert mask(text, SCANNER.find(text)) == "postgresql://app:[secret: url-password]@db.example.org/prod"


def test_private_keys_of_every_kind_are_found_even_cut_short_or_on_one_line() -> None:
    word = "PRIVATE " + "KEY"
    for kind in (word, f"EC {word}", f"OPENSSH {word}", f"ENCRYPTED {word}", f"PGP {word} BLOCK"):
        whole = fence(kind, body=some(64))
        assert rules_in(whole) == ["private-key"]
        assert rules_in(whole.partition("\n-----END")[0]) == ["private-key"]
        assert rules_in(whole.replace("\n", "\\n")) == ["private-key"]
    encrypted = fence(f"RSA {word}", body=f"Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\n{some(64)}")
    assert rules_in(encrypted) == ["private-key"]


def test_several_secrets_are_all_found_in_order() -> None:
    text = f"{EXAMPLES['jwt']} and {EXAMPLES['stripe-key']} and {EXAMPLES['aws-access-key-id']}"
    assert rules_in(text) == ["jwt", "stripe-key", "aws-access-key-id"]


def test_overlapping_hits_are_masked_as_one() -> None:
    hits = [SecretHit("b", 4, 9), SecretHit("a", 2, 6), SecretHit("c", 20, 21)]
    assert mask("0123456789", hits[:2]) == "01[secret: a]9"
    assert mask("x" * 22, hits) == "xx[secret: a]" + "x" * 11 + "[secret: c]x"
    assert mask("abc", []) == "abc"


@given(
    st.lists(
        st.sampled_from(sorted(EXAMPLES.values()))
        | st.sampled_from([anchor for rule in RULES for anchor in rule.anchors])
        | st.sampled_from(["password", "api_key", "token", ": ", "=", '"', " ", "\n", "://", "u:p1@h", ";", "a1b2c3d4"])
        | st.text(max_size=8),
        max_size=6,
    )
)
def test_the_prefilter_never_hides_a_secret_from_the_rules(pieces: list[str]) -> None:
    text = "".join(pieces)
    if any(rule.form.search(text) for rule in RULES):
        assert SCANNER.find(text)


@given(st.text(alphabet=":/=;@-\\_ .AKIAeyJpassword1\n", max_size=300))
def test_finding_is_in_order_and_without_overlaps(text: str) -> None:
    hits = SCANNER.find(text)
    assert all(0 <= hit.start < hit.end <= len(text) for hit in hits)
    assert all(one.end <= other.start for one, other in itertools.pairwise(hits))


def test_a_password_in_a_url_may_hold_the_sign_that_ends_it() -> None:
    text = "postgresql://admin:p@ss" + "w0rd@prod-db.internal:5432/users"

    assert mask(text, SCANNER.find(text)) == "postgresql://admin:[secret: url-password]@prod-db.internal:5432/users"
    pair = "redis://u:" + some(8) + "@h,redis://v:" + some(9) + "@i"
    assert mask(pair, SCANNER.find(pair)) == "redis://u:[secret: url-password]@h,redis://v:[secret: url-password]@i"


# A zero-width space, a soft hyphen, a joiner and a variation selector, a word joiner, a tag, a control character.
UNSEEN = ["\u200b", "\u00ad", "\u200d\ufe0f", "\u2060", "\U000e0041", "\x01"]


def hidden_in(text: str, unseen: str) -> list[str]:
    """The text with the unseen between all characters of it, and between the two in its middle alone."""
    middle = len(text) // 2
    return [unseen.join(text), text[:middle] + unseen + text[middle:]]


@pytest.mark.parametrize("rule", sorted(EXAMPLES))
def test_a_character_that_nobody_sees_hides_no_secret(rule: str) -> None:
    secret = EXAMPLES[rule]
    plain = f"before {secret} after"
    for unseen in UNSEEN:
        for hidden in hidden_in(secret, unseen):
            text = f"before {hidden} after"
            assert rules_in(text) == [rule], ascii(text)
            masked = mask(text, SCANNER.find(text))
            assert masked.replace(unseen, "") == mask(plain, SCANNER.find(plain)), ascii(text)
            assert rules_in(masked) == []


def test_a_secret_is_masked_from_its_first_character_to_its_last_among_unseen_ones() -> None:
    hidden = "\u200b".join(EXAMPLES["github-token"])
    text = f"\u200cمی\u200cخواهم\ufe0f {hidden}\u200b و 👩\u200d💻"
    assert mask(text, SCANNER.find(text)) == "\u200cمی\u200cخواهم\ufe0f [secret: github-token]\u200b و 👩\u200d💻"


def test_what_stands_apart_only_by_a_character_that_nobody_sees_is_a_secret_as_well() -> None:
    text = f"the key\u200b{EXAMPLES['aws-access-key-id']}\u200bis Ann's"
    assert mask(text, SCANNER.find(text)) == "the key\u200b[secret: aws-access-key-id]\u200bis Ann's"


@pytest.mark.parametrize(
    "text",
    [
        "رمز عبور را نمی\u200cدانم؛ کلیدها و گذرواژه\u200cها در خزانه\u200cاند: 12345678",
        "password را از Ann می\u200cگیریم، token: هنوز نداریم",
        "👩\u200d💻 keeps the token 🔑\ufe0f, 👨\u200d👩\u200d👧\u200d👦 the password: none ❤\ufe0f\u200d🔥",
        "Sicher\u00adheits\u00adschlüssel: the password is in the vault, api_key=<your-\u00adkey-1>",
        "กุญแจ\u200bอยู่\u200bที่\u200bแอน password: \u200bดู\u200bใน\u200bตู้",
        f"commit {some(40, HEX)}\u200b, sha256 {some(64, HEX)}\ufeff",
        "\ufeffkey: value, monkey=banana123, \u200ekeyboard: qwerty123456\u200f",
        "\u200b\u200d\ufe0f",
    ],
)
def test_unseen_characters_of_ordinary_writing_make_no_secret(text: str) -> None:
    assert rules_in(text) == []
