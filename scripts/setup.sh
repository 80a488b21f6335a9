# Sourced by the other scripts: finds or installs what they need, says what is missing before it changes anything.
#
# Sets PG_CONFIG, PG_MAJOR, PGRX_HOME; defines install_release and as_postgres.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD

PGRX_VERSION=0.18.1 # as in Cargo.toml
RUST_VERSION=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
MIN_FREE_MB=3000 # target/ is 2.2 GB after `make test`

missing=()
to_install=()
fail() {
    printf '%s\n' "$@" >&2
    exit 1
}

given_pg_config=${PG_CONFIG:-}
apt_major() { apt-cache show postgresql 2>/dev/null | sed -n 's/^Version: \([0-9]*\)[+.].*/\1/p' | sort -n | tail -n 1; }
is_installed() { dpkg-query -W -f '${Status}' "$1" 2>/dev/null | grep -q 'ok installed'; }
run_as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }

# Rust: rustup is the user's choice to install.
have_rust() {
    command -v cargo >/dev/null &&
        printf '%s\n' "$RUST_VERSION" "$(rustc --version | cut -d ' ' -f 2)" | sort -VC
}
have_rust || missing+=("Rust $RUST_VERSION or later: install it with rustup, https://rustup.rs")

[ "$(df -Pm . | awk 'NR == 2 { print $4 }')" -ge $MIN_FREE_MB ] || [ -d target/release ] ||
    missing+=("$MIN_FREE_MB MB of free space in $root")

# PostgreSQL: the one that is named, else the distribution's.
packages=(build-essential pkg-config libclang-dev libipc-run-perl)
[ "$(id -u)" != 0 ] || packages+=(sudo) # cargo pgrx test runs its cluster through it
if [ -z "${PG_CONFIG:-}" ] && command -v apt-get >/dev/null; then
    if [ -z "$(apt_major)" ] && { [ "$(id -u)" = 0 ] || command -v sudo >/dev/null; }; then
        run_as_root apt-get update -q
    fi
    PG_MAJOR=$(apt_major)
    PG_CONFIG=/usr/lib/postgresql/$PG_MAJOR/bin/pg_config
    packages+=("postgresql-$PG_MAJOR" "postgresql-server-dev-$PG_MAJOR")
fi
if command -v dpkg-query >/dev/null; then
    for package in "${packages[@]}"; do
        is_installed "$package" || to_install+=("$package")
    done
elif [ ! -x "${PG_CONFIG:-}" ]; then
    missing+=("PostgreSQL 14 to 18 with its server headers: name its pg_config, PG_CONFIG=/path/to/pg_config")
fi

# Rights: to install packages, and to install the extension into PostgreSQL.
needs_root=
[ -z "${to_install[*]:-}" ] || needs_root="install these packages: ${to_install[*]}"
if [ -x "${PG_CONFIG:-}" ] && ! [ -w "$("$PG_CONFIG" --pkglibdir)" ]; then
    needs_root=${needs_root:-"install the extension into $("$PG_CONFIG" --pkglibdir)"}
fi
if [ -n "$needs_root" ] && [ "$(id -u)" != 0 ] && ! command -v sudo >/dev/null; then
    missing+=("the right to $needs_root: run this as root or install sudo")
fi

if [ ${#missing[@]} -gt 0 ]; then
    fail "This is missing:" "${missing[@]/#/  - }"
fi

# From here on things change. As an ordinary user all of it runs through sudo, with a build of its own, so that nothing
# of root's is left in the user's.
if [ -n "$needs_root" ] && [ "$(id -u)" != 0 ]; then
    echo "Needs root to $needs_root; going on with sudo."
    exec sudo env "PATH=$PATH" "RUSTUP_HOME=${RUSTUP_HOME:-$HOME/.rustup}" "CARGO_HOME=$root/target/sudo/cargo" \
        "CARGO_TARGET_DIR=$root/target/sudo" "PG_CONFIG=$given_pg_config" "$0" "$@"
fi
if [ -n "${to_install[*]:-}" ]; then
    echo "Installing ${to_install[*]}"
    DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends "${to_install[@]}" >/dev/null
fi

PG_MAJOR=$("$PG_CONFIG" --version | sed 's/[^0-9]*\([0-9]*\).*/\1/')
[ -f "$("$PG_CONFIG" --includedir-server)/postgres.h" ] ||
    fail "PostgreSQL's server headers are missing: install its development package."

# cargo-pgrx: the user's own if it is this version, else one in a cache that other checkouts share.
if [ "$(cargo pgrx --version 2>/dev/null)" != "cargo-pgrx $PGRX_VERSION" ]; then
    tools=${XDG_CACHE_HOME:-$HOME/.cache}/snowflake/cargo-pgrx-$PGRX_VERSION
    export PATH=$tools/bin:$PATH
    if ! [ -x "$tools/bin/cargo-pgrx" ]; then
        echo "Building cargo-pgrx $PGRX_VERSION (some minutes, once)"
        env -u CARGO_TARGET_DIR cargo install -q cargo-pgrx --version "$PGRX_VERSION" --locked --root "$tools"
    fi
fi

# As .cargo/config.toml has it, so that plain cargo commands build against the same PostgreSQL.
export PGRX_HOME=$root/target/pgrx
if ! grep -qsF "pg$PG_MAJOR = \"$PG_CONFIG\"" "$PGRX_HOME/config.toml"; then
    mkdir -p "$PGRX_HOME"
    cargo pgrx init "--pg$PG_MAJOR=$PG_CONFIG"
fi
FEATURES=(--no-default-features --features "pg$PG_MAJOR")

install_release() {
    echo "Building and installing the release for PostgreSQL $PG_MAJOR"
    cargo pgrx install --release -c "$PG_CONFIG" "${FEATURES[@]}"
}

# PostgreSQL refuses to run as root.
as_postgres() {
    if [ "$(id -u)" = 0 ]; then
        runuser -u postgres -- "$@"
    else
        "$@"
    fi
}

# Gives a folder to whom as_postgres runs as.
own() { [ "$(id -u)" != 0 ] || chown postgres: "$1"; }

# A new folder for it, with a short path: a socket's has 107 bytes at the most.
temporary_folder() {
    local folder
    folder=$(mktemp -d /tmp/snowflake.XXXXXX)
    own "$folder"
    echo "$folder"
}
