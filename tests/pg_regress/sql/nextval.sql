-- The sequence-backed generator in one session.
CREATE SEQUENCE s;
-- Every ID that the tests below got, in order.
CREATE TABLE issued (n serial, id bigint);
CREATE FUNCTION keep(calls int) RETURNS void LANGUAGE sql AS
    $$ INSERT INTO issued (id) SELECT snowflake_nextval('s') FROM generate_series(1, calls) $$;
-- No repeat, and each greater than all before.
CREATE VIEW verdict AS SELECT count(*) AS ids, count(DISTINCT id) AS different, bool_and(later) AS increasing
FROM (SELECT id, id > lag(id, 1, 0) OVER (ORDER BY n) AS later FROM issued) i;

-- An ordinary new sequence works as it is: its first counters are 1, 2, 3, its node the setting's.
SELECT snowflake_sequence(id) AS counter, snowflake_node(id) AS node FROM
    (SELECT snowflake_nextval('s') AS id FROM generate_series(1, 3)) ids;
-- last_value is the last ID, whole. Its time is the call's.
SELECT last_value = snowflake_currval('s') AS whole, last_value % 4096 AS counter, is_called FROM s;
SELECT clock_timestamp() AS before \gset
SELECT snowflake_timestamp(snowflake_nextval('s')) BETWEEN
    date_trunc('milliseconds', :'before'::timestamptz) AND clock_timestamp() + interval '1 ms' AS honest;

-- Many in one transaction: no repeat, and time moves on inside it.
BEGIN;
SELECT keep(100000);
SELECT pg_sleep(0.01);
SELECT keep(10);
COMMIT;
SELECT * FROM verdict;
SELECT count(DISTINCT snowflake_timestamp(id)) > 20 AS time_moves FROM issued;

-- setval, RESTART, TRUNCATE and ALTER in a tight loop, back, forth and to where it is.
CREATE TABLE owner (id bigint);
ALTER SEQUENCE s OWNED BY owner.id;
DO $$
BEGIN
    FOR i IN 1..40 LOOP
        PERFORM setval('s', 1, false);                          PERFORM keep(2);
        PERFORM setval('s', 5);                                 PERFORM keep(2);
        ALTER SEQUENCE s RESTART;                               PERFORM keep(2);
        TRUNCATE owner RESTART IDENTITY;                        PERFORM keep(2);
        ALTER SEQUENCE s INCREMENT 50;                          PERFORM keep(1);
        ALTER SEQUENCE s INCREMENT 1;                           PERFORM keep(1);
        PERFORM setval('s', (SELECT max(id) FROM issued));      PERFORM keep(2);
        PERFORM setval('s', (SELECT max(id) FROM issued), false);    PERFORM keep(2);
        PERFORM setval('s', (SELECT max(id) + 1 FROM issued), false); PERFORM keep(2);
        -- Another node's ID of this very millisecond.
        PERFORM setval('s', snowflake_generate(9, 77));         PERFORM keep(2);
        PERFORM nextval('s');                                   PERFORM keep(2);
    END LOOP;
END $$;
SELECT * FROM verdict;

-- setval to the largest ID at counter 4095, which PostgreSQL's own arithmetic carries into the node.
DO $$
DECLARE
    largest bigint := snowflake_compose(clock_timestamp(), 1, 4095);
BEGIN
    PERFORM setval('s', largest + 1, false);
    INSERT INTO issued (id) VALUES (largest);
    PERFORM keep(3);
    PERFORM setval('s', snowflake_compose(clock_timestamp(), 1, 4095));
    PERFORM keep(3);
END $$;
SELECT * FROM verdict;
-- nextval carries past counter 4095 into the node: the next ID has the right node again.
SELECT setval('s', snowflake_compose(clock_timestamp(), 1, 4095)) > 0 AS set;
SELECT snowflake_node(nextval('s')) AS carried, snowflake_node(snowflake_nextval('s')) AS node;

-- A change of node in the middle of a transaction takes effect at once.
BEGIN;
SET LOCAL snowflake.node = 5;
SELECT snowflake_node(snowflake_nextval('s'));
SET LOCAL snowflake.node = 1023;
SELECT snowflake_node(snowflake_nextval('s')), snowflake_current_node();
COMMIT;
SELECT snowflake_node(snowflake_nextval('s')), snowflake_current_node();
DO $$
BEGIN
    FOR i IN 1..50 LOOP
        PERFORM set_config('snowflake.node', (i % 2 + 1)::text, true);
        PERFORM keep(3);
    END LOOP;
