"""The side by side's tables say what the result says: what is best, where Muniment loses, what was cut short."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from eval._plot import log_plot
from eval.peers._table import MEASURES, markdown, readme_table, size_table, where_we_lose


def row(peer: str, memories: int = 1_000, **figures: object) -> dict[str, object]:
    return {"peer": peer, "sought": 1_000, "memories": memories, "cut_short": [], **figures}


def result(*rows: dict[str, object]) -> dict[str, object]:
    return {
        "sizes": [1_000],
        "k": 8,
        "embedding_a_question_p50_us": 5_200.0,
        "peers": {"muniment": {"versions": {"muniment": "0.1.0"}, "settings": {"durability": "synced"}}},
        "rows": list(rows),
        "verbs": [
            {"peer": "muniment", "remember_many": "yes", "retire": "yes"},
            {"peer": "shelf", "remember_many": "yes", "retire": "unavailable: it has no drawer"},
        ],
        "erased": [
            {
                "peer": "muniment",
                "forgotten": 10,
                "control": 10,
                "left_at_return": 4,
                "left_after_close": 0,
                "clean_up": "nothing",
            },
            {"peer": "shelf", "forgotten": 10, "control": 3, "left_after_close": None, "clean_up": "dusting"},
        ],
        "guards": [{"peer": "muniment", "cases": 9, "attack success": 0.0, "benign pass": 1.0}],
        "failed": [],
    }


OURS = row("muniment", recall_p50_us=2_000.0, write_p50_us=400.0, other_process_p50_us=900.0)
FASTER = row("shelf", recall_p50_us=500.0, write_p50_us=800.0, other_process_p50_us=None)
SHORT = row("snail", 120, recall_p50_us=1.0, write_p50_us=1.0, cut_short=["load: 120 of 1,000 after 60 s"])


def test_the_best_of_a_column_is_bold_and_a_write_that_nobody_saw_says_so() -> None:
    lines = size_table(result(OURS, FASTER), 1_000).splitlines()
    assert "| muniment | 2 | **0.4** |" == lines[4][:26]
    assert "| shelf | **0.5** | 0.8 |" == lines[5][:25]
    assert "| not seen |" in lines[5]


def test_a_product_that_was_cut_short_says_so_and_is_compared_with_nothing() -> None:
    whole = result(OURS, SHORT)
    assert "| snail (120 only: load: 120 of 1,000 after 60 s) | 0.001 | 0.001 |" in size_table(whole, 1_000)
    assert "snail" not in where_we_lose(whole)
    assert "* snail at 1000: load: 120 of 1,000 after 60 s" in markdown(whole)


def test_what_follows_a_load_is_said_where_it_takes_long() -> None:
    slow, quick = (
        {**OURS, "settle_ms": 25_000.0, "settle": "an index"},
        {**FASTER, "settle_ms": 9.0, "settle": "a dust"},
    )
    lines = size_table(result(slow, quick), 1_000).splitlines()
    assert lines[4].startswith("| muniment (after the load 25 s: an index) |")
    assert lines[5].startswith("| shelf |")


def test_where_another_product_is_better_is_said_with_how_many_times() -> None:
    assert ["* recall: at 1,000 shelf (4×)"] == where_we_lose(result(OURS, FASTER)).strip().splitlines()[2:]
    none = result({**OURS, "ram_bytes_per_memory": 5_000}, row("shelf", ram_bytes_per_memory=-3))
    assert "* RAM per memory: at 1,000 shelf (none measured)" in where_we_lose(none)
    assert "* nowhere" in where_we_lose(result(OURS))


def test_what_is_unavailable_is_no_yes_and_a_control_that_missed_no_figure() -> None:
    told = markdown(result(OURS, FASTER))
    assert "| | muniment | shelf |" in told
    assert "| withdraw, and keep in history | yes | – |" in told
    assert "| can still be read on the disk after a forget | 4 of 10, 0 once closed | cannot tell |" in told
    assert "| attack success of the guard | 0.00 | no guard |" in told
    assert "* shelf, retire: unavailable: it has no drawer" in told


def test_a_figure_that_hangs_on_how_sqlite_was_built_says_so() -> None:
    facts = {"versions": {"SQLite": "3.40.1, secure_delete on by its build"}, "settings": {"at rest": "plain"}}
    zeroing = {**facts, "settings": {"at rest": "plain; secure_delete=ON"}}
    told = markdown({**result(OURS, FASTER), "peers": {"shelf": facts, "drawer": zeroing}})
    assert "What shelf leaves hangs on the SQLite that Python was built with" in told


def test_a_smoke_run_is_marked_wherever_its_figures_stand() -> None:
    smoke = {**result(OURS, FASTER), "smoke": "a smoke run"}
    machine = {"cores": 2, "cpu": "a processor", "python": "3.11"}
    document = {"machine": machine, "date": "2026-11-30", "commit": "0123456789", "result": smoke}
    assert "**a smoke run" in markdown(smoke)
    assert "**a smoke run" in readme_table(document)


def test_every_measure_is_in_the_table_of_a_size() -> None:
    head = size_table(result(OURS), 1_000).splitlines()[2]
    assert [f"{m.title}, {m.unit}" for m in MEASURES] == [cell.strip() for cell in head.split("|")[2:-1]]


def test_a_logarithmic_plot_draws_a_line_for_each_product_even_where_it_lacks_a_size() -> None:
    svg = log_plot("Recall & more", [1_000, 10_000], {"ours": {1_000: 10.0, 10_000: 1_000.0}, "snail": {1_000: 100.0}})
    lines = ElementTree.fromstring(svg).findall("{http://www.w3.org/2000/svg}polyline")
    ours, snail = (line.attrib["points"].split() for line in lines)

    assert (2, 1) == (len(ours), len(snail))
    low, middle, high = (float(point.split(",")[1]) for point in (ours[0], snail[0], ours[1]))
    assert low - middle == pytest.approx(middle - high)
