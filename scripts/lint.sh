#!/usr/bin/env bash
# make lint
extra_packages=()
source "$(dirname "$0")/setup.sh"
cargo fmt --check
cargo clippy --all-targets "${FEATURES[@]}" -- -D warnings
cd bench
cargo fmt --check
cargo clippy --all-targets --target-dir "${CARGO_TARGET_DIR:-$root/target}/bench" -- -D warnings
