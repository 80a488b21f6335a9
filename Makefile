# PG_CONFIG=/path/to/pg_config chooses the PostgreSQL; without it, it is the one that Debian or Ubuntu installed.

export PG_CONFIG

.PHONY: help demo demo-stop test install lint clean

help:
	@echo 'make demo        installs what is missing, builds, starts a throw-away PostgreSQL, shows the main job on real rows'
	@echo 'make demo-stop   stops that PostgreSQL and removes it'
	@echo 'make test        the same set-up, then every test'
	@echo 'make install     builds the release and installs it into PostgreSQL'
	@echo 'make lint        formatting and clippy, as CI has them'
	@echo 'make clean       removes the demo and all that was built'

demo demo-stop test install lint:
	@scripts/$@.sh

clean: demo-stop
	[ ! -d target/sudo ] || sudo rm -rf target/sudo
	cargo clean
