"""Signing what a denied decision asked for, away from the store, by whatever holds the key."""

from __future__ import annotations

from datetime import timedelta
from typing import cast

from muniment.events import BadArgument, wall_clock
from muniment.gate import Confirm, Signed, Signer, describe_statement, parse_action, sign

from ._deciding import ConfirmationRequest, parse_request
from ._durations import parse_duration


def sign_request(
    request: str | ConfirmationRequest,
    *,
    principal: str,
    signer: Signer,
    uses: int | None = 1,
    expires_in: str | timedelta = "1h",
    now: int | None = None,
) -> Signed:
    """
    Return the signed confirmation that `d.request` asks for, to be handed to `store.submit`.

    It needs no store. Show the person `describe_request` first, with the same uses and expiry.
    """
    return sign(_statement(request, principal, uses, expires_in, wall_clock() if now is None else now), signer)


def describe_request(
    request: str | ConfirmationRequest,
    *,
    principal: str,
    uses: int | None = 1,
    expires_in: str | timedelta = "1h",
) -> str:
    """
    Return all that signing a request would say, one field a line, with unseen characters shown.

    Raises:
        BadArgument: it is no request, or not spelled as one.
    """
    return describe_statement(_statement(request, principal, uses, expires_in, wall_clock()))


def request_given(request: str | ConfirmationRequest) -> ConfirmationRequest:
    """Return the request that a caller passed; raises BadArgument for what is none."""
    asked = parse_request(request) if isinstance(request, str) else request
    if not isinstance(cast("object", asked), ConfirmationRequest):
        raise BadArgument(argument="request", detail="expected what a denied decision has as `request`")
    return asked


def _statement(
    request: str | ConfirmationRequest, principal: str, uses: int | None, expires_in: str | timedelta, now: int
) -> Confirm:
    asked = request_given(request)
    return Confirm(
        store=asked.store,
        principal=principal,
        signed_at=now,
        nonce=asked.nonce,
        scope=asked.scope,
        agent=asked.agent,
        action=parse_action(asked.action),
        uses=uses,
        expires_at=now + parse_duration(expires_in),
    )
