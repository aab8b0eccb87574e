# general_test.sh - what is the same for every command: help, errors, pages, completion, install.
source "$(dirname "$0")/lib.sh"
commands="infer chat audit flight eval bench diff-taps inspect synth quantize devices render tokenize detokenize manual completion help"

# ---- Help and version --------------------------------------------------------------------------
expect_exit 0 "$GRETA" --help
expect_no_stderr
for command in $commands; do
    expect_exit 0 "$GRETA" --help
    expect_stdout "  $command "
    expect_exit 0 "$GRETA" "$command" --help
    expect_stdout "usage: greta $command"
    expect_no_stderr
    cp "$captured/out" "$captured/long"
    expect_exit 0 "$GRETA" "$command" -h
    expect_same_bytes "$captured/out" "$captured/long"
    expect_exit 0 "$GRETA" help "$command"
    expect_same_bytes "$captured/out" "$captured/long"
done
expect_exit 0 "$GRETA" -h
expect_exit 0 "$GRETA" help
expect_exit 0 "$GRETA" -V
cp "$captured/out" "$captured/version"
expect_exit 0 "$GRETA" --version
expect_same_bytes "$captured/out" "$captured/version"
grep -qE '^greta [0-9]+\.[0-9]+\.[0-9]+$' "$captured/out" || fail "expected a version"

# ---- Lines that make no sense ------------------------------------------------------------------
expect_exit 2 "$GRETA"
expect_no_stdout
expect_stderr "usage: greta COMMAND"
expect_exit 2 "$GRETA" inspct
expect_one_line_error "unknown command 'inspct'; did you mean inspect?"
expect_exit 2 "$GRETA" --nonsense
expect_one_line_error "unknown command '--nonsense'"
expect_exit 2 "$GRETA" help nothing
expect_one_line_error "unknown command 'nothing'"
expect_exit 2 "$GRETA" manual nothing
expect_one_line_error "unknown command 'nothing'"
expect_exit 2 "$GRETA" completion tcsh
expect_one_line_error "expected bash, zsh or fish, found 'tcsh'"
for command in $commands; do
    expect_exit 2 "$GRETA" "$command" --no-such-flag
    expect_one_line_error "greta $command: unknown flag '--no-such-flag'"
    expect_no_stdout
done

# What the terminal would obey is shown escaped, in whichever option it comes.
for option in "infer -p x --inject" "audit --inject" "audit --matrix" "audit --self-test --faults" "infer" "audit --compare"; do
    # shellcheck disable=SC2086 # words on purpose
    expect_exit 2 "$GRETA" $option $'--\e[31mx\xe2\x80\xae'
    expect_one_line_error '--\x1B[31mx\xE2\x80\xAE'
done
expect_exit 2 "$GRETA" $'\e[31mx'
expect_one_line_error "unknown command '\x1B[31mx'"

# ---- Nowhere to write --------------------------------------------------------------------------
if [ -e /dev/full ]; then
    for line in "--help" "--version" "help synth" "manual" "completion bash" "synth --help"; do
        # shellcheck disable=SC2086 # words on purpose
        expect_exit 3 bash -c "'$GRETA' $line >/dev/full"
        expect_one_line_error "cannot write"
    done
fi

# ---- Man pages ---------------------------------------------------------------------------------
for command in "" $commands; do
    # shellcheck disable=SC2086 # nothing at all for the main page
    expect_exit 0 "$GRETA" manual $command
    expect_no_stderr
    expect_stdout ".SH NAME"
    cp "$captured/out" "page-$command.1"
done
if command -v man >/dev/null && man --warnings -l page-.1 2>&1 | grep -q GRETA; then
    for page in page-*.1; do
        expect_exit 0 env MANWIDTH=80 LC_ALL=C man --warnings -E ascii -l "$page"
        expect_no_stderr
        expect_stdout "EXIT STATUS"
    done
fi
grep -qF -- '\-hf' page-infer.1 || fail "expected the refused flags of llama.cpp"
rm -f page-*.1

# ---- Completion --------------------------------------------------------------------------------
expect_exit 0 "$GRETA" completion zsh
expect_stdout "#compdef greta"
command -v zsh >/dev/null && expect_exit 0 zsh -n "$captured/out"
expect_exit 0 "$GRETA" completion fish
expect_stdout "complete -c greta"
command -v fish >/dev/null && expect_exit 0 fish --no-execute "$captured/out"
"$GRETA" completion bash >"$captured/greta.bash"
expect_exit 0 bash -n "$captured/greta.bash"

