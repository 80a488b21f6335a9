//! 64-bit Snowflake IDs for PostgreSQL: unique across servers, sorted by time, made inside the database.
//!
//! The map:
//!
//! - [`constants`]: the format, as widths and what follows from them.
//! - [`snowflake`]: composing and decoding IDs. Pure, as `constants` is.
//! - [`functions`]: the stateless SQL functions.
//! - [`settings`]: `snowflake.node` and `snowflake.max_clock_skew`.
//! - [`error`]: every error, with its SQLSTATE and hint.
//! - [`sequence`]: `snowflake_nextval` and `snowflake_currval`, on a sequence's own page. The only unsafe code.
//!
//! `sql/snowflake.sql` adds what is plain SQL: the sequence `snowflake_id_seq`, the functions that the planner
//! inlines, and a comment on every object. Tests stand beside what they test; `pg_tests` holds those that need a
//! backend, `tests/` those that need psql, several sessions or whole clusters. `docs/operations.md` is for who runs servers,
//! `docs/performance.md` tells where a call's time goes, and `bench/` measures it.

pub mod constants;
pub mod error;
mod functions;
#[cfg(any(test, feature = "pg_test"))]
mod pg_tests;
mod sequence;
mod settings;
pub mod snowflake;

use pgrx::prelude::*;

pgrx::pg_module_magic!(name, version);

extension_sql_file!("../sql/snowflake.sql", name = "snowflake", finalize);

/// Called by PostgreSQL when the library is loaded into a backend.
#[pg_guard]
pub extern "C-unwind" fn _PG_init() {
    settings::register();
    sequence::init();
}

/// What `cargo pgrx test` asks of the crate.
#[cfg(test)]
pub mod pg_test {
    /// Nothing is to be prepared.
    pub fn setup(_options: Vec<&str>) {}

    /// No setting differs from the default.
    #[must_use]
    pub fn postgresql_conf_options() -> Vec<&'static str> {
        vec![]
    }
}
