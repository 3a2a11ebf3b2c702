"""What SQL from outside cannot do: write, reach a file or another scope, outlive its limits."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from muniment.events import BadArgument, QueryTooLarge
from muniment.projections import LATEST, Graph, Row

from .histories import History


def ask(graph: Graph, sql: str, scopes: frozenset[str] | None = None, seconds: float = 10.0) -> list[Row]:
    return graph.query(sql, valid_at=1_000, known=LATEST, scopes=scopes, seconds=seconds, max_rows=1_000)[1]


@pytest.fixture
def history() -> History:
    made = History()
    made.remember("what s knows", scope="s", about="k", value="1")
    made.remember("what t knows", scope="t", about="k", value="1")
    return made


@pytest.mark.parametrize(
    "sql",
    [
        "",
        "-- nothing",
        "SELECT 1; SELECT 2",
        "INSERT INTO memories VALUES (1)",
        "WITH x AS (INSERT INTO raw.point VALUES (1, 2) RETURNING *) SELECT * FROM x",
        "WITH x AS (DELETE FROM raw.memories RETURNING *) SELECT * FROM x",
        "CREATE TABLE x (a INTEGER)",
        "COPY (SELECT 1) TO 'x.csv'",
        "ATTACH 'x.db'",
        "EXPORT DATABASE 'x'",
        "PRAGMA version",
        "SET memory_limit = '100GB'",
        "SET VARIABLE x = 1",
        "INSTALL httpfs",
        "LOAD json",
        "CALL pragma_version()",
        "EXPLAIN ANALYZE SELECT 1",
        "PREPARE p AS SELECT 1",
        "BEGIN",
    ],
)
def test_only_one_select_is_run(history: History, sql: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    graph = Graph(history.state)

    with pytest.raises(BadArgument, match="argument `sql`"):
        ask(graph, sql)

    assert [(2,)] == ask(graph, "SELECT count(*) FROM memories")
    assert [] == list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_text('/etc/hostname')",
        "SELECT * FROM '/etc/hostname'",
        "SELECT (SELECT max(content) FROM read_text('/etc/hostname'))",
        "WITH x AS (FROM glob('/*')) SELECT * FROM x",
        "SELECT * FROM memories WHERE id IN (SELECT file FROM glob('/*'))",
        "FROM query('SELECT 1')",
        "FROM query_table('memories')",
        "FROM enable_profiling(save_location = 'x')",
        "FROM duckdb_settings()",
        "FROM raw.memories",
        "FROM memory.RAW.memories",
        "FROM history",
    ],
)
def test_files_functions_and_tables_that_are_not_listed_are_out_of_reach(history: History, sql: str) -> None:
    with pytest.raises(BadArgument, match="argument `sql`"):
        ask(Graph(history.state), sql)


def test_i08_a_session_s_database_holds_its_scopes_and_nothing_else(history: History) -> None:
    history.forget(history.memories[1])
    history.remember("more of t", scope="t")
    graph = Graph(history.state)

    assert [("s", "what s knows")] == ask(graph, "SELECT scope, content FROM memories", frozenset({"s"}))
    assert [("s",)] == ask(graph, "SELECT DISTINCT scope FROM events", frozenset({"s"}))
    assert [(2, 1)] == ask(graph, "SELECT (SELECT count(*) FROM memories), (SELECT count(*) FROM stubs)", None)
    inside = graph._filled[frozenset({"s"})].connection
    assert [("s",)] == inside.execute("SELECT DISTINCT scope FROM raw.memories").fetchall()


def test_i05_what_was_erased_leaves_the_database_at_the_next_query(history: History) -> None:
    graph = Graph(history.state)
    assert [("what s knows",)] == ask(graph, "SELECT content FROM memories WHERE scope = 's'")
    before = graph._filled[None].connection

    history.forget(history.memories[0])

    assert [] == ask(graph, "SELECT content FROM memories WHERE scope = 's'")
    assert [("erased",)] == ask(graph, "SELECT status FROM stubs WHERE scope = 's'")
    inside = graph._filled[None].connection
    assert before is not inside
    assert [(0,)] == inside.execute("SELECT count(*) FROM raw.memories WHERE content LIKE '%s knows%'").fetchall()


def test_i05_what_was_erased_leaves_the_databases_of_other_scopes_too(history: History) -> None:
    graph = Graph(history.state)
    ask(graph, "FROM memories", frozenset({"s"}))
    history.forget(history.memories[0])

    ask(graph, "FROM memories", frozenset({"t"}))

    assert [frozenset({"t"})] == list(graph._filled)


def test_i05_a_closed_scope_leaves_the_database_at_the_next_query(history: History) -> None:
    graph = Graph(history.state)
    ask(graph, "FROM memories")

    history.forget(*[m for m in history.memories if m.scope == "t"], close="t")

    assert [("s",)] == ask(graph, "SELECT DISTINCT scope FROM memories")


def test_rows_recorded_after_the_point_are_not_shown(history: History) -> None:
    one, other = history.memories
    history.link(one, other, "supports")
    history.retire(one)
    graph = Graph(history.state)

    def count(view: str, known: int) -> object:
        return graph.query(f"SELECT count(*) FROM {view}", valid_at=1_000, known=known, scopes=None)[1][0][0]

    assert [0, 1, 1] == [count("links", known) for known in (2, 3, 4)]
    assert [1, 2, 3] == [count("events", known) for known in (1, 2, 3)]
    assert [2, 2, 1] == [count("beliefs", known) for known in (2, 3, 4)]


def test_a_link_that_ended_shows_when(history: History) -> None:
    one, other = history.memories
    history.link(one, other, "supports")
    graph = Graph(history.state)
    assert [(None,)] == ask(graph, "SELECT ended_at FROM links")

    history.unlink(one, other, "supports")

    assert [(4,)] == ask(graph, "SELECT epoch_us(ended_at) // 10 FROM links")


def test_a_query_that_takes_too_long_is_stopped(history: History) -> None:
    graph = Graph(history.state)

    with pytest.raises(QueryTooLarge, match=r"takes more than 0\.1 seconds"):
        ask(graph, "SELECT count(*) FROM range(1000000000) a, range(1000000000) b", seconds=0.1)
    assert [(2,)] == ask(graph, "SELECT count(*) FROM memories")


def test_a_limit_that_passes_before_the_query_runs_stops_it_too(history: History) -> None:
    """DuckDB forgets an interrupt when the next statement starts."""
    graph = Graph(history.state)

    with pytest.raises(QueryTooLarge, match="takes more than 0 seconds"):
        ask(graph, "SELECT count(*) FROM range(2000000) a, range(1000) b WHERE hash(a.range + b.range) = 1", seconds=0)
    assert [(2,)] == ask(graph, "SELECT count(*) FROM memories")


DOUBLING = "WITH c0 AS NOT MATERIALIZED (SELECT 1 a)" + "".join(
    f", c{n} AS NOT MATERIALIZED (SELECT x.a FROM C{n - 1} x, c{n - 1} y)" for n in range(1, 60)
)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT " + ", ".join("(SELECT count(*) FROM memories)" for _ in range(101)),
        "SELECT 1 FROM " + ", ".join(f"range(1) t{n}" for n in range(101)),
        f"{DOUBLING} SELECT count(*) FROM c59",
    ],
    ids=["subqueries", "joins", "inlined copies"],
)
def test_a_query_that_takes_long_to_plan_is_refused(history: History, query: str) -> None:
    """Planning is what DuckDB does not interrupt: 400 subqueries took seconds past the limit, 20 doublings minutes."""
    with pytest.raises(QueryTooLarge, match="takes more than 100 tables"):
        ask(Graph(history.state), query)


def test_as_many_tables_as_are_allowed_are_planned(history: History) -> None:
    graph = Graph(history.state)
    shared = "WITH c0 AS (SELECT id FROM memories)" + "".join(
        f", c{n} AS (SELECT x.id FROM c{n - 1} x JOIN c{n - 1} y USING (id))" for n in range(1, 14)
    )

    assert [(2,) * 100] == ask(graph, "SELECT " + ", ".join("(SELECT count(*) FROM memories)" for _ in range(100)))
    assert [(2,)] == ask(graph, f"{shared} SELECT count(*) FROM c13")


def test_a_query_that_takes_too_much_memory_is_stopped_and_spills_nowhere(
    history: History, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    graph = Graph(history.state, memory_limit="50MB")

    with pytest.raises(QueryTooLarge, match="takes more than memory"):
        ask(graph, "SELECT list(i::VARCHAR || '-' || i) FROM range(10000000) t(i)")
    assert [] == list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "call",
    [
        "repeat('x', 9)",
        "lpad('x', 9, 'y')",
        "len(range(9))",
        "list_resize([1], 9)",
        "format('{:>9}', 'x')",
        "printf('%9d', 1)",
        "damerau_levenshtein('x', 'y')",
        "jaro_similarity('x', 'y')",
        "Jaro_Winkler_Similarity('x', 'y')",
    ],
)
def test_functions_that_no_limit_stops_are_refused(history: History, call: str) -> None:
    """DuckDB's interrupt waits for them while they build a value outside its memory limit, or compare two long ones."""
    with pytest.raises(BadArgument, match="may not be used"):
        ask(Graph(history.state), f"SELECT {call}")


