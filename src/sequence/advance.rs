//! The rule for a sequence's next ID: pure, so that tests drive it through any clock without waiting.
//!
//! A sequence's position is its last ID's millisecond and counter. The counter moves on by the sequence's
//! INCREMENT and runs on across milliseconds, so that IDs made at a low rate spread over `id % n` shards.
//! The millisecond is the clock's; where the counter is used up it is the next one, which may be taken
//! [`SLACK_MS`] ahead of the clock. What is further ahead than that is waited for.
//!
//! A call may reserve several IDs at once. They never leave their millisecond: what was waited for is that one.
//!
//! Two states break the plain rule:
//!
//! - *The clock stepped back* (or a crash was recovered to the end of a lease). The position stays where it is,
//!   and each further millisecond costs a wait of one: so the lead does not grow and nothing repeats.
//! - *Something else wrote the state* (`log_cnt` is [`FOREIGN_LOG_CNT_MAX`] or less): a new sequence, RESTART,
//!   `setval`, a restore, recovery. Any millisecond up to the slack may be in use, so the position moves past
//!   all of them first, as [`Step::Claim`].

use crate::constants::{SEQUENCE_ID_MAX, TIMESTAMP_MS_MAX, TIMESTAMP_SHIFT};
use crate::snowflake::{pack, unpack};

/// How far ahead of the clock a millisecond may be taken.
pub const SLACK_MS: i64 = 1;

/// A lead that the clock's next tick turns into the slack.
const ONE_TICK_AHEAD: i64 = SLACK_MS + 1;

/// A clock that has not ticked for so long, by the monotonic one, is not waited for any longer.
const STANDSTILL_US: i64 = 3_000;

/// PostgreSQL writes a `log_cnt` of at most this (its `SEQ_LOG_VALS`), so a larger one is ours.
pub const FOREIGN_LOG_CNT_MAX: i64 = 32;

/// Ours as well, but nothing has been logged for it.
const UNLEASED_LOG_CNT: i64 = FOREIGN_LOG_CNT_MAX + 1;

/// How far ahead the logged state is, so that one WAL record serves all calls of that time.
pub const LEASE_MS: i64 = 300;

/// The largest INCREMENT: two blocks of it fill a millisecond's counters.
pub const INCREMENT_MAX: i64 = (SEQUENCE_ID_MAX + 1) / 2;

/// The columns of a sequence relation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// The last ID issued.
    pub last_value: i64,
    /// How many more values PostgreSQL's own `nextval` may take before it must log.
    pub log_cnt: i64,
    /// Whether `last_value` itself has been issued.
    pub is_called: bool,
}

/// What a call brings along.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// The node number to put into the ID.
    pub node: i64,
    /// The sequence's INCREMENT, 1 to [`INCREMENT_MAX`].
    pub increment: i64,
    /// How many IDs to reserve at once, 1 or more. Those that fit into the millisecond are.
    pub wanted: i64,
    /// The sequence's MAXVALUE.
    pub max_value: i64,
    /// The clock in microseconds since the epoch, inside the timestamp field's range.
    pub now_us: i64,
    /// What `snowflake.max_clock_skew` allows, in milliseconds; `None` is no bound.
    pub max_skew_ms: Option<i64>,
    /// What the call has waited for so far.
    pub waited: Waited,
}

/// A wait counts only for the millisecond that it was taken for: were it to count for the next one too, which
/// another backend has moved to meanwhile, many backends together would run ahead of the clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct Waited {
    /// The position's millisecond when the wait began.
    pub for_ms: i64,
    /// How long it has lasted by the monotonic clock, in microseconds.
    pub us: i64,
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Store `last` and hand out `first`, and those between them later: INCREMENT apart, in one millisecond.
    Issue {
        /// The first ID.
        first: i64,
        /// The last one, which is the first where only one is reserved.
        last: i64,
        /// Whether they are ahead of the clock by more than the slack. Their WAL must then be flushed before anybody
        /// sees them: after a crash the clock is no proof that they were never issued.
        ahead: bool,
    },
    /// Store this as the last ID, but do not hand it out: it precedes all that may be issued. Then ask again.
    Claim {
        /// The predecessor of the next ID.
        id: i64,
    },
    /// Store nothing, wait so many microseconds, and ask again.
    Wait {
        /// The position's millisecond, which the wait counts for.
        for_ms: i64,
        /// Microseconds, 1 to 1000.
        us: i64,
    },
}

