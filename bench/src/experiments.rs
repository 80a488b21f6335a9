//! What is measured. Each experiment runs all its rounds, and in each round all contenders take turns.

use std::collections::BTreeMap;
use std::sync::Barrier;
use std::thread;
use std::time::Instant;

use postgres::{Client, Row};

use crate::cluster::Cluster;
use crate::generators::{self, Generator, Rivals, SEQUENCES};
use crate::report::{Goal, Table, Target, cell};
use crate::stats::Samples;

/// IDs that the format has room for in a millisecond of one sequence.
pub const LIMIT: f64 = 4096.0;

/// How much work the experiments do.
pub struct Size {
    rounds: usize,
    /// Of a bulk load, and IDs of a query.
    rows: usize,
    /// Rows of the table that is searched by time.
    events: usize,
    /// Of one run of pgbench.
    seconds: u32,
}

impl Size {
    pub const FULL: Self = Self { rounds: 9, rows: 1_000_000, events: 5_000_000, seconds: 3 };
    /// Enough to see that all of it works.
    pub const QUICK: Self = Self { rounds: 1, rows: 20_000, events: 50_000, seconds: 1 };
}

pub struct Bench<'a> {
    cluster: &'a Cluster,
    client: Client,
    size: Size,
    rivals: Rivals,
    others: Vec<Generator>,
    pub targets: Vec<Target>,
}

/// A table, and what the chart takes from it: by generator, seconds, or IDs a millisecond by the number of clients.
pub type Charted<T> = (Table, Vec<(String, T)>);

impl<'a> Bench<'a> {
    pub fn new(cluster: &'a Cluster, size: Size) -> Self {
        let mut client = cluster.connect();
        let rivals = generators::create(&mut client);
        let others = generators::others(&mut client);
        let mut bench = Self { cluster, client, size, rivals, others, targets: vec![] };
        // The first call of a new sequence waits, up to 2 ms.
        for generator in bench.generators() {
            (0..SEQUENCES).for_each(|n| bench.run(&format!("SELECT {}", generator.call(n))));
        }
        bench
    }

    /// All that are measured, [`Rivals::all`] first.
    fn generators(&self) -> Vec<Generator> {
        [&self.rivals.all()[..], &self.others].concat()
    }

    /// Of each experiment.
    pub fn rounds_each(&self) -> usize {
        self.size.rounds
    }

    /// As PostgreSQL tells it.
    pub fn postgres_version(&mut self) -> String {
        self.one("SELECT version()").get(0)
    }

    pub fn extension_version(&mut self) -> String {
        self.one("SELECT extversion FROM pg_extension WHERE extname = 'snowflake'").get(0)
    }

    /// The call alone: on several sequences, so that none comes to the format's limit.
    pub fn calls(&mut self) -> Table {
        let rows = self.size.rows / 10;
        let generators = self.generators();
        let query = |call: &dyn Fn(usize) -> String| {
            let counts: Vec<_> = (0..SEQUENCES).map(|n| format!("count({})", call(n))).collect();
            format!("SELECT {} {}", counts.join(", "), from_rows(rows))
        };
        // Casts that cost nothing: of two equal aggregates PostgreSQL would work out one.
        let casts = ["", "::oid", "::regclass", "::regproc", "::regtype"];
        let base = query(&|n| format!("{}{}", ["a", "b"][n % 2], casts[n / 2]));
        let samples = self.rounds("a call", &generators, Generator::name, |bench, generator| {
            bench.nanos(&base, &query(&|n| generator.call(n)), rows * SEQUENCES)
        });
        let transactions = rows / 5;
        let each = |call: &str| {
            format!(
                "DO $$ BEGIN FOR n IN 1..{transactions} LOOP PERFORM {call}; COMMIT; END LOOP; END $$"
            )
        };
        let first =
            self.rounds("the first call", &generators, Generator::name, |bench, generator| {
                bench.nanos(&each("n"), &each(&generator.call(0)), transactions)
            });
        self.targets.push(Target {
            what: "a call, CACHE 1: of `nextval`",
            goals: vec![Goal::at_most(1.0, samples[OURS].ratio(&samples[CORE]))],
        });

        let text = format!(
            "Nanoseconds. Many calls in one query: {} rows of {SEQUENCES} calls, each on a sequence of its own, so that none \
             comes to the format's limit; less the same query without the calls. One call a transaction: {} transactions of \
             PL/pgSQL, less as many without the call. `snowflake_generate` and the recipe are called with a `nextval`.",
            thousands(rows),
            thousands(transactions)
        );
        let header =
            ["generator", "many calls", "of nextval", "one call a transaction", "of nextval"];
        let mut table = Table::new("Cost of a call", text, &header);
        for ((generator, ns), first_ns) in generators.iter().zip(&samples).zip(&first) {
            let cells = [beside(ns, &samples[CORE], 0), beside(first_ns, &first[CORE], 0)];
            table.row([generator.name()].into_iter().chain(cells.concat()));
        }
        table
    }

