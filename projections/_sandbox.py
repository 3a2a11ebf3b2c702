"""
DuckDB, shut in: a database in memory that can reach no file, no extension and no Python object, and runs one query.

What it is asked is text from outside. Three things stand between that and the process: only what DuckDB's own parser
calls one SELECT is taken, with the table functions listed here and without functions that no limit stops; the
transaction is read-only, since a data-changing statement inside WITH is a SELECT to the parser; and the configuration
is locked.
"""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from typing import Final, cast

import duckdb
import msgspec

from muniment.events import BadArgument, QueryTooLarge

from ._forks import is_own, keep_in_children, let_go
from ._graph_rows import Row

MAX_SQL: Final = 100_000
MAX_RESULT_BYTES: Final = 256 << 20
MAX_TABLES: Final = 100
"""DuckDB does not stop while it plans, and its plans take longer than the square of what they join."""
_FETCH: Final = 2_048
_AGAIN: Final = 0.05
_TABLE_FUNCTIONS: Final = frozenset({"generate_series", "json_each", "json_tree", "range", "unnest"})
_UNLIMITED: Final = frozenset(
    {
        "array_resize", "bitstring", "format", "generate_series", "list_resize", "lpad", "printf", "range", "repeat",
        "rpad",
    }
    | {"damerau_levenshtein", "jaro_similarity", "jaro_winkler_similarity"}
)  # fmt: skip
"""
They are not interrupted while they make a value as large as a number says, outside the memory limit; or, the last
three, while they compare two long texts, which takes minutes: `levenshtein` is interrupted.
"""
_OWN_SCHEMA: Final = "raw"

# External access is turned off by statement: in `connect` it would come before, and forbid, setting temp_directory.
_LOCKS: Final = (
    "SET enable_external_access = false",
    "SET python_enable_replacements = false",
    "SET GLOBAL TimeZone = 'UTC'",
    "SET lock_configuration = true",
)


class Sandbox:
    """A database in memory that never spills: what does not fit is an error."""

    def __init__(self, memory_limit: str) -> None:
        self.connection = _connect(memory_limit)
        keep_in_children(self.connection)

    def close(self) -> None:
        """Let go of all rows. Does nothing to a database that was inherited over a fork."""
        if is_own(self.connection):
            let_go(self.connection)
            self.connection.close()


def _connect(memory_limit: str) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(
        ":memory:",
        config={
            "temp_directory": "",
            "memory_limit": memory_limit,
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            # A query costs one core, and answers come in one order.
            "threads": "1",
        },
    )
    for lock in _LOCKS:
        connection.execute(lock)
    return connection


def run_select(
    database: duckdb.DuckDBPyConnection, sql: str, *, seconds: float, max_rows: int
) -> tuple[list[str], list[Row]]:
    """
    Return the columns and rows of one SELECT.

    Raises:
        BadArgument: it is anything else, or cannot be run. QueryTooLarge: it takes too long, or too much.
    """
    cursor = database.cursor()
    try:
        with typed_errors(), time_limit(cursor, seconds) as over:
            statement = _check_select(cursor, sql)
            cursor.execute("BEGIN TRANSACTION READ ONLY")
            cursor.execute(statement)
            columns = [column[0] for column in cursor.description or ()]
            return columns, _fetch(cursor, max_rows, over)
    finally:
        with suppress(duckdb.Error):
            cursor.close()


def _check_select(cursor: duckdb.DuckDBPyConnection, sql: str) -> duckdb.Statement:
    if not isinstance(cast("object", sql), str) or len(sql) > MAX_SQL:
        raise _refusal(f"expected at most {MAX_SQL} characters of SQL")
    if (at := next((n for n, sign in enumerate(sql) if "\ud800" <= sign <= "\udfff"), None)) is not None:
        raise _refusal(f"lone surrogate at character {at}")
    statements = cursor.extract_statements(sql)
    if len(statements) != 1 or statements[0].type is not duckdb.StatementType.SELECT:
        kinds = ", ".join(s.type.name for s in statements) or "nothing"
        raise _refusal(f"expected one SELECT, got {kinds}")
    found = cursor.execute("SELECT json_serialize_sql(?)", [sql]).fetchall()
    try:
        tree: object = msgspec.json.decode(cast("str", found[0][0]))
    except RecursionError as error:
        # DuckDB's own limit on nesting is above what can be looked at here.
        raise _refusal("it is nested too deeply") from error
    if not isinstance(tree, dict) or tree.get("error"):
        raise _refusal("expected one SELECT")
    for node in _nodes(tree):
        _check_node(node)
    if _tables(tree) > MAX_TABLES:
        raise QueryTooLarge(limit=f"{MAX_TABLES} tables")
    return statements[0]


