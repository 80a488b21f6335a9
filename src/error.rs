//! Every error that this extension raises, with its SQLSTATE, its text and the way out.

use std::fmt;

use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::{PgLogLevel, PgSqlErrorCode};

use crate::constants::{EPOCH_MS_DEFAULT, TIMESTAMP_BITS, TIMESTAMP_MS_MAX};

/// What can be wrong with an argument, a sequence or the clock.
///
/// Messages and codes are PostgreSQL's own where it has them (rights, wrong kind, limit reached, `currval`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// An argument outside `[0, max]`.
    OutOfRange {
        /// The argument's name.
        name: &'static str,
        /// The largest value it may have.
        max: i64,
        /// The value it had.
        got: i64,
    },
    /// IDs are never negative.
    NegativeId(i64),
    /// The time is before the epoch; both in Unix milliseconds.
    BeforeEpoch {
        /// The time.
        timestamp_ms: i64,
        /// The epoch.
        epoch_ms: i64,
    },
    /// The time needs more bits than the field has.
    TimestampOverflow {
        /// Milliseconds since the epoch: the difference of two `bigint`s may need 65 bits.
        ms: i128,
    },
    /// Epoch and timestamp field together leave 64 bits.
    EpochOverflow {
        /// The epoch in Unix milliseconds.
        epoch_ms: i64,
        /// The ID's milliseconds since then.
        ms: i64,
    },
    /// Unix milliseconds that PostgreSQL's timestamps do not reach.
    TimestamptzOverflow(i64),
    /// An infinite timestamp, where a time is needed.
    InfiniteTimestamp,
    /// There is no relation with this OID any more.
    NoSuchSequence(u32),
    /// The relation is of another kind.
    NotASequence(String),
    /// The sequence's page is not one.
    DamagedSequence(String),
    /// The current role lacks the right.
    PermissionDenied(String),
    /// `snowflake_nextval` in a read-only transaction, or on a standby.
    ReadOnly,
    /// `snowflake_nextval` in parallel mode.
    Parallel,
    /// `snowflake_currval` before `snowflake_nextval`.
    CurrvalUndefined(String),
    /// The sequence's INCREMENT has no meaning for a counter of this width.
    Increment {
        /// The sequence.
        sequence: SequenceName,
        /// Its INCREMENT.
        increment: i64,
        /// The largest it may be.
        max: i64,
    },
    /// The next ID would exceed the sequence's MAXVALUE.
    LimitReached {
        /// The sequence.
        sequence: SequenceName,
        /// Its MAXVALUE.
        max_value: i64,
        /// The ID that it could not hold.
        id: i64,
    },
    /// The clock is outside the timestamp field's range.
    Clock {
        /// What it shows, in Unix milliseconds.
        unix_ms: i64,
    },
    /// The sequence's state has no later millisecond: the timestamp field ends.
    TimestampExhausted(SequenceName),
    /// The sequence is further ahead of the clock than `snowflake.max_clock_skew` allows.
    ClockSkew {
        /// The sequence.
        sequence: SequenceName,
        /// By how many milliseconds its next ID would be ahead.
        ahead_ms: i64,
        /// What is allowed, in milliseconds.
        max_ms: i64,
    },
}

/// A sequence's name as messages and as commands want it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SequenceName {
    /// The bare name, for messages.
    pub name: String,
    /// Schema-qualified and quoted, for a command that can be pasted.
    pub quoted: String,
}

