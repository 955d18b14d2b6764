#!/usr/bin/env bash
# Index documentation in a directory of its own, ask it questions with known answers, and fail below a bar.
set -euo pipefail

usage="usage: check.sh --docs DIR --questions FILE [--fail-under METRIC=VALUE]... [--links] [--config FILE]"
docs="" questions="" links="" config=""
bars=()

fail() {
    echo "check.sh: $1" >&2
    exit 2
}

while [ $# -gt 0 ]; do
    case "$1" in
        --links) links=yes; shift; continue ;;
        --docs | --questions | --fail-under | --config) [ $# -gt 1 ] || fail "$1 needs a value; $usage" ;;
        *) fail "unknown argument $1; $usage" ;;
    esac
    case "$1" in
        --docs) docs=$2 ;;
        --questions) questions=$2 ;;
        --fail-under) bars+=(--fail-under "$2") ;;
        --config) config=$2 ;;
    esac
    shift 2
done
[ -n "$docs" ] || fail "--docs is missing; $usage"
[ -d "$docs" ] || fail "--docs needs a directory, and $docs is $([ -e "$docs" ] && echo a file || echo not there)"
[ -n "$questions" ] || [ -n "$links" ] || fail "--questions is missing; $usage"
[ ${#bars[@]} -gt 0 ] || bars=(--fail-under any@5=0.9)
command -v klaw >/dev/null || fail "klaw is not installed: pip install '.[default,eval]' in a clone of Klaw"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export KLAW_DATA_DIR="$work/data"
# Without a file the defaults hold, whatever the machine is configured to.
: > "$work/config.toml"
export KLAW_CONFIG="${config:-$work/config.toml}"

klaw index "$docs"
[ -n "$(klaw list -n 1)" ] || fail "$docs has no notes that klaw indexes (*.md, *.txt and the like)"
if [ -n "$links" ]; then
    broken=$(klaw links)
    if [ -n "$broken" ]; then
        echo "broken links:"
        echo "$broken"
        exit 1
    fi
fi
if [ -n "$questions" ]; then
    klaw eval --questions "$questions" "${bars[@]}" -v
fi
