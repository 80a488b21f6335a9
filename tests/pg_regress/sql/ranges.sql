-- Time ranges over IDs.
SET timezone = 'UTC';
SET datestyle = 'ISO';

-- min and max never fail.
SELECT ts, snowflake_min(ts), snowflake_max(ts) FROM (VALUES
    ('-infinity'::timestamptz), ('4714-11-24 00:00:00+00 BC'), ('1970-01-01+00'),
    ('2010-11-04 01:42:54.656999+00'), ('2010-11-04 01:42:54.657+00'), ('2010-11-04 01:42:54.657999+00'),
    ('2080-07-10 17:30:30.208+00'), ('2080-07-10 17:30:30.209+00'), ('294276-12-31 23:59:59.999999+00'), ('infinity')
) times(ts);
SELECT epoch, snowflake_min(now(), epoch) , snowflake_max(now(), epoch)
FROM unnest(ARRAY[-9223372036854775808, 9223372036854775807]) epoch;

-- min(ts) <= id < min(ts + 1 ms) for every ID of that millisecond.
SELECT bool_and(snowflake_min(ts) <= id AND id < snowflake_min(ts + interval '1 ms') AND id <= snowflake_max(ts))
FROM unnest(ARRAY['2010-11-04 01:42:54.657+00', '2026-11-30 12:00:00.123+00', '2080-07-10 17:30:30.207+00']::timestamptz[]) ts,
     unnest(ARRAY[0, 1, 1023]) node, unnest(ARRAY[0, 1, 4095]) seq, snowflake_compose(ts, node, seq) id;

-- A table of the last and the first ID of each hour of a day.
CREATE TABLE hours (id bigint PRIMARY KEY);
INSERT INTO hours
SELECT id FROM generate_series('2026-05-01+00', '2026-05-01 23:00+00', interval '1 h') t,
    LATERAL (VALUES (snowflake_min(t)), (snowflake_max(t + interval '59 min 59.999 s'))) ids(id);
ANALYZE hours;
SET enable_seqscan = off;
SET enable_bitmapscan = off;

SELECT count(*) FROM hours WHERE snowflake_between(id, '2026-05-01 05:00+00', '2026-05-01 07:00+00');
SELECT count(*) FROM hours WHERE snowflake_between(id, '2026-05-01 05:00+00', '2026-05-01 05:00+00');
SELECT count(*) FROM hours WHERE snowflake_between(id, '2026-05-01 05:00:00.0009+00', 'infinity');
SELECT count(*) FROM hours WHERE snowflake_between(id, '-infinity', '2026-05-01 05:00+00');
SELECT count(*) FROM hours WHERE snowflake_between(id, '-infinity', 'infinity');
SELECT count(*) FROM hours WHERE snowflake_between(id, '1970-01-01+00', '2200-01-01+00');
SELECT count(*) FROM hours WHERE snowflake_between(id, '2200-01-01+00', 'infinity');
SELECT count(*) FROM hours WHERE id >= snowflake_min('-infinity') AND id <= snowflake_max('infinity');
SELECT count(*) FROM hours WHERE id <= snowflake_max('-infinity');
SELECT count(*) FROM hours WHERE id BETWEEN snowflake_min('2026-05-01 05:00+00') AND snowflake_max('2026-05-01 05:59:59.999+00');
-- Half open, and NULL as its comparisons are.
SELECT snowflake_between(snowflake_min('2026-05-01+00'), '2026-05-01+00', '2026-05-02+00') AS since,
       snowflake_between(snowflake_min('2026-05-02+00'), '2026-05-01+00', '2026-05-02+00') AS until,
       snowflake_between(NULL, now(), now()) AS no_id,
       snowflake_between(1, NULL, '-infinity') AS no_since_but_late,
       snowflake_between(1, '-infinity', NULL) AS no_until;
-- IDs of another epoch.
SELECT snowflake_between(175928847299117063, '2016-04-30+00', '2016-05-01+00', 1420070400000);

-- The planner sees two comparisons: an index condition, and partitions left out.
EXPLAIN (COSTS OFF) SELECT * FROM hours WHERE snowflake_between(id, '2026-05-01+00', '2026-05-02+00');
EXPLAIN (COSTS OFF) SELECT * FROM hours WHERE snowflake_between(id, now() - interval '1 day', now());
EXPLAIN (COSTS OFF) SELECT * FROM hours WHERE id >= snowflake_min(now() - interval '1 day');
CREATE TABLE months (id bigint PRIMARY KEY) PARTITION BY RANGE (id);
CREATE TABLE months_05 PARTITION OF months
    FOR VALUES FROM (snowflake_min('2026-05-01+00')) TO (snowflake_min('2026-06-01+00'));
CREATE TABLE months_06 PARTITION OF months
    FOR VALUES FROM (snowflake_min('2026-06-01+00')) TO (snowflake_min('2026-07-01+00'));
EXPLAIN (COSTS OFF) SELECT * FROM months WHERE snowflake_between(id, '2026-06-10+00', '2026-06-20+00');
