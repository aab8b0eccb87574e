# infer_test.sh - greta infer as a user runs it: text on standard output, the rest on standard error,
# the same text whatever the threads and batches, and faults that are named.
source "$(dirname "$0")/lib.sh"

expect_exit 0 "$GRETA" synth --shape tiny --type q4_k_m --seed 3 --out tiny.gguf
printf 'Once upon a time' >prompt.txt

# ---- The same text, however it is computed -----------------------------------------------------
expect_exit 0 "$GRETA" infer -m tiny.gguf -p "Once upon a time" --greedy -n 24
cp "$captured/out" "$captured/first"
[ "$(wc -c <"$captured/first")" -gt 24 ] || fail "expected some text"
expect_stderr "Weights loaded and config updated (vocab size: 1024)"
expect_stderr "STATUS=OK"
expect_stderr "Generated tokens: 24"
expect_stderr "Time to first token: "
expect_stderr "Ended: length"
for variant in "-t 1" "-t 3" "-b 1" "-ub 3" "--temp 0" "--d2h-mode sync" "--d2h-mode event" \
    "--device host" "-c 100"; do
    # shellcheck disable=SC2086 # options and their values
    expect_exit 0 "$GRETA" infer -m tiny.gguf -f prompt.txt --greedy -n 24 $variant
    expect_same_bytes "$captured/out" "$captured/first"
done
last="prompt on standard input"
printf 'Once upon a time' | "$GRETA" infer -m tiny.gguf -f - --greedy -n 24 >"$captured/out" 2>"$captured/err" ||
    fail "expected exit status 0"
expect_same_bytes "$captured/out" "$captured/first"

# A prompt as a plain argument.
expect_exit 0 "$GRETA" infer -m tiny.gguf "Once upon a time" --greedy -n 24
expect_same_bytes "$captured/out" "$captured/first"
# Which model runs where.
grep -qE '^Model: tiny.gguf \(llama, [0-9.]+ M parameters\); device: host \(.*[0-9]+ threads\)$' "$captured/err" ||
    fail "expected model, device and threads"
# Flags of llama.cpp's that change nothing here.
expect_exit 0 "$GRETA" infer -m tiny.gguf -p "Once upon a time" --greedy -n 24 -v --mlock --no-warmup --keep 4 -fa on -tb 2
expect_same_bytes "$captured/out" "$captured/first"
for quiet in --quiet -q --log-disable; do
    expect_exit 0 "$GRETA" infer -m tiny.gguf -p "Once upon a time" --greedy -n 24 $quiet
    expect_same_bytes "$captured/out" "$captured/first"
    expect_no_stderr
done
expect_exit 0 "$GRETA" infer -m tiny.gguf -p Once -p upon --greedy -n 2 --quiet
expect_no_stderr
expect_exit 0 "$GRETA" infer -m tiny.gguf -p "Once upon a time" --greedy -n 24 -ngl 99
expect_same_bytes "$captured/out" "$captured/first"
"$GRETA" devices --json >"$captured/devices" || fail "cannot list devices"
if ! grep -qE '"(cuda|hip):' "$captured/devices"; then
    expect_stderr "warning: --n-gpu-layers 99: no GPU was found, the model runs on the host"
    expect_exit 0 "$GRETA" infer -m tiny.gguf -p x -n 1 -ngl 99 --device host
    ! grep -q warning "$captured/err" || fail "expected no warning where the host was asked for"
fi

# ---- Sampling ----------------------------------------------------------------------------------
expect_exit 0 "$GRETA" infer -m tiny.gguf -p "Once" -n 20 --seed 7 --ignore-eos
cp "$captured/out" "$captured/seeded"
expect_exit 0 "$GRETA" infer -m tiny.gguf -p "Once" -n 20 -s 7 --ignore-eos
expect_same_bytes "$captured/out" "$captured/seeded"
expect_exit 0 "$GRETA" infer -m tiny.gguf -p "Once" -n 20 --seed 8 --ignore-eos
! cmp -s "$captured/out" "$captured/seeded" || fail "expected another seed to give another text"
expect_exit 0 "$GRETA" infer -m tiny.gguf -p "Once" -n 5 --top-k 1 --min-p 0 --top-p 1
grep -qE '^Seed: [0-9]+$' "$captured/err" || fail "expected the random seed to be told"