    /// Bulk loads, into a table keyed by the ID.
    pub fn bulk_loads(&mut self) -> Charted<f64> {
        let rows = self.size.rows;
        let generators = self.generators();
        self.run(&format!(
            "COPY (SELECT 1 {}) TO '{}'",
            from_rows(rows),
            self.cluster.file("rows")
        ));
        let insert = format!("INSERT INTO t (value) SELECT 1 {}", from_rows(rows));
        let copy = format!("COPY t (value) FROM '{}'", self.cluster.file("rows"));
        let inserts =
            self.rounds("INSERT ... SELECT", &generators, Generator::name, |bench, generator| {
                bench.create_table(generator);
                bench.seconds(&insert)
            });
        let mut sizes = BTreeMap::new();
        let copies = self.rounds("COPY", &generators, Generator::name, |bench, generator| {
            bench.create_table(generator);
            let seconds = bench.seconds(&copy);
            let size = bench.one(
                "SELECT pg_table_size('t') / 1e6::float8, pg_relation_size('t_pkey') / 1e6::float8",
            );
            sizes.insert(generator.name(), (size.get::<_, f64>(0), size.get::<_, f64>(1)));
            seconds
        });
        let at_most = |bound, ours: usize, core: usize| {
            vec![Goal::at_most(bound, inserts[ours].ratio(&inserts[core]))]
        };
        self.targets.push(Target {
            what: "1M-row INSERT ... SELECT, CACHE 1: of `nextval`",
            goals: at_most(1.0, OURS, CORE),
        });
        self.targets.push(Target {
            what: "1M-row INSERT ... SELECT, CACHE 64: of `nextval`, CACHE 64",
            goals: at_most(0.92, OURS_64, CORE_64),
        });

        let text = format!(
            "{} rows into `(id PRIMARY KEY DEFAULT ..., value int)`, by INSERT ... SELECT and by COPY, and how large the table and \
             its key's index then are. PostgreSQL inserts the rows of a COPY many at a time, but for volatile defaults, of which \
             only its own `nextval` is excepted.",
            thousands(rows)
        );
        let header = [
            "generator",
            "INSERT, s",
            "of nextval",
            "COPY, s",
            "of nextval",
            "table, MB",
            "index, MB",
        ];
        let mut table = Table::new("Bulk loads", text, &header);
        for ((generator, insert), copy) in generators.iter().zip(&inserts).zip(&copies) {
            let (heap, index) = sizes[&generator.name()];
            let sizes = [heap, index].map(|size| format!("{size:.1}"));
            let cells = [beside(insert, &inserts[CORE], 2), beside(copy, &copies[CORE], 2), sizes];
            table.row([generator.name()].into_iter().chain(cells.concat()));
        }
        let names = generators.iter().map(|generator| generator.name());
        (table, names.zip(inserts.iter().map(Samples::median)).collect())
    }

    /// One row a transaction.
    pub fn small_inserts(&mut self) -> Table {
        const CLIENTS: u32 = 8;
        let Rivals { ours, ours_64, ours_4096, core, .. } = self.rivals.clone();
        let generators = [ours, ours_64, ours_4096, core];
        let samples =
            self.rounds("single rows", &generators, Generator::name, |bench, generator| {
                bench.create_table(generator);
                bench.cluster.pgbench(
                    "INSERT INTO t (value) VALUES (1)",
                    CLIENTS,
                    bench.size.seconds,
                )
            });
        let core = &samples[3];
        for (what, tps) in [
            "single-row INSERTs by 8 clients, CACHE 1: of `nextval`",
            "single-row INSERTs by 8 clients, CACHE 64: of `nextval`, CACHE 1",
            "single-row INSERTs by 8 clients, CACHE 4096: of `nextval`, CACHE 1",
        ]
        .into_iter()
        .zip(&samples)
        {
            self.targets.push(Target { what, goals: vec![Goal::at_least(0.95, tps.ratio(core))] });
        }

        let text = format!(
            "pgbench with {CLIENTS} clients, each INSERT its own transaction. fsync is off."
        );
        let header = ["generator", "rows a second", "of nextval, CACHE 1"];
        let mut table = Table::new("Single rows", text, &header);
        for (generator, tps) in generators.iter().zip(&samples) {
            table.row([generator.name()].into_iter().chain(beside(tps, core, 0)));
        }
        table
    }

