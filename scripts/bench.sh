#!/usr/bin/env bash
# make bench: measures, and writes docs/benchmark.md and .svg. With "quick" it only shows that the benchmark works.
extra_packages=()
installs=yes
source "$(dirname "$0")/setup.sh"
install_release

stage=$(temporary_folder)
trap 'remove_folder "$stage"' EXIT
trap 'exit 130' INT TERM

target=${CARGO_TARGET_DIR:-$root/target}/bench
[ -z "${1:-}" ] || cargo test --manifest-path bench/Cargo.toml --target-dir "$target"
cargo build --release --manifest-path bench/Cargo.toml --target-dir "$target"
# The user postgres may not be able to read the checkout.
cp "$target/release/snowflake-bench" "$stage"
as_postgres env "RUSTC_VERSION=$(rustc --version)" \
    "$stage/snowflake-bench" "$("$PG_CONFIG" --bindir)" "$stage" "$stage" "$@" && status=0 || status=$?
[ -n "${1:-}" ] || [ ! -f "$stage/benchmark.svg" ] || cp "$stage"/benchmark.{md,svg} docs
exit $status
