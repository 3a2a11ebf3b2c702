"""
Whether a forget erases: files and raw devices are searched for all that it must have destroyed.

For each file system: memories with rare words are written by every route, embedded and snapshotted; some are forgotten
by every way there is, with a second process open on the store; others in a process that is killed by SIGKILL at each
disk operation of the forget. Then the store's files, everything that the keys on its disk still open, and the raw
image of the unmounted file system are searched for content, words, vectors, data keys, page keys, chunk keys and old
roots. Before the forget the same search must find what is there, and a copy of then must be readable.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import muniment
from muniment import KeyFile, Store

from ._erasure_control import is_control, missed, plant, planted_needles
from ._erasure_image import Image, why_not
from ._erasure_kill import open_with
from ._erasure_open import Opened, mixed, open_all, opens, read_keys
from ._erasure_scan import PIECES, Hit, Scanner, text_needles
from ._erasure_secrets import Secrets
from ._erasure_world import SCOPE, Told, World
from ._harness import ROOT, Result


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add how much is written, and where."""
    parser.add_argument("--memories", type=int, default=500)
    parser.add_argument("--kills", type=int, default=60, help="the most disk operations to be killed at")
    parser.add_argument("--filesystems", default="directory,ext4,xfs", help="`directory` is the temporary directory")
    parser.add_argument("--seed", type=int, default=11)


def run(args: argparse.Namespace) -> Result:
    """Run the campaign on each file system."""
    rows: list[Result] = []
    skipped: dict[str, str] = {}
    for kind in str(args.filesystems).split(","):
        with tempfile.TemporaryDirectory(prefix="muniment-erasure-") as scratch:
            outside = Path(scratch)
            if kind == "directory":
                (outside / "plain").mkdir()
                rows.append(_Campaign(kind, outside / "plain", outside, None, args).run())
                continue
            reason = why_not(kind, outside)
            if reason is not None:
                skipped[kind] = reason
                print(f"erasure: {kind} skipped, {reason}", file=sys.stderr)
                continue
            with Image(kind, outside) as image:
                rows.append(_Campaign(kind, image.root, outside, image, args).run())
    return {
        "memories": args.memories,
        "seed": args.seed,
        "embedder": "the packaged model",
        "skipped": skipped,
        "filesystems": rows,
        "ok": bool(rows) and all(row["ok"] for row in rows),
    }


