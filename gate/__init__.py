"""Who may say what, and what may justify an action: admission of writes and the guard of uses."""

from ._actions import Action, Free, OneOf, PathPrefix, Pattern, Range, describe_action, format_action, parse_action
from ._admission import Admission, Batch, Existing, words_draft
from ._deeds import OPERATOR, Deeds, Erasing
from ._guard import SUPPORTS, Guard, Judged, Question, Verdict, describe_verdict
from ._handles import Handle, check_actor, rank_of
from ._keyfile import KeyFile
from ._policy import Policy, Use
from ._requests import (
    MemoryFields,
    MemoryRequest,
    Preparer,
    Value,
    check_choice,
    check_command_id,
    check_flag,
    check_list,
)
from ._secrets import SecretHit, SecretScanner, StructuredScanner, rule_names
from ._signing import Signed, Signer, check_public_key, format_signed, parse_signed, sign, verify
from ._statements import (
    Confirm,
    Enroll,
    Lift,
    Prohibit,
    Review,
    Revoke,
    Statement,
    Unprohibit,
    describe_statement,
    format_statement,
    new_nonce,
    parse_statement,
)
from ._statements import Remember as SignedRemember
from ._text import visible

__all__ = [
    "OPERATOR",
    "SUPPORTS",
    "Action",
    "Admission",
    "Batch",
    "Confirm",
    "Deeds",
    "Enroll",
    "Erasing",
    "Existing",
    "Free",
    "Guard",
    "Handle",
    "Judged",
    "KeyFile",
    "Lift",
    "MemoryFields",
    "MemoryRequest",
    "OneOf",
    "PathPrefix",
    "Pattern",
    "Policy",
    "Preparer",
    "Prohibit",
    "Question",
    "Range",
    "Review",
    "Revoke",
    "SecretHit",
    "SecretScanner",
    "Signed",
    "SignedRemember",
    "Signer",
    "Statement",
    "StructuredScanner",
    "Unprohibit",
    "Use",
    "Value",
    "Verdict",
    "check_actor",
    "check_choice",
    "check_command_id",
    "check_flag",
    "check_list",
    "check_public_key",
    "describe_action",
    "describe_statement",
    "describe_verdict",
    "format_action",
    "format_signed",
    "format_statement",
    "new_nonce",
    "parse_action",
    "parse_signed",
    "parse_statement",
    "rank_of",
    "rule_names",
    "sign",
    "verify",
    "visible",
    "words_draft",
]
