use proptest::prelude::*;

use super::*;
use crate::constants::{DATACENTER_ID_BITS, EPOCH_MS_DEFAULT as E};

#[test]
fn fields_fill_a_bigint() {
    assert_eq!((TIMESTAMP_BITS, NODE_ID_BITS, SEQUENCE_ID_BITS), (41, 10, 12));
    assert_eq!((TIMESTAMP_MS_MAX, NODE_ID_MAX, SEQUENCE_ID_MAX), ((1 << 41) - 1, 1023, 4095));
    assert_eq!((TIMESTAMP_SHIFT, NODE_ID_SHIFT), (22, 12));
    assert_eq!(
        compose_snowflake_id(E + TIMESTAMP_MS_MAX, NODE_ID_MAX, SEQUENCE_ID_MAX, E),
        Ok(i64::MAX)
    );
}

#[test]
fn corners_round_trip() {
    for sequence in [0, SEQUENCE_ID_MAX] {
        for node in [0, NODE_ID_MAX] {
            for ms in [0, 1, TIMESTAMP_MS_MAX] {
                let id = compose_snowflake_id(E + ms, node, sequence, E).unwrap();
                assert!(id >= 0);
                assert_eq!(decode_timestamp_ms(id, E), Ok(E + ms));
                assert_eq!(decode_node_id(id), Ok(node));
                assert_eq!(decode_sequence_id(id), Ok(sequence));
            }
        }
    }
}

#[test]
fn worked_example() {
    let node = compose_node_id(1, 1).unwrap();
    assert_eq!(compose_snowflake_id(1_288_834_975_657, node, 0, E), Ok(4_194_439_168));
    assert_eq!(4_194_439_168_i64, 4_194_304_000 + 131_072 + 4_096);
    assert_eq!(
        format_bits(4_194_439_168).unwrap(),
        "0 00000000000000000000000000000001111101000 00001 00001 000000000000"
    );
}

/// A published ID: <https://en.wikipedia.org/wiki/Snowflake_ID>.
#[test]
fn published_id_decodes() {
    let id = 1_541_815_603_606_036_480;
    assert_eq!(decode_timestamp_ms(id, E), Ok(1_656_432_460_105));
    assert_eq!(decode_node_id(id), Ok(378));
    assert_eq!((decode_datacenter_id(id), decode_worker_id(id)), (Ok(11), Ok(26)));
    assert_eq!(decode_sequence_id(id), Ok(0));
}

/// A published ID of another epoch: <https://discord.com/developers/docs/reference#snowflakes>.
#[test]
fn published_id_of_another_epoch_decodes() {
    // 2016-04-30 11:18:25.796 UTC
    assert_eq!(
        decode_timestamp_ms(175_928_847_299_117_063, 1_420_070_400_000),
        Ok(1_462_015_105_796)
    );
}

#[test]
fn node_is_checked_before_sequence_and_both_before_time() {
    let out_of_range = |name, max, got| Err(Error::OutOfRange { name, max, got });
    for node in [-1, 1024, i64::MIN, i64::MAX] {
        assert_eq!(compose_snowflake_id(-1, node, -1, E), out_of_range("node_id", 1023, node));
        assert_eq!(generate_snowflake_id(-1, node, E), out_of_range("node_id", 1023, node));
    }
    for sequence in [-1, 4096, 5_000_000_000] {
        let expected = out_of_range("sequence_id", 4095, sequence);
        assert_eq!(compose_snowflake_id(-1, 0, sequence, E), expected);
        assert_eq!(generate_snowflake_id(sequence, 0, E), expected);
    }
    assert_eq!(compose_node_id(32, 32), out_of_range("datacenter_id", 31, 32));
    assert_eq!(compose_node_id(0, -1), out_of_range("worker_id", 31, -1));
    assert_eq!(
        compose_snowflake_id(E, 1024, 0, E).unwrap_err().to_string(),
        "node_id must be in [0, 1023], got 1024"
    );
    assert_eq!(
        compose_snowflake_id(E, 0, 4096, E).unwrap_err().to_string(),
        "sequence_id must be in [0, 4095], got 4096"
    );
}

#[test]
fn time_outside_the_field_is_an_error() {
    assert_eq!(
        compose_snowflake_id(E - 1, 0, 0, E),
        Err(Error::BeforeEpoch { timestamp_ms: E - 1, epoch_ms: E })
    );
    let message = compose_snowflake_id(E + (1 << 41), 0, 0, E).unwrap_err().to_string();
    for part in ["overflows", "2199023255552", "2199023255551"] {
        assert!(message.contains(part), "{message}");
    }
    // The difference alone leaves 64 bits.
    assert_eq!(
        compose_snowflake_id(i64::MAX, 0, 0, i64::MIN),
        Err(Error::TimestampOverflow { ms: u64::MAX.into() })
    );
    assert!(matches!(generate_snowflake_id(0, 0, i64::MAX), Err(Error::BeforeEpoch { .. })));
    assert!(matches!(generate_snowflake_id(0, 0, i64::MIN), Err(Error::TimestampOverflow { .. })));
}

