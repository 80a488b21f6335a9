# Sourced by the other scripts: finds or installs what they need, and says what is missing before it changes anything.
#
# Takes  extra_packages  what the caller needs besides a build
#        installs        whether it installs the extension into PostgreSQL
# Sets   root, PG_CONFIG, PG_MAJOR, PGRX_HOME, FEATURES; defines install_release, as_postgres, own, temporary_folder,
#        remove_folder

set -euo pipefail
umask 022 # what root builds and copies here, the user postgres must read
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD
given_pg_config=${PG_CONFIG:-}

PGRX_VERSION=0.18.1 # as in Cargo.toml
RUST_VERSION=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
MIN_FREE_MB=4000 # `du -sm target` said 3682 after some rounds of make test and make lint

missing=()
to_install=()
fail() {
    printf '%s\n' "$@" >&2
    exit 1
}
is_root() { [ "$(id -u)" = 0 ]; }
has() { command -v "$1" >/dev/null; }

# --- What is there, and what is missing ---

# Rust: to install it is the user's choice.
rust_found=$({ has cargo && rustc --version | cut -d ' ' -f 2; } || true)
if ! printf '%s\n' "$RUST_VERSION" "${rust_found:-0}" | sort -VC; then
    missing+=("Rust $RUST_VERSION or later (found: ${rust_found:-none}): https://rustup.rs, or rustup update")
    [ -z "${SUDO_USER:-}" ] || missing+=("root's PATH may lack your Rust: run this without sudo, it calls sudo itself")
fi

[ "$(df -Pm . | awk 'NR == 2 { print $4 }')" -ge $MIN_FREE_MB ] || [ -d target/release ] ||
    missing+=("$MIN_FREE_MB MB of free space in $root")

# PostgreSQL: the one that is named, else the one that is installed, else the distribution's.
packages=(build-essential pkg-config libclang-dev "${extra_packages[@]}")
if [ -n "$given_pg_config" ]; then
    PG_CONFIG=$(command -v "$given_pg_config") && PG_CONFIG=$(realpath "$PG_CONFIG") ||
        missing+=("$given_pg_config, which PG_CONFIG names")
elif ! has apt-get; then
    missing+=("PostgreSQL 14 to 18 with its server headers: name its pg_config, PG_CONFIG=/path/to/pg_config")
else
    majors=$(find /usr/lib/postgresql/*/bin/postgres 2>/dev/null | cut -d / -f 5 | sort -n || true)
    if [ -z "$majors" ]; then
        apt_major() { apt-cache show postgresql 2>/dev/null | sed -n 's/^Version: \([0-9]*\).*/\1/p' | sort -n | tail -n 1; }
        majors=$(apt_major || true)
        if [ -z "$majors" ] && is_root; then
            apt-get update -q
            majors=$(apt_major || true)
        fi
    fi
    case $majors in
    '') missing+=("a PostgreSQL that apt knows: run apt-get update, or name one, PG_CONFIG=/path/to/pg_config") ;;
    *[!0-9]*) missing+=("a choice between PostgreSQL" $majors": PG_CONFIG=/usr/lib/postgresql/.../bin/pg_config") ;;
    *)
        PG_CONFIG=/usr/lib/postgresql/$majors/bin/pg_config
        packages+=("postgresql-$majors" "postgresql-server-dev-$majors")
        ;;
    esac
fi

if has dpkg-query; then
    for package in "${packages[@]}"; do
        dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || to_install+=("$package")
    done
fi

