//! What a backend remembers of a sequence: the transaction that locked it last, the last ID it got, and the block of
//! IDs that it reserved last, with what proves them still good.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ops::RangeInclusive;

use pgrx::pg_sys;

use super::advance::SLACK_MS;
use super::compat::{self, AUTHMEMROLEMEM, AUTHOID};
use crate::settings;
use crate::snowflake::unpack;

/// Who calls, and what the call may rely on. An ID is taken from a block only under the very circumstances that the
/// block was reserved under; else all is checked anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The top transaction, which holds the sequence's lock to its end.
    pub transaction: pg_sys::LocalTransactionId,
    /// The current role.
    pub role: pg_sys::Oid,
    /// The node number to put into an ID.
    pub node: i64,
    /// Whether the transaction may not write, as none may on a standby.
    pub read_only: bool,
    /// Whether the transaction is in parallel mode.
    pub parallel: bool,
    /// How often the sequences, roles and memberships that were relied on have changed.
    invalidations: u64,
}

impl Caller {
    /// The circumstances now. To be read before anything that they vouch for is checked.
    pub fn now() -> Self {
        Self {
            transaction: compat::MyProc_lxid(),
            role: compat::GetUserId(),
            node: settings::node(),
            read_only: compat::XactReadOnly(),
            parallel: compat::IsInParallelMode(),
            invalidations: INVALIDATIONS.get(),
        }
    }
}

/// Consecutive IDs of one millisecond, which nobody else gets.
#[derive(Clone, Debug)]
pub struct Block {
    first: i64,
    increment: i64,
    len: i64,
    taken: i64,
    wanted: i64,
    /// The clock, in milliseconds, under which these IDs are as honest as when they were reserved: not past their
    /// millisecond, and no further behind it than the slack, or than it was.
    clock_ms: RangeInclusive<i64>,
    caller: Caller,
}

impl Block {
    /// The block from `first` to `last`, reserved when `wanted` IDs were asked for and the clock showed `now_ms`.
    pub fn new(
        (first, last): (i64, i64),
        increment: i64,
        wanted: i64,
        now_ms: i64,
        caller: Caller,
    ) -> Self {
        let (ms, ..) = unpack(first);
        let len = (last - first) / increment + 1;
        let clock_ms = now_ms.min(ms - SLACK_MS)..=ms;
        Self { first, increment, len, taken: 0, wanted, clock_ms, caller }
    }

    /// The next ID, if one is left and the block still holds.
    pub fn take(&mut self, caller: &Caller, now_ms: impl FnOnce() -> i64) -> Option<i64> {
        let holds =
            self.taken < self.len && self.caller == *caller && self.clock_ms.contains(&now_ms());
        holds.then(|| {
            let id = self.first + self.taken * self.increment;
            self.taken += 1;
            id
        })
    }

    /// How many IDs the next block should have: one at first, twice as many as before while all are taken, and no more
    /// than were taken once some are not. So bulk work gains, while transactions of one row, and calls that the clock
    /// overtakes, leave no counters unused; those would crowd `id % n` into few shards.
    fn next_wanted(&self, caller: &Caller) -> i64 {
        if self.caller.transaction != caller.transaction {
            1
        } else if self.taken == self.len {
            self.wanted.saturating_mul(2)
        } else {
            self.taken
        }
    }
}

#[derive(Default)]
struct Remembered {
    locked_in: pg_sys::LocalTransactionId,
    last_id: Option<i64>,
    block: Option<Block>,
}

thread_local! {
    static SEQUENCES: RefCell<HashMap<pg_sys::Oid, Remembered>> = RefCell::default();
    static INVALIDATIONS: Cell<u64> = const { Cell::new(0) };
}

fn with<R>(sequence: pg_sys::Oid, f: impl FnOnce(&mut Remembered) -> R) -> R {
    SEQUENCES.with_borrow_mut(|sequences| f(sequences.entry(sequence).or_default()))
}

/// Whether this transaction has the sequence's lock already.
pub fn is_locked_in(sequence: pg_sys::Oid, transaction: pg_sys::LocalTransactionId) -> bool {
    with(sequence, |remembered| remembered.locked_in == transaction)
}

/// Remembers that the top transaction holds the sequence's lock, and so to its end.
pub fn set_locked_in(sequence: pg_sys::Oid, transaction: pg_sys::LocalTransactionId) {
    with(sequence, |remembered| remembered.locked_in = transaction);
}

/// The last ID that this session got from the sequence.
pub fn last_id(sequence: pg_sys::Oid) -> Option<i64> {
    with(sequence, |remembered| remembered.last_id)
}

/// How many IDs to reserve next, 1 to `cache`.
pub fn wanted(sequence: pg_sys::Oid, caller: &Caller, cache: i64) -> i64 {
    with(sequence, |remembered| {
        remembered.block.as_ref().map_or(1, |block| block.next_wanted(caller)).clamp(1, cache)
    })
}

/// The next ID of the block that is reserved, if there is one that holds.
pub fn take(sequence: pg_sys::Oid, caller: &Caller, now_ms: impl FnOnce() -> i64) -> Option<i64> {
    with(sequence, |remembered| {
        let id = remembered.block.as_mut()?.take(caller, now_ms)?;
        remembered.last_id = Some(id);
        Some(id)
    })
}

/// Remembers a block, and takes its first ID.
pub fn reserve(sequence: pg_sys::Oid, mut block: Block) -> i64 {
    let id = block.first;
    block.taken = 1;
    with(sequence, |remembered| {
        remembered.last_id = Some(id);
        remembered.block = Some(block);
    });
    id
}

/// Has PostgreSQL tell of every change that a block does not outlive: of its sequence, its role, and the role's
/// memberships (REVOKE of a role changes nothing in the sequence).
pub fn watch_invalidations() {
    compat::CacheRegisterRelcacheCallback(relation_changed);
    compat::CacheRegisterSyscacheCallback(AUTHOID, roles_changed);
    compat::CacheRegisterSyscacheCallback(AUTHMEMROLEMEM, roles_changed);
}

/// No OID is every relation.
extern "C-unwind" fn relation_changed(_: pg_sys::Datum, relation: pg_sys::Oid) {
    let relied_on = || SEQUENCES.with_borrow(|sequences| sequences.contains_key(&relation));
    if relation == pg_sys::InvalidOid || relied_on() {
        INVALIDATIONS.set(INVALIDATIONS.get() + 1);
    }
}

extern "C-unwind" fn roles_changed(_: pg_sys::Datum, _cache: i32, _hash: u32) {
    INVALIDATIONS.set(INVALIDATIONS.get() + 1);
}

#[cfg(test)]
mod tests;
