#!/usr/bin/env bash
# make demo: a throw-away PostgreSQL on a Unix socket under target/, and the main job on real rows.
source "$(dirname "$0")/setup.sh"
install_release

scripts/demo-stop.sh
mkdir -p target
home=$root/target/demo
# The user postgres may not be able to enter the checkout, and a socket's path may have 107 bytes.
if [ ${#home} -lt 90 ] && mkdir -p "$home" && own "$home" && as_postgres test -w "$home"; then
    :
else
    rm -rf "$home"
    home=$(temporary_folder)
fi
chmod 700 "$home"
echo "$home" >target/demo-home

bindir=$("$PG_CONFIG" --bindir)
cd "$home"
as_postgres "$bindir/initdb" -D "$home/data" -U demo -A trust -E UTF8 --locale=C >/dev/null
as_postgres "$bindir/pg_ctl" start -w -s -D "$home/data" -l "$home/log" \
    -o "-c listen_addresses='' -c unix_socket_directories='$home'"
cp "$root/scripts/demo.sql" "$home"
as_postgres env PGHOST="$home" PGUSER=demo "$bindir/psql" -X -d postgres -f "$home/demo.sql"

cat <<END

This PostgreSQL $PG_MAJOR goes on running. Connect to it:

    ${SUDO_USER:+sudo }$bindir/psql -h $home -U demo postgres

Stop and remove it:

    make demo-stop
END
