//! A server in miniature: one sequence, a clock that does as it is told, calls, resets and crashes.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::constants::NODE_ID_SHIFT;

const START_US: i64 = 1_000_000_000_000_000;
const TWO_HOURS_MS: i64 = 7_200_000;

const PLAIN_CALL: Call = Call {
    node: 1,
    increment: 1,
    wanted: 1,
    max_value: i64::MAX,
    now_us: START_US,
    max_skew_ms: None,
    waited: Waited { for_ms: 0, us: 0 },
};

/// The sequence's page, what WAL holds of it, and the clocks.
#[derive(Clone)]
struct Server {
    page: State,
    logged: State,
    clock_us: i64,
    clock_stands_still: bool,
    monotonic_us: i64,
    increment: i64,
    cache: i64,
    node: i64,
    file: i64,
}

/// One backend's call, from its first look at the page to its ID.
#[derive(Default)]
struct Backend {
    began: Option<(i64, i64)>,
    sleeps_until_us: i64,
}

const FRESH: State = State { last_value: 1, log_cnt: 0, is_called: false };

impl Server {
    fn new(increment: i64) -> Self {
        Self {
            page: FRESH,
            logged: FRESH,
            clock_us: START_US,
            clock_stands_still: false,
            monotonic_us: 0,
            increment,
            cache: 1,
            node: 1,
            file: 700,
        }
    }

    fn now_ms(&self) -> i64 {
        self.clock_us / 1_000
    }

    fn pass(&mut self, us: i64) {
        self.clock_us += if self.clock_stands_still { 0 } else { us };
        self.monotonic_us += us;
    }

    fn store(&mut self, id: i64) {
        match within_lease(self.page, id, self.increment, self.file) {
            Some(stored) => self.page = stored,
            None => {
                let renewal = new_lease(id, self.increment, i64::MAX, self.file);
                self.page = renewal.stored;
                self.logged = renewal.logged;
            }
        }
    }

    /// One turn of the loop in `reserve`: `Some` when it returns, with the first and the last ID.
    fn turn(&mut self, backend: &mut Backend) -> Option<Result<(i64, i64), Refusal>> {
        let waited = backend.began.map_or(Waited::default(), |(for_ms, since_us)| Waited {
            for_ms,
            us: self.monotonic_us - since_us,
        });
        let call = Call {
            node: self.node,
            increment: self.increment,
            wanted: self.cache,
            max_value: i64::MAX,
            now_us: self.clock_us,
            max_skew_ms: Some(TWO_HOURS_MS),
            waited,
        };
        match advance(self.page, &call) {
            Err(refusal) => return Some(Err(refusal)),
            Ok(Step::Issue { first, last, ahead }) => {
                assert_eq!(ahead, ms_of(first) - self.now_ms() > SLACK_MS);
                assert_eq!(
                    first >> NODE_ID_SHIFT,
                    last >> NODE_ID_SHIFT,
                    "a block in two milliseconds"
                );
                assert!((last - first) / self.increment < self.cache);
                self.store(last);
                return Some(Ok((first, last)));
            }
            Ok(Step::Claim { id }) => self.store(id),
            Ok(Step::Wait { for_ms, us }) => {
                assert!((1..=1_000).contains(&us), "a wait of {us} us");
                if backend.began.is_none_or(|(began_for_ms, _)| began_for_ms != for_ms) {
                    backend.began = Some((for_ms, self.monotonic_us));
                }
                backend.sleeps_until_us = self.monotonic_us + us;
            }
        }
        None
    }

    /// A whole call, alone on the server: the first ID.
    fn call(&mut self) -> Result<i64, Refusal> {
        self.reserve().map(|(first, _)| first)
    }

    fn reserve(&mut self) -> Result<(i64, i64), Refusal> {
        let mut backend = Backend::default();
        for _ in 0..100 {
            if let Some(result) = self.turn(&mut backend) {
                return result;
            }
            self.pass((backend.sleeps_until_us - self.monotonic_us).max(0));
        }
        panic!("stalled in {:?} at {} us", self.page, self.clock_us);
    }

