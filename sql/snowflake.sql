-- The part of the extension that is plain SQL, and a comment on every object.
--
-- CREATE EXTENSION runs this with the target schema first in the search_path. Function bodies are parsed here and
-- now, so nothing that a caller's search_path finds can take the place of what they name.

-- The sequence of snowflake_nextval(). Its owner is whoever creates the extension and not the superuser that a
-- trusted extension's script runs as: a database owner may then dump and restore it.
CREATE SEQUENCE snowflake_id_seq;
ALTER SEQUENCE snowflake_id_seq OWNER TO @extowner@;
GRANT USAGE ON SEQUENCE snowflake_id_seq TO PUBLIC;
SELECT pg_catalog.pg_extension_config_dump('snowflake_id_seq', '');

CREATE FUNCTION snowflake_nextval() RETURNS bigint
LANGUAGE sql VOLATILE PARALLEL UNSAFE
RETURN snowflake_nextval('snowflake_id_seq'::pg_catalog.regclass);

-- Not STRICT: the planner would not inline a strict AND, and so would use no index.
CREATE FUNCTION snowflake_between(
    id bigint, since timestamptz, until timestamptz, epoch bigint DEFAULT 1288834974657
) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN id >= snowflake_min(since, epoch) AND id < snowflake_min(until, epoch);

CREATE TYPE snowflake_decoded AS (
    id bigint,
    created_at timestamptz,
    timestamp_ms bigint,
    node integer,
    datacenter integer,
    worker integer,
    sequence integer
);

-- A type of its own, one expression, and not STRICT: the planner inlines it, and of (snowflake_decode(id)).node or
-- (snowflake_decode(id)).* leaves no more than the decoders that are asked for.
CREATE FUNCTION snowflake_decode(id bigint, epoch bigint DEFAULT 1288834974657) RETURNS snowflake_decoded
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN epoch IS NOT NULL THEN ROW(
    id,
    snowflake_timestamp(id, epoch),
    snowflake_timestamp_ms(id, epoch),
    snowflake_node(id),
    snowflake_datacenter(id),
    snowflake_worker(id),
    snowflake_sequence(id)
)::snowflake_decoded END;

COMMENT ON SEQUENCE snowflake_id_seq IS
'The sequence of snowflake_nextval(): one line of IDs for the whole database. last_value is the last ID issued.';

COMMENT ON FUNCTION snowflake_nextval(regclass) IS
'The next Snowflake ID of a sequence, for a column default. Unique for one sequence on one node, increasing, with the time of the call in it. Needs USAGE or UPDATE on the sequence (42501), which must be a bigint sequence with full MAXVALUE (2200H) and INCREMENT 1 to 2048 (55000). Fails in a read-only transaction and on a standby (25006), and when the sequence is further ahead of the clock than snowflake.max_clock_skew (55000).';

COMMENT ON FUNCTION snowflake_nextval() IS
'The next Snowflake ID of the extension''s own sequence, snowflake_id_seq: one line of IDs for the whole database, which every role may use. Errors as snowflake_nextval(regclass).';

COMMENT ON FUNCTION snowflake_currval(regclass) IS
'The last Snowflake ID that this session got from a sequence by snowflake_nextval; an error before the first (55000). Needs SELECT or USAGE on the sequence (42501). Rolled back or not, the ID stays. lastval() and DISCARD SEQUENCES do not know of it.';

COMMENT ON FUNCTION snowflake_generate(bigint, bigint, bigint) IS
'A Snowflake ID of the current millisecond from a counter that the caller owns: seq 0 to 4095, node 0 to 1023 (default: the setting snowflake.node), epoch in Unix milliseconds. Keeps no state: two calls with the same counter in one millisecond give the same ID. Errors: node, then seq out of range (22023), the clock before the epoch or past 41 bits of milliseconds (22008).';

