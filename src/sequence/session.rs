//! What a backend remembers of a sequence: the transaction that locked it last, and the last ID it got.

use std::cell::RefCell;
use std::collections::HashMap;

use pgrx::pg_sys;

#[derive(Clone, Copy, Default)]
struct Remembered {
    locked_in: pg_sys::LocalTransactionId,
    last_id: Option<i64>,
}

thread_local! {
    static SEQUENCES: RefCell<HashMap<pg_sys::Oid, Remembered>> = RefCell::default();
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

/// Remembers the last ID.
pub fn set_last_id(sequence: pg_sys::Oid, id: i64) {
    with(sequence, |remembered| remembered.last_id = Some(id));
}