    /// PostgreSQL's own `nextval` with CACHE 1.
    fn core_nextval(&mut self) -> i64 {
        let State { last_value, log_cnt, is_called } = self.page;
        let value = if is_called { last_value + self.increment } else { last_value };
        if log_cnt < 1 || !is_called {
            let last_value = value + FOREIGN_LOG_CNT_MAX * self.increment;
            self.logged = State { last_value, log_cnt: 0, is_called: true };
            self.page = State { last_value: value, log_cnt: FOREIGN_LOG_CNT_MAX, is_called: true };
        } else {
            self.page = State { last_value: value, log_cnt: log_cnt - 1, is_called: true };
        }
        value
    }

    fn setval(&mut self, last_value: i64, is_called: bool) {
        self.page = State { last_value, log_cnt: 0, is_called };
        self.logged = self.page;
    }

    fn crash(&mut self) {
        self.page = self.logged;
    }
}

/// Blocks of IDs, first to end.
type Blocks = BTreeMap<i64, i64>;

/// Adds the IDs that a call reserved, unless they overlap others.
fn reserve(blocks: &mut Blocks, (first, last): (i64, i64), increment: i64) -> bool {
    let end = last + increment;
    let overlaps = blocks.range(..end).next_back().is_some_and(|(_, &other)| other > first);
    !overlaps && blocks.insert(first, end).is_none()
}

fn ms_of(id: i64) -> i64 {
    unpack(id).0
}

fn counter_of(id: i64) -> i64 {
    unpack(id).2
}

#[test]
fn fresh_sequence_counts_from_one() {
    let mut server = Server::new(1);
    let ids: Vec<_> = (0..3).map(|_| server.call().unwrap()).collect();
    assert_eq!(ids.iter().map(|&id| counter_of(id)).collect::<Vec<_>>(), [1, 2, 3]);
    assert!(ids.iter().all(|&id| unpack(id).1 == 1));
}

#[test]
fn counter_runs_on_at_a_low_rate() {
    let mut server = Server::new(1);
    let mut shards = [0; 64];
    for _ in 0..64 * 100 {
        server.pass(3_000);
        shards[usize::try_from(server.call().unwrap() % 64).unwrap()] += 1;
    }
    assert_eq!(shards, [100; 64]);
}

#[test]
fn called_or_not_the_counter_goes_on_from_setval() {
    for (last, is_called, counter) in
        [(100, true, 101), (100, false, 100), (4095, true, 0), (4096, false, 0), (-1, true, 0)]
    {
        let mut server = Server::new(1);
        server.setval(last, is_called);
        assert_eq!(counter_of(server.call().unwrap()), counter, "setval({last}, {is_called})");
    }
}

/// As fast as calls can be, 4,096 a millisecond and not one more.
#[test]
fn rate_is_the_formats_limit() {
    let mut server = Server::new(1);
    let first_ms = ms_of(server.call().unwrap());
    let mut ids = 1;
    while ms_of(server.call().unwrap()) < first_ms + 100 {
        ids += 1;
    }
    assert_eq!(ids, 4096 * 100 - 1, "the first counter was 1");
    assert!((99..=101).contains(&(server.monotonic_us / 1_000)));
}

#[test]
fn increment_keeps_blocks_inside_their_millisecond() {
    for increment in [1, 2, 3, 50, 1000, 2047, 2048] {
        let mut server = Server::new(increment);
        let mut blocks = Blocks::new();
        for _ in 0..500 {
            let id = server.call().unwrap();
            if increment > 1 {
                assert_eq!((id - increment) >> NODE_ID_SHIFT, id >> NODE_ID_SHIFT);
                assert_eq!((id + increment - 1) >> NODE_ID_SHIFT, id >> NODE_ID_SHIFT);
            }
            assert!(
                reserve(&mut blocks, (id, id), increment),
                "INCREMENT {increment} repeats {id}"
            );
        }
    }
}

#[test]
fn clock_step_back_neither_stalls_nor_grows_the_lead() {
    for step_us in [1_000, 1_500, 2_000, 100_000, 3_600_000_000] {
        let mut server = Server::new(1);
        let mut last = server.call().unwrap();
        server.clock_us -= step_us;
        let lead_ms = ms_of(last) - server.now_ms();
        let began_us = server.monotonic_us;
        for _ in 0..50_000 {
            let id = server.call().unwrap();
            assert!(id > last);
            assert!(ms_of(id) - server.now_ms() <= lead_ms.max(SLACK_MS));
            last = id;
        }
        assert!(server.monotonic_us - began_us <= 15_000, "50,000 IDs need 12.2 ms");
    }
}

