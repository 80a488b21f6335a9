//! The sequence-backed generator: an ordinary PostgreSQL sequence is its only state.
//!
//! [`advance`] is the rule, [`page`] the sequence's page, [`session`] what a backend remembers, [`compat`] what
//! differs between PostgreSQL's majors. Only [`page`] and [`compat`] hold unsafe code.

mod advance;
pub(crate) mod compat;
mod page;
mod session;

use std::thread::sleep;
use std::time::{Duration, Instant};

use pgrx::prelude::*;

use self::advance::{Call, INCREMENT_MAX, Refusal, Step, Waited, advance};
use self::compat::{GetCurrentTimestamp, pgstat_report_wait_end, pgstat_report_wait_start};
use self::page::{
    LockedPage, Page, Properties, SELECT_OR_USAGE, Sequence, USAGE_OR_UPDATE, lock_for_transaction,
};
use self::session::{Block, Caller, Known};
use crate::constants::{EPOCH_MS_DEFAULT, TIMESTAMP_MS_MAX};
use crate::error::{Error, OrRaise, SequenceName};
use crate::functions::POSTGRES_EPOCH_MS;
use crate::settings;

/// The next ID of a sequence. See the README and `sql/snowflake.sql` for what it promises.
#[pg_extern(sql = r#"
CREATE FUNCTION snowflake_nextval(seq regclass) RETURNS bigint
LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';
"#)]
fn snowflake_nextval(seq: pg_sys::Oid) -> i64 {
    nextval(seq).or_raise()
}

/// The last ID that this session got from a sequence.
#[pg_extern(sql = r#"
CREATE FUNCTION snowflake_currval(seq regclass) RETURNS bigint
LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';
"#)]
fn snowflake_currval(seq: pg_sys::Oid) -> i64 {
    currval(seq).or_raise()
}

/// Called by PostgreSQL when the library is loaded into a backend.
pub fn init() {
    session::watch_invalidations();
}

fn currval(oid: pg_sys::Oid) -> Result<i64, Error> {
    let caller = Caller::now();
    let sequence = Sequence::open(oid)?;
    sequence.check_rights(caller.role, SELECT_OR_USAGE)?;
    session::last_id(oid).ok_or_else(|| Error::CurrvalUndefined(sequence.name().name))
}

fn nextval(oid: pg_sys::Oid) -> Result<i64, Error> {
    let caller = Caller::now();
    session::take(oid, &caller, read_clock_micros).or_else(|known| reserve(oid, caller, known))
}

/// Reserves as many IDs as CACHE allows and the session has use for, and takes the first.
///
/// Follows the order of PostgreSQL's `nextval_internal`. Its steps 1 to 3 are left out, but for the lock, for as long as
/// nothing has changed since they were taken.
fn reserve(oid: pg_sys::Oid, caller: Caller, known: Known) -> Result<i64, Error> {
    let Known { wanted, mut page, has_lock } = known;
    if page.is_some() && !has_lock {
        // With the lock, others' changes of before arrive.
        lock_for_transaction(oid);
        page = page.filter(|_| caller.is_up_to_date());
    }
    let mut wait = Wait::default();
    loop {
        let mut locked = match page.and_then(Page::lock) {
            Some(locked) => locked,
            None => check_and_lock(oid, &caller)?,
        };
        let here = *page.insert(locked.page());
        // 5. Read the clock and decide.
        let now_us = read_clock_micros();
        check_clock(now_us)?;
        let Properties { increment, max_value, cache, .. } = here.properties;
        let wanted = wanted.min(cache);
        let call = Call {
            node: caller.node,
            increment,
            wanted,
            max_value,
            now_us,
            max_skew_ms: settings::max_clock_skew_ms(),
            waited: wait.waited(),
        };
        // 6. Assign the transaction's ID, write and log in a critical section, release.
        match advance(locked.state(), &call) {
            Ok(Step::Issue { first, last, ahead }) => {
                locked.store(last);
                let wal = if ahead { locked.covering_wal() } else { None };
                drop(locked);
                if let Some(wal) = wal {
                    wal.flush();
                }
                let block = Block::new((first, last), increment, wanted, now_us, caller);
                session::remember(oid, block, here);
                return Ok(first);
            }
            Ok(Step::Claim { id }) => {
                locked.store(id);
                drop(locked);
            }
            Ok(Step::Wait { for_ms, us }) => {
                drop(locked);
                wait.sleep(for_ms, us);
            }
            Err(refusal) => {
                drop(locked);
                return Err(refused(Sequence::open(oid)?.name(), max_value, refusal));
            }
        }
        check_for_interrupts!();
    }
}

fn check_and_lock(oid: pg_sys::Oid, caller: &Caller) -> Result<LockedPage, Error> {
    // 1. Lock the relation, check its kind.
    let sequence = Sequence::open(oid)?;
    // 2. Check rights, read-only and parallel mode.
    sequence.check_rights(caller.role, USAGE_OR_UPDATE)?;
    sequence.check_writable(caller)?;
    // 3. Read the catalog rows.
    let properties = sequence.properties()?;
    check_increment(&sequence, properties.increment)?;
    // 4. Lock the page.
    sequence.lock_page(properties)
}

/// The clock in microseconds since the epoch.
fn read_clock_micros() -> i64 {
    GetCurrentTimestamp() + (POSTGRES_EPOCH_MS - EPOCH_MS_DEFAULT) * 1_000
}

/// Checks that IDs can hold the clock's time.
fn check_clock(now_us: i64) -> Result<(), Error> {
    let now_ms = now_us.div_euclid(1_000);
    if (0..=TIMESTAMP_MS_MAX).contains(&now_ms) {
        Ok(())
    } else {
        Err(Error::Clock { unix_ms: now_ms.saturating_add(EPOCH_MS_DEFAULT) })
    }
}

/// The wait of one call, by the monotonic clock.
#[derive(Default)]
struct Wait {
    began: Option<(i64, Instant)>,
}

impl Wait {
    fn waited(&self) -> Waited {
        self.began.map_or(Waited::default(), |(for_ms, since)| Waited {
            for_ms,
            us: i64::try_from(since.elapsed().as_micros()).unwrap_or(i64::MAX),
        })
    }

    /// Sleeps a millisecond at the most, so that a cancel is seen at once.
    fn sleep(&mut self, for_ms: i64, us: i64) {
        if self.began.is_none_or(|(began_for_ms, _)| began_for_ms != for_ms) {
            self.began = Some((for_ms, Instant::now()));
        }
        pgstat_report_wait_start();
        sleep(Duration::from_micros(us.clamp(1, 1_000).cast_unsigned()));
        pgstat_report_wait_end();
    }
}

fn check_increment(sequence: &Sequence, increment: i64) -> Result<(), Error> {
    if (1..=INCREMENT_MAX).contains(&increment) {
        Ok(())
    } else {
        Err(Error::Increment { sequence: sequence.name(), increment, max: INCREMENT_MAX })
    }
}

fn refused(sequence: SequenceName, max_value: i64, refusal: Refusal) -> Error {
    match refusal {
        Refusal::Skew { ahead_ms, max_ms } => Error::ClockSkew { sequence, ahead_ms, max_ms },
        Refusal::Exhausted => Error::TimestampExhausted(sequence),
        Refusal::Limit { id } => Error::LimitReached { sequence, max_value, id },
    }
}