# ---- JSON --------------------------------------------------------------------------------------
expect_exit 0 "$GRETA" infer -m tiny.gguf -p "Once upon a time" --greedy -n 24 --json
python3 - "$captured/out" "$captured/first" <<'PYTHON' || fail "the JSON lines are not as expected"
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1], encoding="utf-8")]
tokens, end = lines[:-1], lines[-1]
assert [t["step"] for t in tokens] == list(range(24)), tokens
assert all(t["id"] >= 0 and t["ms"] >= 0 for t in tokens)
assert "".join(t["text"] for t in tokens) == open(sys.argv[2], encoding="utf-8").read()[:-1]
assert end["status"] == "OK" and end["reason"] == "length" and end["generated_tokens"] == 24, end
assert end["memory"]["kv_cache"] > 0 and end["prompt_tokens"] > 0 and end["total_ms"] > 0, end
PYTHON

# ---- Ends --------------------------------------------------------------------------------------
stop=$(python3 -c 'import sys; print(open(sys.argv[1], encoding="utf-8").read()[6:9])' "$captured/first")
expect_exit 0 "$GRETA" infer -m tiny.gguf -p "Once upon a time" --greedy -n 24 --stop "$stop"
expect_stderr "Ended: stop"
last="a stop string"
python3 - "$captured/out" "$captured/first" "$stop" <<'PYTHON' || fail "expected the text up to it"
import sys
text, whole = (open(name, encoding="utf-8").read() for name in sys.argv[1:3])
assert text[:-1] == whole[:whole.index(sys.argv[3])], (text, whole)
PYTHON
expect_exit 0 "$GRETA" infer -m tiny.gguf -p "Once upon a time" --greedy -n -1 -c 30 --ignore-eos
expect_stderr "Ended: context"

# More context than the model was made for is given, with a warning.
expect_exit 0 "$GRETA" infer -m tiny.gguf -p x --greedy -n 1 -c 100000
expect_stderr "--ctx-size 100000: the model was made for"
expect_exit 0 "$GRETA" infer -m tiny.gguf -p x --greedy -n 1 -c 64
! grep -q 'was made for' "$captured/err" || fail "expected no warning"

# ---- What goes wrong ---------------------------------------------------------------------------
expect_exit 2 "$GRETA" infer -m tiny.gguf
expect_one_line_error "expected --prompt TEXT or --prompt-file FILE"
expect_exit 2 "$GRETA" infer -m tiny.gguf -p ""
expect_one_line_error "expected some text"
expect_exit 2 "$GRETA" infer -m tiny.gguf -p x -f prompt.txt
expect_one_line_error "--prompt or --prompt-file, found both"
expect_exit 2 "$GRETA" infer -m tiny.gguf -p x --parallel 0
expect_exit 2 "$GRETA" infer -m tiny.gguf -p x -p "" -p y
expect_one_line_error "prompt 2 of 3: expected some text"
expect_exit 2 "$GRETA" infer -m tiny.gguf -p x --prompt-separator y
expect_exit 2 "$GRETA" infer -m tiny.gguf -p x something
expect_one_line_error "expected one prompt, found 'something' too"
expect_exit 2 "$GRETA" infer -m tiny.gguf some thing
expect_one_line_error "found 'thing' too"
expect_exit 2 "$GRETA" infer tiny.gguf
expect_one_line_error "tiny.gguf: expected a prompt, found the name of a file; use --prompt-file to read it, --model if it is a model"
expect_exit 2 "$GRETA" infer -m tiny.gguf -p x -t 99999999
expect_one_line_error "--threads: expected at most 256 (0: one for each of the"
# Flags of llama.cpp's that greta has nothing for say what to do.
for flag in -i -sysf --jinja -hf -mg --mirostat --lora -ts; do
    expect_exit 2 "$GRETA" infer -m tiny.gguf -p x $flag y
    expect_one_line_error "$flag is not an option of greta: "
    expect_no_stdout
