# lib.sh - what the command tests share. A test sources it, runs the real program ($GRETA) in a
# folder of its own, and ends with `finish`. Every failing check is printed; the last exit says so.
set -u
export LC_ALL=C # what a test sees does not depend on the machine's language
: "${GRETA:?path of the greta binary}"
script=$(basename "$0")
captured=$(mktemp -d "${TMPDIR:-/tmp}/greta-cli-XXXXXX")
folder=$captured/folder
mkdir "$folder"
# A script that ends without `finish` would pass whatever its checks said.
leave()
{
    local code=$1
    chmod -R u+w "$captured"
    rm -rf "$captured"
    [ "$code" -ne 0 ] || [ -n "$finished" ] || { echo "$script: ended without finish" >&2; exit 1; }
}
finished=
trap 'leave $?' EXIT
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

# Under ThreadSanitizer, which finds planted races too: a test must not plant one.
races_are_reported() { [ "${GRETA_SANITIZE:-}" = thread ]; }

# wait_until COMMAND...: until it succeeds; five minutes at most, on however busy a machine.
wait_until()
{
    local i
    for ((i = 0; i < 6000; i++)); do
        "$@" && return
        sleep 0.05
    done
    fail "expected this to come true: $*"
}

has_file() { compgen -G "$1" >/dev/null; }
# Also one that no process waits for.
has_ended() { ! kill -0 "$1" 2>/dev/null || grep -qs '^State:[[:space:]]*Z' "/proc/$1/status"; }
# has_text TEXT FILE
has_text() { grep -qF -- "$1" "$2" 2>/dev/null; }

# wait_for_file PATTERN: until it is there.
wait_for_file() { wait_until has_file "$1"; }

# expect_interrupted SIGNAL OUT COMMAND...: COMMAND is at work on OUT when the signal comes; it ends
# with 130, without OUT and without anything of it. It is stopped at its work, so that it cannot end
# before the signal; if it had ended or nearly so, it begins again.
expect_interrupted()
{
    local signal=$1 out=$2 code before child attempt
    shift 2
    last="$* (SIG$signal)"
    before=$(ls -A)
    for ((attempt = 0; attempt < 20; attempt++)); do
        "$@" >"$captured/out" 2>"$captured/err" </dev/null &
        child=$!
        while ! has_file "$out.part-*" && ! has_ended "$child"; do :; done
        kill -STOP "$child" 2>/dev/null
        kill -s "$signal" "$child" 2>/dev/null
        kill -CONT "$child" 2>/dev/null
        wait "$child"
        code=$?
        [ "$code" -eq 0 ] || break
        rm -f "$out"
    done
    [ "$code" -eq 130 ] || fail "expected exit status 130, found $code"
    expect_one_line_error "interrupted"
    [ "$(ls -A)" = "$before" ] || fail "expected no file to be left, found $(ls -A)"
}

finish()
{
    finished=yes
    [ "$failures" -eq 0 ] || { echo "$script: $failures checks failed" >&2; exit 1; }
    exit 0
}
