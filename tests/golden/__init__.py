"""
Stores as every format version wrote them, and what they must answer for ever.

`format-N.tar` is a store; `format-N.json` is what was asked of it when it was made. A new format
adds a pair, by `python -m tests.golden.make`; the older ones are never made again.
`format-N.digests.json` are the digests that today's projections have over it, on every machine and Python.
"""