    /// Calls without end on one sequence, by more and more clients.
    pub fn clients(&mut self) -> Charted<Vec<(u32, f64)>> {
        const CLIENTS: [u32; 5] = [1, 2, 4, 8, 16];
        let generators = self.rivals.all();
        let of = |generator: &Generator, clients| (generator.name(), clients);
        let contenders: Vec<_> = CLIENTS
            .into_iter()
            .flat_map(|clients| generators.clone().map(|generator| (generator, clients)))
            .collect();
        let name =
            |(generator, clients): &(Generator, u32)| format!("{clients}, {}", generator.name());
        let rows = self.size.rows * 2;
        let mut shares = BTreeMap::<_, Samples>::new();
        let rates = self.rounds("clients", &contenders, name, |bench, (generator, clients)| {
            let taken = bench.take(generator, rows, *clients);
            shares.entry(of(generator, *clients)).or_default().push(taken.share());
            taken.ids as f64 / taken.seconds() / 1_000.0
        });
        let keys = contenders.iter().map(|(generator, clients)| of(generator, *clients));
        let rates: BTreeMap<_, _> = keys.zip(rates).collect();

        let Rivals { ours, ours_64, core, .. } = &self.rivals;
        let share =
            |generator, clients| Goal::at_least(0.98, shares[&of(generator, clients)].clone());
        let of_core = rates[&of(ours, 8)].ratio(&rates[&of(core, 8)]);
        for (what, goals) in [
            ("one client, CACHE 1: of the format's limit", vec![share(ours, 1)]),
            ("one client, CACHE 64: of the format's limit", vec![share(ours_64, 1)]),
            (
                "8 clients on one sequence, CACHE 1: of the format's limit, or of `nextval`'s rate",
                vec![share(ours, 8), Goal::at_least(0.95, of_core)],
            ),
            ("8 clients on one sequence, CACHE 64: of the format's limit", vec![share(ours_64, 8)]),
        ] {
            self.targets.push(Target { what, goals });
        }

        let text = format!(
            "{} IDs of one sequence, shared among the clients: IDs a millisecond, from the first client's start to the last one's \
             end. The format has room for {LIMIT}; `nextval` has no such limit. (The targets count from the first ID to the last.)",
            thousands(rows)
        );
        let mut table = Table::new("Clients", text, &["generator", "1", "2", "4", "8", "16"]);
        let mut lines = vec![];
        for (n, generator) in generators.iter().enumerate() {
            let rates = CLIENTS.map(|clients| &rates[&of(generator, clients)]);
            table.row([generator.name()].into_iter().chain(rates.map(|rate| cell(rate, 0))));
            // Beside that one all others would be one line in the chart.
            if n != CORE_64 {
                let points = CLIENTS.into_iter().zip(rates.map(Samples::median));
                lines.push((generator.name(), points.collect()));
            }
        }
        (table, lines)
    }

    /// Calls in one session on more and more sequences.
    pub fn many_sequences(&mut self) -> Table {
        const COUNTS: [usize; 3] = [10, 100, 1000];
        let most = COUNTS[COUNTS.len() - 1];
        self.run(&format!(
            "DO $$ BEGIN FOR n IN 1..{most} LOOP EXECUTE format('CREATE SEQUENCE many_%s', n); END LOOP; END $$"
        ));
        // As in `new`.
        for f in ["snowflake_nextval", "nextval"] {
            self.run(&format!("SELECT count({f}('many_' || n)) FROM generate_series(1, {most}) n"));
        }
        let calls = self.size.rows / 4;
        let contenders: Vec<_> = ["snowflake_nextval", "nextval"]
            .into_iter()
            .flat_map(|f| COUNTS.map(|count| (f, count)))
            .collect();
        let name = |(f, count): &(&str, usize)| format!("{f}, {count} sequences");
        let samples = self.rounds("many sequences", &contenders, name, |bench, (f, count)| {
            let from = format!(
                "FROM (SELECT array_agg(('many_' || n)::regclass) AS seqs FROM generate_series(1, {count}) n) s, \
                 generate_series(1, {calls}) call"
            );
            let sequence = format!("seqs[1 + call % {count}]");
            let query = |counted: &str| format!("SELECT count({counted}) {from}");
            bench.nanos(&query(&sequence), &query(&format!("{f}({sequence})")), calls)
        });

        let text = "Nanoseconds a call, when a session's calls go round so many sequences.";
        let mut table = Table::new("Sequences", text, &["generator", "10", "100", "1000"]);
        for (f, samples) in
            ["snowflake_nextval", "nextval"].into_iter().zip(samples.chunks(COUNTS.len()))
        {
            table.row([f.to_string()].into_iter().chain(samples.iter().map(|ns| cell(ns, 0))));
        }
        table
    }

