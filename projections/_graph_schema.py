"""
The graph's tables and views, in DuckDB's SQL.

Tables in the schema `raw` hold what was recorded, insert-only, with both intervals, instants as microseconds and an
open end as the far future. `raw.point` is the point that is asked about, `raw.standing` each memory's status there,
`raw.reader` who is shown what waits for a person only where it is their own (NULL: all of it is shown). The views in
`main` are for people: they show the point, in the words of the library.
"""

from __future__ import annotations

from typing import Final

TABLES: Final = """
CREATE SCHEMA raw;
CREATE TABLE raw.point (valid_at BIGINT, known BIGINT);
CREATE TABLE raw.reader (author VARCHAR);
CREATE TABLE raw.standing (
    mem BIGINT, status VARCHAR, holds BOOLEAN, current BOOLEAN, successor BIGINT, valid_to BIGINT
);
CREATE TABLE raw.memories (
    seq BIGINT, id VARCHAR, scope VARCHAR, kind VARCHAR, content VARCHAR, subject VARCHAR, attribute VARCHAR,
    value VARCHAR, origin VARCHAR, rank SMALLINT, actor VARCHAR, provenance VARCHAR, source VARCHAR, tags VARCHAR[],
    metadata VARCHAR, applies_when VARCHAR, reason VARCHAR, importance DOUBLE, many BOOLEAN, conditional BOOLEAN,
    pending BOOLEAN, valid_from BIGINT, valid_to BIGINT, recorded_at BIGINT, key VARCHAR, value_key VARCHAR,
    erased_seq BIGINT
);
CREATE TABLE raw.fates (
    mem BIGINT, kind SMALLINT, seq BIGINT, recorded_at BIGINT, until BIGINT, successor BIGINT
);
CREATE TABLE raw.links (
    nr BIGINT, "start" VARCHAR, "end" VARCHAR, type VARCHAR, stated BOOLEAN, seq BIGINT, recorded_at BIGINT,
    valid_from BIGINT, valid_to BIGINT, ended_seq BIGINT, ended_at BIGINT
);
CREATE TABLE raw.events (
    seq BIGINT, recorded_at BIGINT, type VARCHAR, id VARCHAR, scope VARCHAR, actor VARCHAR, origin VARCHAR,
    target VARCHAR
);
CREATE TABLE raw.decisions (
    seq BIGINT, recorded_at BIGINT, id VARCHAR, scope VARCHAR, actor VARCHAR, use VARCHAR, allowed BOOLEAN,
    reasons VARCHAR[], evidence STRUCT(id VARCHAR, verdict VARCHAR)[], confirmation VARCHAR, prohibition VARCHAR,
    policy VARCHAR, at_seq BIGINT, decided_at BIGINT, action VARCHAR, erased BOOLEAN
);
CREATE TABLE raw.tombstones (
    seq BIGINT, id VARCHAR, scope VARCHAR, domain VARCHAR, how VARCHAR, everyone BOOLEAN, rank SMALLINT,
    recorded_at BIGINT, actor VARCHAR, reason VARCHAR, lifted_seq BIGINT
);
"""