#[test]
fn epochs_at_the_ends_never_wrap() {
    assert_eq!(decode_timestamp_ms(i64::MAX, i64::MIN), Ok(i64::MIN + TIMESTAMP_MS_MAX));
    assert_eq!(
        decode_timestamp_ms(i64::MAX, i64::MAX),
        Err(Error::EpochOverflow { epoch_ms: i64::MAX, ms: TIMESTAMP_MS_MAX })
    );
    assert_eq!((smallest_id_of(0, i64::MAX), largest_id_of(0, i64::MAX)), (0, -1));
    assert_eq!((smallest_id_of(0, i64::MIN), largest_id_of(0, i64::MIN)), (i64::MAX, i64::MAX));
}

#[test]
fn clock_is_unix_time() {
    let now_ms = i64::try_from(UNIX_EPOCH.elapsed().unwrap().as_millis()).unwrap();
    assert!((0..60_000).contains(&(read_current_millis(E).unwrap() + E - now_ms)));
    let id = generate_snowflake_id(7, 5, E).unwrap();
    assert!((0..60_000).contains(&(decode_timestamp_ms(id, E).unwrap() - now_ms)));
    assert_eq!((decode_node_id(id), decode_sequence_id(id)), (Ok(5), Ok(7)));
}

proptest! {
    #[test]
    fn decoding_inverts_composing(
        ms in 0..=TIMESTAMP_MS_MAX,
        node in 0..=NODE_ID_MAX,
        sequence in 0..=SEQUENCE_ID_MAX,
        epoch in i64::MIN..=i64::MAX - TIMESTAMP_MS_MAX,
    ) {
        let id = compose_snowflake_id(epoch + ms, node, sequence, epoch).unwrap();
        prop_assert!(id >= 0);
        prop_assert_eq!(decode_timestamp_ms(id, epoch), Ok(epoch + ms));
        prop_assert_eq!(decode_node_id(id), Ok(node));
        prop_assert_eq!(decode_sequence_id(id), Ok(sequence));
        prop_assert_eq!(
            compose_node_id(decode_datacenter_id(id).unwrap(), decode_worker_id(id).unwrap()),
            Ok(node)
        );
    }

    #[test]
    fn composing_inverts_decoding(id in 0..=i64::MAX) {
        let timestamp_ms = decode_timestamp_ms(id, E).unwrap();
        let (node, sequence) = (decode_node_id(id).unwrap(), decode_sequence_id(id).unwrap());
        prop_assert_eq!(compose_snowflake_id(timestamp_ms, node, sequence, E), Ok(id));
        let bits = format_bits(id).unwrap();
        let widths: Vec<_> = bits.split(' ').map(str::len).collect();
        prop_assert_eq!(
            widths,
            [1, TIMESTAMP_BITS, DATACENTER_ID_BITS, WORKER_ID_BITS, SEQUENCE_ID_BITS]
                .map(|width| width as usize)
        );
        prop_assert_eq!(i64::from_str_radix(&bits.replace(' ', ""), 2), Ok(id));
    }

    #[test]
    fn negative_ids_are_refused(id in i64::MIN..0) {
        let refused = Err(Error::NegativeId(id));
        prop_assert_eq!(decode_timestamp_ms(id, E), refused.clone());
        prop_assert_eq!(decode_node_id(id), refused.clone());
        prop_assert_eq!(decode_datacenter_id(id), refused.clone());
        prop_assert_eq!(decode_worker_id(id), refused.clone());
        prop_assert_eq!(decode_sequence_id(id), refused);
        prop_assert_eq!(format_bits(id), Err(Error::NegativeId(id)));
    }

    #[test]
    fn any_argument_gives_an_answer(a: i64, b: i64, c: i64, d: i64) {
        // No overflow, no panic: tests are built with overflow checks.
        let _ = compose_snowflake_id(a, b, c, d);
        let _ = compose_node_id(a, b);
        let _ = decode_timestamp_ms(a, b);
        prop_assert!(smallest_id_of(a, b) >= 0);
        prop_assert!(largest_id_of(a, b) >= -1);
    }

    #[test]
    fn bounds_hold_every_id_of_their_millisecond(
        ms in 0..TIMESTAMP_MS_MAX,
        node in 0..=NODE_ID_MAX,
        sequence in 0..=SEQUENCE_ID_MAX,
    ) {
        let id = compose_snowflake_id(E + ms, node, sequence, E).unwrap();
        prop_assert!(smallest_id_of(E + ms, E) <= id && id <= largest_id_of(E + ms, E));
        prop_assert!(id < smallest_id_of(E + ms + 1, E));
        prop_assert_eq!(largest_id_of(E + ms, E) + 1, smallest_id_of(E + ms + 1, E));
    }
}
