//! A PostgreSQL of its own, on a Unix socket in its own folder.

use std::path::{Path, PathBuf};
use std::process::Command;

use postgres::{Client, NoTls};

/// Stopped when it is dropped.
pub struct Cluster {
    bindir: PathBuf,
    folder: PathBuf,
}

/// What is measured is the server's work, not the disk's, and nothing else works meanwhile.
const SETTINGS: &str = "
listen_addresses = ''
fsync = off
shared_buffers = '1GB'
max_wal_size = '8GB'
checkpoint_timeout = '1h'
autovacuum = off
jit = off
max_parallel_workers_per_gather = 0
max_connections = 40
";

impl Cluster {
    /// Makes and starts it in the folder, which must exist and be this user's.
    pub fn start(bindir: &Path, folder: &Path) -> Self {
        let cluster = Self { bindir: bindir.into(), folder: folder.into() };
        run(cluster
            .program("initdb")
            .args(["-A", "trust", "-U", "postgres", "-D"])
            .arg(cluster.data()));
        let settings = format!("{SETTINGS}unix_socket_directories = '{}'\n", folder.display());
        std::fs::write(cluster.data().join("postgresql.auto.conf"), settings)
            .expect("write settings");
        run(cluster.pg_ctl("start").arg("-l").arg(folder.join("log")));
        cluster
    }

    pub fn connect(&self) -> Client {
        let mut config = postgres::Config::new();
        config.host_path(&self.folder).user("postgres").dbname("postgres");
        config.connect(NoTls).expect("connect to the cluster")
    }

    /// Transactions a second of some clients, each of which runs the script again and again.
    pub fn pgbench(&self, script: &str, clients: u32, seconds: u32) -> f64 {
        let path = self.folder.join("script.sql");
        std::fs::write(&path, script).expect("write the script");
        let output = self
            .program("pgbench")
            .args(["-n", "-U", "postgres", "-M", "prepared", "-j", "2"])
            .args(["-c", &clients.to_string(), "-T", &seconds.to_string()])
            .arg("-f")
            .arg(path)
            .arg("-h")
            .arg(&self.folder)
            .arg("postgres")
            .output()
            .expect("run pgbench");
        // With clients that gave up it prints a figure all the same.
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "pgbench failed: {errors}");
        let output = String::from_utf8_lossy(&output.stdout).into_owned();
        let tps = output.lines().find_map(|line| line.strip_prefix("tps = "));
        let tps = tps.and_then(|tps| tps.split(' ').next()?.parse().ok());
        tps.unwrap_or_else(|| panic!("pgbench printed no tps: {output}"))
    }

    /// A file in the cluster's folder.
    pub fn file(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    fn pg_ctl(&self, action: &str) -> Command {
        let mut command = self.program("pg_ctl");
        command.args([action, "-w", "-s", "-D"]).arg(self.data());
        command
    }

    fn program(&self, name: &str) -> Command {
        let mut command = Command::new(self.bindir.join(name));
        command.current_dir(&self.folder).env_remove("RUST_BACKTRACE");
        command
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let _ = self.pg_ctl("stop").args(["-m", "immediate"]).status();
    }
}

fn run(command: &mut Command) {
    let output = command.output().expect("run a program of PostgreSQL");
    assert!(
        output.status.success(),
        "{command:?} failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}
