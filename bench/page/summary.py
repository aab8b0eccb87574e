"""The figures that answer the likeliest questions: the page's summary and the README's table."""
import json
import pathlib
import statistics

from page.sections import describe, gpu_test, named, sequence_rows, table

# Figures of llama.cpp on an H200; bench/README.md says how they were measured. Marked with a star.
EARLIER = {"q4_k_m": (268, 9467), "q8_0": (255, 10961), "bf16": (210, 24635), "sequences": {1: 259, 8: 753, 32: 3216, 64: 4406}}


def several(values, form):
    low, high = form(min(values)), form(max(values))
    return low if low == high else f"{low} to {high}"


def readme_host(raws, rows):
    of = "[`bench/run {}`]({})".format
    if "peers" in raws:
        found = {}
        for run in raws["peers"]["runs"]:
            for t in [t for t in run["output"]["files"][0]["tests"] if t["cores"] != "disturbed"]:
                name = "prefill, 512 tokens" if t["test"] == "prefill" else f"decode, {t['threads']} thread{'s' if t['threads'] > 1 else ''}"
                found.setdefault(name, {}).setdefault(named(run["key"]), []).append(t["ratio"])
        for name, kinds in found.items():
            ratios = [ratio for kind in kinds.values() for ratio in kind]
            rows.append([f"{name}, TinyLlama shape, {', '.join(kinds)}", f"{several(ratios, '{:.2f}'.format)} x as fast as llama.cpp", of("peers", "bench/RESULTS.md")])
    if "start" in raws:
        found = {}
        for run in raws["start"]["runs"]:
            found.setdefault(run["key"].split(" ")[1], {})[run["key"].split(" ")[0] + run["key"].split(" ")[2]] = run["output"]
        both = [(found["greta"][key], found["llama.cpp"][key]) for key in found["greta"]]
        rows.append(["memory of the process", f"{several([o['peak_resident_bytes'] / t['peak_resident_bytes'] for o, t in both], '{:.2f}'.format)} x that of llama.cpp", of("start", "bench/RESULTS.md")])
        rows.append(["processor time to the first token, median", f"{statistics.median([o['processor_ms'] / t['processor_ms'] for o, t in both]):.2f} x that of llama.cpp", of("start", "bench/RESULTS.md")])


def readme_audit(raw, rows):
    levels = {level["level"]: level for level in raw["runs"][0]["output"]["levels"]}
    text = ", ".join(f"`{name}` {levels[name]['added_percent']:+.1f} %" for name in ("log", "guard") if name in levels)
    rows.append(["what an audit adds to a token", text, f"[`bench/run {raw['section']}`](bench/RESULTS.md)"])


def readme_gpu_peers(raw, rows):
    found = {}
    for run in raw["runs"]:
        for t in (t for file in run["output"]["files"] for t in file["tests"]):
            found.setdefault(gpu_test(t), {})[named(run["key"])] = t["ratio"]
    for name, kinds in found.items():
        rows.append([f"{name}, Llama-3-8B shape, {', '.join(kinds)}", f"{several(kinds.values(), '{:.2f}'.format)} x as fast as llama.cpp",
                     "[`bench/run gpu-peers`](bench/RESULTS.md)"])


def readme_gpu(raws, rows):
    if "gpu-peers" in raws:
        readme_gpu_peers(raws["gpu-peers"], rows)
    for run in raws.get("gpu-speed", {"runs": []})["runs"]:
        shape, kind = run["key"].split(" ")
        if shape != "llama3-8b":
            continue
        speed = {(row["n_prompt"], row["n_gen"]): statistics.median(row["samples_ts"]) for row in run["output"]}
        rows.append([f"Llama-3-8B shape, {named(kind)}: decode / prompt of 512",
                     f"{speed.get((0, 128), 0):,.0f} / {speed.get((512, 0), 0):,.0f} tokens a second; llama.cpp {EARLIER[kind][0]:,} / {EARLIER[kind][1]:,} *",
                     "[`bench/run gpu-speed`](bench/RESULTS.md)"])
    if "gpu-sequences" in raws:
        last = sequence_rows(raws["gpu-sequences"])[-1]
        rows.append([f"{last[0]} sequences at once, Q4_K_M", f"{last[1][0]:,.0f} tokens a second; llama.cpp {EARLIER['sequences'].get(last[0], 0):,} *", "[`bench/run gpu-sequences`](bench/RESULTS.md)"])
    if "gpu-audit-cost" in raws:
        readme_audit(raws["gpu-audit-cost"], rows)
    if "gpu-sanitizer" in raws:
        speeds = {run["key"]: run["output"]["decode_per_second"] for run in raws["gpu-sanitizer"]["runs"]}
        if "greta off" in speeds:
            text = ", ".join(f"{name} {speeds['greta off'] / speed:.2f} x" for name, speed in speeds.items() if name != "greta off")
            rows.append(["the bundled model, slower under", text, "[`bench/run gpu-sanitizer`](bench/RESULTS.md)"])


def summary(results):
    """[(machine, rows)]: the likeliest questions, each with the section that answers it."""
    found = []
    for folder in sorted(path for path in pathlib.Path(results).glob("*") if path.is_dir()):
        raws = {path.stem: json.loads(path.read_text()) for path in folder.glob("*.json")}
        if not raws:
            continue
        rows = []
        readme_host(raws, rows)
        if "audit-cost" in raws:
            readme_audit(raws["audit-cost"], rows)
        readme_gpu(raws, rows)
        found.append((describe(next(iter(raws.values()))["machine"]).replace("**", ""), rows))
    return found


def summary_table(results):
    lines = table(["", "measured", "command"], [])
    for machine, rows in summary(results):
        lines += [f"| **on {machine}** | | |"] + ["| " + " | ".join(row).replace("](bench/RESULTS.md)", "").replace("[`", "`") + " |" for row in rows]
    return lines


# Rows of the summary that the README leaves out, by what they begin with.
README_WITHOUT = ("decode, 1 thread", "memory", "processor time", "Llama-3-8B shape, Q8_0", "Llama-3-8B shape, BF16", "64 sequences at once")
README_LIMIT = 10


def readme_block(results):
    """At most README_LIMIT rows: one GPU, and the processor that most was measured on."""
    gpus, processors = [], []
    for machine, rows in summary(results):
        kept = [row for row in rows if not row[0].startswith(README_WITHOUT)]
        (gpus if any("gpu-" in row[2] for row in rows) else processors).append((len(rows), machine, kept))
    lines, left = table(["", "measured", "command"], []), README_LIMIT
    for group in (gpus, processors):
        for _, machine, rows in sorted(group, key=lambda one: one[0], reverse=True)[:1]:
            lines += [f"| **on {machine}** | | |"] + ["| " + " | ".join(row) + " |" for row in rows[:left]]
            left -= len(rows[:left])
    return "\n".join(lines) + "\n"