done
for option in "-sys y" "--chat-template y" "--tools y" "--reasoning on"; do
    # shellcheck disable=SC2086
    expect_exit 2 "$GRETA" infer -m tiny.gguf -p x $option
    expect_one_line_error "expected --chat or -cnv with it"
done
expect_exit 2 "$GRETA" infer -m tiny.gguf -p x -y
expect_one_line_error "unknown flag '-y' (see greta infer --help)"
expect_exit 2 "$GRETA" infer -m tiny.gguf -p x -ctk q8_0 -ctv f16
expect_one_line_error "one type for keys and values, found q8_0 and f16"
expect_exit 2 "$GRETA" infer -m tiny.gguf -p x -ngl some
expect_exit 2 "$GRETA" infer -m tiny.gguf -p x -r ""
expect_exit 3 "$GRETA" infer -m nothing.gguf -p x
expect_one_line_error "nothing.gguf"
expect_exit 3 "$GRETA" infer -m tiny.gguf -f nothing.txt
expect_one_line_error "nothing.txt"
expect_exit 3 "$GRETA" infer -m tiny.gguf -p "Once upon a time" -c 4
expect_one_line_error "fewer tokens than the context of 4"
expect_exit 2 "$GRETA" infer -m tiny.gguf -p x --temp hot
expect_one_line_error "--temp: expected a number"
expect_exit 2 "$GRETA" infer -m tiny.gguf -p x --device moon
expect_exit 3 "$GRETA" infer -m tiny.gguf -p x --device cuda:99
expect_one_line_error "device cuda:99"
expect_exit 1 "$GRETA" infer -m tiny.gguf -p x --expect llama2-7b
expect_one_line_error "feed_forward_length: expected 11008, found 768"
GRETA_DISABLE_GUARD_RAIL=1 expect_exit 0 "$GRETA" infer -m tiny.gguf -p x -n 2 --expect llama2-7b
expect_stderr "warning: feed_forward_length: expected 11008, found 768"
expect_exit 2 "$GRETA" infer -m tiny.gguf -p x --d2h-mode plain
expect_one_line_error "--d2h-mode plain: expected --audit with it"
# What is read too early may be anything, indices after it too: then the run says it failed.
if ! races_are_reported; then
    last="infer --d2h-mode plain"
    "$GRETA" infer -m tiny.gguf -p x -n 9 --greedy --d2h-mode plain --audit log --allow-nan \
        >"$captured/out" 2>"$captured/err"
    status=$?
    [ $status -eq 1 ] && grep -qE '^STATUS=(FINDINGS|FAILED)$' "$captured/err" ||
        fail "expected exit status 1, and findings or a failure, found $status"
    expect_stderr "missing-sync"
fi
expect_exit 2 "$GRETA" infer -m tiny.gguf -p x --top-p 2
expect_one_line_error "top-p: expected 0 to 1, found 2"
expect_no_stdout
expect_exit 2 "$GRETA" infer -m tiny.gguf -p x --seed 4294967295
expect_one_line_error "--seed: expected a whole number from -2147483648 to 2147483647, found '4294967295'"
expect_exit 2 "$GRETA" infer -m tiny.gguf -p x --inject nonsense
expect_one_line_error "bad-index"
expect_exit 2 "$GRETA" infer -m tiny.gguf -p x --inject bad-index@layer=1,layer=1
expect_one_line_error "found 'layer' twice"
expect_exit 2 "$GRETA" infer -m tiny.gguf -p x --inject nan-output@op=copy-out
expect_one_line_error "nan-output cannot be in copy-out"

