//! The format of an ID: the widths of its fields, and all that follows from them.
//!
//! | field     | bits | from bit | holds                                         |
//! |-----------|------|----------|-----------------------------------------------|
//! | sign      | 1    | 63       | always 0                                      |
//! | timestamp | 41   | 22       | milliseconds since the epoch                  |
//! | node      | 10   | 12       | 5 bits of datacenter, then 5 bits of worker   |
//! | sequence  | 12   | 0        | the counter                                   |
//!
//! Change a width here and every shift, mask, range and message follows.

/// The default epoch in Unix milliseconds: 2010-11-04 01:42:54.657 UTC, the epoch that Twitter chose.
pub const EPOCH_MS_DEFAULT: i64 = 1_288_834_974_657;

/// The node number of a server that was given none.
pub const NODE_ID_DEFAULT: i32 = 1;

/// Width of the timestamp field.
pub const TIMESTAMP_BITS: u32 = 41;
/// Width of the node field.
pub const NODE_ID_BITS: u32 = 10;
/// Width of the sequence field.
pub const SEQUENCE_ID_BITS: u32 = 12;
/// Width of the worker, the lower part of the node field.
pub const WORKER_ID_BITS: u32 = 5;
/// Width of the datacenter, the upper part of the node field.
pub const DATACENTER_ID_BITS: u32 = NODE_ID_BITS - WORKER_ID_BITS;

/// The largest timestamp, in milliseconds since the epoch: about 69.7 years.
pub const TIMESTAMP_MS_MAX: i64 = (1 << TIMESTAMP_BITS) - 1;
/// The largest node number.
pub const NODE_ID_MAX: i64 = (1 << NODE_ID_BITS) - 1;
/// The largest counter.
pub const SEQUENCE_ID_MAX: i64 = (1 << SEQUENCE_ID_BITS) - 1;
/// The largest worker number.
pub const WORKER_ID_MAX: i64 = (1 << WORKER_ID_BITS) - 1;
/// The largest datacenter number.
pub const DATACENTER_ID_MAX: i64 = (1 << DATACENTER_ID_BITS) - 1;

/// Lowest bit of the node field.
pub const NODE_ID_SHIFT: u32 = SEQUENCE_ID_BITS;
/// Lowest bit of the timestamp field.
pub const TIMESTAMP_SHIFT: u32 = NODE_ID_SHIFT + NODE_ID_BITS;

const _: () = assert!(
    TIMESTAMP_BITS + NODE_ID_BITS + SEQUENCE_ID_BITS == 63,
    "the three fields must fill a bigint but for its sign"
);
const _: () = assert!(
    WORKER_ID_BITS < NODE_ID_BITS && NODE_ID_BITS < 31 && SEQUENCE_ID_BITS < 31,
    "node, its parts and sequence are read into an SQL integer"
);