# complete_line WORD...: what bash offers for the last word, sorted, in one line.
complete_line()
{
    # shellcheck disable=SC2016 # expanded by the inner shell
    last="completion of $*" bash -c 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
        _greta; printf "%s\n" "${COMPREPLY[@]}" | sort | tr "\n" " "' \
        complete "$captured/greta.bash" "$@"
}
# expect_offer WORDS LINE...: what is offered is exactly that.
expect_offer()
{
    local wanted=$1 found
    shift
    last="completion of $*"
    found=$(complete_line "$@")
    [ "$found" = "$wanted" ] || fail "expected '$wanted', found '$found'"
}
expect_offer "inspect " greta ins
expect_offer "synth " greta sy
expect_offer "--version " greta --v
expect_offer "--shape " greta synth --sh
expect_offer "llama3-70b " greta synth --shape llama3-7
expect_offer "llama3-1b llama3-3b llama3-70b llama3-8b " greta synth -s llama3
expect_offer "q4_0 q4_k_m " greta synth --type q4
expect_offer "--ctx --ctx-size " greta inspect --ct
expect_offer "list prune show " greta audit ""
expect_offer "prune " greta audit p
expect_offer "q4_0 q4_k_m " greta quantize in.gguf out.gguf q4
expect_offer "rope-past-table rope-position " greta infer --inject rope
expect_offer "rope-past-table rope-position " greta audit --inject rope
expect_offer "always auto " greta bench --color a
expect_offer "zsh " greta completion z
: >model.gguf
expect_offer "model.gguf " greta inspect mo
rm model.gguf

# ---- Colours -----------------------------------------------------------------------------------
escape=$'\x1b'
expect_plain() { ! grep -q "$escape" "$captured/out" "$captured/err" || fail "expected no colours"; }
expect_exit 0 "$GRETA" infer --help
expect_plain
expect_exit 0 "$GRETA" infer --help --color=always # help ends the line
expect_plain
expect_exit 0 "$GRETA" infer --color always --help
expect_stdout "$escape[1moptions:$escape[0m"
expect_exit 0 env NO_COLOR=1 "$GRETA" help --color
expect_stdout "$escape[1mcommands:$escape[0m"
expect_exit 3 "$GRETA" inspect nothing.gguf --color always
expect_stderr "$escape[1;31mgreta inspect:$escape[0m nothing.gguf"
expect_exit 3 "$GRETA" inspect nothing.gguf
expect_plain
# On a terminal, unless somebody does not want them.
last="colours on a terminal"
python3 - "$GRETA" <<'PYTHON' || fail "expected colours on a terminal, and only there"
import os, pty, sys

def printed(environment):
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvpe(sys.argv[1], [sys.argv[1], "inspect", "nothing.gguf"], environment)
    output = b""
    try:
        while part := os.read(terminal, 4096):
            output += part
    except OSError: # the other end is closed
        pass
    os.waitpid(pid, 0)
    return output

base = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "TERM")}
assert b"\x1b[1;31mgreta inspect:" in printed({**base, "TERM": "xterm"})
for wish in [{"TERM": "dumb"}, {"TERM": "xterm", "NO_COLOR": "1"}, {}]:
    output = printed({**base, **wish})
    assert b"greta inspect:" in output and b"\x1b" not in output, (wish, output)
assert b"\x1b" in printed({**base, "TERM": "xterm", "NO_COLOR": ""})
PYTHON

# ---- Installing --------------------------------------------------------------------------------
if [ -n "${GRETA_BUILD:-}" ] && command -v cmake >/dev/null; then
    expect_exit 0 cmake --install "$GRETA_BUILD" --prefix "$folder/prefix"
    [ "$(readlink prefix/bin/greta_infer)" = greta ] || fail "expected greta_infer to be greta"
    expect_exit 0 prefix/bin/greta --version
    for command in $commands; do
        [ -s "prefix/share/man/man1/greta-$command.1" ] || fail "expected the page of $command"
    done
    for file in man/man1/greta.1 bash-completion/completions/greta zsh/site-functions/_greta \
        fish/vendor_completions.d/greta.fish; do
        [ -s "prefix/share/$file" ] || fail "expected $file"
    done
    expect_same_bytes prefix/share/bash-completion/completions/greta "$captured/greta.bash"
fi
finish