# The rule of `_resolve.py`, set-wise. What stands before the key's rule (erased, quarantined, rejected, retired,
# superseded by name, pending) are aggregates of a memory's fates. The key's rule is a fold in sequence order, since who
# is entitled depends on who holds: an ordered list of operations, reduced to who holds, whom that displaced, and who
# only disputed. Left out, because no view shows them: which value a dispute is about, and conflicts at equal rank.
STANDING: Final = """
CREATE OR REPLACE TABLE raw.standing AS
WITH happened AS MATERIALIZED (
    SELECT f.* FROM raw.fates f, raw.point p WHERE f.seq <= p.known
), outcome AS (
    SELECT mem,
        coalesce(arg_max(kind, seq) FILTER (kind IN (5, 6)) = 5, false) AS apart,
        bool_or(kind = 4) AS rejected,
        min(seq) FILTER (kind = 3) AS approved,
        min(until) FILTER (kind = 2) AS retired,
        arg_min(successor, seq) FILTER (kind = 1 AND successor IS NOT NULL) AS named
    FROM happened GROUP BY mem
), memory AS MATERIALIZED (
    SELECT m.seq AS mem, m.scope, m.key, m.value_key, m.rank, m.origin, m.many, m.conditional, m.erased_seq, m.valid_to,
        p.known, p.valid_at,
        m.valid_from <= p.valid_at AND p.valid_at < m.valid_to AS here,
        m.key IS NOT NULL AND NOT m.many AS single,
        coalesce(o.apart, false) AS apart, coalesce(o.rejected, false) AS rejected,
        coalesce(CASE WHEN m.pending THEN o.approved ELSE m.seq END, $far) AS admitted,
        CASE WHEN m.pending THEN m.recorded_at + $term ELSE $far END AS lapses,
        coalesce(o.retired, $far) AS retired, o.named
    FROM raw.memories m CROSS JOIN raw.point p LEFT JOIN outcome o ON o.mem = m.seq
    WHERE m.seq <= p.known
), succession AS MATERIALIZED (
    SELECT f.mem, f.seq, s.key, s.many
    FROM happened f JOIN memory s ON s.mem = f.successor
    WHERE f.kind = 1 AND s.here AND s.admitted <= s.known
), stated AS MATERIALIZED (
    SELECT * FROM memory m WHERE single AND here AND admitted <= known AND erased_seq > admitted
        AND NOT EXISTS (
            FROM happened f WHERE f.mem = m.mem AND f.seq < m.admitted
                AND (f.kind = 4 OR (f.kind = 2 AND f.until <= m.valid_at))
        )
        AND NOT EXISTS (
            FROM succession n WHERE n.mem = m.mem AND n.seq < m.admitted AND (n.key IS DISTINCT FROM m.key OR n.many)
        )
), operation AS (
    SELECT mem, admitted AS at, false AS ends FROM stated
    UNION ALL SELECT mem, erased_seq, true FROM stated WHERE erased_seq < $far
    UNION ALL
    SELECT s.mem, f.seq, true FROM stated s JOIN happened f ON f.mem = s.mem
    WHERE f.kind = 4 OR (f.kind = 2 AND f.until <= s.valid_at)
    UNION ALL
    SELECT s.mem, n.seq, true FROM stated s JOIN succession n ON n.mem = s.mem
    WHERE n.key IS DISTINCT FROM s.key OR n.many
), reduced AS (
    SELECT s.scope, s.key, list_reduce(
        list(
            {mem: s.mem, ends: o.ends, value: s.value_key, rank: s.rank, origin: s.origin, apart: s.apart,
             displaced: []::BIGINT[], disputed: []::BIGINT[]}
            ORDER BY o.at, o.ends
        ),
        lambda held, x: CASE
            WHEN x.ends THEN
                CASE WHEN held.mem = x.mem THEN
                    {mem: NULL::BIGINT, ends: false, value: NULL::VARCHAR, rank: NULL::SMALLINT, origin: NULL::VARCHAR,
                     apart: false, displaced: held.displaced, disputed: held.disputed}
                ELSE held END
            WHEN held.mem IS NULL THEN
                {mem: x.mem, ends: false, value: x.value, rank: x.rank, origin: x.origin, apart: x.apart,
                 displaced: held.displaced, disputed: held.disputed}
            WHEN held.apart OR CASE WHEN x.rank = 0 AND held.rank = 0 THEN x.origin = held.origin
                                    ELSE x.rank >= held.rank END THEN
                {mem: x.mem, ends: false, value: x.value, rank: x.rank, origin: x.origin, apart: x.apart,
                 displaced: list_append(held.displaced, held.mem), disputed: held.disputed}
            WHEN x.value IS NOT DISTINCT FROM held.value THEN held
            ELSE
                {mem: held.mem, ends: false, value: held.value, rank: held.rank, origin: held.origin,
                 apart: held.apart, displaced: held.displaced, disputed: list_append(held.disputed, x.mem)}
        END,
        {mem: NULL::BIGINT, ends: false, value: NULL::VARCHAR, rank: NULL::SMALLINT, origin: NULL::VARCHAR,
         apart: false, displaced: []::BIGINT[], disputed: []::BIGINT[]}
    ) AS held
    FROM operation o JOIN stated s ON s.mem = o.mem
    GROUP BY s.scope, s.key
), holder AS (
    SELECT r.scope, r.key, r.held, h.mem, h.value_key
    FROM reduced r LEFT JOIN stated h ON h.mem = r.held.mem AND h.erased_seq = $far AND NOT h.apart
), role AS (
    SELECT s.mem,
        CASE
            WHEN list_contains(h.held.disputed, s.mem) THEN 'disputed'
            WHEN s.mem = h.mem THEN NULL
            WHEN list_contains(h.held.displaced, s.mem) OR h.mem IS NULL THEN 'superseded'
            WHEN s.value_key IS DISTINCT FROM h.value_key THEN 'superseded'
        END AS role
    FROM stated s JOIN holder h ON h.scope = s.scope AND h.key = s.key
), judged AS (
    SELECT m.*, h.mem AS holder,
        CASE
            WHEN m.erased_seq < $far THEN 'erased'
            WHEN m.apart THEN 'quarantined'
            WHEN m.rejected THEN 'rejected'
            WHEN m.retired <= m.valid_at THEN 'retired'
            WHEN m.admitted > m.known AND m.lapses <= m.valid_at THEN 'retired'
            WHEN m.mem IN (SELECT mem FROM succession) THEN 'superseded'
            WHEN m.admitted > m.known THEN 'pending'
            WHEN r.role IS NOT NULL THEN r.role
            WHEN m.conditional THEN 'conditional'
            ELSE 'active'
        END AS status
    FROM memory m LEFT JOIN role r ON r.mem = m.mem
    LEFT JOIN holder h ON m.single AND h.scope = m.scope AND h.key = m.key
)
SELECT mem, status,
    status IN ('active', 'conditional') AND here AND (NOT single OR coalesce(mem = holder, false)) AS holds,
    key IS NOT NULL AND CASE WHEN single THEN coalesce(mem = holder, false) ELSE holds END AS current,
    coalesce(named, CASE WHEN here AND holder > mem THEN holder END) AS successor,
    least(valid_to, retired) AS valid_to
FROM judged
"""