/// Many backends that wait together for the same millisecond take one together, not one each.
#[test]
fn lead_does_not_grow_with_the_number_of_backends() {
    for (increment, cache) in [(2048, 1), (1, 4096), (1, 1024), (50, 81)] {
        let mut server = Server::new(increment);
        server.cache = cache;
        server.call().unwrap();
        server.clock_us -= 60_000_000;
        let lead_ms = ms_of(server.page.last_value) - server.now_ms();
        let mut backends: Vec<_> = (0..8).map(|_| Backend::default()).collect();
        let mut blocks = Blocks::new();
        while server.monotonic_us < 200_000 {
            for backend in &mut backends {
                if backend.sleeps_until_us <= server.monotonic_us
                    && let Some(result) = server.turn(backend)
                {
                    assert!(reserve(&mut blocks, result.unwrap(), increment));
                    *backend = Backend::default();
                }
            }
            server.pass(10);
            assert!(ms_of(server.page.last_value) - server.now_ms() <= lead_ms + 1);
        }
        assert!(blocks.len() > 150);
    }
}

/// All of a millisecond's counters are used, whatever the size of the blocks.
#[test]
fn blocks_sustain_the_formats_limit() {
    for (cache, limit) in [(1, 4096), (64, 4096), (100, 4096), (4096, 4096), (1_000_000, 4096)] {
        let mut server = Server::new(1);
        server.cache = cache;
        let (first, _) = server.reserve().unwrap();
        let mut ids = 0;
        while ms_of(server.page.last_value) < ms_of(first) + 100 {
            let (first, last) = server.reserve().unwrap();
            ids += last - first + 1;
        }
        assert!(ids >= 99 * limit, "CACHE {cache}: {ids} in 100 ms");
        assert!((99..=101).contains(&(server.monotonic_us / 1_000)));
    }
}

#[test]
fn block_ends_at_maxvalue() {
    let page = State { last_value: pack(START_US / 1_000, 1, 7), log_cnt: 99, is_called: true };
    let call = |increment, max_value| {
        advance(page, &Call { increment, wanted: 64, max_value, ..PLAIN_CALL })
    };
    let next = page.last_value + 1;
    let issue = |first, last| Ok(Step::Issue { first, last, ahead: false });
    assert_eq!(call(1, i64::MAX), issue(next, next + 63));
    assert_eq!(call(1, next + 9), issue(next, next + 9));
    assert_eq!(call(1, next), issue(next, next));
    assert_eq!(call(1, next - 1), Err(Refusal::Limit { id: next }));
    let next = page.last_value + 50;
    assert_eq!(call(50, next + 100), issue(next, next + 100));
    assert_eq!(call(50, next + 99), issue(next, next + 50));
}

/// A clock that stands still is a broken one, and no reason to hang.
#[test]
fn frozen_clock_does_not_stall() {
    let mut server = Server::new(1);
    server.clock_stands_still = true;
    let mut last = 0;
    for _ in 0..20_000 {
        let id = server.call().unwrap();
        assert!(id > last);
        last = id;
    }
}

#[test]
fn lead_beyond_the_allowed_skew_is_refused() {
    let mut server = Server::new(1);
    server.call().unwrap();
    server.clock_us -= 3 * 3_600_000_000;
    let Err(Refusal::Skew { ahead_ms, max_ms: TWO_HOURS_MS }) = server.call() else {
        panic!("not refused")
    };
    assert!((10_799_999..=10_800_003).contains(&ahead_ms));

    // Nothing was stored, and what the hint says helps.
    server.clock_us += 3 * 3_600_000_000;
    server.call().unwrap();
}

#[test]
fn skew_of_zero_still_allows_the_slack() {
    let page = State { last_value: pack(START_US / 1_000 + 1, 1, 7), log_cnt: 99, is_called: true };
    let call = Call { max_skew_ms: Some(0), ..PLAIN_CALL };
    let next = page.last_value + 1;
    let issue = |ahead| Ok(Step::Issue { first: next, last: next, ahead });
    assert_eq!(advance(page, &call), issue(false));
    let call = Call { now_us: START_US - 5_000, ..call };
    assert_eq!(advance(page, &call), Err(Refusal::Skew { ahead_ms: 6, max_ms: 0 }));
    let call = Call { max_skew_ms: None, ..call };
    assert_eq!(advance(page, &call), issue(true));
}

