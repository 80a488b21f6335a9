//! What a backend remembers of a sequence: the block of IDs that it reserved last, the last one that it took from it,
//! where the sequence's page was, and what proves all that still good.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use pgrx::pg_sys;

use super::advance::SLACK_MS;
use super::compat::{self, AUTHMEMROLEMEM, AUTHOID, DATABASEOID};
use super::page::Page;
use crate::settings;
use crate::snowflake::unpack;

/// Who calls, and what the call may rely on. Only under the very circumstances that a block was reserved under is an ID
/// taken from it. Another block is reserved without a look at the catalogs if no more than the transaction is another one;
/// else all is checked anew.
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
    /// How often a relation, a role, a membership or a database has changed.
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
            invalidations: INVALIDATIONS.load(Relaxed),
        }
    }

    /// Whether only the transaction is another one than the other's.
    fn is_but_for_transaction(&self, other: &Self) -> bool {
        Self { transaction: other.transaction, ..*self } == *other
    }

    /// Whether nothing has changed since.
    pub fn is_up_to_date(&self) -> bool {
        self.invalidations == INVALIDATIONS.load(Relaxed)
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
    /// The clock, in microseconds, under which these IDs are as honest as when they were reserved: not past their
    /// millisecond, and no further behind it than the slack, or than it was.
    clock_us: Range<i64>,
    caller: Caller,
}

impl Block {
    /// The block from `first` to `last`, of which `first` is taken, reserved when `wanted` IDs were asked for and the clock
    /// showed `now_us`.
    pub fn new(
        (first, last): (i64, i64),
        increment: i64,
        wanted: i64,
        now_us: i64,
        caller: Caller,
    ) -> Self {
        let (ms, ..) = unpack(first);
        let len = (last - first) / increment + 1;
        let clock_us = now_us.min((ms - SLACK_MS) * 1_000)..(ms + 1) * 1_000;
        Self { first, increment, len, taken: 1, wanted, clock_us, caller }
    }

    /// The next ID, if one is left and the block still holds.
    pub fn take(&mut self, caller: &Caller, now_us: impl FnOnce() -> i64) -> Option<i64> {
        let holds =
            self.taken < self.len && self.caller == *caller && self.clock_us.contains(&now_us());
        holds.then(|| {
            self.taken += 1;
            self.last_id()
        })
    }

    /// The ID that was taken last.
    fn last_id(&self) -> i64 {
        self.first + (self.taken - 1) * self.increment
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

struct Remembered {
    block: Block,
    page: Page,
}

thread_local! {
    static SEQUENCES: RefCell<BTreeMap<u32, Remembered>> = const { RefCell::new(BTreeMap::new()) };
}

static INVALIDATIONS: AtomicU64 = AtomicU64::new(0);

/// What a call that finds no ID to take goes on with.
pub struct Known {
    /// How many IDs to reserve, as far as CACHE allows.
    pub wanted: i64,
    /// The sequence's page, if all has been checked under these circumstances, but for the transaction perhaps.
    pub page: Option<Page>,
    /// Whether it was in this transaction, which then has the lock of the sequence.
    pub has_lock: bool,
}

/// The next ID of the block that is reserved.
///
/// # Errors
///
/// [`Known`], if there is none that holds.
pub fn take(
    sequence: pg_sys::Oid,
    caller: &Caller,
    now_us: impl FnOnce() -> i64,
) -> Result<i64, Known> {
    SEQUENCES.with_borrow_mut(|sequences| match sequences.get_mut(&sequence.to_u32()) {
        None => Err(Known { wanted: 1, page: None, has_lock: false }),
        Some(Remembered { block, page }) => block.take(caller, now_us).ok_or_else(|| Known {
            wanted: block.next_wanted(caller),
            page: caller.is_but_for_transaction(&block.caller).then_some(*page),
            has_lock: block.caller.transaction == caller.transaction,
        }),
    })
}

/// Remembers a block, whose first ID is taken, and where the page was.
pub fn remember(sequence: pg_sys::Oid, block: Block, page: Page) {
    SEQUENCES.with_borrow_mut(|sequences| {
        sequences.insert(sequence.to_u32(), Remembered { block, page });
    });
}

/// The last ID that this session got from the sequence.
pub fn last_id(sequence: pg_sys::Oid) -> Option<i64> {
    SEQUENCES.with_borrow(|sequences| Some(sequences.get(&sequence.to_u32())?.block.last_id()))
}

/// Has PostgreSQL tell of every change that what is remembered does not outlive: of its sequence, its role, and the role's
/// memberships (REVOKE of a role changes nothing in the sequence), which PostgreSQL's own `acl.c` learns from the same.
pub fn watch_invalidations() {
    compat::CacheRegisterRelcacheCallback(relation_changed);
    for cache in [AUTHOID, AUTHMEMROLEMEM, DATABASEOID] {
        compat::CacheRegisterSyscacheCallback(cache, row_changed);
    }
}

/// Of whatever relation: which ones matter is known only once all has been checked, and changes may arrive meanwhile.
extern "C-unwind" fn relation_changed(_: pg_sys::Datum, _: pg_sys::Oid) {
    INVALIDATIONS.fetch_add(1, Relaxed);
}

extern "C-unwind" fn row_changed(_: pg_sys::Datum, _cache: i32, _hash: u32) {
    INVALIDATIONS.fetch_add(1, Relaxed);
}

#[cfg(test)]
mod tests;