CHANGES: Final = """
SELECT count(*) FROM (
    SELECT valid_from AS moment FROM raw.memories
    UNION ALL SELECT valid_to FROM raw.memories
    UNION ALL SELECT recorded_at + $term FROM raw.memories WHERE pending
    UNION ALL SELECT until FROM raw.fates
) WHERE moment > $first AND moment <= $last
"""
"""How many instants lie in an interval of valid time at which some memory's state may change."""

VIEWS: Final = """
CREATE MACRO raw.instant(t) AS CASE WHEN t < $far THEN make_timestamptz(t) END;
CREATE MACRO raw.rank_name(r) AS ['external', 'agent', 'user', 'signed'][r + 1];
CREATE VIEW memories AS
SELECT m.id, m.scope, m.kind, s.status, s.holds, m.content, m.subject, m.attribute, m.value, m.origin,
    raw.rank_name(m.rank) AS rank, m.actor, m.provenance, m.source, m.tags, m.metadata, m.applies_when, m.reason,
    m.importance, m.many, raw.instant(m.valid_from) AS valid_from, raw.instant(s.valid_to) AS valid_to, m.seq,
    raw.instant(m.recorded_at) AS recorded_at, raw.instant(n.recorded_at) AS superseded_at, n.id AS superseded_by
FROM raw.reader r CROSS JOIN raw.memories m JOIN raw.standing s ON s.mem = m.seq
LEFT JOIN raw.memories n ON n.seq = s.successor
WHERE m.erased_seq = $far AND (s.status <> 'pending' OR r.author IS NULL OR m.actor = r.author);
CREATE VIEW stubs AS
SELECT m.id, m.scope, m.kind, s.status, m.origin, raw.rank_name(m.rank) AS rank, m.actor, m.provenance, m.importance,
    m.many, raw.instant(m.valid_from) AS valid_from, raw.instant(s.valid_to) AS valid_to, m.seq,
    raw.instant(m.recorded_at) AS recorded_at, raw.instant(e.recorded_at) AS erased_at, e.actor AS erased_by,
    e.id AS erasure
FROM raw.memories m JOIN raw.standing s ON s.mem = m.seq LEFT JOIN raw.events e ON e.seq = m.erased_seq
WHERE m.erased_seq < $far;
CREATE VIEW beliefs AS
SELECT m.id, m.scope, m.subject, m.attribute, m.value, m.content, s.status, m.many, m.origin,
    raw.rank_name(m.rank) AS rank, m.provenance, m.source, raw.instant(m.valid_from) AS valid_from,
    raw.instant(s.valid_to) AS valid_to, m.seq, raw.instant(m.recorded_at) AS recorded_at
FROM raw.memories m JOIN raw.standing s ON s.mem = m.seq WHERE s.current;
CREATE VIEW links AS
SELECT l."start", l."end", l.type, raw.instant(l.valid_from) AS valid_from, raw.instant(l.valid_to) AS valid_to, l.seq,
    raw.instant(l.recorded_at) AS recorded_at,
    CASE WHEN l.ended_seq <= p.known THEN raw.instant(l.ended_at) END AS ended_at
FROM raw.links l, raw.point p
WHERE l.seq <= p.known
    AND l."start" IN (SELECT id FROM raw.memories m WHERE m.seq <= p.known)
    AND l."end" IN (SELECT id FROM raw.memories m WHERE m.seq <= p.known);
CREATE VIEW raw.touched AS
SELECT t.at, list(m.id ORDER BY m.seq) AS ids
FROM (
    SELECT erased_seq AS at, seq AS mem FROM raw.memories WHERE erased_seq < $far UNION SELECT seq, mem FROM raw.fates
) t JOIN raw.memories m ON m.seq = t.mem GROUP BY t.at;
CREATE VIEW events AS
SELECT e.seq, raw.instant(e.recorded_at) AS recorded_at, e.type, e.id, e.scope, e.actor, e.origin, e.target,
    coalesce(t.ids, []::VARCHAR[]) AS touched
FROM raw.point p, raw.events e LEFT JOIN raw.touched t ON t.at = e.seq WHERE e.seq <= p.known;
CREATE VIEW decisions AS
SELECT d.id, d.scope, d.actor, d.action, d.use, d.allowed, d.reasons, d.evidence, d.confirmation, d.prohibition,
    d.policy, d.at_seq, raw.instant(d.decided_at) AS decided_at, d.seq, raw.instant(d.recorded_at) AS recorded_at,
    d.erased
FROM raw.decisions d, raw.point p WHERE d.seq <= p.known;
CREATE VIEW tombstones AS
SELECT t.id, t.scope, t.domain, t.how, t.everyone, raw.rank_name(t.rank) AS rank, t.seq,
    raw.instant(t.recorded_at) AS recorded_at, t.actor, t.reason, t.lifted_seq <= p.known AS lifted
FROM raw.tombstones t, raw.point p WHERE t.seq <= p.known;
"""

