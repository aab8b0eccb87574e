"""What a figure is of: the machine, and the program that ran."""
import json
import os
import pathlib
import re
import subprocess


def first_line(path, pattern):
    try:
        found = re.search(pattern, pathlib.Path(path).read_text(), re.MULTILINE)
    except OSError:
        return ""
    return found.group(1).strip() if found else ""


def instructions():
    flags = first_line("/proc/cpuinfo", r"^flags\s*:(.*)$").split()
    known = [("avx512f", "AVX-512"), ("avx512_vnni", "VNNI"), ("avx512_bf16", "BF16"), ("avx2", "AVX2")]
    names = [name for flag, name in known if flag in flags]
    return ", ".join(names) if "AVX-512" not in names else ", ".join(n for n in names if n != "AVX2")


def find_gpu(greta):
    """The first GPU greta can use, or None and why not."""
    try:
        listed = subprocess.run([greta, "devices", "--json"], capture_output=True, text=True, check=True)
        devices = json.loads(listed.stdout)["devices"]
    except (OSError, subprocess.CalledProcessError, ValueError, KeyError) as error:
        return None, f"greta devices: {error}"
    reasons = []
    for device in devices:
        if device["device"] == "host":
            continue
        if device.get("available"):
            return {"device": device["device"], "name": device.get("name", ""),
                    "driver": device.get("driver", "")}, ""
        reasons.append(f"{device['device']}: {device.get('reason', 'absent')}")
    return None, "; ".join(reasons) or "no GPU"


def slug(text):
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def describe(build):
    """The processor's description, and the GPU's where there is one."""
    memory_kb = int(first_line("/proc/meminfo", r"^MemTotal:\s*(\d+)") or 0)
    host = {
        "processor": first_line("/proc/cpuinfo", r"^model name\s*:(.*)$"),
        "cores": len(os.sched_getaffinity(0)),
        "instructions": instructions(),
        "memory_gib": round(memory_kb / 1048576, 1),
        "system": first_line("/etc/os-release", r'^PRETTY_NAME="?([^"\n]*)'),
    }
    gpu, missing = find_gpu(str(pathlib.Path(build) / "greta"))
    return {"host": host, "gpu": gpu, "gpu_missing": missing}


def of_section(machines, device):
    """The description that goes into a raw file, and the folder it lies in."""
    host = machines["host"]
    if device == "host":
        return dict(host), slug("cpu " + (host["instructions"].split(",")[0] or "plain"))
    gpu = machines["gpu"]
    return {**host, "gpu": gpu["name"], "driver": gpu["driver"]}, slug(gpu["name"])


def commit(root):
    """The commit of the checkout, and whether something in it was changed since."""
    def git(*words):
        return subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, check=True).stdout.strip()
    try:
        changed = git("status", "--porcelain", "--untracked-files=no", "--", "src", "CMakeLists.txt", "cmake")
        return git("rev-parse", "--short=12", "HEAD") + ("+changes" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return ""
