-- Composing and decoding.
SET timezone = 'UTC';
SET datestyle = 'ISO';

-- The worked example.
SELECT snowflake_compose_node(1, 1) AS node, snowflake_compose(1288834975657, 33, 0) AS id;
SELECT * FROM snowflake_decode(4194439168);
SELECT snowflake_bits(4194439168);

-- A published ID, and one of another epoch.
SELECT * FROM snowflake_decode(1541815603606036480);
SELECT snowflake_timestamp(175928847299117063, 1420070400000);

-- Corners round-trip; nothing is ever negative.
SELECT ms, node, seq, id, id >= 0 AND d = (id, snowflake_timestamp(id), 1288834974657 + ms, node, node / 32, node % 32, seq) AS same
FROM unnest(ARRAY[0, 1, 2199023255551]) ms, unnest(ARRAY[0, 1023]) node, unnest(ARRAY[0, 4095]) seq,
     snowflake_compose(1288834974657 + ms, node, seq) id,
     LATERAL (SELECT snowflake_decode(id)) s(d)
ORDER BY ms, node, seq;
SELECT snowflake_compose(1288834974657 + 2199023255551, 1023, 4095) = 9223372036854775807 AS largest;

-- Two ways to give the time; a timestamp is rounded down, before 1970 too.
SELECT snowflake_compose('2026-01-01 00:00:00.001999+00'::timestamptz, 5, 7) =
       snowflake_compose(1767225600001, 5, 7) AS same;
SELECT snowflake_timestamp_ms(snowflake_compose('1969-12-31 23:59:59.9985+00'::timestamptz, 0, 0, -5000), -5000);
-- Exact to the millisecond at the far end, where a double would round, and under any time zone.
SELECT snowflake_timestamp(9223372036854775807), snowflake_timestamp_ms(9223372036854775807);
SET timezone = 'Asia/Kathmandu';
SELECT snowflake_timestamp(1541815603606036480) = '2022-06-28 16:07:40.105+00' AS same_instant,
       snowflake_timestamp(1541815603606036480);
SET timezone = 'UTC';

-- Arguments out of range: node before sequence, and both before the time.
SELECT statement, regexp_replace(outcome('SELECT ' || statement), 'timestamp 1[789]\d{11} ms', 'timestamp (now) ms') AS outcome
FROM (VALUES
    ('snowflake_compose(0, -1, -1)'),
    ('snowflake_compose(0, 1024, 0)'),
    ('snowflake_compose(0, 0, -1)'),
    ('snowflake_compose(0, 0, 4096)'),
    ('snowflake_compose(0, 0, 5000000000)'),
    ('snowflake_compose(now(), 1024, 0)'),
    ('snowflake_generate(-1)'),
    ('snowflake_generate(4096)'),
    ('snowflake_generate(5000000000)'),
    ('snowflake_generate(0, -1)'),
    ('snowflake_generate(4096, 1024)'),
    ('snowflake_compose_node(-1, 0)'),
    ('snowflake_compose_node(32, 0)'),
    ('snowflake_compose_node(0, 32)'),
    ('snowflake_compose_node(0, -1)'),
    -- A time that does not fit.
    ('snowflake_compose(1288834974656, 0, 0)'),
    ('snowflake_compose(1288834974657 + 2199023255552, 0, 0)'),
    ('snowflake_compose(''2010-11-04 01:42:54.656999+00''::timestamptz, 0, 0)'),
    ('snowflake_compose(''2080-07-10 17:30:30.209+00''::timestamptz, 0, 0)'),
    ('snowflake_compose(''infinity''::timestamptz, 0, 0)'),
    ('snowflake_compose(''-infinity''::timestamptz, 0, 0)'),
    ('snowflake_generate(0, 0, 0) > 0'),
    ('snowflake_generate(0, 0, 9223372036854775807)'),
    ('snowflake_compose(9223372036854775807, 0, 0, -9223372036854775808)'),
    -- IDs that are none.
    ('snowflake_timestamp(-1)'),
    ('snowflake_timestamp_ms(-1)'),
    ('snowflake_node(-1)'),
    ('snowflake_datacenter(-1)'),
    ('snowflake_worker(-1)'),
    ('snowflake_sequence(-9223372036854775808)'),
    ('snowflake_bits(-1)'),
    ('snowflake_decode(-1)'),
    -- Epochs at the ends of the range.
    ('snowflake_timestamp_ms(9223372036854775807, 9223372036854775807)'),
    ('snowflake_timestamp_ms(9223372036854775807, -9223372036854775808)'),
    ('snowflake_timestamp(0, 9223372036854775807)'),
    ('snowflake_timestamp(0, -9223372036854775808)'),
    ('snowflake_decode(0, 9223372036854775807)')
) cases(statement);
-- The next call works.
SELECT snowflake_node(4194439168);