impl Error {
    /// SQLSTATE, message and hint.
    fn parts(&self) -> (PgSqlErrorCode, String, Option<String>) {
        use PgSqlErrorCode as Code;
        match self {
            Self::OutOfRange { name, max, got } => (
                Code::ERRCODE_INVALID_PARAMETER_VALUE,
                format!("{name} must be in [0, {max}], got {got}"),
                None,
            ),
            Self::NegativeId(id) => (
                Code::ERRCODE_INVALID_PARAMETER_VALUE,
                format!("a Snowflake ID must not be negative, got {id}"),
                None,
            ),
            Self::BeforeEpoch { timestamp_ms, epoch_ms } => (
                Code::ERRCODE_DATETIME_FIELD_OVERFLOW,
                format!("timestamp {timestamp_ms} ms is before the epoch, {epoch_ms} ms"),
                Some("Both count Unix milliseconds, not seconds. Choose an earlier epoch.".into()),
            ),
            Self::TimestampOverflow { ms } => (
                Code::ERRCODE_DATETIME_FIELD_OVERFLOW,
                format!(
                    "timestamp overflows {TIMESTAMP_BITS} bits: {ms} ms since the epoch, \
                     the maximum is {TIMESTAMP_MS_MAX}"
                ),
                Some("Time and epoch count Unix milliseconds. Choose a later epoch.".into()),
            ),
            Self::EpochOverflow { epoch_ms, ms } => (
                Code::ERRCODE_DATETIME_FIELD_OVERFLOW,
                format!("epoch {epoch_ms} plus {ms} ms overflows a bigint"),
                Some("The epoch counts Unix milliseconds.".into()),
            ),
            Self::TimestamptzOverflow(timestamp_ms) => (
                Code::ERRCODE_DATETIME_FIELD_OVERFLOW,
                format!("timestamp out of range: {timestamp_ms} ms since 1970"),
                Some("The epoch counts Unix milliseconds.".into()),
            ),
            Self::InfiniteTimestamp => (
                Code::ERRCODE_DATETIME_FIELD_OVERFLOW,
                "a Snowflake ID cannot hold an infinite timestamp".into(),
                Some("Use snowflake_min or snowflake_max for the bounds of a query.".into()),
            ),
            Self::NoSuchSequence(oid) => (
                Code::ERRCODE_UNDEFINED_TABLE,
                format!("sequence with OID {oid} does not exist"),
                None,
            ),
            Self::NotASequence(name) => {
                (Code::ERRCODE_WRONG_OBJECT_TYPE, format!("\"{name}\" is not a sequence"), None)
            }
            Self::DamagedSequence(name) => (
                Code::ERRCODE_DATA_CORRUPTED,
                format!("the page of sequence \"{name}\" is damaged"),
                Some("Restore it, or drop the sequence and make it anew.".into()),
            ),
            Self::PermissionDenied(name) => (
                Code::ERRCODE_INSUFFICIENT_PRIVILEGE,
                format!("permission denied for sequence {name}"),
                None,
            ),
            Self::ReadOnly => (
                Code::ERRCODE_READ_ONLY_SQL_TRANSACTION,
                "cannot execute snowflake_nextval() in a read-only transaction".into(),
                None,
            ),
            Self::Parallel => (
                Code::ERRCODE_INVALID_TRANSACTION_STATE,
                "cannot execute snowflake_nextval() during a parallel operation".into(),
                None,
            ),
            Self::CurrvalUndefined(name) => (
                Code::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!("currval of sequence \"{name}\" is not yet defined in this session"),
                Some("Call snowflake_nextval first; nextval does not define it.".into()),
            ),
            Self::Increment { sequence, increment, max } => (
                Code::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!(
                    "INCREMENT of sequence \"{}\" must be in [1, {max}], got {increment}",
                    sequence.name
                ),
                Some(format!("Use ALTER SEQUENCE {} INCREMENT 1 NO MAXVALUE.", sequence.quoted)),
            ),
            Self::LimitReached { sequence, max_value, id } => (
                Code::ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED,
                format!(
                    "nextval: reached maximum value of sequence \"{}\" ({max_value})",
                    sequence.name
                ),
                Some(format!(
                    "The next Snowflake ID is {id}. \
                     Use ALTER SEQUENCE {} AS bigint NO MAXVALUE NO CYCLE; \
                     a column for its IDs must be bigint.",
                    sequence.quoted
                )),
            ),
            Self::Clock { unix_ms } => (
                Code::ERRCODE_DATETIME_FIELD_OVERFLOW,
                format!(
                    "the server's clock shows {unix_ms} ms, outside the range of Snowflake IDs, \
                     {EPOCH_MS_DEFAULT} to {} ms",
                    EPOCH_MS_DEFAULT + TIMESTAMP_MS_MAX
                ),
                Some("Mend the server's clock. These are Unix milliseconds.".into()),
            ),
            Self::TimestampExhausted(sequence) => (
                Code::ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED,
                format!(
                    "sequence \"{}\" has no later ID: its timestamp overflows {TIMESTAMP_BITS} bits",
                    sequence.name
                ),
                Some(set_to_largest_id(sequence)),
            ),
            Self::ClockSkew { sequence, ahead_ms, max_ms } => (
                Code::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!(
                    "sequence \"{}\" is {ahead_ms} ms ahead of the clock, \
                     more than snowflake.max_clock_skew allows ({max_ms} ms)",
                    sequence.name
                ),
                Some(format!(
                    "Mend the server's clock, or raise snowflake.max_clock_skew. {}",
                    set_to_largest_id(sequence)
                )),
            ),
        }
    }
}

/// The way back from a state that is too far ahead. RESTART is not: it may repeat IDs that are in use.
fn set_to_largest_id(sequence: &SequenceName) -> String {
    format!(
        "If no ID so far ahead is in use, set the sequence to the largest that is: \
         SELECT setval('{}', coalesce(max(id), 1)) FROM <table>. Do not RESTART it.",
        sequence.quoted.replace('\'', "''")
    )
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.parts().1)
    }
}

impl std::error::Error for Error {}

/// The SQL functions' edge: from here on an error is PostgreSQL's.
pub trait OrRaise<T> {
    /// The value, or a PostgreSQL error that ends the statement. Whatever must be released first has been.
    fn or_raise(self) -> T;
}

impl<T> OrRaise<T> for Result<T, Error> {
    fn or_raise(self) -> T {
        self.unwrap_or_else(|error| raise(&error))
    }
}

#[cold]
fn raise(error: &Error) -> ! {
    let (sqlstate, message, hint) = error.parts();
    let mut report = ErrorReport::new(sqlstate, message, "snowflake");
    if let Some(hint) = hint {
        report = report.set_hint(hint);
    }
    report.report(PgLogLevel::ERROR);
    unreachable!("an ERROR does not return")
}
