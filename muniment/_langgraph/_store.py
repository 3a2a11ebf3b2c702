"""The store: LangGraph's operations, over one scope of a Muniment store and all below it."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Iterable, Mapping
from typing import cast

from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    TTLConfig,
    validate_op_namespace,
)

from muniment._store import Store
from muniment._telemetry import spanned
from muniment.events import BadArgument, is_blank, parse_scope

from ._filters import check_filter, matches
from ._items import Stored
from ._names import Namespace
from ._reads import Reads, Speaker
from ._writes import Writes


class MunimentStore(BaseStore):
    """
    LangGraph's long-term memory, kept in a Muniment store: `graph.compile(store=MunimentStore(...))`.

    A namespace is a scope below `scope`, an item a memory there, and each put of a key a version that supersedes the
    one before. `delete="retire"` ends an item's validity and keeps it in history; `delete="forget"` erases every
    version of it and keeps their values out. Safe to use from several threads and event loops.
    """

    supports_ttl = True

    def __init__(
        self,
        store: Store,
        *,
        scope: str,
        actor: str,
        origin: str | None = None,
        delete: str = "retire",
        ttl: TTLConfig | None = None,
    ) -> None:
        """
        Make the store of one actor below one scope. Reads see what anybody put there; writes have the actor's rank.

        Raises:
            ScopeMalformed, BadArgument: an argument cannot be used.
        """
        if delete not in ("retire", "forget"):
            raise BadArgument(argument="delete", detail=f"expected retire or forget, got `{delete}`")
        self.ttl_config = ttl
        self._delete = delete
        speaker = Speaker(store, parse_scope(scope), actor, origin)
        self._session = speaker.session(speaker.root)
        self._reads = Reads(speaker)
        self._writes = Writes(speaker, self._reads)

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """
        Return the result of each operation, in their order. Reads see the store as it was before the batch's writes.

        Of several puts of one key the last counts. What is put and retired is one append: all of it, or nothing.

        Raises:
            Refused: a value may not be written; nothing of the batch was.
        """
        listed = list(ops)
        for op in listed:
            validate_op_namespace(op)
        results: list[Result] = []
        puts: dict[tuple[Namespace, str], PutOp] = {}
        read: list[Stored] = []
        for op in listed:
            if isinstance(op, PutOp):
                puts[op.namespace, op.key] = op
                results.append(None)
            elif isinstance(op, GetOp):
                found = self._reads.get(op.namespace, op.key)
                results.append(None if found is None else _item(found))
                read += [found] if found is not None and op.refresh_ttl else []
            elif isinstance(op, SearchOp):
                with spanned("langgraph.search", "search_memory", self._session, op.query) as count:
                    page = self._search(op)
                    count(len(page))
                results.append([_search_item(item) for item in page])
                read += page if op.refresh_ttl else []
            elif isinstance(cast("object", op), ListNamespacesOp):
                results.append(self._list(op))
            else:
                raise BadArgument(argument="ops", detail=f"unknown operation `{type(op).__name__}`")
        self._write(puts)
        self._writes.refresh(item for item in read if (item.namespace, item.key) not in puts)
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Return what `batch` does, from a thread. Cancelling the `await` never splits an append."""
        context, listed = contextvars.copy_context(), list(ops)
        work = asyncio.get_running_loop().run_in_executor(None, lambda: context.run(self.batch, listed))
        return await asyncio.shield(work)

    def _write(self, puts: Mapping[tuple[Namespace, str], PutOp]) -> None:
        erased = [place for place, op in puts.items() if op.value is None and self._delete == "forget"]
        written = [op for place, op in puts.items() if place not in erased]
        if written:
            retires = all(op.value is None for op in written)
            with spanned("langgraph.batch", "delete_memory" if retires else "upsert_memory", self._session) as count:
                count(len(written))
                self._writes.put(written)
        for namespace, key in erased:
            self._writes.forget(namespace, key)

    def _search(self, op: SearchOp) -> list[Stored]:
        if min(op.limit, op.offset) < 0:
            raise BadArgument(argument="limit", detail="`limit` and `offset` are not below 0")
        check_filter(op.filter)
        end = op.offset + op.limit
        if op.query is None or is_blank(op.query):
            fitting = [i for i in self._reads.below(op.namespace_prefix) if matches(i.value, op.filter)]
            return fitting[op.offset : end]

        def accepts(fields: Mapping[str, object]) -> bool:
            return bool(fields["index"]) and matches(cast("Mapping[str, object]", fields["value"]), op.filter)

        found = self._reads.ranked(op.namespace_prefix, op.query, accepts, end) if end else []
        if len(found) < end:
            # As in LangGraph's own stores, items that no query can rank fill up the page, without a score.
            rest = [i for i in self._reads.below(op.namespace_prefix) if not i.indexed and matches(i.value, op.filter)]
            found += rest
        return found[op.offset : end]

    def _list(self, op: ListNamespacesOp) -> list[Namespace]:
        conditions = op.match_conditions or ()
        found = {n[: op.max_depth] for n in self._reads.namespaces() if all(_fits(c, n) for c in conditions)}
        return sorted(found)[op.offset : op.offset + op.limit]


def _fits(condition: MatchCondition, namespace: Namespace) -> bool:
    path = condition.path
    if condition.match_type not in ("prefix", "suffix"):
        raise BadArgument(argument="match_type", detail=f"expected prefix or suffix, got `{condition.match_type}`")
    if len(namespace) < len(path):
        return False
    part = namespace[: len(path)] if condition.match_type == "prefix" else namespace[len(namespace) - len(path) :]
    return all(wanted in ("*", label) for wanted, label in zip(path, part, strict=True))


def _item(item: Stored) -> Item:
    return Item(
        value=item.value,
        key=item.key,
        namespace=item.namespace,
        created_at=item.created_at,
        updated_at=item.updated_at,
    )


def _search_item(item: Stored) -> SearchItem:
    return SearchItem(
        namespace=item.namespace,
        key=item.key,
        value=item.value,
        created_at=item.created_at,
        updated_at=item.updated_at,
        score=item.score,
    )
