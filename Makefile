# make demo        installs what is missing, builds, starts a throw-away PostgreSQL and shows the main job on real rows
# make demo-stop   stops that PostgreSQL and removes it
# make test        the same set-up, then every test
# make install     builds the release and installs it into PostgreSQL
#
# PG_CONFIG=/path/to/pg_config chooses the PostgreSQL; without it, it is Debian's or Ubuntu's.

export PG_CONFIG

.PHONY: demo demo-stop test install clean

demo demo-stop test install:
	@scripts/$@.sh

clean: demo-stop
	cargo clean
