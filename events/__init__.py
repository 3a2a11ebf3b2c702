"""The append-only log: events, their bytes, their keys, and the one door through which they are written."""
