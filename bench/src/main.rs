//! Measures what a Snowflake ID costs, beside what else makes keys in PostgreSQL.
//!
//! `make bench` runs it as `snowflake-bench BINDIR FOLDER OUT [quick]`: PostgreSQL's programs, a folder for a cluster of
//! its own, and one for `benchmark.md` and `benchmark.svg`. All contenders take turns, round by round, in one run. It
//! fails if a target is missed by more than the noise; `quick` only shows that everything works.
//!
//! - [`generators`]: what makes keys.
//! - [`experiments`]: what is measured.
//! - [`stats`]: medians and noise.
//! - [`report`]: the tables, the chart, and whether the targets are reached.
//! - [`cluster`]: the server.

mod cluster;
mod experiments;
mod generators;
mod report;
mod stats;

use std::path::Path;
use std::process::{Command, ExitCode};

use crate::cluster::Cluster;
use crate::experiments::{Bench, LIMIT, Size};
use crate::report::{Chart, Verdict};

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let (bindir, folder, out, quick) = match &arguments[..] {
        [bindir, folder, out] => (bindir, folder, Path::new(out), false),
        [bindir, folder, out, quick] if quick == "quick" => (bindir, folder, Path::new(out), true),
        _ => {
            eprintln!("usage: snowflake-bench BINDIR FOLDER OUT [quick]");
            return ExitCode::from(2);
        }
    };
    let cluster = Cluster::start(Path::new(bindir), Path::new(folder));
    let mut bench = Bench::new(&cluster, if quick { Size::QUICK } else { Size::FULL });

    let calls = bench.calls();
    let (bulk_loads, bars) = bench.bulk_loads();
    let small_inserts = bench.small_inserts();
    let (clients, lines) = bench.clients();
    let rest = [bench.many_sequences(), bench.wal(), bench.decoders(), bench.time_range()];

    let introduction = introduction(&mut bench);
    let targets = report::targets_table(&bench.targets);
    let mut tables = vec![targets, calls, bulk_loads, small_inserts, clients];
    tables.extend(rest);
    let page = report::markdown(&introduction, &tables);
    println!("{page}");
    std::fs::write(out.join("benchmark.md"), page).expect("write the tables");
    let chart = Chart { bars, lines, limit: LIMIT };
    report::draw(&chart, &out.join("benchmark.svg")).expect("draw the chart");

    let missed = bench.targets.iter().filter(|target| target.verdict() == Verdict::Missed);
    let missed: Vec<_> = missed.map(|target| target.what).collect();
    if quick || missed.is_empty() {
        return ExitCode::SUCCESS;
    }
    eprintln!("Missed: {}", missed.join("; "));
    ExitCode::FAILURE
}

/// What was measured, where, when, and how to do it again.
fn introduction(bench: &mut Bench) -> String {
    let cpus = std::thread::available_parallelism().map_or(0, usize::from);
    format!(
        "# Benchmark\n\n\
         `make bench` wrote this page, and writes it anew: medians ± the noise, which half of the rounds lie within. All \
         contenders took turns in one run, {rounds} rounds, on a server of its own: `fsync`, autovacuum, JIT and parallel query off, \
         1 GB of shared buffers, no checkpoint while it measures.\n\n\
         ![Seconds for a million rows, and IDs a millisecond by clients](benchmark.svg)\n\n\
         - Date: {date}\n\
         - Machine: {cpus} virtual CPUs of {processor}, Linux {kernel}\n\
         - {postgres}\n\
         - snowflake {extension}, release build, {rustc}\n",
        rounds = bench.rounds_each(),
        date = answer("date", &["+%F"]),
        processor = processor(),
        kernel = answer("uname", &["-r"]),
        postgres = bench.postgres_version(),
        extension = bench.extension_version(),
        rustc = std::env::var("RUSTC_VERSION").unwrap_or("an unknown rustc".into()),
    )
}

fn answer(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    output.map_or("unknown".into(), |output| String::from_utf8_lossy(&output.stdout).trim().into())
}

fn processor() -> String {
    let cpus = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = cpus.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    name.map_or("unknown".into(), |(_, name)| name.into())
}
