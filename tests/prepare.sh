#!/bin/bash
# What ./demo and ./check do before they build; sourced by both, and run as
#	tests/prepare.sh users
# by the test harness. Needs $top, the top of the source tree.
# shellcheck shell=bash

# shellcheck disable=SC2034 # used by those who source this
build_packages=(
	gcc libc6-dev meson ninja-build pkg-config python3
	libevent-dev libjansson-dev libsqlite3-dev libseccomp-dev
	libcurl4-openssl-dev libssl-dev libcmark-dev libcmocka-dev libwslay-dev
)
# shellcheck disable=SC2034
check_packages=(clang patchelf python3-pytest)
# shellcheck disable=SC2034
fuzz_packages=(libclang-rt-dev)
worker_user=connectd-worker
# Debian's own python: the one that its pytest belongs to.
python=/usr/bin/python3
[[ -x $python ]] || python=python3

say() { printf '%s\n' "$*"; }
die() { printf '%s: %s\n' "${0##*/}" "$*" >&2; exit 1; }

# The packages among the arguments that are not installed.
packages_missing() {
	local name

	for name in "$@"; do
		[[ $(dpkg-query -W -f '${db:Status-Status}' "$name" 2>&1) == \
		    installed ]] || printf '%s\n' "$name"
	done
}

# Elsewhere than on Debian: are the tools and libraries there?
tools_missing() {
	local name

	for name in cc meson ninja pkg-config python3; do
		command -v "$name" >/dev/null || printf '%s\n' "$name"
	done
	for name in libevent_core libevent_extra jansson sqlite3 libseccomp \
	    libcurl libcrypto libcmark cmocka libwslay; do
		pkg-config --exists "$name" 2>/dev/null || printf '%s\n' "$name"
	done
}

# Install what is missing of the packages given, and say so.
packages_install() {
	local missing privilege=()

	if ! command -v apt-get >/dev/null; then
		mapfile -t missing < <(tools_missing)
		((${#missing[@]} == 0)) || die "please install: ${missing[*]}" \
		    "(on Debian and Ubuntu this would be done for you:" \
		    "apt-get install $*)"
		return 0
	fi
	mapfile -t missing < <(packages_missing "$@")
	((${#missing[@]} > 0)) || return 0
	if ((EUID != 0)); then
		if ! sudo -n true 2>/dev/null; then
			die "missing packages; as root, please:" \
			    "apt-get install ${missing[*]}"
		fi
		privilege=(sudo -n)
	fi
	say "Installing what is missing: ${missing[*]}"
	"${privilege[@]}" apt-get -q update >/dev/null ||
	    say "(apt-get update failed; trying with the lists that are here)"
	"${privilege[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y \
	    --no-install-recommends install "${missing[@]}" >/dev/null ||
	    die "apt-get could not install: ${missing[*]}"
}

# The users of the sysusers file, and an account for workers. Root only.
users_make() {
	local kind name _ comment home shell

	while IFS=$'\t' read -r kind name _ comment home shell; do
		case $kind in
		g)
			getent group "$name" >/dev/null && continue
			say "Making the group $name"
			groupadd --system "$name"
			;;
		u)
			getent passwd "$name" >/dev/null && continue
			say "Making the user $name ($comment)"
			useradd --system --user-group --comment "$comment" \
			    --home-dir "$home" --no-create-home \
			    --shell "$shell" "$name"
			;;
		esac || return 1
	done < <(sysusers_rows "$top/packaging/sysusers.d/connectd.conf")
	getent passwd "$worker_user" >/dev/null && return 0
	say "Making the user $worker_user (an account for workers to try with)"
	useradd --system --user-group --comment "connectd worker" \
	    --home-dir "/var/lib/$worker_user" --create-home \
	    --shell /bin/sh "$worker_user"
}

# A sysusers file's rows with a tab between the fields, quotes taken off.
sysusers_rows() {
	"$python" -c '
import shlex, sys
for line in open(sys.argv[1]):
	row = shlex.split(line, comments=True)
	if row:
		print("\t".join((row + ["-"] * 6)[:6]))
' "$1"
}

# A build directory with the options given, made or brought up to date; what
# was said meanwhile is in its make.log.
build_make() {
	local dir=$1 log=$1/make.log

	shift
	mkdir -p "$dir" || return 1
	if [[ -f $dir/build.ninja ]]; then
		meson configure "$dir" "$@" >"$log" 2>&1
	else
		meson setup "$dir" "$top" "$@" >"$log" 2>&1
	fi && ninja -C "$dir" >>"$log" 2>&1
}

if [[ ${BASH_SOURCE[0]} == "$0" ]]; then
	top=$(cd "$(dirname "$0")/.." && pwd)
	case ${1-} in
	users) users_make ;;
	*) die "usage: tests/prepare.sh users" ;;
	esac
fi