END $$;
SELECT ids = different AS new FROM verdict;

-- What PostgreSQL promises of its own nextval, currval, lastval and ALTER still holds on a sequence that we used.
SELECT snowflake_nextval('s') AS ours \gset
SELECT nextval('s') = :ours + 1 AS nextval, currval('s') = :ours + 1 AS currval, lastval() = :ours + 1 AS lastval,
       snowflake_currval('s') = :ours AS ours;
SELECT snowflake_nextval('s') > :ours + 1 AS past_it, lastval() = :ours + 1 AS lastval_is_cores;
ALTER SEQUENCE s INCREMENT 5;
SELECT nextval('s') AS five \gset
SELECT nextval('s') - :five AS increment;
ALTER SEQUENCE s INCREMENT 1 RESTART 7;
SELECT nextval('s'), nextval('s');

-- currval.
CREATE SEQUENCE unused;
SELECT outcome($$SELECT snowflake_currval('unused')$$);
SELECT nextval('unused');
SELECT outcome($$SELECT snowflake_currval('unused')$$);
SELECT snowflake_nextval('unused') = snowflake_currval('unused') AS same;

-- INCREMENT n: a call reserves n counters, and they stay inside their millisecond and node.
CREATE SEQUENCE pooled INCREMENT 50;
SELECT bool_and(snowflake_sequence(id) BETWEEN 50 AND 4046) AS inside,
       min(id - before) >= 50 AS apart
FROM (SELECT id, lag(id) OVER (ORDER BY id) AS before
      FROM (SELECT snowflake_nextval('pooled') AS id FROM generate_series(1, 1000)) i) j;
CREATE SEQUENCE widest INCREMENT 2048;
SELECT count(DISTINCT id), bool_and(snowflake_sequence(id) = 2048) AS inside, count(DISTINCT id >> 22) AS milliseconds
FROM (SELECT snowflake_nextval('widest') AS id FROM generate_series(1, 50)) i;
-- CACHE changes nothing of what an ID is; cache.sql has what it does change.
CREATE SEQUENCE cached CACHE 100;
SELECT count(DISTINCT id) FROM (SELECT snowflake_nextval('cached') AS id FROM generate_series(1, 5000)) i;

-- Sequences that cannot hold an ID, or whose INCREMENT makes no sense, say so at the first call.
CREATE SEQUENCE small AS integer;
CREATE SEQUENCE "Low" MAXVALUE 100 CYCLE;
CREATE SEQUENCE backwards INCREMENT -1;
CREATE SEQUENCE wide INCREMENT 2049;
CREATE SEQUENCE wider INCREMENT 4294967296;
SELECT seq, outcome(format('SELECT snowflake_nextval(%L)', seq))
    ~ '^2200H: nextval: reached maximum value of sequence "(small|Low)" \((2147483647|100)\)\n  The next Snowflake ID is \d{19}\. Use ALTER SEQUENCE public\.(small|"Low") AS bigint NO MAXVALUE NO CYCLE; a column for its IDs must be bigint\.$' AS told
FROM unnest(ARRAY['small', '"Low"']) seq;
SELECT seq, outcome(format('SELECT snowflake_nextval(%L)', seq)) FROM unnest(ARRAY['backwards', 'wide', 'wider']) seq;
-- Nothing was taken from them, and the command in the hint mends them.
SELECT last_value, is_called FROM "Low";
ALTER SEQUENCE small AS bigint NO MAXVALUE NO CYCLE;
ALTER SEQUENCE "Low" AS bigint NO MAXVALUE NO CYCLE;
ALTER SEQUENCE wide INCREMENT 1 NO MAXVALUE;
ALTER SEQUENCE backwards INCREMENT 1 NO MAXVALUE MINVALUE -5;
SELECT seq, snowflake_node(snowflake_nextval(seq)) FROM unnest(ARRAY['small', '"Low"', 'wide', 'backwards']::regclass[]) seq;