/// Why there is no next ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It would be this many milliseconds ahead of the clock, more than is allowed.
    Skew {
        /// Milliseconds.
        ahead_ms: i64,
        /// The bound, in milliseconds.
        max_ms: i64,
    },
    /// The timestamp field ends.
    Exhausted,
    /// This ID would exceed the sequence's MAXVALUE.
    Limit {
        /// The ID.
        id: i64,
    },
}

/// Decides the next step from the stored state.
///
/// An issued ID is greater than the last one, as (millisecond, counter) always and as a number when the node is
/// the same. Its millisecond is never before the clock's, and ahead of it by more than the slack only if the
/// state was.
///
/// # Errors
///
/// [`Refusal`], whatever it is.
pub fn advance(state: State, call: &Call) -> Result<Step, Refusal> {
    let ours = state.is_called && state.log_cnt > FOREIGN_LOG_CNT_MAX;
    let now_ms = call.now_us.div_euclid(1_000);
    let (last_ms, last_node, last_counter) = unpack(state.last_value);
    let (counter, wrapped) = if state.is_called {
        next_counter(last_counter, call.increment)
    } else {
        let (first, last) = counters(call.increment);
        (last_counter.clamp(first, last), false)
    };

    let stays = ours && !wrapped && last_node == call.node;
    let earliest_ms = if stays {
        last_ms
    } else if ours {
        last_ms + 1
    } else {
        (last_ms + 1).max(now_ms + ONE_TICK_AHEAD)
    };
    let ms = earliest_ms.max(now_ms);
    if ms > TIMESTAMP_MS_MAX {
        return Err(Refusal::Exhausted);
    }

    let ahead_ms = ms - now_ms;
    if let Some(max_ms) = call.max_skew_ms
        && ahead_ms > max_ms.max(ONE_TICK_AHEAD)
    {
        return Err(Refusal::Skew { ahead_ms, max_ms });
    }
    if ours || ahead_ms > ONE_TICK_AHEAD {
        let waited_us = if call.waited.for_ms == last_ms { call.waited.us } else { 0 };
        let us = match ahead_ms {
            ..=SLACK_MS => 0,
            ONE_TICK_AHEAD if waited_us < STANDSTILL_US => (ms - SLACK_MS) * 1_000 - call.now_us,
            _ if stays || ahead_ms == ONE_TICK_AHEAD => 0,
            // PostgreSQL's nextval may have carried node 1023 into this millisecond, which nobody has waited for.
            _ if last_node != call.node => 2_000 - waited_us,
            _ => 1_000 - waited_us,
        };
        if us > 0 {
            return Ok(Step::Wait { for_ms: last_ms, us: us.min(1_000) });
        }
    }

    let first = pack(ms, call.node, counter);
    if first > call.max_value {
        return Err(Refusal::Limit { id: first });
    }
    Ok(if ours {
        let last = first + (fitting(first, counter, call) - 1) * call.increment;
        Step::Issue { first, last, ahead: ahead_ms > SLACK_MS }
    } else {
        Step::Claim { id: predecessor(ms, call.node, counter, call.increment) }
    })
}

/// How many of the wanted IDs fit, `first` among them: into its millisecond, and below MAXVALUE.
fn fitting(first: i64, counter: i64, call: &Call) -> i64 {
    let (_, last_counter) = counters(call.increment);
    let room = (last_counter - counter).min(call.max_value - first);
    call.wanted.min(room / call.increment + 1)
}

