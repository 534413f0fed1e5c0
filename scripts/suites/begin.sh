# What every suite begins with: sourced with SUBAK DIRECTORY as arguments, from the root of the project.
#
# `work` is a directory that is gone at the end, `directory` one that stays (tools that were built);
# whatever is added to `processes` ends with the script, which ends with status `failed`.

subak=$(realpath "$1")
directory=$2
mkdir -p "$directory"
directory=$(realpath "$directory")
work=$(mktemp -d)
failed=0
processes=()
end() {
    for process in "${processes[@]}"; do
        kill "$process" 2>/dev/null || true
        wait "$process" 2>/dev/null || true
    done
    rm -rf "$work"
}
trap end EXIT

skipped() { printf 'SKIPPED: %s\n' "$*" >&2; }
check() {
    local what=$1
    printf '== %s\n' "$what"
    shift
    "$@" || {
        printf 'FAILED: %s\n' "$what" >&2
        failed=1
    }
}
# A condition, for so many seconds at most.
wait_until() {
    local left=$(($1 * 10))
    shift
    until "$@"; do
        ((left-- > 0)) || return 1
        sleep 0.1
    done
}