    /// What IDs without rows write.
    pub fn wal(&mut self) -> Table {
        let rows = self.size.rows;
        let samples =
            self.rounds("WAL", &self.rivals.all(), Generator::name, |bench, generator| {
                let at = |bench: &mut Self| -> f64 {
                    bench.one("SELECT (pg_current_wal_insert_lsn() - '0/0')::float8").get(0)
                };
                let before = at(bench);
                bench.take(generator, rows, 1);
                at(bench) - before
            });
        for (what, n) in [
            ("WAL of 1M IDs, CACHE 1, in bytes", OURS),
            ("WAL of 1M IDs, CACHE 64, in bytes", OURS_64),
        ] {
            self.targets
                .push(Target { what, goals: vec![Goal::at_most(1_000.0, samples[n].clone())] });
        }

        let text = format!("Bytes that {} IDs write in one query, and no rows.", thousands(rows));
        let mut table = Table::new("WAL", text, &["generator", "bytes"]);
        for (generator, bytes) in self.rivals.all().iter().zip(&samples) {
            table.row([generator.name(), cell(bytes, 0)]);
        }
        table
    }

    /// Decoders against the same bits by PostgreSQL's operators.
    pub fn decoders(&mut self) -> Table {
        let rows = self.size.rows * 2;
        self.run(&format!(
            "CREATE TABLE ids AS SELECT snowflake_compose(1288834974657 + n, n % 1024, n % 4096) AS id \
             FROM generate_series(1, {rows}) n"
        ));
        self.run("VACUUM ANALYZE ids");
        let pair = |&(name, operators)| [name, operators];
        let contenders: Vec<_> = DECODERS.iter().flat_map(pair).collect();
        let name = |expression: &&str| expression.to_string();
        let samples = self.rounds("decoders", &contenders, name, |bench, expression| {
            let query = |counted: &str| format!("SELECT count({counted}) FROM ids");
            bench.nanos(&query("id"), &query(expression), rows)
        });

        let text = format!(
            "Nanoseconds a row over {} rows, less the query without it, and the same bits by PostgreSQL's own operators and functions.",
            thousands(rows)
        );
        let mut table = Table::new("Decoders", text, &["function", "ns", "operators", "ns"]);
        for ((what, operators), ns) in DECODERS.into_iter().zip(samples.chunks(2)) {
            let code = |expression: &str| format!("`{}`", expression.replace('|', "\\|"));
            table.row([code(what), cell(&ns[0], 0), code(operators), cell(&ns[1], 0)]);
            self.targets
                .push(Target { what, goals: vec![Goal::at_most(1.25, ns[0].ratio(&ns[1]))] });
        }
        table
    }