#[test]
fn end_of_the_timestamp_is_refused_and_never_wraps() {
    for (last_value, log_cnt) in [(i64::MAX, 0), (i64::MAX, 99), (pack(TIMESTAMP_MS_MAX, 1, 5), 0)]
    {
        let page = State { last_value, log_cnt, is_called: true };
        assert_eq!(advance(page, &PLAIN_CALL), Err(Refusal::Exhausted), "{page:?}");
    }
}

/// A role that may only call `nextval` cannot keep others from their IDs, whatever the state it starts from.
#[test]
fn cores_nextval_in_a_loop_delays_nobody() {
    for back_us in [0, 1_500, 60_000_000] {
        let mut server = Server::new(1);
        server.call().unwrap();
        server.clock_us -= back_us;
        server.setval(server.page.last_value, true);
        for _ in 0..20 {
            let began_us = server.monotonic_us;
            let mut backend = Backend::default();
            while server.turn(&mut backend).is_none() {
                while server.monotonic_us < backend.sleeps_until_us {
                    server.core_nextval();
                    server.pass(1);
                }
            }
            assert!(server.monotonic_us - began_us < 4_000);
        }
    }
}

#[test]
fn unlogged_state_is_ours_but_has_no_lease() {
    let id = pack(START_US / 1_000, 1, 7);
    let stored = without_lease(id);
    assert!(stored.log_cnt > FOREIGN_LOG_CNT_MAX);
    assert_eq!(within_lease(stored, id + 1, 1, 1), None);
}

#[test]
fn lease_ends_at_maxvalue() {
    let id = pack(START_US / 1_000, 1, 7);
    let renewal = new_lease(id, 1, id + 100, 5);
    assert_eq!(renewal.logged.last_value, id + 100);
    assert_eq!(renewal.stored.log_cnt, 100);
    assert_eq!(new_lease(i64::MAX - 5, 1, i64::MAX, 5).logged.last_value, i64::MAX - 5);
}

/// What copies a sequence's state into another file copies its `log_cnt` too.
#[test]
fn a_lease_is_of_one_file() {
    for increment in [1, 50, 2048] {
        let mut server = Server::new(increment);
        let id = server.call().unwrap();
        let next = id + increment;
        assert!(within_lease(server.page, next, increment, server.file).is_some());
        for other_file in (0..1024).filter(|&file| file != server.file) {
            assert_eq!(within_lease(server.page, next, increment, other_file), None);
        }
        // PostgreSQL's nextval leaves the lease as it is.
        let value = (0..100).map(|_| server.core_nextval()).last().unwrap();
        let after = within_lease(server.page, value + increment, increment, server.file).unwrap();
        let end = server.logged.last_value;
        assert_eq!(after.log_cnt, (end - (value + increment)) / increment);
    }
}

/// PostgreSQL's `nextval` carries node 1023 into the next millisecond.
#[test]
fn lead_does_not_grow_by_cores_carry() {
    for increment in [1, 10, 50] {
        let mut server = Server::new(increment);
        server.node = 1023;
        server.call().unwrap();
        server.clock_us -= 1_000_000;
        let lead_ms = ms_of(server.page.last_value) - server.now_ms();
        for _ in 0..500 {
            server.call().unwrap();
            while unpack(server.page.last_value).1 == 1023 {
                server.core_nextval();
            }
            // One carried, one taken after the wait for both.
            assert!(ms_of(server.page.last_value) - server.now_ms() <= lead_ms + 2);
        }
    }
}

#[test]
fn a_lease_serves_its_time() {
    let mut server = Server::new(1);
    let (mut records, mut logged) = (0, server.logged);
    for _ in 0..1_200 {
        server.call().unwrap();
        server.pass(1_000);
        records += i64::from(server.logged != logged);
        logged = server.logged;
    }
    assert!((4..=6).contains(&records), "{records} records in 1.2 s");
}