def test_texts_can_be_compared_under_the_limit(history: History) -> None:
    graph = Graph(history.state)
    text = "(SELECT string_agg('the car is red', '') s FROM range(200000))"

    assert [(3,)] == ask(graph, "SELECT levenshtein('kitten', 'sitting')")
    with pytest.raises(QueryTooLarge, match=r"takes more than 0\.1 seconds"):
        ask(graph, f"SELECT levenshtein(s, s || 'x') FROM {text}", seconds=0.1)


def test_a_query_nested_deeper_than_can_be_looked_at_is_refused(history: History) -> None:
    depth = 900
    nested = "CASE WHEN seq > 1 THEN " * depth + "1" + " ELSE 0 END" * depth
    with pytest.raises(BadArgument, match="nested too deeply"):
        ask(Graph(history.state), f"SELECT {nested} FROM memories")


def test_more_rows_than_asked_for_are_refused_not_cut(history: History) -> None:
    with pytest.raises(QueryTooLarge, match="takes more than 1000 rows"):
        ask(Graph(history.state), "FROM range(1001)")


def test_no_message_quotes_a_value(history: History) -> None:
    with pytest.raises(BadArgument) as caught:
        ask(Graph(history.state), "SELECT content::INTEGER FROM memories")
    assert "knows" not in str(caught.value)


def test_a_child_process_lets_go_of_an_inherited_database_without_harm(history: History) -> None:
    graph = Graph(history.state)
    ask(graph, "FROM memories")
    child = os.fork()
    if child == 0:
        graph.close()
        os._exit(0 if ask(graph, "SELECT count(*) FROM memories") == [(2,)] else 1)

    assert 0 == os.waitpid(child, 0)[1]
