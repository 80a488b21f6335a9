#!/usr/bin/env bash
# make test: every test, then one line that counts them.
extra_packages=(libipc-run-perl sudo) # cargo pgrx test runs its cluster through sudo
installs=yes
source "$(dirname "$0")/setup.sh"

passed=0
failed=0
stage=$(temporary_folder)
log=$stage/log

# Clusters stop themselves; not all of them when this script is interrupted.
clean_up() {
    find "$stage" -name postmaster.pid -exec head -qn 1 {} + 2>/dev/null | xargs -r kill -QUIT 2>/dev/null || true
    rm -rf "$stage"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

# Adds what a layer's log counts, and one failure where a layer fails but counts none.
count() {
    local status=$1 ok=$2 not_ok=$3
    [ "$status" = 0 ] || [ "$not_ok" -gt 0 ] || not_ok=1
    passed=$((passed + ok))
    failed=$((failed + not_ok))
}
lines() { grep -cE "$1" "$log" || true; }

echo "== The pure parts, and what needs a backend (cargo pgrx test)"
runas=()
! is_root || runas=(--runas postgres --pgdata "$stage/pgrx")
cargo pgrx test "pg$PG_MAJOR" "${FEATURES[@]}" "${runas[@]}" 2>&1 | tee "$log" && status=0 || status=$?
count $status "$(lines '^test .* \.\.\. ok$')" "$(lines '^test .* \.\.\. FAILED$')"

# The tests above installed a debug build.
install_release

# The user postgres may not be able to read the checkout.
cp -r tests README.md "$stage"
own "$stage"
pgxs=$(dirname "$("$PG_CONFIG" --pgxs)")/..
pg_regress=$(realpath "$pgxs")/test/regress/pg_regress
bindir=$("$PG_CONFIG" --bindir)

echo "== The SQL surface (pg_regress)"
(cd "$stage" && as_postgres "$pg_regress" --bindir="$bindir" --temp-instance="$stage/regress" --no-locale --encoding=UTF8 \
    --inputdir="$stage/tests/pg_regress" --outputdir="$stage/tests/pg_regress" --dbname=regression \
    --schedule="$stage/tests/pg_regress/schedule") 2>&1 | tee "$log" && status=0 || status=$?
[ $status = 0 ] || cat "$stage/tests/pg_regress/regression.diffs" || true
# "test x ... ok 5 ms" before PostgreSQL 16, TAP from then on.
count $status "$(lines '^(test .* ok +|ok )')" "$(lines '^(test .* FAILED|not ok )')"

echo "== Whole clusters (prove)"
(cd "$stage" && as_postgres env PATH="$bindir:$PATH" PG_REGRESS="$pg_regress" TESTDIR="$stage" TESTDATADIR="$stage/tap" \
    TESTLOGDIR="$stage/tap" PG_TEST_PORT_DIR="$stage" \
    prove -v -I "$(realpath "$pgxs")/test/perl" -I tests/tap tests/tap/*.pl) 2>&1 | tee "$log" && status=0 || status=$?
count $status "$(lines '^ok ')" "$(lines '^not ok ')"

echo "$passed passed, $failed failed"
[ $failed = 0 ]
