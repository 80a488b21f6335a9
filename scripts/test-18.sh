#!/usr/bin/env bash
# make test-18: builds PostgreSQL 18 from Debian's source package, with its assertions on, once; then runs every test on
# it. The upgrade test starts from the PostgreSQL that is installed.
extra_packages=(bison flex libipc-run-perl sudo)
installs=yes
source "$(dirname "$0")/setup.sh"

# Where the user postgres may enter, and other checkouts look.
cache=${XDG_CACHE_HOME:-$HOME/.cache}/snowflake
! is_root || cache=/var/cache/snowflake
prefix=$cache/postgresql-18

build() (
    # Debian's unstable suite, from the mirror that this machine's apt has already.
    mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Origin: Debian' 'Label: Debian' 'Component: main' \
        'Created-By: Packages' | head -n 1)
    [ -n "$mirror" ] || fail "apt knows no Debian mirror to take PostgreSQL 18's source from." \
        "Run apt-get update, or build one and name it: make test PG_CONFIG=/path/to/pg_config"
    work=$(mktemp -d "$cache/build.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    cd "$work"
    chmod 755 . # for apt's own user
    mkdir -p lists/partial
    cat >sources.sources <<END
Types: deb-src
URIs: $mirror
Suites: sid
Components: main
END
    keyring=/usr/share/keyrings/debian-archive-keyring.gpg
    [ ! -f $keyring ] || echo "Signed-By: $keyring" >>sources.sources
    apt=(apt-get -q -o "Dir::Etc::sourcelist=$work/sources.sources" -o Dir::Etc::sourceparts=- -o "Dir::State::lists=$work/lists")
    "${apt[@]}" update
    "${apt[@]}" source --download-only postgresql-18
    tar xf postgresql-18_*.orig.tar.*
    cd postgresql-18*/
    ./configure -q "--prefix=$prefix" --enable-cassert --enable-debug --enable-tap-tests --without-icu --without-readline --without-zlib
    make -s -j"$(nproc)"
    make -s install
    make -s -C contrib/pg_buffercache install
    make -s -C src/test/isolation install # the whole does not
    touch "$prefix/complete"
)

if ! [ -f "$prefix/complete" ]; then
    echo "Building PostgreSQL 18 into $prefix (once, 3 to 10 minutes)"
    mkdir -p "$cache"
    rm -rf "$prefix"
    log=$(mktemp /tmp/snowflake-postgresql-18.XXXXXX)
    build >"$log" 2>&1 || fail "$(tail -n 30 "$log")" "PostgreSQL 18 was not built. All of it: $log"
    rm "$log"
fi
OLD_PG_CONFIG=$PG_CONFIG PG_CONFIG=$prefix/bin/pg_config exec scripts/test.sh
