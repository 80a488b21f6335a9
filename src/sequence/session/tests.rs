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
    Block::new((first, first + 3), 1, 4, now_ms * 1_000, caller())
}

/// Whether an ID is taken at the last microsecond of `now_ms`.
fn takes(block: &mut Block, caller: &Caller, now_ms: i64) -> bool {
    block.take(caller, || now_ms * 1_000 + 999).is_some()
}

#[test]
fn each_id_is_handed_out_once() {
    let first = pack(MS, 1, 5);
    for (increment, len) in [(1, 1), (1, 4), (50, 3)] {
        let last = first + (len - 1) * increment;
        let mut block = Block::new((first, last), increment, len, MS * 1_000, caller());
        assert_eq!(block.last_id(), first, "taken by the call that reserved it");
        for n in 1..len {
            let id = first + n * increment;
            assert_eq!(block.take(&caller(), || MS * 1_000), Some(id));
            assert_eq!(block.last_id(), id);
        }
        assert_eq!(block.take(&caller(), || MS * 1_000), None);
        assert_eq!(block.last_id(), last);
    }
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
    for taken in 1..4 {
        assert_eq!(block.next_wanted(&caller()), taken);
        assert!(takes(&mut block, &caller(), MS));
    }
    assert_eq!(block.next_wanted(&caller()), 8);
    assert_eq!(block.next_wanted(&Caller { transaction: 8, ..caller() }), 1);

    // The end of a millisecond cuts a block short, which is no reason to ask for less.
    let first = pack(MS, 1, 4095);
    let block = Block::new((first, first), 1, 64, MS * 1_000, caller());
    assert_eq!(block.next_wanted(&caller()), 128);
}

#[test]
fn session_remembers_each_sequence_by_itself() {
    let [one, other] = [1, 2].map(pg_sys::Oid::from_u32);
    let take = |sequence, caller| take(sequence, &caller, || MS * 1_000);
    let known = take(one, caller()).expect_err("nothing is known yet");
    assert_eq!((known.wanted, known.page.is_some()), (1, false));
    assert_eq!(last_id(one), None);

    let block = block_at(MS);
    let first = block.last_id();
    remember(one, block, Page::default());
    assert_eq!(last_id(one), Some(first));
    assert!((1..4).all(|n| take(one, caller()).is_ok_and(|id| id == first + n)));
    assert_eq!(last_id(one), Some(first + 3));
    assert!(take(other, caller()).is_err_and(|known| known.page.is_none()));
    assert_eq!(last_id(other), None);

    // All is taken: a new block of twice the size, without a look at the catalogs.
    assert!(
        take(one, caller())
            .is_err_and(|known| known.wanted == 8 && known.page.is_some() && known.has_lock)
    );
    // With one under other circumstances.
    let role = Caller { role: pg_sys::Oid::from_u32(11), ..caller() };
    assert!(take(one, role).is_err_and(|known| known.wanted == 8 && known.page.is_none()));
    // In the next transaction the page is known, but the lock is to be taken.
    let next = Caller { transaction: 8, ..caller() };
    let known = take(one, next).expect_err("a block is of one transaction");
    assert_eq!((known.wanted, known.page.is_some(), known.has_lock), (1, true, false));
    let changed = Caller { invalidations: 1, ..next };
    assert!(take(one, changed).is_err_and(|known| known.page.is_none()));
}

#[test]
fn every_change_of_a_relation_or_row_counts() {
    let before = INVALIDATIONS.load(Relaxed);
    relation_changed(pg_sys::Datum::null(), pg_sys::Oid::from_u32(1));
    relation_changed(pg_sys::Datum::null(), pg_sys::InvalidOid);
    row_changed(pg_sys::Datum::null(), AUTHOID, 0);
    assert_eq!(INVALIDATIONS.load(Relaxed), before + 3);
}
