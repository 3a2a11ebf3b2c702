"""
The credential formats that can be told by their form alone.

Each rule says which fixed text every match holds (`anchors`), so that one scan for all of them decides whether any rule
runs. `source` says who publishes the format. Nothing is here that only looks random: a commit hash, a digest and
an id are not secrets. Lengths are lower bounds, since issuers lengthen tokens without notice.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_START = r"(?<![A-Za-z0-9])"
_WORD = r"[A-Za-z0-9_-]"


class Rule(NamedTuple):
    """One format: its stable name, the texts one of which every match holds, its form, and who publishes it.

    `entry` is an expression instead of `anchors`, where no fixed text is rare enough to stop at. A group called
    `secret` is the part to hide; without one it is the whole match.
    """

    name: str
    anchors: tuple[str, ...]
    form: re.Pattern[str]
    source: str
    entry: str = ""


def _token(name: str, prefix: str, rest: str, source: str, *, anchors: tuple[str, ...] = ()) -> Rule:
    """A token with a fixed beginning; `anchors` are the literal beginnings where `prefix` is an expression."""
    return Rule(name, anchors or (prefix,), re.compile(f"{_START}(?:{prefix}){rest}"), source)


# `sk-` also begins hyphenated words: a key has a digit somewhere.
_DIGIT_AHEAD = f"(?={_WORD}{{0,200}}[0-9])"

_TOKENS = (
    _token(
        "aws-access-key-id",
        "AKIA|ASIA|ABIA|ACCA",
        r"[A-Z0-9]{16}(?![A-Za-z0-9])",
        "AWS IAM identifiers",
        anchors=("AKIA", "ASIA", "ABIA", "ACCA"),
    ),
    _token(
        "github-token",
        "gh[pousr]_",
        "[A-Za-z0-9]{36,}",
        "GitHub authentication token formats",
        anchors=("ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
    ),
    _token("github-fine-grained-token", "github_pat_", r"\w{22,}", "GitHub authentication token formats"),
    _token(
        "gitlab-token",
        "gl(?:pat|dt|rt|ptt|oas|cbt|agent|soat|imt|ffct|ft|rtr)-",
        f"{_WORD}{{20,}}",
        "GitLab token overview",
        anchors=(
            "glpat-",
            "gldt-",
            "glrt-",
            "glptt-",
            "gloas-",
            "glcbt-",
            "glagent-",
            "glsoat-",
            "glimt-",
            "glffct-",
            "glft-",
            "glrtr-",
        ),
    ),
    _token(
        "slack-token",
        r"xox[abeoprs]-|xoxe\.xox[bp]-|xapp-",
        r"[A-Za-z0-9]{1,24}-[A-Za-z0-9-]{8,}",
        "Slack token types",
        anchors=("xoxa-", "xoxb-", "xoxe-", "xoxo-", "xoxp-", "xoxr-", "xoxs-", "xapp-"),
    ),
    _token(
        "slack-webhook",
        "hooks.slack.com/(?:services|workflows)/",
        r"[A-Za-z0-9/]{20,}",
        "Slack incoming webhooks",
        anchors=("hooks.slack.com/",),
    ),
    _token("stripe-key", "[sr]k_(?:live|test)_", "[A-Za-z0-9]{16,}", "Stripe API keys", anchors=("k_live_", "k_test_")),
    _token("stripe-webhook-secret", "whsec_", "[A-Za-z0-9+/=]{24,}", "Stripe webhooks"),
    _token("anthropic-key", "sk-ant-", f"{_WORD}{{20,}}", "Anthropic API keys"),
    _token(
        "openai-key",
        "sk-",
        f"{_DIGIT_AHEAD}(?:proj-|svcacct-|admin-|or-v1-)?{_WORD}{{20,}}",
        "OpenAI and OpenRouter API keys",
    ),
    _token("google-api-key", "AIza", f"{_WORD}{{35}}(?!{_WORD})", "Google Cloud API keys"),
    _token("google-oauth-secret", "GOCSPX-", f"{_WORD}{{20,}}", "Google OAuth clients"),
    _token("google-oauth-token", r"ya29\.", f"{_WORD}{{20,}}", "Google OAuth access tokens", anchors=("ya29.",)),
    _token("npm-token", "npm_", "[A-Za-z0-9]{36,}", "npm access tokens"),
    _token("pypi-token", "pypi-A", f"{_WORD}{{50,}}", "PyPI API tokens"),
    _token("sendgrid-key", r"SG\.", rf"{_WORD}{{16,}}\.{_WORD}{{16,}}", "SendGrid API keys", anchors=("SG.",)),
    _token("huggingface-token", "hf_", "[A-Za-z0-9]{30,}", "Hugging Face access tokens"),
    _token(
        "digitalocean-token",
        "do[opr]_v1_",
        "[0-9a-f]{64}",
        "DigitalOcean tokens",
        anchors=("doo_v1_", "dop_v1_", "dor_v1_"),
    ),
    _token(
        "shopify-token",
        "shp(?:at|ca|pa|ss)_",
        "[0-9a-fA-F]{32,}",
        "Shopify access tokens",
        anchors=("shpat_", "shpca_", "shppa_", "shpss_"),
    ),
    _token("databricks-token", "dapi", r"[0-9a-f]{32}(?:-\d)?(?![A-Za-z0-9])", "Databricks access tokens"),
    _token("vault-token", r"hv[sbr]\.", f"{_WORD}{{24,}}", "HashiCorp Vault tokens", anchors=("hvs.", "hvb.", "hvr.")),
    _token("telegram-bot-token", r"\d{8,10}:AA", f"{_WORD}{{32,}}", "Telegram Bot API", anchors=(":AA",)),
    _token("mailgun-key", "key-", "[0-9a-f]{32}(?![A-Za-z0-9])", "Mailgun API keys"),
    _token("docker-token", "dckr_pat_", f"{_WORD}{{20,}}", "Docker access tokens"),
    _token("atlassian-token", "ATATT3", "[A-Za-z0-9_=-]{60,}", "Atlassian API tokens"),
    _token("linear-key", "lin_api_", "[A-Za-z0-9]{32,}", "Linear API keys"),
    _token("notion-token", "ntn_", "[A-Za-z0-9]{40,}", "Notion integration tokens"),
    _token("figma-token", "figd_", f"{_WORD}{{36,}}", "Figma access tokens"),
    _token("postman-key", "PMAK-", "[0-9a-f]{24}-[0-9a-f]{34}", "Postman API keys"),
    _token("groq-key", "gsk_", "[A-Za-z0-9]{40,}", "Groq API keys"),
    _token("xai-key", "xai-", "[A-Za-z0-9]{60,}", "xAI API keys"),
    _token("replicate-token", "r8_", "[A-Za-z0-9]{36,}", "Replicate API tokens"),
    _token("perplexity-key", "pplx-", "[A-Za-z0-9]{40,}", "Perplexity API keys"),
    _token("age-secret-key", "AGE-SECRET-KEY-1", "[0-9A-Z]{58}", "age, a file encryption format"),
    _token("twilio-key", "SK", r"[0-9a-f]{32}(?![A-Za-z0-9])", "Twilio API keys"),
    _token("jwt", "eyJ", rf"{_WORD}{{8,}}\.eyJ{_WORD}{{8,}}\.{_WORD}{{8,}}", "RFC 7519"),
)

_FENCE = r"-----BEGIN (?P<kind>(?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?)-----"
# Real key material after the fence, or its closing fence: prose that quotes the fence alone has neither.
_MATERIAL = r"(?:\s|\\[nr]){0,8}(?:[A-Za-z-]{1,40}:[^\n]{0,200}\n\s{0,4}){0,6}[A-Za-z0-9+/=]{16}[A-Za-z0-9+/=\s\\]*"

# What stands for a password in documentation: `<password>`, `${DB_PASS}`, `{{ secret }}`, `%s`, `****`, `[redacted]`.
_PLACEHOLDER = r"[<$%{\[*]|x{4,}|X{4,}|\.{3}"

# The names under which programs keep credentials; the short ones are also words of ordinary prose.
_NAME = (
    r"(?:pass(?:word|wd|phrase)|pwd|(?:api|access|secret|private|account|auth|encryption|signing|client|master)[_ -]?"
    r"(?:key|token)|(?P<vague>credentials?|auth|secret|token))"
)
_ENDINGS = "ord|swd|ase|pwd|key|ken|ial|als|uth|ret"
# Either sign is common in prose: the scan stops only where a name of a credential ends just before it.
_AFTER_NAME = "|".join(
    rf"{sign}(?<=(?i:{_ENDINGS})[\s\"'`]{{{gap}}}{sign})[=>]?\s{{0,2}}[\"'`]?[^\s\"'`]{{3}}"
    for sign in "=:"
    for gap in range(4)
)

_USERINFO = r"[^\s:/@?#\"'<>`]{0,128}"

_OTHERS = (
    Rule(
        "private-key",
        ("-----BEGIN ",),
        re.compile(rf"{_FENCE}(?:[^-]{{0,16384}}-----END (?P=kind)-----|{_MATERIAL})"),
        "RFC 7468 and RFC 4880",
    ),
    Rule(
        "url-password",
        (),
        # Up to the last `@`: people put passwords with one in them into URLs as they are.
        re.compile(rf"(?<=://){_USERINFO}:(?!{_PLACEHOLDER})(?P<secret>[^\s/\"'<>`]{{3,256}})@(?=[\w\[])"),
        "RFC 3986, userinfo",
        entry=r":(?=//[^\s/]{1,400}@)",
    ),
    Rule(
        "connection-string-password",
        (),
        re.compile(
            r"(?i)(?<![a-z])(?:server|data source|host|endpoint|driver|accountname|address|endpointsprotocol)"
            r"\s?=[^=;\n]{1,200};(?:[^;=\n]{1,40}=[^;\n]{0,200};){0,12}\s?"
            rf"(?:password|pwd|accountkey|sharedaccesskey)\s?=\s?(?!{_PLACEHOLDER})(?P<secret>[^;\s\"']{{3,256}})"
        ),
        "ADO.NET, ODBC and Azure connection strings",
        entry=_AFTER_NAME,
    ),
    Rule(
        "authorization-header",
        ("uthorization", "UTHORIZATION"),
        re.compile(
            r"(?i)authorization[\"']?\s?[:=]\s?[\"']?(?:bearer|basic|token)\s{1,4}"
            r"(?P<secret>(?=[\w.~+/-]{0,200}[0-9=])[\w.~+/-]{16,}=*)"
        ),
        "RFC 6750 and RFC 7617",
    ),
)

# A value that nobody writes in prose: letters and digits together, no space, and not a call or a lookup.
_MIXED = r"(?=[^\s\"'`]{0,200}[A-Za-z])(?=[^\s\"'`]{0,200}[0-9])"
_DUMMY = (
    rf"(?!{_PLACEHOLDER}|your|my[_-]|example|change|dummy|placeholder|redacted|sample|test[_-]|os\.|env[.(\[]|process\."
    r"|https?:|id_(?:rsa|dsa|ecdsa|ed25519)|~/|\.{1,2}/|/(?:etc|home|mnt|opt|root|run|srv|tmp|users|usr|var)/)"
)
_VALUE = r"[^\s\"'`()<>{}\[\],;]"

_ASSIGNED = Rule(
    "assigned-credential",
    (),
    re.compile(
        rf"(?i:{_NAME}[\"'`]?\s{{0,2}}(?:=>|:=|=(?!=)|:(?!:))\s{{0,2}}[\"'`]?{_DUMMY}){_MIXED}"
        rf"(?P<secret>(?(vague){_VALUE}{{16,256}}|{_VALUE}{{6,256}}))(?![(\[])"
    ),
    "the KEY=value convention of environment files",
    entry=_AFTER_NAME,
)

RULES: tuple[Rule, ...] = (*_TOKENS, *_OTHERS, _ASSIGNED)
