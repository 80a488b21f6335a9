#!/usr/bin/env bash
# make demo-stop: stops the demonstration's PostgreSQL and removes it.
set -euo pipefail
cd "$(dirname "$0")/.."
[ -f target/demo-home ] || exit 0
home=$(cat target/demo-home)
if [ "$(id -u)" != 0 ] && [ -d "$home" ] && [ ! -O "$home" ]; then
    exec sudo "$PWD/scripts/demo-stop.sh"
fi

# A server works in its data folder. It may be of another PostgreSQL than is chosen now, so no pg_ctl.
runs() { [ "$(readlink "/proc/$pid/cwd")" = "$home/data" ]; }
pid=$(head -n 1 "$home/data/postmaster.pid" 2>/dev/null || echo none)
if runs; then
    kill -INT "$pid"
    for _ in $(seq 100); do
        runs || break
        sleep 0.1
    done
    if runs; then
        echo "The server $pid does not stop; see $home/log" >&2
        exit 1
    fi
fi
rm -rf "$home" target/demo-home