COMMENT ON FUNCTION snowflake_compose(bigint, bigint, bigint, bigint) IS
'The Snowflake ID of any time, for backfill and tests: timestamp_ms and epoch in Unix milliseconds, node 0 to 1023, seq 0 to 4095. Errors: node, then seq out of range (22023), a time before the epoch or past 41 bits of milliseconds (22008).';

COMMENT ON FUNCTION snowflake_compose(timestamptz, bigint, bigint, bigint) IS
'The Snowflake ID of any time, for backfill and tests: ts is rounded down to the millisecond; node 0 to 1023, seq 0 to 4095, epoch in Unix milliseconds. Errors: node, then seq out of range (22023), a time that is infinite, before the epoch or past 41 bits of milliseconds (22008).';

COMMENT ON FUNCTION snowflake_compose_node(bigint, bigint) IS
'The node number, 0 to 1023, of a datacenter and a worker, each 0 to 31 (22023): datacenter * 32 + worker.';

COMMENT ON FUNCTION snowflake_timestamp(bigint, bigint) IS
'When a Snowflake ID was made, exact to the millisecond. epoch in Unix milliseconds. Errors: a negative ID (22023), an epoch with which the time leaves the range of a timestamp (22008).';

COMMENT ON FUNCTION snowflake_timestamp_ms(bigint, bigint) IS
'When a Snowflake ID was made, in Unix milliseconds, as is the epoch. Errors: a negative ID (22023), an epoch with which the sum leaves 64 bits (22008).';

COMMENT ON FUNCTION snowflake_node(bigint) IS
'The node that made a Snowflake ID, 0 to 1023. Error: a negative ID (22023).';

COMMENT ON FUNCTION snowflake_datacenter(bigint) IS
'The upper 5 bits of the node that made a Snowflake ID, 0 to 31. Error: a negative ID (22023).';

COMMENT ON FUNCTION snowflake_worker(bigint) IS
'The lower 5 bits of the node that made a Snowflake ID, 0 to 31. Error: a negative ID (22023).';

COMMENT ON FUNCTION snowflake_sequence(bigint) IS
'The counter of a Snowflake ID, 0 to 4095. Error: a negative ID (22023).';

COMMENT ON TYPE snowflake_decoded IS
'What a Snowflake ID tells: created_at, exact to the millisecond, the same as timestamp_ms in Unix milliseconds; node 0 to 1023, and its halves datacenter and worker, 0 to 31; sequence, the counter, 0 to 4095.';

COMMENT ON FUNCTION snowflake_decode(bigint, bigint) IS
'All that a Snowflake ID tells, as one row; of NULL a row of NULLs. epoch in Unix milliseconds. Errors: a negative ID (22023), an epoch with which the time leaves the range of a timestamp (22008).';

COMMENT ON FUNCTION snowflake_bits(bigint) IS
'The 64 bits of a Snowflake ID, cut by spaces into sign, timestamp, datacenter, worker and sequence. Error: a negative ID (22023).';

COMMENT ON FUNCTION snowflake_min(timestamptz, bigint) IS
'The smallest ID of a millisecond, as a bound of a query: id >= snowflake_min(since). Never fails: a time before the epoch gives 0, one past the end or infinity the largest bigint. epoch in Unix milliseconds.';

COMMENT ON FUNCTION snowflake_max(timestamptz, bigint) IS
'The largest ID of a millisecond, as a bound of a query: id <= snowflake_max(until). Never fails: a time before the epoch gives -1, one past the end or infinity the largest bigint. epoch in Unix milliseconds.';

COMMENT ON FUNCTION snowflake_between(bigint, timestamptz, timestamptz, bigint) IS
'Whether an ID was made at or after since and before until, both rounded down to the millisecond. The planner turns it into two comparisons, which use an index on id and prune partitions. epoch in Unix milliseconds. Never fails; NULL as its comparisons are.';

COMMENT ON FUNCTION snowflake_current_node() IS
'The node number of the IDs that this session makes now: the setting snowflake.node, 0 to 1023.';
