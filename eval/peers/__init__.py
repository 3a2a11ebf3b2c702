"""
Muniment beside other memory engines: latency, size, reopening, what a forget leaves, in one run and as ratios.

Each product runs in an environment of its own, offline, behind one protocol (`_protocol.py`). This module has nothing
but the standard library at import: the workers import it in interpreters where nothing of ours is installed.
"""
