"""The guard in front of a function."""

from __future__ import annotations

import asyncio
import inspect
from pathlib import Path

import pytest

import muniment


@pytest.fixture
def store(tmp_path: Path) -> muniment.Store:
    return muniment.open(tmp_path / "store", create=True, model="none")


def _user(store: muniment.Store, tmp_path: Path) -> muniment.UserSession:
    key = muniment.KeyFile.create(tmp_path / "keys" / "user.key")
    store.enroll("user:ann", key.public_key, scopes=("acme",))
    return store.user_session(scope="acme/apollo", principal="user:ann", signer=key)


def test_a_guarded_function_does_not_run_without_a_confirmation(store: muniment.Store) -> None:
    sent: list[str] = []

    @muniment.guarded(store, "email.send", scope="acme/apollo", actor="agent:planner")
    def send(to: str, subject: str = "hello") -> None:
        sent.append(to)

    with pytest.raises(muniment.Refused, match="no_confirmation") as refused:
        send("ann@example.org")

    assert [] == sent
    assert "action_denied" == refused.value.code
    assert str(refused.value.facts["request"]).startswith("muniment-request")


def test_a_guarded_function_is_decided_on_the_arguments_of_the_call_defaults_included(
    store: muniment.Store, tmp_path: Path
) -> None:
    user = _user(store, tmp_path)
    sent: list[tuple[str, str]] = []

    @muniment.guarded(store, "email.send", scope="acme/apollo", actor="agent:planner")
    def send(to: str, subject: str = "hello") -> str:
        sent.append((to, subject))
        return "sent"

    user.confirm(muniment.Action("email.send", {"to": "ann@example.org", "subject": "hello"}), agent="agent:planner")
    with pytest.raises(muniment.Refused):
        send("ann@example.org", "another subject")
    assert "sent" == send("ann@example.org")
    with pytest.raises(muniment.Refused, match="confirmation_spent"):
        send("ann@example.org")

    assert [("ann@example.org", "hello")] == sent


def test_a_constraint_passed_as_an_argument_never_matches(store: muniment.Store, tmp_path: Path) -> None:
    user = _user(store, tmp_path)
    user.confirm(muniment.Action("email.send", {"to": muniment.Free()}), agent="agent:planner")
    policy = muniment.Policy(actions={"email.send": muniment.Use.EXTERNAL_ACTION})
    store.close()
    again = muniment.open(tmp_path / "store", model="none", policy=policy)

    @muniment.guarded(again, "email.send", scope="acme/apollo", actor="agent:planner")
    def send(to: object) -> str:
        return "sent"

    with pytest.raises(muniment.Refused, match="action_not_literal"):
        send(muniment.Free())
    assert "sent" == send("anybody@example.org")


def test_a_coroutine_function_is_guarded_too(store: muniment.Store) -> None:
    @muniment.guarded(store, "email.send", scope="acme/apollo", actor="agent:planner")
    async def send(to: str) -> str:
        return "sent"

    with pytest.raises(muniment.Refused, match="no_confirmation"):
        asyncio.run(send("ann@example.org"))


def test_i09_a_name_given_twice_does_not_hide_the_argument_that_the_call_uses(
    store: muniment.Store, tmp_path: Path
) -> None:
    user = _user(store, tmp_path)
    sent: list[object] = []

    @muniment.guarded(store, "email.send", scope="acme/apollo", actor="agent:planner")
    def send(to: str, /, **more: str) -> None:
        sent.append((to, more))

    @muniment.guarded(store, "email.send_all", scope="acme/apollo", actor="agent:planner")
    def send_all(*to: str, **more: object) -> None:
        sent.append((to, more))

    user.confirm(muniment.Action("email.send", {"to": "ann@example.org"}), agent="agent:planner")
    user.confirm(muniment.Action("email.send_all", {"to": ["ann@example.org"]}), agent="agent:planner")
    with pytest.raises(muniment.InvalidInput, match="by position and by name"):
        send("mallory@example.org", to="ann@example.org")
    with pytest.raises(muniment.InvalidInput, match="by position and by name"):
        send_all("mallory@example.org", to=["ann@example.org"])
    assert [] == sent

    send("ann@example.org")
    send_all("ann@example.org")
    assert [("ann@example.org", {}), (("ann@example.org",), {})] == sent


def test_i09_arguments_that_change_while_the_guard_decides_are_not_used(store: muniment.Store, tmp_path: Path) -> None:
    user = _user(store, tmp_path)
    session = store.session(scope="acme/apollo", actor="agent:planner")
    user.confirm(muniment.Action("email.send", {"to": ["ann@example.org"]}), agent="agent:planner", uses=2)
    recipients, sent = ["ann@example.org"], list[list[str]]()

    def evidence() -> list[str]:
        recipients.append("mallory@example.org")  # what another task may do meanwhile
        return []

    @muniment.guarded(session, "email.send", evidence=evidence)
    def send(to: list[str]) -> None:
        sent.append(to)

    @muniment.guarded(session, "email.send", evidence=evidence)
    async def send_later(to: list[str]) -> None:
        sent.append(to)

    with pytest.raises(muniment.InvalidInput, match="changed while the guard decided"):
        send(recipients)
    recipients.pop()
    with pytest.raises(muniment.InvalidInput, match="changed while the guard decided"):
        asyncio.run(send_later(recipients))
    assert [] == sent