    /// A range of time by the primary key, and by an index on a column of its own.
    pub fn time_range(&mut self) -> Table {
        let events = self.size.events;
        self.run(&format!(
            "CREATE TABLE events (id bigint PRIMARY KEY, created_at timestamptz NOT NULL, value int NOT NULL); \
             INSERT INTO events SELECT snowflake_compose(at, 1, n % 4096), at, n % 100 \
             FROM (SELECT n, '2026-01-01'::timestamptz + n * interval '5 ms' AS at FROM generate_series(1, {events}) n) s; \
             CREATE INDEX events_created_at ON events (created_at)"
        ));
        self.run("VACUUM ANALYZE events");
        // A hundredth of the rows, in the middle.
        let bound = |part: f64| {
            format!("('2026-01-01'::timestamptz + {} * interval '5 ms')", events as f64 * part)
        };
        let (since, until) = (bound(0.5), bound(0.51));
        let by_id = format!("snowflake_between(id, {since}, {until})");
        let by_column = format!("created_at >= {since} AND created_at < {until}");
        let counts = [&by_id, &by_column].map(|range| -> i64 {
            self.one(&format!("SELECT count(*) FROM events WHERE {range}")).get(0)
        });
        assert_eq!(counts[0], counts[1], "both ranges must be of the same rows");
        let contenders = [
            ("snowflake_between on the primary key", by_id),
            ("an index on created_at", by_column),
        ];
        let name = |(name, _): &(&str, String)| name.to_string();
        let samples = self.rounds("time range", &contenders, name, |bench, (_, range)| {
            let query = format!("SELECT sum(value) FROM events WHERE {range}");
            (0..20).map(|_| bench.seconds(&query)).sum::<f64>() * 1_000.0 / 20.0
        });
        self.targets.push(Target {
            what: "a range of time by `snowflake_between`: of an index on `created_at`",
            goals: vec![Goal::at_most(1.0, samples[0].ratio(&samples[1]))],
        });

        let index: f64 =
            self.one("SELECT pg_relation_size('events_created_at') / 1e6::float8").get(0);
        let text = format!(
            "The sum over {} of {} rows: by the primary key, or by an index of {index:.0} MB besides.",
            thousands(usize::try_from(counts[0]).unwrap_or(0)),
            thousands(events)
        );
        let mut table = Table::new("A range of time", text, &["by", "ms"]);
        for ((name, _), ms) in contenders.iter().zip(&samples) {
            table.row([(*name).into(), cell(ms, 2)]);
        }
        table
    }

    /// One sample a round of each contender. Every second round goes backwards: none always comes after the same other.
    fn rounds<C>(
        &mut self,
        what: &str,
        contenders: &[C],
        name: impl Fn(&C) -> String,
        mut measure: impl FnMut(&mut Self, &C) -> f64,
    ) -> Vec<Samples> {
        let mut samples = vec![Samples::default(); contenders.len()];
        let rounds = self.size.rounds;
        for round in 1..=rounds {
            let mut turns: Vec<_> = contenders.iter().zip(&mut samples).collect();
            if round % 2 == 0 {
                turns.reverse();
            }
            for (contender, samples) in turns {
                eprintln!("{what}, round {round} of {rounds}: {}", name(contender));
                samples.push(measure(self, contender));
            }
        }
        samples
    }

    /// Takes so many IDs of one sequence, by so many clients at once.
    fn take(&self, generator: &Generator, ids: usize, clients: u32) -> Taken {
        let call = generator.call(0);
        let ids = from_rows(ids / clients as usize);
        let query = format!("SELECT count(*), min(id), max(id) FROM (SELECT {call} AS id {ids}) s");
        let start = Barrier::new(clients as usize);
        let take = || {
            let mut client = self.cluster.connect();
            // What a session does once is not of the rate.
            client.query_one(&format!("SELECT {call}"), &[]).expect("take an ID");
            start.wait();
            let began = Instant::now();
            let row = client.query_one(&query, &[]).expect("take IDs");
            Taken {
                ids: row.get(0),
                first: row.get(1),
                last: row.get(2),
                began,
                ended: Instant::now(),
            }
        };
        thread::scope(|scope| {
            let threads: Vec<_> = (0..clients).map(|_| scope.spawn(take)).collect();
            let taken = threads.into_iter().map(|thread| thread.join().expect("a client"));
            taken.reduce(Taken::and).expect("there is a client")
        })
    }

    fn create_table(&mut self, generator: &Generator) {
        self.run(&format!(
            "DROP TABLE IF EXISTS t; CREATE TABLE t (id {} PRIMARY KEY DEFAULT {}, value int)",
            generator.column_type(),
            generator.call(0)
        ));
        // So that none happens in the middle of a measurement.
        self.run("CHECKPOINT");
    }

    /// What a call costs: the statement with so many of them, less the one without.
    fn nanos(&mut self, without: &str, with: &str, calls: usize) -> f64 {
        let without = self.seconds(without);
        (self.seconds(with) - without) * 1e9 / calls as f64
    }

    fn seconds(&mut self, statement: &str) -> f64 {
        let began = Instant::now();
        self.run(statement);
        began.elapsed().as_secs_f64()
    }

