# make demo        installs what is missing, builds, starts a throw-away PostgreSQL and shows the main job on real rows
# make demo-stop   stops that PostgreSQL and removes it
# make test        the same set-up, then every test
# make install     builds the release and installs it into PostgreSQL
# make lint        formatting and clippy, as CI has them
#
# PG_CONFIG=/path/to/pg_config chooses the PostgreSQL; without it, it is Debian's or Ubuntu's.

export PG_CONFIG

.PHONY: demo demo-stop test install lint clean

demo demo-stop test install lint:
	@scripts/$@.sh

clean: demo-stop
	cargo clean
