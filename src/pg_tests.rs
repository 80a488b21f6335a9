//! What ties the SQL objects to the Rust constants, tested in a backend.

use pgrx::prelude::*;

#[pg_schema]
mod tests {
    use pgrx::prelude::*;

    use crate::constants::{EPOCH_MS_DEFAULT, NODE_ID_DEFAULT, NODE_ID_MAX, SEQUENCE_ID_MAX};
    use crate::snowflake::{decode_timestamp_ms, read_unix_micros, unpack};

    fn number(query: &str) -> i64 {
        Spi::get_one(query).expect(query).expect("not NULL")
    }

    #[pg_test]
    fn every_default_epoch_is_the_constant() {
        let others = number(&format!(
            "SELECT count(*) FROM pg_proc WHERE proname LIKE 'snowflake\\_%' AND proargnames @> '{{epoch}}' \
             AND pg_get_function_arguments(oid) NOT LIKE '%epoch bigint DEFAULT ''{EPOCH_MS_DEFAULT}''::bigint%' \
             AND pg_get_function_arguments(oid) NOT LIKE '%epoch bigint DEFAULT {EPOCH_MS_DEFAULT}%'"
        ));
        assert_eq!(others, 0);
        let with_epoch = number("SELECT count(*) FROM pg_proc WHERE proargnames @> '{epoch}'");
        assert_eq!(with_epoch, 9);
    }

    #[pg_test]
    fn node_setting_has_the_fields_range() {
        assert_eq!(number("SELECT snowflake_current_node()::bigint"), i64::from(NODE_ID_DEFAULT));
        let max = "SELECT max_val::bigint FROM pg_settings WHERE name = 'snowflake.node'";
        assert_eq!(number(max), NODE_ID_MAX);
    }

    #[pg_test]
    fn id_has_the_time_of_its_call() {
        Spi::run("CREATE SEQUENCE s").unwrap();
        // The first call may wait; the second is at the clock.
        number("SELECT snowflake_nextval('s')");
        for _ in 0..100 {
            let before_ms = read_unix_micros().div_euclid(1_000);
            let id = number("SELECT snowflake_nextval('s')");
            let after_ms = read_unix_micros().div_euclid(1_000);
            let made_ms = decode_timestamp_ms(id, EPOCH_MS_DEFAULT).unwrap();
            assert!((before_ms..=after_ms + 1).contains(&made_ms));
        }
    }

    #[pg_test]
    fn counter_of_the_sequence_is_its_value_mod_4096() {
        Spi::run("CREATE SEQUENCE s").unwrap();
        for counter in 1..=3 {
            let id = number("SELECT snowflake_nextval('s')");
            assert_eq!(id % (SEQUENCE_ID_MAX + 1), counter);
            assert_eq!(number("SELECT last_value FROM s"), id);
        }
    }

    #[pg_test(error = "node_id must be in [0, 1023], got 1024")]
    fn node_out_of_range_is_raised() {
        number("SELECT snowflake_compose(0, 1024, -1)");
    }

    #[pg_test(error = "sequence_id must be in [0, 4095], got 5000000000")]
    fn sequence_out_of_range_is_raised() {
        number("SELECT snowflake_generate(5000000000)");
    }

    #[pg_test]
    fn sql_decodes_as_rust_does() {
        for bits in 0..63 {
            let id = i64::MAX >> bits;
            let epoch = EPOCH_MS_DEFAULT * bits % 7;
            let (ms, node, sequence) = unpack(id);
            let answers = format!(
                "SELECT bool_and(ok)::int::bigint FROM unnest(ARRAY[
                    snowflake_timestamp_ms({id}, {epoch}) = {ms}::bigint + {epoch},
                    snowflake_node({id}) = {node},
                    snowflake_sequence({id}) = {sequence},
                    snowflake_compose({ms}::bigint + {epoch}, {node}, {sequence}, {epoch}) = {id},
                    snowflake_compose(snowflake_timestamp({id}, {epoch}), {node}, {sequence}, {epoch}) = {id}
                ]) ok"
            );
            assert_eq!(number(&answers), 1, "{id}");
        }
    }
}