/// What can happen between two calls.
#[derive(Clone, Debug)]
enum Event {
    Pass(i64),
    CoreNextval(u16),
    Setval(i64, bool),
    SetvalToLast,
    Increment(i64),
    Cache(i64),
    Node(i64),
    Crash,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        8 => (0..3_000i64).prop_map(Event::Pass),
        2 => (0..400_000i64).prop_map(Event::Pass),
        2 => (1..6_000u16).prop_map(Event::CoreNextval),
        2 => (1..10_000i64, any::<bool>()).prop_map(|(last, called)| Event::Setval(last, called)),
        2 => Just(Event::SetvalToLast),
        1 => prop_oneof![Just(1), Just(50), Just(2048)].prop_map(Event::Increment),
        1 => prop_oneof![Just(1), Just(64), Just(4096)].prop_map(Event::Cache),
        2 => (0..4i64).prop_map(Event::Node),
    ]
}

fn event_or_crash() -> impl Strategy<Value = Event> {
    prop_oneof![9 => event(), 1 => Just(Event::Crash)]
}

fn happen(server: &mut Server, event: &Event) {
    match *event {
        Event::Pass(us) => server.pass(us),
        Event::CoreNextval(times) => {
            for _ in 0..times {
                server.core_nextval();
                server.pass(1);
            }
        }
        Event::Setval(last, called) => server.setval(last, called),
        Event::SetvalToLast => server.setval(server.page.last_value, true),
        Event::Increment(increment) => {
            server.increment = increment;
            server.setval(server.page.last_value, server.page.is_called);
        }
        Event::Cache(cache) => server.cache = cache,
        Event::Node(node) => server.node = node,
        Event::Crash => {
            server.crash();
            server.pass(500_000);
        }
    }
}

proptest! {
    /// Under a clock that runs: every ID is new whatever happens to the state, no ID is before its call or more
    /// than the slack ahead of it.
    #[test]
    fn ids_are_new_and_their_time_is_honest(
        events in prop::collection::vec((event_or_crash(), 0..30usize), 1..60),
    ) {
        let mut server = Server::new(1);
        let mut blocks = Blocks::new();
        for (event, calls) in events {
            happen(&mut server, &event);
            for _ in 0..calls {
                let called_ms = server.now_ms();
                let block = server.reserve().unwrap();
                prop_assert!(ms_of(block.0) >= called_ms);
                prop_assert!(ms_of(block.0) <= server.now_ms() + SLACK_MS);
                prop_assert!(
                    reserve(&mut blocks, block, server.increment),
                    "{:?} are repeats after {:?}", block, event
                );
            }
        }
    }

    /// Under any clock: IDs of one node increase, new milliseconds are never further ahead than the state was.
    #[test]
    fn ids_increase_under_any_clock(
        increment in prop_oneof![Just(1), Just(2), Just(50), Just(2048)],
        cache in prop_oneof![Just(1), Just(64), Just(4096)],
        steps in prop::collection::vec((-2_000_000i64..2_000_000, 1..5_000usize), 1..12),
    ) {
        let mut server = Server::new(increment);
        server.cache = cache;
        let mut before = 0;
        for (step_us, calls) in steps {
            server.clock_us += step_us;
            let lead_ms = ms_of(server.page.last_value) - server.now_ms();
            for _ in 0..calls {
                let (first, last) = server.reserve().unwrap();
                prop_assert!(first > before && last >= first);
                prop_assert!(ms_of(last) - server.now_ms() <= lead_ms.max(SLACK_MS));
                before = last;
            }
        }
    }

    /// A crash falls back to a state past all that was issued, by us and by PostgreSQL's `nextval`, even if the clock
    /// steps back at once.
    #[test]
    fn crash_resumes_past_all_that_was_issued(
        increment in prop_oneof![Just(1), Just(50), Just(2048)],
        cache in prop_oneof![Just(1), Just(64), Just(4096)],
        rounds in prop::collection::vec((1..50usize, 0..3_000usize, 0..3_000i64), 1..20),
        back_us in 0..3_600_000_000i64,
    ) {
        let mut server = Server::new(increment);
        server.cache = cache;
        let mut largest = 0;
        for (calls, core_calls, us) in rounds {
            for _ in 0..calls {
                largest = largest.max(server.reserve().unwrap().1);
            }
            for _ in 0..core_calls {
                largest = largest.max(server.core_nextval());
            }
            server.pass(us);
            prop_assert!(server.logged.last_value >= largest);
        }
        server.crash();
        server.clock_us -= back_us;
        prop_assert!(server.clone().core_nextval() > largest);
        prop_assert!(server.call().unwrap() > largest);
    }
}
