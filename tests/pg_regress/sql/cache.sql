-- CACHE n: a session reserves several IDs at once, in one transaction, while nothing changes that they depend on.

-- Calls once, and tells how many IDs are then left in reserve.
CREATE FUNCTION reserve_left(seq regclass) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    id bigint := snowflake_nextval(seq);
    reserved bigint;
BEGIN
    EXECUTE format('SELECT (last_value - %s) / (SELECT seqincrement FROM pg_sequence WHERE seqrelid = %s) FROM %s',
        id, seq::oid, seq) INTO reserved;
    INSERT INTO cache_issued (id) VALUES (id);
    RETURN reserved;
END $$;
CREATE TABLE cache_issued (n serial, id bigint PRIMARY KEY);
CREATE TABLE cache_owner (id bigint);
CREATE SEQUENCE c CACHE 10 OWNED BY cache_owner.id;

CREATE ROLE regress_group;
CREATE ROLE regress_member IN ROLE regress_group;
CREATE ROLE regress_granted;
CREATE ROLE regress_super SUPERUSER;
CREATE ROLE regress_outsider;
GRANT USAGE ON SEQUENCE c TO regress_group, regress_granted;
GRANT SELECT ON SEQUENCE c TO PUBLIC;
GRANT INSERT ON cache_issued TO PUBLIC;
GRANT USAGE ON SEQUENCE cache_issued_n_seq TO PUBLIC;

-- Ahead of the clock no reserve runs out of its time: what ends one below is the change alone.
CREATE FUNCTION set_ahead() RETURNS boolean LANGUAGE sql AS
    $$ SELECT setval('c', snowflake_min(clock_timestamp() + interval '1 h')) > 0 $$;
SELECT set_ahead();

-- One ID at a transaction's first call, then twice as many each time, up to CACHE.
BEGIN;
SELECT reserve_left('c') FROM generate_series(1, 27);
COMMIT;
BEGIN;
SELECT reserve_left('c') FROM generate_series(1, 4);
COMMIT;
SELECT reserve_left('c');
SELECT reserve_left('c');

-- INCREMENT n: the IDs of a reserve are n apart, and stay in their millisecond.
ALTER SEQUENCE c INCREMENT 1000 CACHE 100;
SELECT set_ahead();
SELECT reserve_left('c') FROM generate_series(1, 7);
SELECT bool_and(snowflake_sequence(id) BETWEEN 1000 AND 3096) FROM (SELECT id FROM cache_issued ORDER BY n DESC LIMIT 7) last;
ALTER SEQUENCE c INCREMENT 2048;
SELECT set_ahead();
SELECT reserve_left('c') FROM generate_series(1, 3);
ALTER SEQUENCE c INCREMENT 1 CACHE 10;
SELECT set_ahead();

-- Each change between two calls of one transaction takes effect at once, with IDs in reserve. After two calls one is left.
BEGIN;
SET LOCAL ROLE regress_granted;
SELECT reserve_left('c') FROM generate_series(1, 2);
SAVEPOINT a;
SET LOCAL ROLE regress_outsider;
SELECT snowflake_nextval('c');
ROLLBACK TO a;
RESET ROLE;
CREATE FUNCTION definer() RETURNS bigint LANGUAGE sql SECURITY DEFINER AS $$ SELECT snowflake_nextval('c') $$;
ALTER FUNCTION definer OWNER TO regress_outsider;
SET LOCAL ROLE regress_granted;
SELECT reserve_left('c') FROM generate_series(1, 2);
SELECT definer();
ROLLBACK;

BEGIN;
SET LOCAL ROLE regress_granted;
SELECT reserve_left('c') FROM generate_series(1, 2);
RESET ROLE;
REVOKE USAGE ON SEQUENCE c FROM regress_granted;
SET LOCAL ROLE regress_granted;
SELECT snowflake_nextval('c');
ROLLBACK;

BEGIN;
SET LOCAL ROLE regress_member;
SELECT reserve_left('c') FROM generate_series(1, 2);
RESET ROLE;
REVOKE regress_group FROM regress_member;
SET LOCAL ROLE regress_member;
SELECT snowflake_nextval('c');
ROLLBACK;

BEGIN;
SET LOCAL ROLE regress_super;
SELECT reserve_left('c') FROM generate_series(1, 2);
RESET ROLE;
ALTER ROLE regress_super NOSUPERUSER;
SET LOCAL ROLE regress_super;
SELECT snowflake_nextval('c');
ROLLBACK;

BEGIN;
SELECT reserve_left('c') FROM generate_series(1, 2);
SET TRANSACTION READ ONLY;
SELECT snowflake_nextval('c');
ROLLBACK;

BEGIN;
SELECT reserve_left('c') FROM generate_series(1, 2);
SET LOCAL snowflake.node = 3;
SELECT snowflake_node(snowflake_nextval('c'));
RESET snowflake.node;
SELECT snowflake_node(snowflake_nextval('c'));
COMMIT;

BEGIN;
SELECT reserve_left('c') FROM generate_series(1, 2);
ALTER SEQUENCE c CACHE 1;
SELECT reserve_left('c') FROM generate_series(1, 3);
ROLLBACK;