def test_the_object_of_a_guarded_method_is_no_argument(store: muniment.Store, tmp_path: Path) -> None:
    user = _user(store, tmp_path)
    session = store.session(scope="acme/apollo", actor="agent:planner")

    class Outbox:
        def __init__(self) -> None:
            self.sent: list[str] = []

        @muniment.guarded(session, "email.send")
        def send(self, to: str, subject: str = "hello") -> str:
            self.sent.append(f"{to}: {subject}")
            return "sent"

        @muniment.guarded(session, "email.send")
        async def send_later(self, to: str, subject: str = "hello") -> str:
            return self.__class__.__name__ + " sent " + subject + " to " + to

    class Careful(Outbox):
        def send(self, to: str, subject: str = "hello") -> str:
            return super().send(to.lower(), subject)

    user.confirm(
        muniment.Action("email.send", {"to": "ann@example.org", "subject": "hello"}), agent="agent:planner", uses=3
    )
    outbox, careful = Outbox(), Careful()
    with pytest.raises(muniment.Refused, match="no_confirmation"):
        outbox.send("mallory@example.org")
    with pytest.raises(muniment.Refused, match="no_confirmation"):
        asyncio.run(outbox.send_later("mallory@example.org"))

    assert "sent" == outbox.send("ann@example.org")
    assert "sent" == careful.send("Ann@example.org")
    assert "Outbox sent hello to ann@example.org" == asyncio.run(outbox.send_later("ann@example.org"))
    assert ["ann@example.org: hello"] == outbox.sent == careful.sent
    assert ["to", "subject"] == list(inspect.signature(outbox.send).parameters)
    assert inspect.iscoroutinefunction(outbox.send_later)
    with pytest.raises(muniment.Refused, match="confirmation_spent"):
        outbox.send("ann@example.org")


def test_guarded_stands_above_classmethod_and_staticmethod(store: muniment.Store, tmp_path: Path) -> None:
    user = _user(store, tmp_path)
    session = store.session(scope="acme/apollo", actor="agent:planner")

    class Outbox:
        @muniment.guarded(session, "email.send")
        @classmethod
        def send(cls, to: str) -> str:
            return f"{cls.__name__} {to}"

        @muniment.guarded(session, "email.send")
        @staticmethod
        def send_plainly(to: str) -> str:
            return f"plainly {to}"

    user.confirm(muniment.Action("email.send", {"to": "ann@example.org"}), agent="agent:planner", uses=4)
    with pytest.raises(muniment.Refused, match="no_confirmation"):
        Outbox.send("mallory@example.org")

    for outbox in (Outbox, Outbox()):
        assert "Outbox ann@example.org" == outbox.send("ann@example.org")
        assert "plainly ann@example.org" == outbox.send_plainly("ann@example.org")


def test_i09_no_argument_is_hidden_from_the_guard_as_the_object_of_a_method(
    store: muniment.Store, tmp_path: Path
) -> None:
    """Only what a call was bound to is left out, and not where it is data, which says what is done."""
    user = _user(store, tmp_path)
    session = store.session(scope="acme/apollo", actor="agent:planner")
    sent: list[object] = []

    class Outbox:
        @muniment.guarded(session, "email.send")
        def send(self, subject: str) -> None:
            sent.append((self, subject))

    class Address(str):
        __slots__ = ()

        @muniment.guarded(session, "email.send")
        def send(self, subject: str) -> None:
            sent.append((self, subject))

    @muniment.guarded(session, "email.send")
    def send(to: str, subject: str) -> None:
        sent.append((to, subject))

    user.confirm(muniment.Action("email.send", {"subject": "hello"}), agent="agent:planner", uses=9)
    with pytest.raises(muniment.InvalidInput, match="self"):
        Outbox.send(Outbox(), "hello")
    for call in (
        Address("mallory@example.org").send,
        Outbox.__dict__["send"].__get__("mallory@example.org"),
        send.__get__("mallory@example.org"),
    ):
        with pytest.raises(muniment.Refused, match="no_confirmation"):
            call("hello")
    assert [] == sent

    user.confirm(muniment.Action("email.send", {"self": "ann@example.org", "subject": "hello"}), agent="agent:planner")
    Address("ann@example.org").send("hello")
    assert [("ann@example.org", "hello")] == sent


def test_a_guarded_function_stays_a_function(store: muniment.Store) -> None:
    """Whoever makes tools of functions tells them from other callables."""

    @muniment.guarded(store, "email.send", scope="acme/apollo", actor="agent:planner")
    def send(self: str) -> None:
        raise AssertionError(self)

    assert inspect.isfunction(send)
    with pytest.raises(muniment.Refused, match="no_confirmation"):
        send("ann@example.org")
