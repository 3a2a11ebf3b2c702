"""The reading half of the store: single items, all below a namespace, and those that a query finds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from muniment._points import Point
from muniment._reach import Subtree
from muniment._recalling import Filters
from muniment._session import Session
from muniment._store import Store
from muniment._views import Views
from muniment.events import covers
from muniment.projections import Belief, Memory

from ._items import Stored, item_fields, stored_item
from ._names import Namespace, about_key, format_namespace, parse_namespace


class Speaker:
    """Who reads and writes below the root, as a session in each scope."""

    def __init__(self, store: Store, root: str, actor: str, origin: str | None) -> None:
        self._store, self.root, self._actor, self._origin = store, root, actor, origin
        self.engine = self.session(root)._engine
        # What was recalled just before a write may be where it came from.
        self.recalled: tuple[bytes, ...] = ()

    def session(self, scope: str) -> Session:
        """Return a session in a scope, which also reads what is below it."""
        return self._store.session(scope=scope, actor=self._actor, origin=self._origin, reads=(Subtree(scope),))

    def scope(self, namespace: Namespace) -> str:
        """Return the scope of a namespace."""
        return format_namespace(self.root, namespace)


class Reads:
    """Answers from what holds now."""

    def __init__(self, speaker: Speaker) -> None:
        self._speaker, self._engine = speaker, speaker.engine

    def get(self, namespace: Namespace, key: str) -> Stored | None:
        """Return one item."""
        if not namespace:
            return None
        belief_key = self._engine.values.belief_key(*about_key(key))
        scope = self._speaker.scope(namespace)
        with self._engine.mutex:
            at = self._now()
            found = self._engine.state.beliefs.at_key(scope, belief_key, valid_at=at.valid_at, known=at.known)
            return next(self._items(found, namespace, at), None)

    def below(self, prefix: Namespace) -> list[Stored]:
        """Return every item of the namespaces that begin with a prefix, in the order in which they were created."""
        with self._engine.mutex:
            at = self._now()
            found = [
                item
                for namespace, scope in self._namespaces(prefix)
                for item in self._items(self._beliefs(scope, at), namespace, at)
            ]
        return sorted(found, key=lambda item: item.created_seq)

    def namespaces(self) -> list[Namespace]:
        """Return every namespace that has an item."""
        with self._engine.mutex:
            at = self._now()
            return [
                namespace
                for namespace, scope in self._namespaces(())
                if next(self._items(self._beliefs(scope, at), namespace, at), None) is not None
            ]

    def ranked(
        self, prefix: Namespace, query: str, accepts: Callable[[Mapping[str, object]], bool], k: int
    ) -> list[Stored]:
        """Return at most `k` items whose fields are accepted, those that fit the query best first."""
        root = self._speaker.root

        def accept(memory: Memory, metadata: Mapping[str, object]) -> bool:
            fields = item_fields(metadata)
            return fields is not None and parse_namespace(root, memory.scope) is not None and accepts(fields)

        session = self._speaker.session(self._speaker.scope(prefix))
        hits = session._recall(query, k, Filters(accept=accept))
        self._speaker.recalled = tuple(bytes.fromhex(hit.id) for hit in hits)
        found = [stored_item(hit, parse_namespace(root, hit.scope) or ()) for hit in hits]
        return [item for item in found if item is not None]

    def _now(self) -> Point:
        self._engine.refresh()
        return Point(self._engine.now(), self._engine.state.seq)

    def _beliefs(self, scope: str, at: Point) -> list[Belief]:
        return self._engine.state.beliefs.keys([scope], valid_at=at.valid_at, known=at.known)

    def _items(self, beliefs: Iterable[Belief], namespace: Namespace, at: Point) -> Iterator[Stored]:
        views = Views(self._engine.state)
        found = (stored_item(views.record(belief.memory, at), namespace) for belief in beliefs)
        return (item for item in found if item is not None)

    def _namespaces(self, prefix: Namespace) -> list[tuple[Namespace, str]]:
        base, root = self._speaker.scope(prefix), self._speaker.root
        found = ((parse_namespace(root, scope), scope) for scope in self._engine.state.register.scopes if scope)
        return [(namespace, scope) for namespace, scope in found if namespace is not None and covers(base, scope)]
