#!/usr/bin/env bash
# make install
extra_packages=()
installs=yes
source "$(dirname "$0")/setup.sh"
install_release
