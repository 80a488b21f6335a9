//! When a reserved block holds, and how large the next one is.

use super::*;
use crate::snowflake::pack;

const MS: i64 = 1_000_000_000;

fn caller() -> Caller {
    Caller {
        transaction: 7,
        role: pg_sys::Oid::from_u32(10),
        node: 1,
        read_only: false,
        parallel: false,
        invalidations: 0,
    }
}

/// Four IDs of `MS`, as reserved when the clock showed `now_ms`.
fn block_at(now_ms: i64) -> Block {
    let first = pack(MS, 1, 5);
    Block::new((first, first + 3), 1, 4, now_ms, caller())
}

fn takes(block: &mut Block, caller: &Caller, now_ms: i64) -> bool {
    block.take(caller, || now_ms).is_some()
}

#[test]
fn each_id_is_handed_out_once() {
    let mut block = block_at(MS);
    let ids: Vec<_> = std::iter::from_fn(|| block.take(&caller(), || MS)).take(9).collect();
    let first = pack(MS, 1, 5);
    assert_eq!(ids, [first, first + 1, first + 2, first + 3]);

    let first = pack(MS, 1, 50);
    let mut block = Block::new((first, first + 100), 50, 3, MS, caller());
    let ids: Vec<_> = std::iter::from_fn(|| block.take(&caller(), || MS)).take(9).collect();
    assert_eq!(ids, [first, first + 50, first + 100]);
}

#[test]
fn ids_are_not_handed_out_past_their_millisecond() {
    assert!(takes(&mut block_at(MS - 1), &caller(), MS));
    assert!(!takes(&mut block_at(MS - 1), &caller(), MS + 1));
    assert!(!takes(&mut block_at(MS), &caller(), MS + 1));
}

/// Their WAL was flushed only if they were ahead when they were reserved.
#[test]
fn clock_step_back_ends_a_block_that_was_not_ahead() {
    for now_ms in [MS - 1, MS] {
        assert!(takes(&mut block_at(now_ms), &caller(), MS - SLACK_MS));
        assert!(!takes(&mut block_at(now_ms), &caller(), MS - SLACK_MS - 1));
    }
    let ahead = MS - 3_600_000;
    assert!(takes(&mut block_at(ahead), &caller(), ahead));
    assert!(takes(&mut block_at(ahead), &caller(), ahead + 100));
    assert!(!takes(&mut block_at(ahead), &caller(), ahead - 1));
}

#[test]
fn block_holds_only_under_the_circumstances_that_were_checked() {
    let same = caller();
    for other in [
        Caller { transaction: 8, ..same },
        Caller { role: pg_sys::Oid::from_u32(11), ..same },
        Caller { node: 2, ..same },
        Caller { read_only: true, ..same },
        Caller { parallel: true, ..same },
        Caller { invalidations: 1, ..same },
    ] {
        let mut block = block_at(MS);
        assert!(!takes(&mut block, &other, MS), "{other:?}");
        assert!(takes(&mut block, &same, MS));
    }
}

#[test]
fn blocks_double_while_all_is_taken_and_shrink_to_what_was() {
    let mut block = block_at(MS);
    assert_eq!(block.next_wanted(&caller()), 0, "of which `wanted` makes one");
    for taken in 1..=3 {
        assert!(takes(&mut block, &caller(), MS));
        assert_eq!(block.next_wanted(&caller()), taken);
    }
    assert!(takes(&mut block, &caller(), MS));
    assert_eq!(block.next_wanted(&caller()), 8);
    assert_eq!(block.next_wanted(&Caller { transaction: 8, ..caller() }), 1);

    // The end of a millisecond cuts a block short, which is no reason to ask for less.
    let first = pack(MS, 1, 4095);
    let mut block = Block::new((first, first), 1, 64, MS, caller());
    assert!(takes(&mut block, &caller(), MS));
    assert_eq!(block.next_wanted(&caller()), 128);
}

#[test]
fn first_block_of_a_transaction_is_of_one_id_and_cache_is_the_bound() {
    let sequence = pg_sys::Oid::from_u32(1);
    let mut sizes = vec![];
    let mut first = pack(MS, 1, 0);
    for transaction in [7, 8] {
        let caller = Caller { transaction, ..caller() };
        for _ in 0..40 {
            if take(sequence, &caller, || MS).is_none() {
                let len = wanted(sequence, &caller, 10);
                let block = Block::new((first, first + len - 1), 1, len, MS, caller);
                assert_eq!(reserve(sequence, block), first);
                assert_eq!(last_id(sequence), Some(first));
                sizes.push(len);
                first += len;
            }
        }
    }
    assert_eq!(sizes, [1, 2, 4, 8, 10, 10, 10, 1, 2, 4, 8, 10, 10, 10]);
}

#[test]
fn a_change_of_what_was_relied_on_counts() {
    let sequence = pg_sys::Oid::from_u32(2);
    let count = || INVALIDATIONS.get();
    let before = count();
    relation_changed(pg_sys::Datum::null(), sequence);
    assert_eq!(count(), before, "a relation that this backend never used");
    set_locked_in(sequence, 7);
    relation_changed(pg_sys::Datum::null(), sequence);
    relation_changed(pg_sys::Datum::null(), pg_sys::InvalidOid);
    roles_changed(pg_sys::Datum::null(), AUTHOID, 0);
    assert_eq!(count(), before + 3);
}
