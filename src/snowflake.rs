//! Composing and decoding IDs: pure functions over the format of [`crate::constants`].
//!
//! For every input that is accepted, decoding gives back the node, the sequence and the time.
//! Times are Unix milliseconds; an epoch is one too.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::constants::{
    DATACENTER_ID_MAX, NODE_ID_BITS, NODE_ID_MAX, NODE_ID_SHIFT, SEQUENCE_ID_BITS, SEQUENCE_ID_MAX,
    TIMESTAMP_BITS, TIMESTAMP_MS_MAX, TIMESTAMP_SHIFT, WORKER_ID_BITS, WORKER_ID_MAX,
};
use crate::error::Error;

/// The system clock in Unix microseconds, rounded down; negative before 1970.
pub fn read_unix_micros() -> i64 {
    // A clock 292,000 years from 1970 is taken as the end of that range.
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(after) => i64::try_from(after.as_micros()).unwrap_or(i64::MAX),
        Err(before) => {
            i64::try_from(before.duration().as_nanos().div_ceil(1_000)).map_or(i64::MIN, |us| -us)
        }
    }
}

/// Milliseconds from `epoch_ms` to now, by the system clock.
///
/// # Errors
///
/// [`Error::BeforeEpoch`] and [`Error::TimestampOverflow`] when the timestamp field cannot hold them.
pub fn read_current_millis(epoch_ms: i64) -> Result<i64, Error> {
    millis_since_epoch(read_unix_micros().div_euclid(1_000), epoch_ms)
}

/// Makes an ID of the current millisecond. The caller owns the counter `sequence_id`.
///
/// # Errors
///
/// As [`compose_snowflake_id`].
pub fn generate_snowflake_id(sequence_id: i64, node_id: i64, epoch_ms: i64) -> Result<i64, Error> {
    check_node_and_sequence(node_id, sequence_id)?;
    Ok(pack(read_current_millis(epoch_ms)?, node_id, sequence_id))
}

/// Makes the ID of any time, node and sequence.
///
/// # Errors
///
/// [`Error::OutOfRange`] for the node, then for the sequence; [`Error::BeforeEpoch`] or
/// [`Error::TimestampOverflow`] for the time.
pub fn compose_snowflake_id(
    timestamp_ms: i64,
    node_id: i64,
    sequence_id: i64,
    epoch_ms: i64,
) -> Result<i64, Error> {
    check_node_and_sequence(node_id, sequence_id)?;
    Ok(pack(millis_since_epoch(timestamp_ms, epoch_ms)?, node_id, sequence_id))
}

/// The node number of a datacenter and a worker, `(datacenter << 5) | worker`.
///
/// # Errors
///
/// [`Error::OutOfRange`] for the datacenter, then for the worker.
pub fn compose_node_id(datacenter_id: i64, worker_id: i64) -> Result<i64, Error> {
    check_range("datacenter_id", DATACENTER_ID_MAX, datacenter_id)?;
    check_range("worker_id", WORKER_ID_MAX, worker_id)?;
    Ok((datacenter_id << WORKER_ID_BITS) | worker_id)
}

/// The Unix millisecond at which the ID was made.
///
/// # Errors
///
/// [`Error::NegativeId`]; [`Error::EpochOverflow`] if the epoch is so far off that the sum leaves 64 bits.
pub fn decode_timestamp_ms(id: i64, epoch_ms: i64) -> Result<i64, Error> {
    let ms = check_id(id)? >> TIMESTAMP_SHIFT;
    epoch_ms.checked_add(ms).ok_or(Error::EpochOverflow { epoch_ms, ms })
}

/// The node that made the ID.
///
/// # Errors
///
/// [`Error::NegativeId`].
pub fn decode_node_id(id: i64) -> Result<i64, Error> {
    Ok(unpack(check_id(id)?).1)
}

/// The datacenter part of the node.
///
/// # Errors
///
/// [`Error::NegativeId`].
pub fn decode_datacenter_id(id: i64) -> Result<i64, Error> {
    Ok(decode_node_id(id)? >> WORKER_ID_BITS)
}