def _tables(tree: dict[str, object]) -> int:
    """Return how many tables a plan will hold: each place that names an inlined CTE holds a copy of all of it."""
    inlined: dict[str, list[str]] = {}
    for node in _nodes(tree):
        said = node.get("value")
        if isinstance(said, dict) and said.get("materialized") == "CTE_MATERIALIZE_NEVER":
            # Two of one name in different places count as the larger would in both.
            inlined.setdefault(str(node.get("key")).casefold(), []).extend(_named(cast("dict[str, object]", said)))
    copies: dict[str, int] = {}

    def weight(name: str, above: frozenset[str] = frozenset()) -> int:
        if name not in inlined or name in above:
            return 1
        if name not in copies:
            copies[name] = min(MAX_TABLES + 1, sum(weight(part, above | {name}) for part in inlined[name]) or 1)
        return copies[name]

    return sum(map(weight, _named(tree)))


def _named(tree: dict[str, object]) -> list[str]:
    kinds = ("BASE_TABLE", "TABLE_FUNCTION")
    return [str(node.get("table_name")).casefold() for node in _nodes(tree) if node.get("type") in kinds]


def _check_node(node: dict[str, object]) -> None:
    kind = node.get("type")
    if kind == "TABLE_FUNCTION":
        # Attack: read_text('/etc/passwd'), query('...'), enable_profiling(save_location => ...), and whatever comes.
        function = node.get("function")
        name = function.get("function_name") if isinstance(function, dict) else None
        if name not in _TABLE_FUNCTIONS:
            raise _refusal(f"the table function `{name}` may not be used")
    elif node.get("class") == "FUNCTION" and node.get("function_name") in _UNLIMITED:
        raise _refusal(f"the function `{node['function_name']}` may not be used")
    elif kind == "BASE_TABLE" and str(node.get("schema_name")).casefold() == _OWN_SCHEMA:
        # Its rows know no point: they would tell what was recorded after `known_at`.
        raise _refusal("only the views may be queried")


def _nodes(tree: object) -> Iterator[dict[str, object]]:
    todo = [tree]
    while todo:
        here = todo.pop()
        if isinstance(here, dict):
            node = cast("dict[str, object]", here)
            yield node
            for value in node.values():
                # A call in FROM delivers rows as they are asked for: of it, only what it is called with is a node.
                called = isinstance(value, dict) and node.get("type") == "TABLE_FUNCTION"
                todo.extend(cast("dict[str, object]", value).values() if called else [value])
        elif isinstance(here, list):
            todo.extend(here)


def _fetch(cursor: duckdb.DuckDBPyConnection, max_rows: int, over: threading.Event) -> list[Row]:
    rows: list[Row] = []
    size = 0
    while part := cast("list[Row]", cursor.fetchmany(min(_FETCH, max_rows + 1 - len(rows)))):
        rows += part
        size += sum(_size(value) for row in part for value in row)
        if over.is_set():
            raise duckdb.InterruptException("what is left of the rows takes too long")
        if len(rows) > max_rows:
            raise QueryTooLarge(limit=f"{max_rows} rows")
        if size > MAX_RESULT_BYTES:
            raise QueryTooLarge(limit=f"{MAX_RESULT_BYTES >> 20} MB of result")
    return rows


def _size(value: object) -> int:
    if isinstance(value, (str, bytes)):
        return len(value)
    if isinstance(value, (list, tuple)):
        return 8 + sum(_size(item) for item in value)
    if isinstance(value, dict):
        return 8 + sum(_size(item) for pair in value.items() for item in pair)
    return 8


@contextmanager
def time_limit(cursor: duckdb.DuckDBPyConnection, seconds: float) -> Generator[threading.Event]:
    """Interrupt what the cursor does after some seconds; gives what is set from then on."""
    over, done = threading.Event(), threading.Event()

    def stop() -> None:
        if done.wait(seconds):
            return
        over.set()
        # Again and again: a statement that starts takes back an interrupt that came between two.
        while True:
            cursor.interrupt()
            if done.wait(_AGAIN):
                return

    timer = threading.Thread(target=stop, name="muniment-sql-limit", daemon=True)
    timer.start()
    try:
        yield over
    except duckdb.Error as error:
        if over.is_set():
            raise QueryTooLarge(limit=f"{seconds:g} seconds") from error
        raise
    finally:
        done.set()
        # The cursor is closed next: the timer must not interrupt it then.
        timer.join()


@contextmanager
def typed_errors() -> Generator[None]:
    """Turn DuckDB's errors into ours; only those that speak of the query's own text keep their words."""
    try:
        yield
    except duckdb.OutOfMemoryException as error:
        raise QueryTooLarge(limit="memory") from error
    except (duckdb.ParserException, duckdb.BinderException, duckdb.CatalogException) as error:
        raise _refusal(str(error).split("\n\n", 1)[0]) from error
    except duckdb.Error as error:
        # A conversion error quotes the value that it stumbled over, and no message holds a memory's content.
        raise _refusal(f"it cannot be run ({type(error).__name__})") from None


def _refusal(detail: str) -> BadArgument:
    return BadArgument(argument="sql", detail=detail)