BEGIN;
SELECT reserve_left('c') FROM generate_series(1, 2);
ALTER SEQUENCE c MAXVALUE 9223372036854775806 INCREMENT 2;
SELECT snowflake_currval('c') AS before \gset
SELECT snowflake_nextval('c') - :before >= 3 AS past_the_reserve;
ROLLBACK;

-- After RESTART and TRUNCATE the sequence is at the clock again.
CREATE FUNCTION is_ahead() RETURNS boolean LANGUAGE sql AS
    $$ SELECT snowflake_timestamp(snowflake_nextval('c')) > clock_timestamp() + interval '1 min' $$;
BEGIN;
SELECT reserve_left('c') FROM generate_series(1, 2);
ALTER SEQUENCE c RESTART;
SELECT is_ahead();
ROLLBACK;
BEGIN;
SELECT reserve_left('c') FROM generate_series(1, 2);
TRUNCATE cache_owner RESTART IDENTITY;
SELECT is_ahead();
ROLLBACK;

-- A rollback to a savepoint takes the change back, and so what was reserved after it.
BEGIN;
SELECT reserve_left('c') FROM generate_series(1, 2);
SAVEPOINT a;
ALTER SEQUENCE c RESTART;
SELECT is_ahead() FROM generate_series(1, 2);
ROLLBACK TO a;
SELECT is_ahead();
SELECT reserve_left('c') >= 0 AS works;
COMMIT;

-- DROP, of the sequence and of one that took its name.
CREATE FUNCTION drop_with_reserve() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    seq regclass := 'c';
BEGIN
    PERFORM reserve_left(seq), reserve_left(seq);
    DROP SEQUENCE c;
    RETURN snowflake_nextval(seq);
END $$;
SELECT regexp_replace(outcome('SELECT drop_with_reserve()'), 'OID \d+', 'OID n');
BEGIN;
SELECT reserve_left('c') FROM generate_series(1, 2);
DROP SEQUENCE c;
CREATE SEQUENCE c;
SELECT is_ahead(), snowflake_sequence(snowflake_currval('c'));
ROLLBACK;

-- A rollback, and an error, leave nothing in reserve.
BEGIN;
SELECT reserve_left('c') FROM generate_series(1, 2);
ROLLBACK;
SELECT reserve_left('c');
BEGIN;
SELECT reserve_left('c') FROM generate_series(1, 2);
SELECT snowflake_nextval('cache_owner');
ROLLBACK;
SELECT reserve_left('c');

-- currval is the last ID that was handed out, not the last that is reserved.
BEGIN;
SELECT reserve_left('c') FROM generate_series(1, 5);
SELECT snowflake_currval('c') = max(id) AS handed_out, snowflake_currval('c') < (SELECT last_value FROM c) AS not_reserved
FROM cache_issued;
COMMIT;

-- At the clock an ID is handed out in its millisecond only; other sessions' IDs, and setval, are waited for no longer.
SELECT setval('c', 1) > 0 AS set;
ALTER SEQUENCE c CACHE 4096;
BEGIN;
SELECT count(reserve_left('c')) FROM generate_series(1, 100);
SELECT pg_sleep(0.003);
SELECT clock_timestamp() AS before \gset
SELECT snowflake_timestamp(snowflake_nextval('c')) BETWEEN
    date_trunc('milliseconds', :'before'::timestamptz) AND clock_timestamp() + interval '1 ms' AS honest;
SELECT count(reserve_left('c')) FROM generate_series(1, 100);
SELECT setval('c', snowflake_min(clock_timestamp() + interval '1 min')) AS ahead \gset
SELECT pg_sleep(0.003);
SELECT snowflake_nextval('c') > :ahead AS setval_is_seen;
COMMIT;

SELECT setval('c', 1) > 0 AS set;
DO $$
BEGIN
    FOR i IN 1..200 LOOP
        PERFORM reserve_left('c') FROM generate_series(1, i % 9);
        PERFORM setval('c', 1, false);
        PERFORM reserve_left('c') FROM generate_series(1, i % 7);
        PERFORM setval('c', snowflake_generate(9, 77));
        ALTER SEQUENCE c RESTART;
        PERFORM reserve_left('c') FROM generate_series(1, i % 5);
        PERFORM nextval('c');
        PERFORM set_config('snowflake.node', (i % 3 + 1)::text, true);
    END LOOP;
END $$;
-- Its primary key found no repeat.
SELECT count(*) > 1800 AS ids FROM cache_issued;

DROP TABLE cache_owner, cache_issued CASCADE;
DROP FUNCTION reserve_left, set_ahead, is_ahead, drop_with_reserve;
DROP ROLE regress_group, regress_member, regress_granted, regress_super, regress_outsider;

-- Another CACHE is used at once: 64 at the most are reserved, of which 27 are left.
CREATE SEQUENCE resized;
DO 'BEGIN PERFORM setval(''resized'', snowflake_min(clock_timestamp() + interval ''1 h'')); END';
SELECT count(snowflake_nextval('resized')) FROM generate_series(1, 3);
ALTER SEQUENCE resized CACHE 64;
SELECT count(snowflake_nextval('resized')) FROM generate_series(1, 100);
SELECT last_value - snowflake_currval('resized') AS reserved FROM resized;
DROP SEQUENCE resized;