/// The worker part of the node.
///
/// # Errors
///
/// [`Error::NegativeId`].
pub fn decode_worker_id(id: i64) -> Result<i64, Error> {
    Ok(decode_node_id(id)? & WORKER_ID_MAX)
}

/// The ID's counter.
///
/// # Errors
///
/// [`Error::NegativeId`].
pub fn decode_sequence_id(id: i64) -> Result<i64, Error> {
    Ok(unpack(check_id(id)?).2)
}

/// The 64 bits of an ID, cut into sign, timestamp, datacenter, worker and sequence by spaces.
///
/// # Errors
///
/// [`Error::NegativeId`].
pub fn format_bits(id: i64) -> Result<String, Error> {
    let (ms, node, sequence) = unpack(check_id(id)?);
    Ok(format!(
        "0 {ms:0timestamp$b} {datacenter:0upper$b} {worker:0lower$b} {sequence:0counter$b}",
        datacenter = node >> WORKER_ID_BITS,
        worker = node & WORKER_ID_MAX,
        timestamp = TIMESTAMP_BITS as usize,
        upper = (NODE_ID_BITS - WORKER_ID_BITS) as usize,
        lower = WORKER_ID_BITS as usize,
        counter = SEQUENCE_ID_BITS as usize,
    ))
}

/// The smallest ID of a millisecond, as the lower bound of a query: it never fails.
///
/// Times before the epoch give 0, times past the field the largest `bigint`.
pub fn smallest_id_of(timestamp_ms: i64, epoch_ms: i64) -> i64 {
    match timestamp_ms.saturating_sub(epoch_ms) {
        ..0 => 0,
        ms @ 0..=TIMESTAMP_MS_MAX => pack(ms, 0, 0),
        _ => i64::MAX,
    }
}

/// The largest ID of a millisecond, as the upper bound of a query: it never fails.
///
/// Times before the epoch give -1, times past the field the largest `bigint`.
pub fn largest_id_of(timestamp_ms: i64, epoch_ms: i64) -> i64 {
    match timestamp_ms.saturating_sub(epoch_ms) {
        ..0 => -1,
        ms @ 0..=TIMESTAMP_MS_MAX => pack(ms, NODE_ID_MAX, SEQUENCE_ID_MAX),
        _ => i64::MAX,
    }
}

/// Joins the fields. Every caller has them in range, so nothing is masked.
pub fn pack(ms: i64, node_id: i64, sequence_id: i64) -> i64 {
    (ms << TIMESTAMP_SHIFT) | (node_id << NODE_ID_SHIFT) | sequence_id
}

/// Splits an ID into milliseconds since the epoch, node and sequence.
///
/// Of a negative number, which is no ID, the milliseconds are negative and the rest is in range.
pub fn unpack(id: i64) -> (i64, i64, i64) {
    (id >> TIMESTAMP_SHIFT, (id >> NODE_ID_SHIFT) & NODE_ID_MAX, id & SEQUENCE_ID_MAX)
}

fn check_node_and_sequence(node_id: i64, sequence_id: i64) -> Result<(), Error> {
    check_range("node_id", NODE_ID_MAX, node_id)?;
    check_range("sequence_id", SEQUENCE_ID_MAX, sequence_id)
}

fn check_range(name: &'static str, max: i64, got: i64) -> Result<(), Error> {
    if (0..=max).contains(&got) { Ok(()) } else { Err(Error::OutOfRange { name, max, got }) }
}

fn check_id(id: i64) -> Result<i64, Error> {
    if id < 0 { Err(Error::NegativeId(id)) } else { Ok(id) }
}

fn millis_since_epoch(timestamp_ms: i64, epoch_ms: i64) -> Result<i64, Error> {
    match i128::from(timestamp_ms) - i128::from(epoch_ms) {
        ..0 => Err(Error::BeforeEpoch { timestamp_ms, epoch_ms }),
        ms => match i64::try_from(ms) {
            Ok(ms @ ..=TIMESTAMP_MS_MAX) => Ok(ms),
            _ => Err(Error::TimestampOverflow { ms }),
        },
    }
}

#[cfg(test)]
mod tests;
