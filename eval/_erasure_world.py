"""
The memories of the erasure campaign: by every route in, with rare words in every part, and some of them forgotten.

Every word is made of random letters and stands in one memory only, so that a hit anywhere names what it leaked from.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from muniment import Action, KeyFile, Store, UserSession
from muniment._importing import import_file

SCOPE: Final = "acme/apollo"
LEAVING: Final = "acme/leaving"
AGENT: Final = "agent:planner"
USER: Final = "user"
_SHARES: Final = {
    "remember": 110, "remember_many": 100, "supersede": 30, "keyed": 40, "metadata": 25, "tags": 25, "source": 25,
    "reason": 25, "applies_when": 25, "import": 30, "decision": 15, "confirmation": 10, "review": 15, "scope": 25,
}  # fmt: skip
"""How many of 500 memories come by each route."""


class Told(NamedTuple):
    """A memory, all the rare words that were said with it, and its content."""

    route: str
    scope: str
    id: str
    content: str
    words: tuple[str, ...]


class World:
    """Writes memories to a store by every route, and forgets some of each."""

    def __init__(self, store: Store, key: KeyFile, outside: Path, *, count: int, seed: int) -> None:
        self.store, self._key, self._outside = store, key, outside
        self._count, self._random = count, random.Random(seed)
        self.told: list[Told] = []

    def tell_all(self) -> None:
        """Write the memories."""
        for route, share in _SHARES.items():
            number = max(2, share * self._count // 500)
            maker: Callable[[int], Iterator[Told]] = getattr(self, f"_tell_{route}")
            self.told += maker(number)

    def tell_fresh(self, number: int) -> list[Told]:
        """Write some more, which no snapshot and no vector file has seen when they are forgotten."""
        fresh = list(self._tell_remember(number))
        self.told += fresh
        return fresh

    def chosen(self) -> list[Told]:
        """Return which memories are to be forgotten: every second of each route, and all of the scope that goes."""
        found: list[Told] = []
        for route in _SHARES:
            by_route = [told for told in self.told if told.route == route]
            found += by_route if route == "scope" else by_route[::2]
        return found

    def forget(self, told: list[Told], before_each: Callable[[], None]) -> int:
        """Forget them by every way there is, and return in how many calls."""
        many = [t.id for t in told if t.route == "remember_many"]
        singly = [t for t in told if t.route not in ("remember_many", "scope")]
        before_each()
        self.store.session(scope=SCOPE, actor=AGENT).forget(*many, reason="asked: many in one call")
        for number, one in enumerate(singly):
            before_each()
            self._forget_one(one, number)
        before_each()
        self._user(LEAVING).forget_scope(reason="the customer left")
        return len(singly) + 2

    def _forget_one(self, one: Told, number: int) -> None:
        if one.route in ("decision", "confirmation", "review", "import"):
            self._user().forget(one.id, reason="asked by the user")
        elif number % 5 == 0:
            self._user().forget_value(one.content, reason="asked by value")
        elif number % 5 == 1:
            self.store.operator().forget(one.id, reason="asked by a court")
        else:
            self.store.session(scope=SCOPE, actor=AGENT).forget(one.id, reason="asked")

    # --- routes -------------------------------------------------------------------------------------------------------

    def _tell_remember(self, number: int) -> Iterator[Told]:
        agent = self.store.session(scope=SCOPE, actor=AGENT)
        for _ in range(number):
            words, content = self._words(3)
            yield Told("remember", SCOPE, agent.remember(content).id, content, words)

    def _tell_remember_many(self, number: int) -> Iterator[Told]:
        agent = self.store.session(scope=SCOPE, actor=AGENT)
        said = [self._words(3) for _ in range(number)]
        receipts = agent.remember_many([{"content": content, "kind": "fact"} for _, content in said])
        for receipt, (words, content) in zip(receipts, said, strict=True):
            yield Told("remember_many", SCOPE, receipt.id, content, words)

    def _tell_supersede(self, number: int) -> Iterator[Told]:
        agent = self.store.session(scope=SCOPE, actor=AGENT)
        for _ in range(number):
            first = agent.remember(self._words(2)[1])
            words, content = self._words(3)
            yield Told("supersede", SCOPE, agent.supersede(first.id, content).id, content, words)

    def _tell_keyed(self, number: int) -> Iterator[Told]:
        agent = self.store.session(scope=SCOPE, actor=AGENT)
        for _ in range(number):
            words, content = self._words(2)
            subject, attribute, value = self._word(), self._word(), self._word()
            receipt = agent.remember(content, about=(subject, attribute), value=value)
            yield Told("keyed", SCOPE, receipt.id, content, (*words, subject, attribute, value))

    def _tell_metadata(self, number: int) -> Iterator[Told]:
        agent = self.store.session(scope=SCOPE, actor=AGENT)
        for _ in range(number):
            (words, content), (name, inner) = self._words(2), (self._word(), self._word())
            receipt = agent.remember(content, metadata={name: [1, {"deep": inner}]})
            yield Told("metadata", SCOPE, receipt.id, content, (*words, name, inner))

    def _tell_tags(self, number: int) -> Iterator[Told]:
        yield from self._with_field(number, "tags", lambda word: {"tags": [word]})

    def _tell_source(self, number: int) -> Iterator[Told]:
        yield from self._with_field(number, "source", lambda word: {"source": f"mail:{word}/1"})

    def _tell_applies_when(self, number: int) -> Iterator[Told]:
        yield from self._with_field(number, "applies_when", lambda word: {"applies_when": f"only when {word} holds"})

    def _with_field(self, number: int, route: str, field: Callable[[str], dict[str, object]]) -> Iterator[Told]:
        agent = self.store.session(scope=SCOPE, actor=AGENT)
        for _ in range(number):
            (words, content), word = self._words(2), self._word()
            (receipt,) = agent.remember_many([{"content": content, **field(word)}])
            yield Told(route, SCOPE, receipt.id, content, (*words, word))

    def _tell_reason(self, number: int) -> Iterator[Told]:
        agent = self.store.session(scope=SCOPE, actor=AGENT)
        for each in range(number):
            (words, content), word = self._words(2), self._word()
            if each % 4 in (0, 1):
                first = agent.remember(self._words(2)[1])
                receipt = agent.supersede(first.id, content, reason=f"because of {word} it changed")
            else:
                receipt = agent.remember(content)
                if each % 4 == 2:
                    agent.retire(receipt.id, reason=f"{content}: no longer, for {word}")
                else:
                    self.store.operator().quarantine([receipt.id], reason=f"{content}: poisoned by {word}")
            yield Told("reason", SCOPE, receipt.id, content, (*words, word))

    def _tell_import(self, number: int) -> Iterator[Told]:
        said = [self._words(3) for _ in range(number)]
        file = self._outside / "transcript.jsonl"
        lines = [json.dumps({"role": "user", "content": content}) for _, content in said]
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")
        report = import_file(self.store, file, scope=SCOPE, embed=False)
        if report.written != number:
            raise AssertionError(f"imported {report.written} of {number} turns")
        records = self.store.session(scope=SCOPE, actor=AGENT).list(kinds=("chat",), limit=10_000)
        for words, _ in said:
            (record,) = [r for r in records if r.content is not None and words[0] in r.content]
            yield Told("import", SCOPE, record.id, record.content or "", words)

    def _tell_decision(self, number: int) -> Iterator[Told]:
        agent = self.store.session(scope=SCOPE, actor=AGENT)
        for _ in range(number):
            words, content = self._words(3)
            receipt = agent.remember(content)
            action = Action("email.send", {"to": "x@example.org", "body": f"Dear all, {content}. Regards"})
            agent.decide(action, evidence=[receipt.id])
            yield Told("decision", SCOPE, receipt.id, content, words)

    def _tell_confirmation(self, number: int) -> Iterator[Told]:
        agent, user = self.store.session(scope=SCOPE, actor=AGENT), self._user()
        for each in range(number):
            words, content = self._words(3)
            receipt = agent.remember(content)
            action = Action("note.publish", {"text": content})
            granted = user.confirm(action, agent=AGENT, uses=3)
            agent.decide(action)
            if each % 2:
                user.revoke(granted.id, reason=f"not {content}")
            yield Told("confirmation", SCOPE, receipt.id, content, words)

    def _tell_review(self, number: int) -> Iterator[Told]:
        agent, user = self.store.session(scope=SCOPE, actor=AGENT), self._user()
        for each in range(number):
            (words, content), word = self._words(2), self._word()
            receipt = agent.remember(content)
            user.review(receipt.id, approve=bool(each % 2), reason=f"I read {content} and {word}")
            yield Told("review", SCOPE, receipt.id, content, (*words, word))

    def _tell_scope(self, number: int) -> Iterator[Told]:
        agent = self.store.session(scope=LEAVING, actor=AGENT)
        for _ in range(number):
            words, content = self._words(3)
            yield Told("scope", LEAVING, agent.remember(content, tags=[words[0]]).id, content, words)

    # --- words --------------------------------------------------------------------------------------------------------

    def _user(self, scope: str = SCOPE) -> UserSession:
        return self.store.user_session(scope=scope, principal="user:ann", signer=self._key)

    def _word(self) -> str:
        return "".join(self._random.choice("bcdfghjklmnpqrstvwxz" if n % 2 else "aeiouy") for n in range(14))

    def _words(self, number: int) -> tuple[tuple[str, ...], str]:
        words = tuple(self._word() for _ in range(number))
        return words, f"The {words[0]} met " + " and ".join(words[1:]) + " at the harbour"
