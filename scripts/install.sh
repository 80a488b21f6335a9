#!/usr/bin/env bash
# make install
source "$(dirname "$0")/setup.sh"
install_release
