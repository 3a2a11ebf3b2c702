"""The version of this program, as written into the log at each opening."""

from __future__ import annotations

VERSION = "0.1.0"