-- NULL in, NULL out.
SELECT statement, outcome('SELECT (' || statement || ') IS NULL') FROM (VALUES
    ('snowflake_generate(NULL)'), ('snowflake_generate(0, NULL)'), ('snowflake_generate(0, 0, NULL)'),
    ('snowflake_compose(NULL::bigint, 0, 0)'), ('snowflake_compose(0, NULL, 0)'),
    ('snowflake_compose(0, 0, NULL)'), ('snowflake_compose(0, 0, 0, NULL)'),
    ('snowflake_compose(NULL::timestamptz, 0, 0)'),
    ('snowflake_compose_node(NULL, 0)'), ('snowflake_compose_node(0, NULL)'),
    ('snowflake_timestamp(NULL)'), ('snowflake_timestamp(0, NULL)'),
    ('snowflake_timestamp_ms(NULL)'), ('snowflake_timestamp_ms(0, NULL)'),
    ('snowflake_node(NULL)'), ('snowflake_datacenter(NULL)'), ('snowflake_worker(NULL)'),
    ('snowflake_sequence(NULL)'), ('snowflake_bits(NULL)'),
    ('snowflake_decode(NULL)'), ('snowflake_decode(0, NULL)'),
    ('snowflake_min(NULL)'), ('snowflake_min(now(), NULL)'),
    ('snowflake_max(NULL)'), ('snowflake_max(now(), NULL)'),
    ('snowflake_nextval(NULL)'), ('snowflake_currval(NULL)')
) cases(statement);
SELECT count(*) AS rows FROM snowflake_decode(NULL);

-- Of a decoded ID only what is asked for is worked out.
CREATE TEMP TABLE decoded (id bigint);
EXPLAIN (VERBOSE, COSTS OFF) SELECT (snowflake_decode(id)).node FROM decoded;
EXPLAIN (VERBOSE, COSTS OFF) SELECT (snowflake_decode(id, 5)).* FROM decoded;

-- snowflake_generate reads the clock at the call, not at the transaction's start.
BEGIN;
SELECT now() AS started \gset
SELECT pg_sleep(0.01);
SELECT snowflake_timestamp(snowflake_generate(0)) > :'started'::timestamptz AS later,
       snowflake_timestamp(snowflake_generate(0)) BETWEEN clock_timestamp() - interval '1 min' AND clock_timestamp() AS now;
COMMIT;
SELECT snowflake_node(id), snowflake_sequence(id) FROM snowflake_generate(17, 42) id;
SELECT snowflake_node(snowflake_generate(0)) = snowflake_current_node() AS default_node;
CREATE SEQUENCE counter;
SELECT snowflake_sequence(snowflake_generate(nextval('counter') % 4096)) FROM generate_series(1, 3);

-- Decoders in an expression index, a generated column, a partition's bounds.
CREATE TABLE events (
    id bigint PRIMARY KEY,
    node int GENERATED ALWAYS AS (snowflake_node(id)) STORED
) PARTITION BY RANGE (id);
CREATE TABLE events_2025 PARTITION OF events
    FOR VALUES FROM (snowflake_min('2025-01-01+00')) TO (snowflake_min('2026-01-01+00'));
CREATE TABLE events_2026 PARTITION OF events
    FOR VALUES FROM (snowflake_min('2026-01-01+00')) TO (snowflake_min('2027-01-01+00'));
CREATE INDEX events_day ON events ((snowflake_timestamp(id)));
INSERT INTO events
SELECT snowflake_compose(t, 3, 0) FROM generate_series('2025-12-01+00', '2026-01-31+00', interval '1 h') t;
SELECT tableoid::regclass AS part, count(*), min(node), max(node) FROM events GROUP BY 1 ORDER BY 1;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF) SELECT * FROM events_2026 WHERE snowflake_timestamp(id) < '2026-01-02+00';
