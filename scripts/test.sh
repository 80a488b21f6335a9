#!/usr/bin/env bash
# make test: every test, then one line that counts them. OLD_PG_CONFIG names an older PostgreSQL to upgrade from.
extra_packages=(libipc-run-perl faketime sudo) # cargo pgrx test runs its cluster through sudo
installs=yes
source "$(dirname "$0")/setup.sh"

passed=0
failed=0
stage=$(temporary_folder)
log=$stage/log

trap 'remove_folder "$stage"' EXIT
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
old_bindir=
if [ -n "${OLD_PG_CONFIG:-}" ]; then
    install_release "$OLD_PG_CONFIG"
    old_bindir=$("$OLD_PG_CONFIG" --bindir)
fi

# The user postgres may not be able to read the checkout.
cp -r tests docs README.md "$stage"
own "$stage"
src_test=$(realpath "$(dirname "$("$PG_CONFIG" --pgxs)")/../test")
pg_regress=$src_test/regress/pg_regress
bindir=$("$PG_CONFIG" --bindir)

# Takes the program and the folder of its files.
regress() {
    local folder=$stage/tests/$2
    (cd "$stage" && as_postgres "$1" --bindir="$bindir" --temp-instance="$folder/instance" --no-locale --encoding=UTF8 \
        --inputdir="$folder" --outputdir="$folder" --dbname=regression --schedule="$folder/schedule") 2>&1 |
        tee "$log" && status=0 || status=$?
    [ $status = 0 ] || cat "$folder/regression.diffs" || true
    # "test x ... ok 5 ms" before PostgreSQL 16, TAP from then on.
    count $status "$(lines '^(test .* ok +|ok )')" "$(lines '^(test .* FAILED|not ok )')"
    # A build with assertions tells of a failed one, and of leaked pins and locks, in the server's log.
    local told
    told=$(grep -hE "$bad_in_log" "$folder/log/postmaster.log") || return 0
    printf '%s\n' "The server's log tells of" "$told"
    count 1 0 1
}
bad_in_log='PANIC|TRAP|leak|still referenced|terminated by signal'

echo "== The SQL surface (pg_regress)"
regress "$pg_regress" pg_regress

echo "== What waits for what (pg_isolation_regress)"
regress "$src_test/isolation/pg_isolation_regress" isolation

echo "== Whole clusters (prove)"
(cd "$stage" && as_postgres env PATH="$bindir:$PATH" PG_REGRESS="$pg_regress" TESTDIR="$stage" TESTDATADIR="$stage/tap" \
    TESTLOGDIR="$stage/tap" PG_TEST_PORT_DIR="$stage" OLD_PG_BINDIR="$old_bindir" \
    prove -v -I "$src_test/perl" -I tests/tap tests/tap/*.pl) 2>&1 | tee "$log" && status=0 || status=$?
count $status "$(lines '^ok ')" "$(lines '^not ok ')"

echo "$passed passed, $failed failed"
[ $failed = 0 ]
