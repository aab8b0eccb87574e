# shellcheck shell=bash disable=SC2034
# setup.sh - what ./demo and ./test share: install what is missing, configure, build. Sourced, with
# the project's root as the current folder.

# What a build needs, and what the tests need on top: Debian 12 packages.
build_packages="gcc libc6-dev cmake ninja-build pkg-config libjansson-dev libxxhash-dev libssl-dev libpcre2-dev libzstd-dev clang-19 lld-19"
test_packages="libcmocka-dev python3 python3-jinja2 python3-jsonschema python3-yaml clang libclang-rt-14-dev llvm llvm-19 libamdhip64-dev libdw1 libedit2"
full_packages="cppcheck"
lint_packages="clang-tidy"

# Prints those of the given packages that are not installed.
missing_packages() {
    local package
    for package in "$@"; do
        case "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" in
        installed) ;;
        *) printf '%s ' "$package" ;;
        esac
    done
}

# Installs the packages given, without a question. Exit 3 where that is not possible.
install_packages() {
    local missing as_root=""
    if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
        echo "note: no apt-get here; going on with the tools that are installed" >&2
        return 0
    fi
    missing=$(missing_packages "$@")
    [ -n "$missing" ] || return 0
    if [ "$(id -u)" -ne 0 ]; then
        if command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
            as_root="sudo -n"
        else
            echo "error: these packages are missing and installing them needs root:" >&2
            echo "  $missing" >&2
            echo "run this once as root, then start again:" >&2
            echo "  apt-get update && apt-get install -y --no-install-recommends $missing" >&2
            exit 3
        fi
    fi
    echo "installing: $missing" >&2
    # The words are split on purpose: a command prefix and a list of packages.
    # shellcheck disable=SC2086
    if ! { $as_root apt-get -q update &&
        $as_root env DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends \
            $missing; } </dev/null >build/setup.log 2>&1; then
        tail -n 20 build/setup.log >&2
        echo "error: apt-get could not install them (whole log: build/setup.log)" >&2
        exit 3
    fi
}

# configure_and_build PRESET [CMake option...] -- [target...]: quiet unless it fails; status 1 then.
configure_and_build() {
    local preset=$1 log options=()
    shift
    log=build/$preset.log
    while [ $# -gt 0 ] && [ "$1" != "--" ]; do
        options+=("$1")
        shift
    done
    [ $# -eq 0 ] || shift
    if cmake --preset "$preset" "${options[@]}" >"$log" 2>&1 &&
        cmake --build "build/$preset" ${1:+--target "$@"} >>"$log" 2>&1; then
        return 0
    fi
    tail -n 40 "$log" >&2
    echo "error: building '$preset' failed (whole log: $log)" >&2
    return 1
}