class _Campaign:
    """One file system's run. Numbers that must be zero end in `_hits`; controls that must be full are pairs."""

    def __init__(self, kind: str, root: Path, outside: Path, image: Image | None, args: argparse.Namespace) -> None:
        self._kind, self._root, self._outside, self._image, self._args = kind, root, outside, image, args
        self._path = root / "store"
        self._secrets = Secrets(self._path)
        self._result: Result = {"filesystem": kind}
        self._bad: list[str] = []
        self._hits: list[Hit] = []

    def run(self) -> Result:
        """Return what was found."""
        started = time.perf_counter()
        key = KeyFile.create(self._outside / "user.key")
        with muniment.open(self._path, create=True) as store:
            store.enroll("user:ann", key.public_key, scopes=("acme",))
            world = World(store, key, self._outside, count=int(self._args.memories), seed=int(self._args.seed))
            world.tell_all()
            store.embed()
        chosen = world.chosen()
        self._secrets.note_before(chosen)
        self._before(chosen)
        fresh = self._forget(world, chosen)
        self._expect("searched_after_forget_hits", self._scan_raw("after the forgets"))
        self._kills()
        self._after(chosen)
        bad = [
            f"{h.needle.kind} {h.needle.encoding} of {h.needle.label} in {h.where} at {h.offset}" for h in self._hits
        ]
        self._result |= {
            "memories": len(world.told),
            "forgotten": len(chosen) + len(fresh),
            "by_route": dict(Counter(told.route for told in [*chosen, *fresh])),
            "unsaved_when_forgotten": len(fresh),
            "seconds": round(time.perf_counter() - started, 1),
            "hits": bad[:20],
            "failed_controls": self._bad[:20],
            "ok": not self._hits and not self._bad,
        }
        return self._result

    def _before(self, chosen: list[Told]) -> None:
        shutil.copytree(self._path, self._outside / "old")
        readable = _words_in(open_all(self._path, read_keys(self._path)), chosen)
        self._control("readable_before", len(readable), len(chosen))
        hits = self._scan_raw("before")
        # The live root is the one key that lies about in clear: the scanner has to see it in both slots.
        roots = [hit.offset for hit in hits if hit.needle.kind == "root" and hit.needle.encoding == "raw"]
        self._control("live_root_seen_before", len(roots) // PIECES, 2)
        self._expect("searched_before_hits", [h for h in hits if h.needle.kind != "root"])
        self._result["planted_needles"] = len(planted_needles())

    def _forget(self, world: World, chosen: list[Told]) -> list[Told]:
        with open_with(self._path) as store:
            world.store = store
            fresh = world.tell_fresh(20)
            store.embed()
            self._secrets.note_before(fresh)
            for identity, _, vector in store._engine.dense._unsaved:
                self._secrets.note_vector(identity.hex(), vector)
            second = _hold(self._path)
            gone = [*chosen, *fresh]
            calls = world.forget(gone, self._secrets.note_root)
            self._search("while_open", gone)
            _tell(second)
            self._search("after_second_wrote", gone)
        _tell(second)
        second.wait(timeout=60)
        self._search("after_both_closed", gone)
        self._result |= {"forget_calls": calls, "second_process_exit": second.returncode}
        if second.returncode != 0:
            self._bad.append("the second process failed")
        return fresh

    def _kills(self) -> None:
        outcomes: Counter[str] = Counter()
        victims: list[Told] = []
        recoveries = 0
        for at in range(1, int(self._args.kills) + 1):
            victim = self._victim(at)
            victims.append(victim)
            self._secrets.note_before([victim])
            code = self._killed("forget", SCOPE, victim.id, str(at))
            self._secrets.note_root()
            for again in (1 + at * 5 % 7, 1 + at * 3 % 11):
                recoveries += code != 0 and self._killed("open", str(again)) != 0
                self._secrets.note_root()
            with open_with(self._path) as store:
                self._secrets.note_root()
                outcomes[self._finish(store, victim, killed=code != 0)] += 1
            if code == 0:
                break
        self._result |= {"kills": dict(outcomes), "recoveries_killed_too": recoveries}
        self._search("after_kills", victims)

    def _killed(self, verb: str, *words: str) -> int:
        command = [sys.executable, "-m", "eval._erasure_kill", verb, str(self._path), *words]
        code = subprocess.run(command, cwd=ROOT, check=False).returncode
        if code not in (0, -signal.SIGKILL):
            self._bad.append(f"the process to be killed ({verb} {words[-1]}) failed with {code}")
        return code

    def _victim(self, at: int) -> Told:
        word = f"victim{chr(97 + at // 26)}{chr(97 + at % 26)}{'xylophagous'[at % 5 :]}"
        content = f"The {word} met the ferryman at the harbour number {at}"
        with open_with(self._path) as store:
            identity = store.session(scope=SCOPE, actor="agent:planner").remember(content).id
            store.embed()
        return Told("killed", SCOPE, identity, content, (word,))

    def _finish(self, store: Store, victim: Told, *, killed: bool) -> str:
        user = store.session(scope=SCOPE, actor="user")
        if user.get(victim.id).status == "erased":
            # Nobody did more than open the store: that has to have been enough.
            if _words_in(open_all(self._path, read_keys(self._path)), [victim]):
                self._bad.append(f"{victim.words[0]} is erased in name and readable")
            return "killed, and finished by opening" if killed else "not killed"
        user.forget(victim.id, reason="the second attempt")
        return "killed before it was in the log"

    def _after(self, chosen: list[Told]) -> None:
        with open_with(self._path) as store:
            self._result["verified"] = store.verify().ok
            if not store.verify().ok:
                self._bad.append("verify found something")
            kept = len(store.session(scope=SCOPE, actor="agent:reader").list(limit=5000))
        self._result["live_after"] = kept
        self._old_copies(chosen)
        self._expect("searched_at_the_end_hits", self._scan_raw("at the end"))
        self._result["needles"] = len(self._secrets.needles())
        self._result["secrets"] = self._secrets.counts()

    def _old_copies(self, chosen: list[Told]) -> None:
        old, new = self._outside / "old", self._path
        self._control("old_copy_with_its_own_root", len(_words_in(open_all(old, read_keys(old)), chosen)), len(chosen))
        # The log and keys/ of then with the root of now: not even the table opens.
        without = self._outside / "without-root"
        shutil.copytree(old, without)
        shutil.copy(new / "root.key", without / "root.key")
        self._result["old_log_and_keys_open_without_the_old_root"] = opens(without)
        if opens(without):
            self._bad.append("an old table opens under the new root")
        # The log and snapshots of then with all keys of now: what was not forgotten opens, and nothing else.
        robbed = mixed(without, new / "keys", self._outside / "robbed")
        found = list(open_all(robbed, read_keys(robbed)))
        self._expect_none("old_log_with_new_keys_hits", _words_in(found, chosen))
        self._control("old_log_with_new_keys_opens_the_rest", int(bool(found)), 1)

    # --- looking ------------------------------------------------------------------------------------------------------

    def _search(self, name: str, chosen: list[Told]) -> None:
        """Search the files of the running store, and everything that the keys among them open."""
        scanner = Scanner(self._secrets.needles())
        self._expect(f"{name}_hits", scanner.scan_tree(self._path))
        opened = list(open_all(self._path, read_keys(self._path)))
        self._expect_none(f"{name}_readable_hits", _words_in(opened, chosen))
        vectors = Scanner(n for n in self._secrets.needles() if n.kind.startswith("vector"))
        self._expect(f"{name}_readable_vector_hits", [h for o in opened for h in vectors.scan(o.plain, o.where)])

    def _scan_raw(self, when: str) -> list[Hit]:
        """Search the whole device, or the directory; what is planted just before has to be found."""
        plant(self._root / f"control {when}")
        scanner = Scanner([*self._secrets.needles(), *planted_needles()])
        if self._image is None:
            hits = scanner.scan_tree(self._root)
        else:
            self._image.unmount()
            try:
                hits = scanner.scan_file(self._image.raw, self._image.raw.name)
            finally:
                self._image.mount()
        self._bad += [f"planted and not found {when}: {w}" for w in missed(hits, raw=self._image is not None)]
        self._result |= {"bytes_scanned": scanner.bytes_scanned, "blocks_inflated": scanner.blocks_inflated}
        return hits

    def _expect(self, name: str, hits: list[Hit]) -> None:
        found = [hit for hit in hits if not is_control(hit)]
        self._result[name] = len(found)
        self._hits += found

    def _expect_none(self, name: str, found: set[str]) -> None:
        self._result[name] = len(found)
        self._bad += [f"{name}: {identity}" for identity in sorted(found)]

    def _control(self, name: str, actual: int, expected: int) -> None:
        self._result[name] = f"{actual} of {expected}"
        if actual < expected:
            self._bad.append(f"{name}: {actual} of {expected}")


def _words_in(opened: Iterable[Opened], told: list[Told]) -> set[str]:
    """Return which memories any word of can be read."""
    scanner = Scanner(n for t in told for w in t.words for n in text_needles("word", t.id, w) if n.encoding == "utf-8")
    return {hit.needle.label for item in opened for hit in scanner.scan(item.plain, item.where)}


def _hold(path: Path) -> subprocess.Popen[str]:
    second = subprocess.Popen(
        [sys.executable, "-m", "eval._erasure_kill", "hold", str(path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT,
    )  # fmt: skip
    _answer(second)
    return second


def _tell(second: subprocess.Popen[str]) -> None:
    if second.stdin is not None:
        second.stdin.write("\n")
        second.stdin.flush()
    _answer(second)


def _answer(second: subprocess.Popen[str]) -> str:
    return "" if second.stdout is None else second.stdout.readline().strip()
