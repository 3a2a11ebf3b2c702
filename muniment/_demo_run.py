"""
The demo: what Muniment promises, done once, on one page, with every line computed and every expectation checked.

It runs on this machine alone, on the shipped conversation or on a transcript of the user's own.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from muniment.events import BadArgument, MunimentError, Refused, to_datetime, wall_clock
from muniment.gate import Action, KeyFile

from ._answers import BeliefView, Decision, Hit
from ._demo_page import Out, Page, clip, may_colour
from ._demo_script import SCOPE, Question, Script, Statement, script_for, shipped_script
from ._import_run import ImportReport
from ._session import Session
from ._store import Store, open_store
from ._user import UserSession

AGENT = "agent:assistant"
ANN = "user:ann"
_DAY = 86_400_000_000
_TOP = 20
_MOST_EMBEDDED = 1_500
"""More vectors than that do not fit into a minute; recall then goes by words."""


def run(
    data: Path | None = None,
    *,
    keep: Path | None = None,
    out: Out = print,
    facts: Path | None = None,
    clock: Callable[[], int] = wall_clock,
) -> int:
    """
    Run the demo, and return 0 when all that it expected came out, else 1.

    `data` is a transcript of the user's own; `keep` a new folder in which the store is left. `facts` and `clock` are
    for tests.

    Raises:
        BadArgument: `data` is no transcript, or `keep` is in use.
    """
    started = time.perf_counter()
    script = shipped_script(facts) if data is None else script_for(Path(data), facts)
    page = Page(out, colour=out is print and may_colour())
    with tempfile.TemporaryDirectory(prefix="muniment-demo-") as folder:
        home = Path(folder) if keep is None else _new_folder(Path(keep))
        stage = _Stage(home, script, page, _clock_after(script.last_said_at, clock))
        try:
            stage.play()
        finally:
            stage.store.close()
    for text in page.differed:
        out(f"differed: {text}")
    seconds = time.perf_counter() - started
    kept = "" if keep is None else f"; the store is in {home / 'store'}"
    out(f"{page.checks} checks passed, {len(page.differed)} differed, in {seconds:.1f} s{kept}")
    return 1 if page.differed else 0


def _new_folder(keep: Path) -> Path:
    if keep.exists() and (not keep.is_dir() or any(keep.iterdir())):
        raise BadArgument(argument="keep", detail=f"`{keep}` is not an empty folder")
    keep.mkdir(parents=True, exist_ok=True)
    return keep


def _clock_after(last_said_at: int, clock: Callable[[], int]) -> Callable[[], int]:
    # Run before the conversation's own dates, the demo moves its present behind them: the future is not current yet.
    shift = max(0, last_said_at + _DAY - clock())
    return lambda: clock() + shift


class _Stage:
    """One run: the store, those who speak in it, and the sections in their order."""

    def __init__(self, home: Path, script: Script, page: Page, clock: Callable[[], int]) -> None:
        self.home, self.script, self.page, self.clock = home, script, page, clock
        self.key = KeyFile.create(home / "ann.key")
        self.store = self._open()
        # The handle that created the store says whose key speaks for whom.
        self.store.enroll(ANN, self.key.public_key, scopes=(SCOPE,))
        self.before_correction = 0
        self.embeds = True

    def _open(self) -> Store:
        return open_store(self.home / "store", create=True, policy=self.script.policy, clock=self.clock)

    @property
    def agent(self) -> Session:
        return self.store.session(scope=self.script.scope, actor=AGENT)

    @property
    def ann(self) -> UserSession:
        return self.store.user_session(scope=self.script.scope, principal=ANN, signer=self.key)

    def play(self) -> None:
        """Play every section; one that stops short counts as an expectation that differed."""
        self.page.title("muniment demo: one store in a folder of its own, one small model, no network, no other model")
        for section in (
            self.bring_in, self.recall, self.correct, self.travel, self.guard, self.forget, self.rebuild, self.verify,
        ):  # fmt: skip
            try:
                section()
            except (MunimentError, LookupError) as error:
                self.page.fail(f"stopped by {type(error).__name__}: {error}")

    # --- the sections -------------------------------------------------------------------------------------------------

    def bring_in(self) -> None:
        script, page = self.script, self.page
        page.section("IMPORT", f"{script.transcript.name}: {script.about}")
        start = time.perf_counter()
        report = self._import()
        written = time.perf_counter() - start
        self.embeds = report.written <= _MOST_EMBEDDED
        vectors = self.store.embed() if self.embeds else 0
        embedded = time.perf_counter() - start - written
        page.check(
            f"{report.read} turns read, {report.written} written in {written:.2f} s; {vectors} vectors made in "
            f"{embedded:.1f} s",
            expected=(len(self.agent.list(limit=10_000)), report.written if self.embeds else 0),
            actual=(min(report.written, 10_000), vectors),
        )
        again = self._import()
        page.check(
            f"the same file again: {again.written} written, {again.repeated} repeated",
            expected=(0, report.written),
            actual=(again.written, again.repeated),
        )
        records = self.agent.list(limit=10_000)
        ranks = {record.origin: record.rank for record in records}
        page.check(
            ", ".join(f"{who} has rank {rank}" for who, rank in sorted(ranks.items()))
            + ": neither can authorise an action",
            expected={"user", f"import:{report.format}"},
            actual=set(ranks),
        )

    def recall(self) -> None:
        script, page = self.script, self.page
        page.section("RECALL", "by words and by meaning; a score is the sum of both, each in standard deviations")
        for question in script.questions:
            start = time.perf_counter()
            hits = self.agent.recall(question.text)
            took = (time.perf_counter() - start) * 1_000
            rank = _rank_of(question, hits)
            found = f"hit {rank} of {len(hits)}" if rank else f"not among {len(hits)} hits"
            if question.answer is None:
                evidence = f"evidence {', '.join(question.positions[:3])}: {found}, {took:.0f} ms"
                page.check(f'{evidence}: "{question.text}"', expected=True, actual=bool(hits))
            else:
                said = hits[rank - 1].content or "" if rank else ""
                page.check(
                    f'"{question.text}"  {question.answer}: {found}, {took:.0f} ms',
                    expected=(True, True),
                    actual=(0 < rank <= 3, question.answer in said),
                )
            for hit in hits[:2]:
                page.say(_shown(hit))

    def correct(self) -> None:
        page, c = self.page, self.script.correction
        page.section("CORRECTION", "Ann's session states a belief, and then another value of it")
        old = self._state(c.old)
        self.before_correction = self.store.head.seq
        new = self._state(c.new)
        for statement in (c.old, c.new):
            page.say(f'{_day(statement.said_at)} "{statement.text}"')
        page.check(
            f'beliefs(about=("{c.about[0]}", "{c.about[1]}")): {_values(self.agent.beliefs(c.about))}',
            expected=[c.new.value],
            actual=[belief.value for belief in self.agent.beliefs(c.about)],
        )
        hits = self.agent.recall(c.question, k=_TOP)
        page.check(
            f'recall("{c.question}"): none of {len(hits)} hits says {c.old.value}',
            expected=(True, []),
            actual=(any(hit.id == new for hit in hits), [h.content for h in hits if c.old.value in (h.content or "")]),
        )
        told = [(r.value, r.status) for r in self.agent.history(new) if r.value is not None]
        page.check(
            "history: " + ", then ".join(f"{value!s} ({status})" for value, status in told),
            expected=[(c.old.value, "superseded"), (c.new.value, "active")],
            actual=told,
        )
        page.check(
            f"get({old[:12]}): still there, word for word", expected=c.old.text, actual=self.agent.get(old).content
        )

    def travel(self) -> None:
        page, c, mem = self.page, self.script.correction, self.agent
        page.section("TIME", "when it held (valid) and when this store knew it (known) are asked apart")
        seq = self.before_correction
        past = self.store.replay(to=seq).session(scope=self.script.scope)
        asked = (
            (f'what held on {c.asked_on}?  valid_at="{c.asked_on}"', mem.beliefs(c.about, valid_at=c.asked_on), True),
            (f"what did we believe before the correction?  known_at={seq}", mem.beliefs(c.about, known_at=seq), True),
            (f"and in a store replayed to event {seq}?  replay(to={seq})", past.beliefs(c.about), True),
            (
                f'what had this store been told by then?  known_at="{c.asked_on}"',
                mem.beliefs(c.about, known_at=c.asked_on),
                False,
            ),
        )
        for text, found, told in asked:
            page.check(
                f"{text}: {_values(found)}",
                expected=[c.old.value] if told else [],
                actual=[belief.value for belief in found],
            )

    def guard(self) -> None:
        page, script = self.page, self.script
        page.section("GUARD", "what was read may inform; only the user's signature lets an agent act")
        read = script.page
        self.agent.via(read.source).remember(read.text, source=read.source)
        hits = self.agent.recall(read.question)
        found = next(hit for hit in hits if hit.origin == read.source)
        weak = str(read.action.args[read.weak])
        page.say(f"{found.origin} (rank {found.rank}) said:")
        page.say(f'"…{_around(found.content or "", weak)}"')
        d = self.agent.decide(read.action, evidence=[hit.id for hit in hits])
        expected = {"no_confirmation", f"argument_only_in_weak_evidence:{read.weak}"}
        self._decided(read.action, d, False, expected, shown=f"{read.weak} {weak}")
        d = self.agent.decide(script.confirmed)
        self._decided(script.confirmed, d, False, {"no_confirmation"})
        signed = self.ann.confirm_request(d.request or "", uses=1, expires_in="1h")
        page.say(f"Ann signs that request, with a key outside the store: {signed.id[:12]}, one use, one hour")
        self._decided(script.confirmed, self.agent.decide(script.confirmed), True, {"confirmed"})
        again = self.agent.decide(script.confirmed)
        self._decided(script.confirmed, again, False, {"no_confirmation", "confirmation_spent"})
        near = self.agent.decide(script.unconfirmed)
        self._decided(script.unconfirmed, near, False, {"no_confirmation", "arguments_differ_from_confirmation"})
        self.ann.prohibit(script.prohibited, reason=script.prohibited_because)
        self.ann.confirm(script.prohibited, agent=AGENT)
        page.say("Ann prohibits the next one, for good, and then signs a yes to it by mistake")
        self._decided(script.prohibited, self.agent.decide(script.prohibited), False, {"prohibited"})

    def forget(self) -> None:
        page, secret = self.page, self.script.secret
        page.section("FORGET", "erased at every moment of the past, and kept out from now on")
        target = self._imported(secret.position)
        page.say(f'"{self.agent.get(target).content}"')
        receipt = self.ann.forget(target, reason=secret.reason)
        stub = self.agent.get(target, known_at=(receipt.seq or 1) - 1)
        page.check(
            f"receipt {(receipt.id or '')[:12]}: {len(receipt.erased)} erased by {receipt.by}, their keys destroyed, "
            f'"{receipt.reason}"',
            expected=(True, "erased", None),
            actual=(target in receipt.erased, stub.status, stub.content),
        )
        hits = self.agent.recall(secret.question, k=_TOP)
        page.check(
            f'none of {len(hits)} hits holds it: recall("{secret.question}")',
            expected=[],
            actual=[hit.id for hit in hits if secret.needle in (hit.content or "")],
        )
        page.say(f'"{list(secret.spellings.values())[-1]}"')
        codes = {name: self._refusal_of(text) for name, text in secret.spellings.items()}
        page.check(
            f"an agent says it again, spelled by {', '.join(codes)}: {', '.join(sorted(set(codes.values())))}",
            expected=dict.fromkeys(secret.spellings, "tombstoned"),
            actual=codes,
        )
        again = self._import()
        where = f"{self.script.conversation}/{secret.position}"
        page.check(
            f"the old file again: {again.written} written, {again.repeated} repeated, {again.refused_count} refused: "
            + ", ".join(f"{one.where} {one.error}" for one in again.refused[:2]),
            expected=(0, True),
            actual=(again.written, (where, "tombstoned") in [(one.where, one.error) for one in again.refused]),
        )

    def rebuild(self) -> None:
        page, asked = self.page, self.script.questions[0]
        page.section("REBUILD", "projections are disposable: the log alone is the truth")
        before, hits = self.store.digests(), [hit.id for hit in self.agent.recall(asked.text)]
        self.store.close()
        projections = self.home / "store" / "projections"
        sizes = [path.stat().st_size for path in projections.rglob("*") if path.is_file()]
        shutil.rmtree(projections)
        start = time.perf_counter()
        self.store = self._open()
        after = self.store.digests()
        took = time.perf_counter() - start
        page.check(
            f"{sum(sizes) / 1_000:.0f} kB deleted, log read in {took:.2f} s, digests equal: "
            + ", ".join(f"{name} {digest[:4]}" for name, digest in after.items()),
            expected=before,
            actual=after,
        )
        made = self.store.embed() if self.embeds else 0
        page.check(
            f"{made} vectors made again: the first question has the same {len(hits)} hits",
            expected=hits,
            actual=[hit.id for hit in self.agent.recall(asked.text)],
        )

    def verify(self) -> None:
        page = self.page
        page.section("VERIFY", "each event's hash covers its bytes and the hash before it")
        found = self.store.verify()
        page.check(
            f"{found.events} events, each in its place; head {found.head[:24]}…; findings: {len(found.findings)}",
            expected=(True, self.store.head.seq),
            actual=(found.ok, found.events),
        )
        damaged = self._damaged_copy()
        page.check(f"one bit turned in a copy: {'; '.join(damaged)}", expected=True, actual=bool(damaged))

    # --- helpers ------------------------------------------------------------------------------------------------------

    def _import(self) -> ImportReport:
        script = self.script
        return self.store.import_file(
            script.transcript, scope=SCOPE, split=script.split, only=(script.conversation,), user=script.user,
            user_role=True, embed=False,
        )  # fmt: skip

    def _imported(self, position: str) -> str:
        source = f"{self.script.format}:{self.script.conversation}/{position}"
        return next(record.id for record in self.agent.list(limit=10_000) if record.source == source)

    def _state(self, said: Statement) -> str:
        ann, about, at = self.ann, self.script.correction.about, to_datetime(said.said_at)
        if said.position is None:
            return ann.remember(said.text, kind="fact", about=about, value=said.value, valid_from=at).id
        imported = self._imported(said.position)
        return ann.supersede(imported, said.text, kind="fact", about=about, value=said.value, valid_from=at).id

    def _decided(self, action: Action, decision: Decision, allowed: bool, reasons: set[str], shown: str = "") -> None:
        args = shown or ", ".join(str(value) for value in action.args.values())
        verdict = "allowed" if decision.allowed else "denied "
        found = [reason for reason in decision.reasons if reason in reasons]
        # The longest reason is the most particular one; all that are expected are checked.
        self.page.check(
            f"{verdict} {action.name}({args}): {max(found or decision.reasons, key=len)}",
            expected=(allowed, reasons),
            actual=(decision.allowed, set(found)),
        )

    def _refusal_of(self, text: str) -> str:
        try:
            self.agent.remember(text)
        except Refused as error:
            return error.code
        return "accepted"

    def _damaged_copy(self) -> list[str]:
        copy = self.home / "damaged"
        shutil.copytree(self.store.path, copy)
        segment = min((copy / "log").iterdir())
        data = bytearray(segment.read_bytes())
        data[len(data) // 2] ^= 1
        segment.write_bytes(data)
        try:
            with open_store(copy, read_only=True, model="none") as store:
                return list(store.verify().findings)
        finally:
            shutil.rmtree(copy)


def _rank_of(question: Question, hits: list[Hit]) -> int:
    """Return which hit is the first of the turns that answer the question, counted from 1; 0 when none is."""
    for rank, hit in enumerate(hits, 1):
        if (hit.source or "").rpartition("/")[2] in question.positions:
            return rank
    return 0


def _shown(hit: Hit) -> str:
    words = "none" if hit.word_score is None else f"{hit.word_score:.1f}"
    meaning = "none" if hit.dense_score is None else f"{hit.dense_score:.2f}"
    when = hit.valid_from.strftime("%Y-%m-%d")
    return clip(f"{hit.score:5.1f} = words {words}, meaning {meaning}  {hit.origin}, {when}: {hit.content}", 96)


def _around(text: str, found: str) -> str:
    """Return the part of a text that ends with what was found in it."""
    return text[: text.find(found) + len(found)][-90:]


def _values(beliefs: list[BeliefView]) -> str:
    return ", ".join(str(belief.value) for belief in beliefs) or "nothing"


def _day(micros: int) -> str:
    return to_datetime(micros).strftime("%Y-%m-%d")