# Every hop asks again for the neighbour's scope and for both instants: a path may not pass through what it may not
# show. `nr` is the order in which the register would find two links of one sort between the same ends.
NEIGHBOURHOOD: Final = """
WITH RECURSIVE seen AS (
    SELECT id FROM raw.memories WHERE seq <= $known AND ($scopes::VARCHAR[] IS NULL OR list_contains($scopes, scope))
), link AS (
    SELECT * FROM raw.links
    WHERE seq <= $known AND $known < ended_seq
        AND (NOT stated OR (valid_from <= $valid_at AND $valid_at < valid_to))
        AND "start" IN (FROM seen) AND "end" IN (FROM seen)
), hop AS (
    SELECT "start" AS here, "end" AS there FROM link UNION SELECT "end", "start" FROM link
), walk AS (
    SELECT id, 0 AS depth FROM seen WHERE id = $start
    UNION
    SELECT h.there, w.depth + 1 FROM walk w JOIN hop h ON h.here = w.id WHERE w.depth < $depth
), reached AS (
    SELECT id, min(depth) AS depth FROM walk GROUP BY id
)
SELECT l."start", l."end", l.type, min(r.depth) + 1 AS depth, raw.instant(arg_min(l.valid_from, l.nr)),
    raw.instant(arg_min(l.valid_to, l.nr)), raw.instant(arg_min(l.recorded_at, l.nr))
FROM link l JOIN reached r ON r.id IN (l."start", l."end") WHERE r.depth < $depth
GROUP BY l."start", l."end", l.type ORDER BY 4, 1, 2, 3
"""
