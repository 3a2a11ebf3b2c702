"""Durations as people write them: `90s`, `30m`, `1h`, `7d`, `2w`."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Final, cast

from muniment.events import BadTime

_UNITS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_DURATION: Final = re.compile(r"([0-9]{1,9})\s*([smhdw])\Z")


def parse_duration(given: str | timedelta) -> int:
    """Return a duration in microseconds; raises BadTime unless it is a positive one."""
    if isinstance(given, timedelta):
        micros = given // timedelta(microseconds=1)
    else:
        match = _DURATION.match(given.strip()) if isinstance(cast("object", given), str) else None
        if match is None:
            raise BadTime(given=given, detail="expected a number and s, m, h, d or w, as in `1h`")
        micros = int(match[1]) * _UNITS[match[2]] * 1_000_000
    if micros <= 0:
        raise BadTime(given=given, detail="the duration must be positive")
    return micros
