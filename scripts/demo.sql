\set QUIET on
\pset pager off
\set ON_ERROR_STOP on
\set ECHO queries
\echo
\echo '--- A table whose key defaults to a Snowflake ID'
CREATE EXTENSION snowflake;
CREATE SEQUENCE orders_id_seq;
CREATE TABLE orders (
    id bigint PRIMARY KEY DEFAULT snowflake_nextval('orders_id_seq'),
    item text UNIQUE
);
\echo
\echo '--- Rows by a few kinds of statement'
INSERT INTO orders (item) VALUES ('tea'), ('coffee') RETURNING id, item;
INSERT INTO orders (item) SELECT 'biscuit ' || n FROM generate_series(1, 100000) n;
INSERT INTO orders (item) VALUES ('tea'), ('milk') ON CONFLICT DO NOTHING RETURNING id, item;
COPY orders (item) FROM stdin;
sugar
lemon
\.
SELECT count(*), count(DISTINCT id), max(snowflake_timestamp(id)) - min(snowflake_timestamp(id)) AS made_within FROM orders;
\echo
\echo '--- When and where was each made?'
SELECT id, item, snowflake_timestamp(id) AS created_at, snowflake_node(id) AS node, snowflake_sequence(id) AS sequence
FROM orders WHERE item IN ('tea', 'coffee', 'milk', 'sugar', 'lemon') ORDER BY id;
\echo
\echo '--- A time range, by the index of the primary key'
ANALYZE orders;
SELECT count(*) FROM orders WHERE snowflake_between(id, now() - interval '1 minute', now() + interval '1 second');
EXPLAIN SELECT * FROM orders WHERE snowflake_between(id, now() - interval '1 day', now() - interval '1 minute');
\echo
\echo '--- A worked example: 1000 ms after the epoch, datacenter 1, worker 1, sequence 0'
SELECT snowflake_compose(1288834975657, snowflake_compose_node(1, 1), 0) AS id;
SELECT * FROM snowflake_decode(4194439168);
SELECT snowflake_bits(4194439168) AS "sign, timestamp, datacenter, worker, sequence";