    fn run(&mut self, statements: &str) {
        let done = self.client.batch_execute(statements);
        done.unwrap_or_else(|error| panic!("{statements}: {error:?}"));
    }

    fn one(&mut self, query: &str) -> Row {
        self.client.query_one(query, &[]).unwrap_or_else(|error| panic!("{query}: {error:?}"))
    }
}

/// Where each stands among [`Rivals::all`].
const OURS: usize = 0;
const CORE: usize = 1;
const OURS_64: usize = 2;
const CORE_64: usize = 3;

/// Each function, and the same by PostgreSQL's own operators and functions.
const DECODERS: [(&str, &str); 9] = [
    ("snowflake_timestamp_ms(id)", "(id >> 22) + 1288834974657"),
    ("snowflake_timestamp(id)", "to_timestamp(((id >> 22) + 1288834974657)::float8 / 1000)"),
    ("snowflake_node(id)", "((id >> 12) & 1023)::int"),
    ("snowflake_datacenter(id)", "((id >> 17) & 31)::int"),
    ("snowflake_worker(id)", "((id >> 12) & 31)::int"),
    ("snowflake_sequence(id)", "(id & 4095)::int"),
    (
        "snowflake_decode(id)",
        "ROW(id, to_timestamp(((id >> 22) + 1288834974657)::float8 / 1000), (id >> 22) + 1288834974657, ((id >> 12) & 1023)::int, \
         ((id >> 17) & 31)::int, ((id >> 12) & 31)::int, (id & 4095)::int)",
    ),
    (
        "snowflake_bits(id)",
        "'0 ' || (id >> 22)::bit(41)::text || ' ' || (id >> 17)::bit(5)::text || ' ' || (id >> 12)::bit(5)::text || ' ' || \
         id::bit(12)::text",
    ),
    (
        "snowflake_generate(id % 4096)",
        "((floor(date_part('epoch', clock_timestamp()) * 1000)::bigint - 1288834974657) << 22) | (1 << 12) | (id % 4096)",
    ),
];

/// IDs of one sequence, from first to last.
struct Taken {
    ids: i64,
    first: i64,
    last: i64,
    began: Instant,
    ended: Instant,
}

impl Taken {
    /// Together with what another client took meanwhile.
    fn and(self, other: Self) -> Self {
        Self {
            ids: self.ids + other.ids,
            first: self.first.min(other.first),
            last: self.last.max(other.last),
            began: self.began.min(other.began),
            ended: self.ended.max(other.ended),
        }
    }

    fn seconds(&self) -> f64 {
        self.ended.duration_since(self.began).as_secs_f64()
    }

    /// The share that they are of what the format has room for from the first to the last: the counter runs on from
    /// millisecond to millisecond.
    fn share(&self) -> f64 {
        let place = |id: i64| (id >> 22) * 4096 + id % 4096;
        self.ids as f64 / (place(self.last) - place(self.first) + 1) as f64
    }
}

/// The cells of a figure, and of its ratio to another one.
fn beside(samples: &Samples, other: &Samples, decimals: usize) -> [String; 2] {
    [cell(samples, decimals), cell(&samples.ratio(other), 2)]
}

/// So many rows, a multiple of 1000 or less than that, made as they are asked for. Columns a and b.
fn from_rows(rows: usize) -> String {
    let inner = rows.min(1_000);
    format!("FROM generate_series(1, {}) a, generate_series(1, {inner}) b", rows / inner)
}

/// With commas.
fn thousands(number: usize) -> String {
    let digits = number.to_string();
    let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy).collect();
    groups.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn share_is_of_the_places_between_first_and_last() {
        let place = |ms: i64, counter: i64| (ms << 22) | (1 << 12) | counter;
        let now = Instant::now();
        let taken = |ids, first, last| Taken { ids, first, last, began: now, ended: now };
        assert_eq!(taken(4096, place(7, 100), place(8, 99)).share(), 1.0);
        assert_eq!(taken(4096, place(7, 0), place(8, 4095)).share(), 0.5);
        let both = taken(1, place(7, 5), place(7, 5)).and(taken(1, place(7, 6), place(7, 6)));
        assert_eq!(both.share(), 1.0);
    }

    #[test]
    fn numbers_have_commas() {
        assert_eq!([0, 999, 1_000, 5_000_000].map(thousands), ["0", "999", "1,000", "5,000,000"]);
    }
}
