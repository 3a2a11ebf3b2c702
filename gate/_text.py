"""Text as a person sees it: what is invisible is shown, and spellings that look the same compare the same."""

from __future__ import annotations

import re
import unicodedata

# Letters by category, blank by design: Hangul fillers, the braille blank, and the grapheme joiner.
_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
_CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1b\x7f]")
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def is_invisible(char: str) -> bool:
    """Tell whether a character leaves no mark of its own, or reorders others, when it is printed."""
    return (
        unicodedata.category(char) in _UNSEEN or char in _BLANK or "\ufe00" <= char <= "\ufe0f" or char >= "\U000e0000"
    )


def visible(text: str) -> str:
    r"""Return the text in double quotes, with everything that cannot be seen written as `\u{200b}`.

    A line break or a bidirectional control in a value must not let it imitate the rest of what a person signs.
    """
    return '"' + "".join(_shown(char) for char in text) + '"'


def _shown(char: str) -> str:
    if char in '"\\':
        return "\\" + char
    if char == " ":
        return char
    if is_invisible(char) or unicodedata.category(char) == "Zs":
        return f"\\u{{{ord(char):x}}}"
    return char


def folded(text: str) -> str:
    """Return the form under which a prohibition compares text: NFKC, case folded, unseen characters gone, trimmed.

    It only serves to veto, where two things taken for one cost a refusal; nothing is ever permitted by it.
    """
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
        # White space is kept for the next step; a zero-width space is not white space, and goes.
        text = "".join(char for char in text if char.isspace() or not is_invisible(char))
        text = unicodedata.normalize("NFKC", text.casefold())
    return " ".join(_CONTROLS.sub("", text.casefold()).split())
