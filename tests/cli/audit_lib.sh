# audit_lib.sh - what the tests of greta audit share: a small model, and looks into an audit's folder.
source "$(dirname "$0")/lib.sh"
export XDG_CACHE_HOME=$captured/cache XDG_RUNTIME_DIR=$captured/runtime
mkdir "$XDG_RUNTIME_DIR"
"$GRETA" synth --shape tiny --out tiny.gguf >/dev/null 2>&1
audit=("$GRETA" audit --model tiny.gguf)

# newest: the folder of the last audit.
newest() { find artifacts -mindepth 2 -maxdepth 2 -type d -printf '%T@ %p\n' | sort -n | tail -1 | cut -d' ' -f2; }
# expect_summary EXPRESSION [FOLDER]: its summary.json is as the Python expression says.
expect_summary()
{
    cp "${2:-$(newest)}/summary.json" "$captured/out"
    expect_json "$1"
}
# expect_artifacts FOLDER: every file an audit leaves, each of its kind.
expect_artifacts()
{
    local folder=$1 file
    for file in manifest.json summary.json timeline.json findings.sarif; do
        python3 -m json.tool "$folder/$file" >/dev/null || fail "expected $file to be JSON"
    done
    for file in report.en.md report.es.md report.html junit.xml; do
        [ -s "$folder/$file" ] || fail "expected $file"
    done
    python3 -c "import sys,xml.dom.minidom as m; m.parse(sys.argv[1])" "$folder/junit.xml" ||
        fail "expected junit.xml to be XML"
    if compgen -G "$folder/*.part-*" >/dev/null; then fail "expected no unfinished file"; fi
}
