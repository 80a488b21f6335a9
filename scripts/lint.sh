#!/usr/bin/env bash
# make lint
extra_packages=()
source "$(dirname "$0")/setup.sh"
cargo fmt --check
cargo clippy --all-targets "${FEATURES[@]}" -- -D warnings
