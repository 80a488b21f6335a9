# PG_CONFIG=/path/to/pg_config chooses the PostgreSQL; without it, it is the one that Debian or Ubuntu installed.

export PG_CONFIG OLD_PG_CONFIG SNOWFLAKE_SEED

.PHONY: help demo demo-stop test test-18 test-long bench install lint clean

help:
	@echo 'make demo        installs what is missing, builds, starts a throw-away PostgreSQL, shows the main job on real rows'
	@echo 'make demo-stop   stops that PostgreSQL and removes it'
	@echo 'make test        the same set-up, then every test'
	@echo 'make test-18     builds PostgreSQL 18 with its assertions on (once), then every test on it'
	@echo 'make test-long   every test, with many more rounds of crashes, clock steps and random operations'
	@echo 'make bench       measures against other generators of keys, writes docs/benchmark.md (10 minutes)'
	@echo 'make install     builds the release and installs it into PostgreSQL'
	@echo 'make lint        formatting and clippy, as CI has them'
	@echo 'make clean       removes the demo and all that was built'

demo demo-stop test test-18 bench install lint:
	@scripts/$@.sh

test-long:
	@PG_TEST_EXTRA="$$PG_TEST_EXTRA long" scripts/test.sh

clean: demo-stop
	[ ! -d target/sudo ] || sudo rm -rf target/sudo
	cargo clean
