#!/usr/bin/env bash
# make demo-stop: stops the demonstration's PostgreSQL and removes it.
set -euo pipefail
cd "$(dirname "$0")/.."
[ -f target/demo-home ] || exit 0
home=$(cat target/demo-home)
if [ "$(id -u)" != 0 ] && [ -d "$home" ] && [ ! -O "$home" ]; then
    exec sudo "$0"
fi
# The running server's own executable, whichever PostgreSQL it is of.
if [ -f "$home/data/postmaster.pid" ]; then
    kill -INT "$(head -n 1 "$home/data/postmaster.pid")" 2>/dev/null || true
    for _ in $(seq 100); do
        [ -f "$home/data/postmaster.pid" ] || break
        sleep 0.1
    done
fi
rm -rf "$home" target/demo-home
