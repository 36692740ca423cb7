#!/bin/sh
# Installs Chromium for the tests of the page (tests/ui), on Debian and what descends from it; as root, or with sudo.
set -eu
as_root=
[ "$(id -u)" -eq 0 ] || as_root=sudo
export DEBIAN_FRONTEND=noninteractive
$as_root apt-get update -qq
$as_root apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core >/dev/null
chromium --version