/// The counters that may be issued, first and last. With an INCREMENT of n > 1 each stands for the n from it up,
/// or for the n below it, as clients that pool IDs see it: both stay within the millisecond.
fn counters(increment: i64) -> (i64, i64) {
    if increment == 1 { (0, SEQUENCE_ID_MAX) } else { (increment, SEQUENCE_ID_MAX + 1 - increment) }
}

/// The counter after `counter`, and whether that one needs a new millisecond.
fn next_counter(counter: i64, increment: i64) -> (i64, bool) {
    let (first, last) = counters(increment);
    let next = counter + increment;
    if next <= last { (next, false) } else { (first, true) }
}

/// The ID after which (`ms`, `counter`) is next: one INCREMENT less, across the millisecond if need be.
fn predecessor(ms: i64, node: i64, counter: i64, increment: i64) -> i64 {
    match counter - increment {
        ..0 => pack(ms - 1, node, SEQUENCE_ID_MAX),
        previous => pack(ms, node, previous),
    }
}

/// What to store for an ID, and what to log if the last record does not cover it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Renewal {
    /// The state for the page.
    pub stored: State,
    /// The state that a crash falls back to.
    pub logged: State,
}

/// The stored state after `last_value` moved to `id` under the lease that is logged already, or `None` if that
/// lease ends too soon, or was logged for another file.
///
/// The lease's end is found from the state, as PostgreSQL's `nextval` leaves it in place: `last_value` plus `log_cnt`
/// times the INCREMENT, and up to an INCREMENT more, which the end's full counter bits make good.
pub fn within_lease(state: State, id: i64, increment: i64, file: i64) -> Option<State> {
    let almost = state.last_value.saturating_add(state.log_cnt.saturating_mul(increment));
    let lease_end = almost | SEQUENCE_ID_MAX;
    let log_cnt = lease_end.saturating_sub(id) / increment;
    (state.is_called
        && state.log_cnt > UNLEASED_LOG_CNT
        && log_cnt > UNLEASED_LOG_CNT
        && unpack(lease_end).1 == file)
        .then_some(State { last_value: id, log_cnt, is_called: true })
}

/// A new lease from `id` on, no further than the sequence's MAXVALUE.
///
/// `log_cnt` is the distance to the lease's end in INCREMENTs, which is what PostgreSQL means by it: its own
/// `nextval` may then take that many values without logging, and a crash still repeats none of them.
///
/// The end's node bits hold `file`, a mark of the file that the lease is logged for: `ALTER SEQUENCE ... START`,
/// `SET LOGGED` and `CREATE DATABASE ... TEMPLATE` copy a state, `log_cnt` and all, into a file that WAL knows no
/// lease of.
pub fn new_lease(id: i64, increment: i64, max_value: i64, file: i64) -> Renewal {
    let end_ms = (unpack(id).0 + LEASE_MS).min(TIMESTAMP_MS_MAX);
    let lease_end = pack(end_ms, file, SEQUENCE_ID_MAX).min(max_value).max(id);
    Renewal {
        stored: State { last_value: id, log_cnt: (lease_end - id) / increment, is_called: true },
        logged: State { last_value: lease_end, log_cnt: 0, is_called: true },
    }
}

/// The stored state where nothing may be logged yet: ours, and renewed by the very next ID that may be.
pub fn without_lease(id: i64) -> State {
    State { last_value: id, log_cnt: UNLEASED_LOG_CNT, is_called: true }
}

const _: () = assert!(
    ((LEASE_MS - 1) << TIMESTAMP_SHIFT) / INCREMENT_MAX > UNLEASED_LOG_CNT,
    "a lease must be told from what PostgreSQL writes, whatever the INCREMENT"
);

#[cfg(test)]
mod tests;