-- A state at the end of the range is an error that says what to do; never a wrap, never a long silence.
SELECT setval('s', 9223372036854775807);
SELECT outcome($$SELECT snowflake_nextval('s')$$);
SET snowflake.max_clock_skew = -1;
SELECT outcome($$SELECT snowflake_nextval('s')$$);
-- Ahead of the clock by more than is allowed. How far changes by the millisecond.
RESET snowflake.max_clock_skew;
SELECT setval('s', snowflake_min(clock_timestamp() + interval '3 h')) > 0 AS ahead;
SELECT regexp_replace(outcome($$SELECT snowflake_nextval('s')$$), '(10800|10799)\d\d\d', '(3 hours)');
SET snowflake.max_clock_skew = '4h';
SELECT snowflake_timestamp(snowflake_nextval('s')) > clock_timestamp() + interval '2 h' AS allowed;
RESET snowflake.max_clock_skew;
SELECT setval('s', (SELECT max(id) FROM issued)) > 0 AS set_to_the_largest;
SELECT keep(5);
SELECT ids = different AS new FROM verdict;

-- Each way of inserting gives each row its own ID.
CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval('s'), item text UNIQUE);
CREATE TABLE by_node (id bigint DEFAULT snowflake_nextval('s'), region int) PARTITION BY LIST (region);
CREATE TABLE by_node_1 PARTITION OF by_node FOR VALUES IN (1);
CREATE TABLE by_node_2 PARTITION OF by_node FOR VALUES IN (2);
INSERT INTO orders (item) VALUES ('a'), ('b'), ('c');
INSERT INTO orders (item) SELECT 'select ' || n FROM generate_series(1, 1000) n;
COPY orders (item) FROM stdin;
copy 1
copy 2
copy 3
\.
INSERT INTO orders (item) VALUES ('a'), ('d') ON CONFLICT (item) DO NOTHING;
INSERT INTO orders (item) VALUES ('a') ON CONFLICT (item) DO UPDATE SET id = EXCLUDED.id;
INSERT INTO orders (item) VALUES ('returned') RETURNING id = snowflake_currval('s') AS returned;
PREPARE insertion AS INSERT INTO orders (item) VALUES ($1);
EXECUTE insertion('prepared 1');
EXECUTE insertion('prepared 2');
DO $$
BEGIN
    FOR i IN 1..100 LOOP
        INSERT INTO orders (item) VALUES ('plpgsql ' || i);
    END LOOP;
END $$;
INSERT INTO by_node (region) SELECT n % 2 + 1 FROM generate_series(1, 100) n;
ALTER TABLE issued ADD COLUMN added bigint DEFAULT snowflake_nextval('s');
BEGIN;
DECLARE c CURSOR FOR SELECT snowflake_nextval('s') AS id FROM generate_series(1, 3);
FETCH 1 FROM c \gset
ROLLBACK;
SELECT count(*), count(DISTINCT id) FROM
    (SELECT id FROM orders UNION ALL SELECT id FROM by_node UNION ALL SELECT added FROM issued) rows;
SELECT count(*) = count(DISTINCT added) AS added FROM issued;
-- Across tables in the order of insertion.
SELECT max(o.id) < min(b.id) AS sorted FROM orders o, by_node b;

-- The database's own line of IDs.
SELECT snowflake_nextval() < snowflake_nextval() AS increasing;
SELECT snowflake_currval('snowflake_id_seq') = last_value AS same FROM snowflake_id_seq;
CREATE TABLE own (id bigint PRIMARY KEY DEFAULT snowflake_nextval());
INSERT INTO own SELECT FROM generate_series(1, 1000);
SELECT count(DISTINCT id) FROM own;
-- It follows its schema.
CREATE SCHEMA elsewhere;
ALTER EXTENSION snowflake SET SCHEMA elsewhere;
INSERT INTO own DEFAULT VALUES;
SELECT elsewhere.snowflake_nextval() > 0 AS moved;
SELECT elsewhere.snowflake_between(5, '-infinity', 'infinity'), (elsewhere.snowflake_decode(4194439168)).node;
ALTER EXTENSION snowflake SET SCHEMA public;

-- A million IDs write at most 1 kB of WAL.
CREATE SEQUENCE quiet;
SELECT snowflake_nextval('quiet') > 0 AS first;
SELECT pg_current_wal_insert_lsn() AS lsn \gset
SELECT count(snowflake_nextval('quiet')) FROM generate_series(1, 1000000);
SELECT pg_current_wal_insert_lsn() - :'lsn'::pg_lsn <= 1024 AS little;

-- Temporary sequences, in read-only transactions too.
CREATE TEMP SEQUENCE temporary;
SELECT count(DISTINCT id) FROM (SELECT snowflake_nextval('temporary') AS id FROM generate_series(1, 10000)) i;
BEGIN READ ONLY;
SELECT snowflake_nextval('temporary') > 0 AS temporary_ones_are_written;
COMMIT;
