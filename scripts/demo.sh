#!/usr/bin/env bash
# make demo: a throw-away PostgreSQL on a Unix socket under target/, and the main job on real rows.
extra_packages=()
installs=yes
source "$(dirname "$0")/setup.sh"
install_release

scripts/demo-stop.sh
home=$root/target/demo
# The user postgres may not be able to enter the checkout; a socket's path has 107 bytes and no odd characters.
if ! { [[ $home =~ ^[A-Za-z0-9/._-]{1,90}$ ]] && mkdir -p "$home" && own "$home" && as_postgres test -w "$home"; }; then
    rm -rf "$home"
    home=$(temporary_folder)
fi
chmod 700 "$home"
echo "$home" >target/demo-home

bindir=$("$PG_CONFIG" --bindir)
cd "$home"
as_postgres "$bindir/initdb" -D "$home/data" -U demo -A trust -E UTF8 --locale=C >/dev/null
as_postgres "$bindir/pg_ctl" start -w -s -D "$home/data" -l "$home/log" \
    -o "-c listen_addresses='' -c unix_socket_directories='$home'" || fail "$(cat "$home/log")"
as_postgres "$bindir/createdb" -h "$home" -U demo demo
as_postgres "$bindir/psql" -h "$home" -U demo -X demo <"$root/scripts/demo.sql"

cat <<END

This PostgreSQL $PG_MAJOR goes on running, with the rows above in the database demo, and an empty one for your own tries:

    ${SUDO_USER:+sudo }$bindir/psql -h $home -U demo postgres

Stop and remove it (the extension stays installed in $("$PG_CONFIG" --sharedir)):

    make demo-stop
END
