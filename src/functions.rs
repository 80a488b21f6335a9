//! The stateless SQL functions: each converts its arguments, calls [`crate::snowflake`], and returns.
//!
//! What each promises its users stands in its `COMMENT ON`, in `sql/snowflake.sql`.

use pgrx::prelude::*;

use crate::error::{Error, OrRaise};
use crate::settings;
use crate::snowflake::{
    compose_node_id, compose_snowflake_id, decode_datacenter_id, decode_node_id,
    decode_sequence_id, decode_timestamp_ms, decode_worker_id, format_bits, generate_snowflake_id,
    largest_id_of, smallest_id_of,
};

/// PostgreSQL's timestamps count from 2000-01-01; this is that day in Unix milliseconds.
pub const POSTGRES_EPOCH_MS: i64 = 946_684_800_000;

#[pg_extern(volatile, parallel_safe, requires = [snowflake_current_node])]
fn snowflake_generate(
    seq: i64,
    node: default!(i64, "snowflake_current_node()"),
    epoch: default!(i64, "1288834974657"),
) -> i64 {
    generate_snowflake_id(seq, node, epoch).or_raise()
}

#[pg_extern(immutable, parallel_safe)]
fn snowflake_compose(
    timestamp_ms: i64,
    node: i64,
    seq: i64,
    epoch: default!(i64, "1288834974657"),
) -> i64 {
    compose_snowflake_id(timestamp_ms, node, seq, epoch).or_raise()
}

#[pg_extern(immutable, parallel_safe, name = "snowflake_compose")]
fn snowflake_compose_timestamptz(
    ts: TimestampWithTimeZone,
    node: i64,
    seq: i64,
    epoch: default!(i64, "1288834974657"),
) -> i64 {
    if ts.is_infinity() || ts.is_neg_infinity() {
        return Err(Error::InfiniteTimestamp).or_raise();
    }
    compose_snowflake_id(unix_millis(ts), node, seq, epoch).or_raise()
}

#[pg_extern(immutable, parallel_safe)]
fn snowflake_compose_node(datacenter: i64, worker: i64) -> i32 {
    sql_integer(compose_node_id(datacenter, worker).or_raise())
}

#[pg_extern(immutable, parallel_safe)]
fn snowflake_timestamp(id: i64, epoch: default!(i64, "1288834974657")) -> TimestampWithTimeZone {
    decode_timestamp_ms(id, epoch).and_then(timestamptz).or_raise()
}

#[pg_extern(immutable, parallel_safe)]
fn snowflake_timestamp_ms(id: i64, epoch: default!(i64, "1288834974657")) -> i64 {
    decode_timestamp_ms(id, epoch).or_raise()
}

#[pg_extern(immutable, parallel_safe)]
fn snowflake_node(id: i64) -> i32 {
    sql_integer(decode_node_id(id).or_raise())
}

#[pg_extern(immutable, parallel_safe)]
fn snowflake_datacenter(id: i64) -> i32 {
    sql_integer(decode_datacenter_id(id).or_raise())
}

#[pg_extern(immutable, parallel_safe)]
fn snowflake_worker(id: i64) -> i32 {
    sql_integer(decode_worker_id(id).or_raise())
}

#[pg_extern(immutable, parallel_safe)]
fn snowflake_sequence(id: i64) -> i32 {
    sql_integer(decode_sequence_id(id).or_raise())
}

#[pg_extern(immutable, parallel_safe)]
fn snowflake_bits(id: i64) -> String {
    format_bits(id).or_raise()
}

#[pg_extern(immutable, parallel_safe)]
fn snowflake_min(ts: TimestampWithTimeZone, epoch: default!(i64, "1288834974657")) -> i64 {
    if ts.is_infinity() {
        i64::MAX
    } else if ts.is_neg_infinity() {
        0
    } else {
        smallest_id_of(unix_millis(ts), epoch)
    }
}

#[pg_extern(immutable, parallel_safe)]
fn snowflake_max(ts: TimestampWithTimeZone, epoch: default!(i64, "1288834974657")) -> i64 {
    if ts.is_infinity() {
        i64::MAX
    } else if ts.is_neg_infinity() {
        -1
    } else {
        largest_id_of(unix_millis(ts), epoch)
    }
}

#[pg_extern(stable, parallel_safe)]
fn snowflake_current_node() -> i32 {
    sql_integer(settings::node())
}

/// A finite timestamp in Unix milliseconds, rounded down.
fn unix_millis(ts: TimestampWithTimeZone) -> i64 {
    i64::from(ts).div_euclid(1_000) + POSTGRES_EPOCH_MS
}

/// Unix milliseconds as a timestamp.
fn timestamptz(timestamp_ms: i64) -> Result<TimestampWithTimeZone, Error> {
    timestamp_ms
        .checked_sub(POSTGRES_EPOCH_MS)
        .and_then(|ms| ms.checked_mul(1_000))
        .and_then(|us| us.try_into().ok())
        .ok_or(Error::TimestamptzOverflow(timestamp_ms))
}

/// Nodes and counters have at most 30 bits: `constants.rs` asserts it.
#[expect(clippy::cast_possible_truncation, reason = "asserted by constants.rs")]
fn sql_integer(field: i64) -> i32 {
    field as i32
}
