"""Verification of a whole store: the log by itself, then against its own checkpoints and the one kept elsewhere."""

from __future__ import annotations

from pathlib import Path

from muniment.events import AnchorMismatch, BadArgument, BadNote, Tip, VerifierKey, parse_verifier_key
from muniment.replay import Report, orphan_bytes, verify_log

from ._anchor import Anchor, read_anchor
from ._answers import Verification
from ._engine import Engine
from ._witness import Stored, Witness, forked, truncated


def verify_store(engine: Engine, anchor: Path | None, key: str | None) -> Verification:
    """
    Check every byte of the log, and whether it extends the anchor and the store's own checkpoints. Changes nothing.

    Raises:
        BadArgument: the anchor that was named cannot be read, or `key` is no verifier key.
    """
    witness = engine.witness
    named = _key(key)
    path = anchor or witness.path
    findings: list[str] = []
    # Both before the log: another process may append, and checkpoint, while it is being read.
    found, verdict = _read_anchor(path, named, findings, asked=anchor is not None)
    stored = witness.stored(named or (found.key if found else None) or witness.key)
    sizes = [one.anchor.tip.size for one in stored]
    earlier = [] if found is None else witness.earlier(found, path)
    sizes += [tip.size for tip in earlier]
    reader = engine.reader()
    try:
        report = verify_log(engine.files.path, reader, sizes=sizes if found is None else [*sizes, found.tip.size])
        torn = tuple(orphan_bytes(reader)) if report.damage is None else ()
    finally:
        reader.log.close()
    if found is not None:
        verdict = _against_anchor(found, witness, earlier, report, findings)
    findings += _against_stored([one for one in stored if one.anchor.key is not None], report)
    return Verification(
        ok=not (report.findings or findings),
        events=report.events,
        head=f"{report.head.seq}:{report.head.chain.hex()}",
        findings=(*report.findings, *findings),
        unchecked=(*_unchecked(path, found, stored, report), *report.unchecked, *torn),
        anchor=verdict,
    )


def _read_anchor(
    path: Path | None, key: VerifierKey | None, findings: list[str], *, asked: bool
) -> tuple[Anchor | None, str | None]:
    if path is None:
        return None, None
    try:
        found = read_anchor(path, key)
    except AnchorMismatch as error:
        findings.append(str(error))
        return None, "not comparable"
    if found is None and asked:
        raise BadArgument(argument="anchor", detail=f"there is no file `{path}`")
    return found, None


def _against_anchor(anchor: Anchor, witness: Witness, earlier: list[Tip], report: Report, findings: list[str]) -> str:
    tip = anchor.tip
    if tip.origin != witness.origin:
        error = AnchorMismatch(verdict="foreign", size=tip.size, detail=f"the anchor is of `{tip.origin}`")
    elif tip.size > report.events:
        if report.damage is not None:
            # What lies behind damage is not missing, only unreadable: the damage itself is the finding.
            return "not comparable"
        error = truncated(tip, report.events)
    elif report.roots[tip.size] != tip.root:
        error = forked(anchor, earlier, report.roots)
    else:
        return "extends"
    findings.append(str(error))
    return str(error.facts["verdict"])


def _against_stored(stored: list[Stored], report: Report) -> list[str]:
    found: list[str] = []
    for one in stored:
        tip = one.anchor.tip
        if tip.size > report.events:
            if report.damage is None:
                found.append(f"checkpoints/{one.name} tells of {tip.size} events, the log has {report.events}")
        elif report.roots[tip.size] != tip.root:
            found.append(f"checkpoints/{one.name} has another root: an event up to {tip.size} is not the one it was")
    return found


def _unchecked(path: Path | None, anchor: Anchor | None, stored: list[Stored], report: Report) -> list[str]:
    said: list[str] = []
    if anchor is None:
        why = "no checkpoint kept elsewhere was given" if path is None else f"`{path.name}` could not be used"
        said.append(f"whether events are missing at the end, or the log was rewritten as a whole: {why}")
    elif anchor.key is None:
        said.append("who wrote the anchor: it is an unsigned head")
    unsigned = sum(one.anchor.key is None for one in stored)
    if unsigned:
        # No finding: whoever cuts the log can write these too, and a machine that lost a commit may still have them.
        said += _against_stored([one for one in stored if one.anchor.key is None], report)
        said.append(
            f"who wrote {unsigned} of the store's own checkpoints: no key to verify them with, or unsigned heads"
        )
    return said


def _key(text: str | None) -> VerifierKey | None:
    try:
        return None if text is None else parse_verifier_key(text)
    except BadNote as error:
        raise BadArgument(argument="key", detail=str(error)) from error
