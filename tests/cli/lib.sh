# lib.sh - what the command tests share. A test sources it, runs the real program ($GRETA) in a
# folder of its own, and ends with `finish`. Every check that fails is told; the last exit says so.
set -u
: "${GRETA:?path of the greta binary}"
script=$(basename "$0")
captured=$(mktemp -d "${TMPDIR:-/tmp}/greta-cli-XXXXXX")
folder=$captured/folder
mkdir "$folder"
trap 'chmod -R u+w "$captured"; rm -rf "$captured"' EXIT
cd "$folder" || exit 1
failures=0
last="nothing"

fail()
{
    # The line of the test itself, however deep the helper.
    echo "$script: line ${BASH_LINENO[${#BASH_LINENO[@]} - 2]}: $last: $*" >&2
    sed 's/^/    stdout: /' "$captured/out" | head -5 >&2
    sed 's/^/    stderr: /' "$captured/err" | head -5 >&2
    failures=$((failures + 1))
}

# expect_exit CODE COMMAND...: runs it; the checks below look at what it printed.
expect_exit()
{
    local wanted=$1 code
    shift
    last="$*"
    "$@" >"$captured/out" 2>"$captured/err" </dev/null
    code=$?
    [ "$code" -eq "$wanted" ] || fail "expected exit status $wanted, found $code"
}

expect_stdout()
{
    grep -qF -- "$1" "$captured/out" || fail "expected '$1' on standard output"
}

expect_no_stdout()
{
    [ ! -s "$captured/out" ] || fail "expected nothing on standard output"
}

expect_stderr()
{
    grep -qF -- "$1" "$captured/err" || fail "expected '$1' on standard error"
}

expect_no_stderr()
{
    [ ! -s "$captured/err" ] || fail "expected nothing on standard error"
}

# What people see when something is wrong: one line, that names the program.
expect_one_line_error()
{
    [ "$(wc -l <"$captured/err")" -eq 1 ] || fail "expected one line on standard error"
    grep -q '^greta' "$captured/err" || fail "expected 'greta' in front of the error"
    expect_stderr "$1"
}

# expect_json EXPRESSION: standard output is JSON, and the Python expression about it (j) is true.
expect_json()
{
    python3 -c "import json,sys; j = json.load(open(sys.argv[1])); sys.exit(not ($1))" \
        "$captured/out" 2>>"$captured/err" || fail "expected JSON with $1"
}

# expect_files NAME...: the folder holds these and nothing else.
expect_files()
{
    local found wanted=""
    [ $# -eq 0 ] || wanted=$(printf '%s\n' "$@" | sort)
    found=$(ls -A | sort)
    [ "$found" = "$wanted" ] || fail "expected the files '$*', found '$found'"
}

expect_same_bytes()
{
    cmp -s "$1" "$2" || fail "expected $1 and $2 to be the same"
}

# wait_for_file PATTERN: until it is there, a minute at most (sanitized builds beside other work).
wait_for_file()
{
    local i
    for ((i = 0; i < 1200; i++)); do
        compgen -G "$1" >/dev/null && return
        sleep 0.05
    done
    fail "expected a file $1 to appear"
}

# expect_interrupted SIGNAL OUT COMMAND...: COMMAND is at work on OUT when the signal comes; it ends
# with 130, without OUT and without anything of it.
expect_interrupted()
{
    local signal=$1 out=$2 code before
    shift 2
    last="$* (SIG$signal)"
    before=$(ls -A)
    "$@" >"$captured/out" 2>"$captured/err" </dev/null &
    local child=$!
    wait_for_file "$out.part-*"
    sleep 0.2
    kill -s "$signal" "$child"
    wait "$child"
    code=$?
    [ "$code" -eq 130 ] || fail "expected exit status 130, found $code"
    expect_one_line_error "interrupted"
    [ "$(ls -A)" = "$before" ] || fail "expected no file to be left, found $(ls -A)"
}

finish()
{
    [ "$failures" -eq 0 ] || { echo "$script: $failures checks failed" >&2; exit 1; }
    exit 0
}
