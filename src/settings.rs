//! The settings `snowflake.node` and `snowflake.max_clock_skew`.

use pgrx::{GucContext, GucFlags, GucRegistry, GucSetting};

use crate::constants::{NODE_ID_DEFAULT, NODE_ID_MAX};
use crate::sequence::compat::MarkGUCPrefixReserved;

static NODE: GucSetting<i32> = GucSetting::<i32>::new(NODE_ID_DEFAULT);
static MAX_CLOCK_SKEW: GucSetting<i32> = GucSetting::<i32>::new(2 * 60 * 60 * 1_000);

/// Defines the settings and reserves their prefix, so that a misspelt one is refused.
pub fn register() {
    GucRegistry::define_int_guc(
        c"snowflake.node",
        c"Sets the node number of the Snowflake IDs that this server makes.",
        c"Servers whose IDs must never clash need different numbers.",
        &NODE,
        0,
        i32::try_from(NODE_ID_MAX).expect("constants.rs asserts that a node fits an SQL integer"),
        GucContext::Suset,
        GucFlags::default(),
    );
    GucRegistry::define_int_guc(
        c"snowflake.max_clock_skew",
        c"Sets how far a sequence may be ahead of the clock before snowflake_nextval fails.",
        c"-1 is no bound.",
        &MAX_CLOCK_SKEW,
        -1,
        i32::MAX,
        GucContext::Suset,
        GucFlags::UNIT_MS,
    );
    MarkGUCPrefixReserved(c"snowflake");
}

/// `snowflake.node`, 0 to 1023.
pub fn node() -> i64 {
    NODE.get().into()
}

/// `snowflake.max_clock_skew` in milliseconds; `None` where there is no bound.
pub fn max_clock_skew_ms() -> Option<i64> {
    match MAX_CLOCK_SKEW.get() {
        -1 => None,
        ms => Some(ms.into()),
    }
}
