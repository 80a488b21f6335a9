-- Rights, settings, and errors that leave everything in order.
CREATE ROLE regress_nobody;
CREATE ROLE regress_user;
CREATE ROLE regress_reader;
CREATE SEQUENCE guarded;
GRANT USAGE ON SEQUENCE guarded TO regress_user;
GRANT SELECT ON SEQUENCE guarded TO regress_reader;
GRANT CREATE ON SCHEMA public TO regress_nobody;
CREATE TABLE plain (id bigint);
CREATE VIEW glance AS SELECT 1 AS id;
CREATE INDEX plain_id ON plain (id);

-- Rights as nextval and currval have them.
SET ROLE regress_nobody;
SELECT outcome($$SELECT snowflake_nextval('guarded')$$);
SELECT outcome($$SELECT snowflake_currval('guarded')$$);
SELECT snowflake_nextval() > 0 AS everybodys;
SET ROLE regress_reader;
SELECT outcome($$SELECT snowflake_nextval('guarded')$$);
SELECT outcome($$SELECT snowflake_currval('guarded')$$);
SET ROLE regress_user;
SELECT snowflake_nextval('guarded') > 0 AS allowed, snowflake_currval('guarded') > 0 AS current;
SET ROLE regress_reader;
SELECT snowflake_currval('guarded') > 0 AS current;
RESET ROLE;

-- What takes effect between two calls of one transaction.
BEGIN;
SET LOCAL ROLE regress_user;
SELECT snowflake_nextval('guarded') > 0 AS allowed;
SAVEPOINT a;
SET LOCAL ROLE regress_nobody;
SELECT snowflake_nextval('guarded');
ROLLBACK TO a;
SELECT snowflake_nextval('guarded') > 0 AS allowed;
RESET ROLE;
REVOKE USAGE ON SEQUENCE guarded FROM regress_user;
SET LOCAL ROLE regress_user;
SAVEPOINT b;
SELECT snowflake_nextval('guarded');
ROLLBACK TO b;
RESET ROLE;
SELECT snowflake_nextval('guarded') > 0 AS allowed;
SAVEPOINT c;
SET TRANSACTION READ ONLY;
SELECT snowflake_nextval('guarded');
ROLLBACK TO c;
SELECT snowflake_nextval('guarded') > 0 AS allowed;
DROP SEQUENCE guarded;
SELECT snowflake_nextval('guarded');
ROLLBACK;
SET ROLE regress_user;
SELECT snowflake_nextval('guarded') > 0 AS the_rollback_restored_the_right;
RESET ROLE;

-- The owner of the database is a member of pg_database_owner.
CREATE SEQUENCE owners;
GRANT USAGE ON SEQUENCE owners TO pg_database_owner;
BEGIN;
SELECT format('ALTER DATABASE %I OWNER TO regress_user', current_database()) \gexec
SET LOCAL ROLE regress_user;
SELECT snowflake_nextval('owners') > 0 AS allowed;
RESET ROLE;
SELECT format('ALTER DATABASE %I OWNER TO regress_reader', current_database()) \gexec
SET LOCAL ROLE regress_user;
SELECT snowflake_nextval('owners');
ROLLBACK;
DROP SEQUENCE owners;

-- The lock is the top transaction's: a rollback to a savepoint does not release what the session remembers to hold.
BEGIN;
SAVEPOINT a;
SELECT snowflake_nextval('guarded') > 0 AS called;
ROLLBACK TO a;
SELECT snowflake_nextval('guarded') > 0 AS called;
SELECT mode FROM pg_locks WHERE relation = 'guarded'::regclass AND pid = pg_backend_pid();
COMMIT;

-- Arguments of another kind, and a sequence that is gone.
SELECT arg, outcome(format('SELECT snowflake_nextval(%L)', arg)), outcome(format('SELECT snowflake_currval(%L)', arg))
FROM unnest(ARRAY['plain', 'glance', 'plain_id', 'no_such']) arg;
SELECT outcome('SELECT snowflake_nextval(4294967295::oid)'), outcome('SELECT snowflake_currval(0::oid)');
CREATE SEQUENCE gone;
CREATE FUNCTION drop_between() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    seq regclass := 'gone';
BEGIN
    PERFORM snowflake_nextval(seq);
    DROP SEQUENCE gone;
    RETURN snowflake_nextval(seq);
END $$;
SELECT regexp_replace(outcome('SELECT drop_between()'), 'OID \d+', 'OID n');

-- Read-only transactions, and parallel mode: a function that is wrongly labelled safe.
BEGIN READ ONLY;
SELECT snowflake_nextval('guarded');
ROLLBACK;
\echo :LAST_ERROR_SQLSTATE
SELECT snowflake_nextval('guarded') > 0 AS next_call_works;

CREATE FUNCTION mislabelled() RETURNS bigint LANGUAGE plpgsql PARALLEL SAFE AS
    $$ BEGIN RETURN snowflake_nextval('guarded'); END $$;
-- Its name up to PostgreSQL 15, and from 16 on.
SELECT set_config(name, 'on', false) FROM pg_settings WHERE name IN ('force_parallel_mode', 'debug_parallel_query');
SELECT outcome('SELECT mislabelled()');
SELECT set_config(name, 'off', false) FROM pg_settings WHERE name IN ('force_parallel_mode', 'debug_parallel_query');