# ---- A planted fault is named, not where it was seen -------------------------------------------
expect_exit 1 "$GRETA" infer -m tiny.gguf -p "Once upon a time" --greedy -n 9 \
    --inject wrapped-offset@op=rope,layer=2,step=3
expect_stderr "STATUS=FAILED"
expect_stderr "an illegal memory access was encountered"
expect_stderr "first fault: rope, layer 2, step 3"
expect_stderr "Generated tokens: 3"

expect_exit 1 "$GRETA" infer -m tiny.gguf -p "Once upon a time" --greedy -n 4 --inject rope-position@layer=2,step=1
expect_stderr "STATUS=FAILED"
expect_stderr "an index was past its bound and the access was skipped"
expect_exit 0 "$GRETA" infer -m tiny.gguf -p "Once upon a time" --greedy -n 4
! grep -q warning "$captured/err" || fail "expected no warning"

# ---- Ctrl-C ends in order, also in the middle of a write to a slow reader; a second one kills ----
last="Ctrl-C"
python3 - "$GRETA" <<'PYTHON' || fail "expected an end in order, then a kill"
import fcntl, json, pathlib, signal, subprocess, sys, time

def threads(child):
    """{thread: (state, how often it was switched)}: two that are equal, all asleep, mean that none ran."""
    found = {}
    for task in pathlib.Path(f"/proc/{child.pid}/task").iterdir():
        rows = dict(line.split(":", 1) for line in (task / "status").read_text().splitlines())
        found[task.name] = (rows["State"].split()[0], rows["voluntary_ctxt_switches"], rows["nonvoluntary_ctxt_switches"])
    return found

def wait_until(is_true):
    while not is_true():
        time.sleep(0.02)

def is_blocked(child):
    before = threads(child)
    time.sleep(0.02)
    return before == threads(child) and all(state == "S" for state, *_ in before.values())

def is_default(child):
    """SIGINT is no longer caught: the first one has arrived."""
    status = pathlib.Path(f"/proc/{child.pid}/status").read_text()
    caught = int(status.split("SigCgt:")[1].split()[0], 16)
    return not caught >> (signal.SIGINT - 1) & 1

def start():
    """A run whose output nobody reads, once it has filled the pipe."""
    child = subprocess.Popen([sys.argv[1], "infer", "-m", "tiny.gguf", "-p", "Once", "-n", "-1", "--ctx-size", "100000",
                              "--greedy", "--ignore-eos", "--json"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    fcntl.fcntl(child.stdout, fcntl.F_SETPIPE_SZ, 4096)
    child.first = child.stdout.read(1)
    wait_until(lambda: is_blocked(child))
    child.send_signal(signal.SIGINT)
    return child

child = start()
lines = [json.loads(line) for line in (child.first + child.communicate()[0]).splitlines()]
assert child.returncode == 130, child.returncode
assert (lines[-1]["status"], lines[-1]["reason"]) == ("INTERRUPTED", "interrupted"), lines[-1]
assert lines[-1]["generated_tokens"] == len(lines) - 1 > 0, lines[-1]
child = start()
wait_until(lambda: is_default(child))
child.send_signal(signal.SIGINT)
assert child.wait() == -signal.SIGINT, child.returncode
PYTHON

# ---- The seeds' way of calling it --------------------------------------------------------------
ln -s "$GRETA" greta_infer
expect_exit 0 ./greta_infer --model tiny.gguf --prompt-file prompt.txt --max-tokens 5
expect_stderr "Generated tokens: 5"

# ---- A trained model, where it is at hand ------------------------------------------------------
stories=$GRETA_SOURCE/../shared/models/stories260K-f32.gguf
if [ -e "$stories" ]; then
    expect_exit 0 "$GRETA" infer -m "$stories" -p "Once upon a time" --greedy -n 40
    expect_stdout ", there was a little girl named Lily. She loved to play outside in the park."
else
    echo "skipped: stories260K is not here"
fi
finish