# Rights: to install packages, and to install the extension.
needs_root=
if [ ${#to_install[@]} -gt 0 ]; then
    needs_root="install these packages: ${to_install[*]}"
elif [ -n "${installs:-}" ] && [ -x "${PG_CONFIG:-}" ]; then
    for folder in "$("$PG_CONFIG" --pkglibdir)" "$("$PG_CONFIG" --sharedir)/extension"; do
        [ -w "$folder" ] || needs_root="install the extension into $folder"
    done
fi
if [ -n "$needs_root" ] && ! is_root && ! has sudo; then
    missing+=("the right to $needs_root: run this as root, or install sudo")
fi

if [ ${#missing[@]} -gt 0 ]; then
    fail "This is missing:" "${missing[@]/#/  - }"
fi

# --- From here on things change ---

# As an ordinary user all of it runs through sudo, with a build of its own: nothing of root's is left in the user's.
if [ -n "$needs_root" ] && ! is_root; then
    echo "Needs root to $needs_root; going on with sudo."
    mkdir -p target
    sudo -v || fail "sudo did not let you. Ask an administrator, or name a PostgreSQL of your own: PG_CONFIG=/path/to/pg_config"
    exec sudo env "PATH=$PATH" "RUSTUP_HOME=${RUSTUP_HOME:-$HOME/.rustup}" "CARGO_HOME=$root/target/sudo/cargo" \
        "CARGO_TARGET_DIR=$root/target/sudo" "PG_CONFIG=$given_pg_config" "OLD_PG_CONFIG=${OLD_PG_CONFIG:-}" \
        "PG_TEST_EXTRA=${PG_TEST_EXTRA:-}" "SNOWFLAKE_SEED=${SNOWFLAKE_SEED:-}" "$root/scripts/${0##*/}" "$@"
fi
if [ ${#to_install[@]} -gt 0 ]; then
    echo "Installing ${to_install[*]}"
    DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends "${to_install[@]}" >/dev/null
fi

major() { "$1" --version | sed 's/[^0-9]*\([0-9]*\).*/\1/'; }
PG_MAJOR=$(major "$PG_CONFIG")
case $PG_MAJOR in
1[4-8]) ;;
*) fail "PostgreSQL 14 to 18 is needed: $PG_CONFIG is of $PG_MAJOR. Name another, PG_CONFIG=/path/to/pg_config" ;;
esac
[ -f "$("$PG_CONFIG" --includedir-server)/postgres.h" ] ||
    fail "PostgreSQL's server headers are missing: install its development package."
! is_root || id postgres >/dev/null 2>&1 ||
    fail "PostgreSQL does not run as root, and there is no user postgres to run it as: adduser --system --group postgres"

# cargo-pgrx: the user's own if it is this version, else one in a cache that other checkouts share.
if [ "$(cargo pgrx --version 2>/dev/null)" != "cargo-pgrx $PGRX_VERSION" ]; then
    tools=${XDG_CACHE_HOME:-$HOME/.cache}/snowflake/cargo-pgrx-$PGRX_VERSION
    export PATH=$tools/bin:$PATH
    if ! [ -x "$tools/bin/cargo-pgrx" ]; then
        echo "Building cargo-pgrx $PGRX_VERSION (once, 5 to 15 minutes)"
        env -u CARGO_TARGET_DIR cargo install cargo-pgrx --version "$PGRX_VERSION" --locked --root "$tools"
    fi
fi

# As .cargo/config.toml has it, so that plain cargo commands build against the same PostgreSQL.
export PGRX_HOME=${CARGO_TARGET_DIR:-$root/target}/pgrx
if ! grep -qsF "pg$PG_MAJOR = \"$PG_CONFIG\"" "$PGRX_HOME/config.toml"; then
    mkdir -p "$PGRX_HOME"
    cargo pgrx init "--pg$PG_MAJOR=$PG_CONFIG"
fi
FEATURES=(--no-default-features --features "pg$PG_MAJOR")

# Into the PostgreSQL that is chosen, or another one.
install_release() {
    local pg_config=${1:-$PG_CONFIG}
    echo "Building the release for PostgreSQL $(major "$pg_config") and installing it ($pg_config)"
    cargo pgrx install --release -c "$pg_config" --no-default-features --features "pg$(major "$pg_config")"
}

# Runs a command as a user that PostgreSQL agrees to run as.
as_postgres() { if is_root; then runuser -u postgres -- "$@"; else "$@"; fi; }

# Gives a folder to that user.
own() { ! is_root || chown -R postgres: "$1"; }

# A new folder of that user, with a short path: a socket's has 107 bytes at the most.
temporary_folder() {
    local folder
    folder=$(mktemp -d /tmp/snowflake.XXXXXX)
    own "$folder"
    echo "$folder"
}

# Stops the servers that were left running in it, when a script is interrupted, and removes it.
remove_folder() {
    find "$1" -name postmaster.pid -exec head -qn 1 {} + 2>/dev/null | xargs -r kill -QUIT 2>/dev/null || true
    rm -rf "$1"
}