-- Each error at top level, and after it the session works and holds nothing.
CREATE EXTENSION pg_buffercache;
CREATE SEQUENCE integers AS integer;
CREATE SEQUENCE ahead;
SELECT setval('ahead', 9223372036854775807);
SELECT snowflake_nextval('plain');
\echo :LAST_ERROR_SQLSTATE
SELECT snowflake_nextval(4294967295::oid);
\echo :LAST_ERROR_SQLSTATE
\set VERBOSITY terse
DO $$ BEGIN PERFORM snowflake_nextval('integers'); END $$;
\set VERBOSITY default
\echo :LAST_ERROR_SQLSTATE
\set VERBOSITY sqlstate
SELECT snowflake_nextval('ahead');
SET ROLE regress_nobody;
SELECT snowflake_nextval('guarded');
RESET ROLE;
\set VERBOSITY default
SELECT outcome(statement) ~ '^2200H|^42809|^55000|^22023' AS refused, count(*)
FROM unnest(ARRAY['SELECT snowflake_nextval(''integers'')', 'SELECT snowflake_nextval(''plain'')',
                  'SELECT snowflake_nextval(''ahead'')', 'SELECT snowflake_node(-1)']) statement,
     generate_series(1, 1000)
GROUP BY 1;
SELECT snowflake_nextval('guarded') > 0 AS next_call_works;
SELECT sum(pinning_backends) AS pins FROM pg_buffercache
WHERE relfilenode IN (SELECT pg_relation_filenode(oid) FROM pg_class WHERE relkind = 'S');
SELECT count(*) AS locks FROM pg_locks WHERE relation IN (SELECT oid FROM pg_class WHERE relkind = 'S');

-- Settings: who may, which values, and no other names.
SELECT name, setting, unit, context, min_val, max_val FROM pg_settings WHERE name LIKE 'snowflake.%' ORDER BY name;
SET snowflake.node = 1024;
SET snowflake.node = -1;
SET snowflake.nod = 5;
SELECT outcome('SET snowflake.max_clock_skew = -2') LIKE '22023: -2 ms is outside the valid range%' AS refused;
SET ROLE regress_nobody;
SET snowflake.node = 7;
SET snowflake.max_clock_skew = 0;
SELECT snowflake_current_node();
RESET ROLE;
SET snowflake.node = 7;
SELECT snowflake_current_node(), snowflake_node(snowflake_generate(0)), snowflake_node(snowflake_nextval('guarded'));
RESET snowflake.node;

-- Objects of the same names that a caller's search_path finds first are ignored.
CREATE SCHEMA trap;
CREATE FUNCTION trap.snowflake_min(timestamptz, bigint DEFAULT 0) RETURNS bigint LANGUAGE sql IMMUTABLE AS 'SELECT 0';
CREATE FUNCTION trap.snowflake_timestamp(bigint, bigint) RETURNS timestamptz LANGUAGE sql IMMUTABLE AS $$SELECT 'epoch'::timestamptz$$;
CREATE FUNCTION trap.snowflake_current_node() RETURNS bigint LANGUAGE sql AS 'SELECT 99';
CREATE FUNCTION trap.snowflake_nextval(regclass) RETURNS bigint LANGUAGE sql AS 'SELECT -1';
CREATE SEQUENCE trap.snowflake_id_seq;
CREATE FUNCTION trap.ge(bigint, bigint) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT false';
CREATE OPERATOR trap.>= (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = trap.ge);
CREATE OPERATOR trap.< (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = trap.ge);
SET search_path = trap, public, pg_catalog;
SELECT public.snowflake_between(4194439168, '2010-11-04+00', '2010-11-05+00') AS between_holds,
       (public.snowflake_decode(4194439168)).created_at = '2010-11-04 01:42:55.657+00' AS decode_holds,
       public.snowflake_node(public.snowflake_generate(0)) AS node,
       public.snowflake_nextval() > 0 AS nextval_holds,
       NOT (SELECT is_called FROM trap.snowflake_id_seq) AS trap_untouched;
RESET search_path;

-- USAGE alone harms nobody: whatever it calls, the sequence stays at the clock and others get their IDs.
GRANT USAGE ON SEQUENCE guarded TO regress_user;
SET ROLE regress_user;
SELECT outcome($$SELECT setval('guarded', 9223372036854775807)$$);
SELECT outcome($$SELECT setval('guarded', 1, false)$$);
SELECT outcome($$ALTER SEQUENCE guarded RESTART$$);
SELECT outcome($$ALTER SEQUENCE guarded INCREMENT 2048$$);
SELECT outcome($$DROP SEQUENCE guarded$$);
SELECT count(nextval('guarded')) FROM generate_series(1, 300000);
SELECT count(nextval('snowflake_id_seq')) FROM generate_series(1, 300000);
DISCARD SEQUENCES;
SELECT count(snowflake_nextval('guarded')) FROM generate_series(1, 20000);
RESET ROLE;
SELECT clock_timestamp() AS before \gset
SELECT snowflake_timestamp(snowflake_nextval('guarded')) <= clock_timestamp() + interval '1 ms' AS at_the_clock,
       snowflake_timestamp(snowflake_nextval()) <= clock_timestamp() + interval '1 ms' AS own_too,
       snowflake_node(snowflake_nextval('guarded')) AS node;

REVOKE CREATE ON SCHEMA public FROM regress_nobody;
DROP SEQUENCE guarded;
DROP ROLE regress_nobody, regress_user, regress_reader;
