"""The page and its plots, from raw files alone: the same files always give the same page."""
import json
import pathlib
import statistics
import sys
import textwrap

from page import plot

INTRO = """# Results

`bench/run` makes this page from the raw files under `bench/results/`; nothing on it was typed (`bench/run --render` makes it
again, a test compares). Figures of a processor are ratios within one run, because such machines differ from minute to minute;
only GPUs have absolute figures. Every figure belongs to the machine that its part names. How things are measured, and figures
whose raw output was not kept: [README.md](README.md)."""

SUMMARY = """A star marks figures of other programs on an H200 whose raw output was not kept
([README.md](README.md#others-on-the-same-work))."""

ORDER = ["peers", "start", "audit-cost", "context", "sequences", "gpu-speed", "gpu-peers", "gpu-sequences",
         "gpu-audit-cost", "gpu-context", "gpu-start", "gpu-sanitizer"]


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return lines + ["| " + " | ".join(row) + " |" for row in rows]


def spread(values):
    return statistics.median(values), min(values), max(values)


def gib(count):
    return f"{count / 2**30:.2f} GiB"


def named(kind):
    return kind.upper()


# ---- Sections: raw file -> (title, lines, {plot name: svg}) ------------------------------------

def peers(raw):
    rows, groups, bars = [], [], {"decode, two threads": [], "decode, one thread": [], "prompt of 512": []}
    for run in raw["runs"]:
        for file in run["output"]["files"]:
            tests = file["tests"]
            groups.append(named(run["key"]))
            for t in tests:
                label = ("prompt of 512 tokens, two threads" if t["test"] == "prefill" else
                         "decode, one thread" if t["threads"] == 1 else "decode, two threads")
                label += f", {t['cores']}" if t["cores"] != "any" else ""
                rows.append([named(run["key"]), label, f"**{t['ratio']:.2f}** ({t['ratio_low']:.2f} to {t['ratio_high']:.2f})",
                             f"{t['pairs']} of {t['of']}", f"{file['logits_nmse']:.1e}"])
            for name, wanted in [("decode, two threads", ("decode", 2)), ("decode, one thread", ("decode", 1)),
                                 ("prompt of 512", ("prefill", 2))]:
                fitting = [t for t in tests if (t["test"], t["threads"]) == wanted and t["cores"] != "disturbed"]
                best = max(fitting, key=lambda t: t["pairs"], default=None)
                bars[name].append((best["ratio"], best["ratio_low"], best["ratio_high"]) if best else None)
    lines = ["Speed of greta over that of llama.cpp (August 2026) on the same file of TinyLlama's shape, in one process, in turn: medians of the",
             "pairs' ratios (tenth to ninth tenth of the pairs). Pairs in which other processes ran or the cores moved are left out; a row called",
             "*disturbed* had no other pairs and is in no plot. The last column compares the logits of both (normalised mean square error).", ""]
    lines += table(["file", "test", "greta / llama.cpp", "pairs", "logits"], rows)
    svg = plot.bars("greta / llama.cpp, same file, in turn", "times as fast", groups, list(bars), list(bars.values()),
                    (1.0, "llama.cpp"))
    return "Compared with llama.cpp", lines, {"peers": svg}


def starts(raw):
    found = {}
    for run in raw["runs"]:
        kind, engine, _ = run["key"].split(" ")
        found.setdefault(kind, {}).setdefault(engine, []).append(run["output"])
    rows, memory = [], {"greta": [], "llama.cpp": []}
    for kind, engines in found.items():
        pairs = list(zip(engines["greta"], engines["llama.cpp"]))
        ratio = spread([theirs["first_token_ms"] / ours["first_token_ms"] for ours, theirs in pairs])
        peak = {name: max(o["peak_resident_bytes"] for o in engines[name]) for name in memory}
        work = spread([theirs["processor_ms"] / ours["processor_ms"] for ours, theirs in pairs])
        rows.append([named(kind), f"**{ratio[0]:.2f}** ({ratio[1]:.2f} to {ratio[2]:.2f}; {len(pairs)})",
                     f"{work[0]:.2f} ({work[1]:.2f} to {work[2]:.2f})", gib(peak["greta"]), gib(peak["llama.cpp"])])
        for name in memory:
            memory[name].append((peak[name] / 2**30, None, None))
    lines = ["From a process without a model to the logits of a prompt of eight tokens, the file in the page cache, each engine in a process of its",
             "own, in turn: how many times as long llama.cpp takes (median, lowest and highest; number of pairs), the same of processor time (which other programs",
             "disturb less), and the most memory either process had.", ""]
    lines += table(["file", "time to first token, llama.cpp / greta", "processor time, llama.cpp / greta", "memory, greta", "memory, llama.cpp"], rows)
    return "Time to the first token, and memory", lines, {
        "start-memory": plot.bars("Peak resident memory", "GiB", [named(k) for k in found], list(memory), list(memory.values()))}


def audit_cost(raw):
    output = raw["runs"][0]["output"]
    rows, groups, bars = [], [], []
    for level in output["levels"]:
        if level["level"] == "off":
            rows.append(["off", "0 (measured against)", "0"])
            continue
        low, high = level["added_percent_low"], level["added_percent_high"]
        rows.append([level["level"], f"**{level['added_percent']:+.1f} %** ({low:+.1f} to {high:+.1f})", f"{level['cpu_added_percent']:+.1f} %"])
        groups.append(level["level"])
        bars.append((level["added_percent"], low, high))
    lines = [f"Time of a token with an audit level against one without, engines open side by side, {output['tokens']} tokens of each in turn, {output['rounds']} rounds:",
             "median (quartiles), and the same of processor time.", ""]
    lines += table(["level", "added to a token", "processor time"], rows)
    return "What the audit costs", lines, {
        raw["section"]: plot.bars("Added to the time of a token", "per cent", groups, ["added"], [bars])}


def depth_rows(raw):
    return [(row["n_depth"], statistics.median(row["samples_ts"])) for row in raw["runs"][0]["output"]]


def context(raw):
    rows = depth_rows(raw)
    first = rows[0][1]
    lines = ["Decoding speed after a growing context, relative to an empty one (medians).", ""]
    lines += table(["tokens before"] + [f"{d:,}" for d, _ in rows], [["speed"] + [f"{s / first:.2f}" for _, s in rows]])
    return "Scaling with context", lines, {
        "context": plot.lines("Decoding after a context", "of the speed without", "tokens before",
                              [d for d, _ in rows], ["Q4_K_M"], [[s / first for _, s in rows]])}


def sequence_rounds(raw):
    """{number of sequences: {round: output}}, the numbers in order. A key is a number and a round."""
    found = {}
    for run in raw["runs"]:
        count, _, turn = run["key"].partition(" ")
        found.setdefault(int(count), {})[turn] = run["output"]
    return dict(sorted(found.items()))


def sequence_rows(raw):
    """(number of sequences, speed as median, lowest and highest, memory) each."""
    return [(count, spread([o["decode_per_second"] for o in turns.values()]), next(iter(turns.values()))["memory"])
            for count, turns in sequence_rounds(raw).items()]


def ranged(values, form):
    """The median in bold, then lowest and highest."""
    return f"**{form(values[0])}** ({form(values[1])} to {form(values[2])})"


def sequences(raw):
    found = sequence_rounds(raw)
    alone = next(iter(found.values()))
    rows = [(count, spread([o["decode_per_second"] / alone[turn]["decode_per_second"] for turn, o in turns.items() if turn in alone]))
            for count, turns in found.items()]
    lines = [f"Tokens a second of all sequences together, relative to one sequence alone in the same round: median of {len(alone)} rounds (lowest to", "highest).", ""]
    lines += table(["sequences"] + [str(n) for n, _ in rows], [["speed"] + [ranged(s, "{:.2f}".format) for _, s in rows]])
    return "Scaling with sequences", lines, {
        "sequences": plot.lines("Several sequences at once", "times one sequence", "sequences",
                                [n for n, _ in rows], ["Q4_K_M"], [[s[0] for _, s in rows]])}


def gpu_speed(raw):
    rows, groups, decode = [], [], []
    for run in raw["runs"]:
        cells = {}
        for row in run["output"]:
            name = f"tg{row['n_gen']}" if row["n_gen"] else f"pp{row['n_prompt']}"
            cells[name] = spread(row["samples_ts"])
        shown = [ranged(cells[n], "{:,.0f}".format) if n in cells else "" for n in ("tg128", "pp512", "pp4096")]
        shape, kind = run["key"].split(" ")
        rows.append([shape, named(kind)] + shown)
        if "tg128" in cells:
            groups.append(f"{shape} {named(kind)}")
            decode.append(cells["tg128"])
    lines = ["Tokens a second: median (lowest to highest). tg128: one sequence, 128 tokens; pp512, pp4096: prefill.", ""]
    lines += table(["shape", "type", "tg128", "pp512", "pp4096"], rows)
    return "Decode and prefill", lines, {
        "gpu-speed": plot.bars("Decoding, one sequence", "tokens a second", groups, ["decode"], [decode])}


def gpu_test(t):
    if t["test"] == "prefill":
        return f"prompt of {t['tokens']:,}"
    return "decode" if t["sequences"] == 1 else f"{t['sequences']} sequences"


def gpu_peers(raw):
    rows, groups, found = [], [], {}
    for run in raw["runs"]:
        for file in run["output"]["files"]:
            groups.append(named(run["key"]))
            for t in file["tests"]:
                ours, theirs = (f"{t[name]:,.0f} ({t[name + '_low']:,.0f} to {t[name + '_high']:,.0f})" for name in ("greta", "llama_cpp"))
                rows.append([named(run["key"]), gpu_test(t), ours, theirs, f"**{t['ratio']:.2f}** ({t['ratio_low']:.2f} to {t['ratio_high']:.2f})",
                             t["llama_cpp_way"], str(t["pairs"]), f"{file['logits_nmse']:.1e}"])
                found.setdefault(gpu_test(t), {})[len(groups) - 1] = (t["ratio"], t["ratio_low"], t["ratio_high"])
    lines = ["Tokens a second of greta and of llama.cpp (August 2026) on the same file of the Llama-3-8B shape, in one process, in turn, everything on the",
             "GPU, and the medians of the pairs' ratios (tenth to ninth tenth of the pairs). The setting of llama.cpp that was fastest for the test",
             "is taken, and named. The last column compares the logits of both (normalised mean square error).", ""]
    lines += table(["file", "test", "greta", "llama.cpp", "greta / llama.cpp", "llama.cpp with", "pairs", "logits"], rows)
    bars = [[values.get(group) for group in range(len(groups))] for values in found.values()]
    return "Compared with llama.cpp", lines, {
        "gpu-peers": plot.bars("greta / llama.cpp, same file, in turn", "times as fast", groups, list(found), bars, (1.0, "llama.cpp"))}


def gpu_sequences(raw):
    rows = sequence_rows(raw)
    turns = max(len(of) for of in sequence_rounds(raw).values())
    lines = [f"Tokens a second of all sequences together, Llama-3-8B shape, Q4_K_M: median of {turns} runs (lowest to highest).", ""]
    lines += table(["sequences"] + [str(n) for n, _, _ in rows],
                   [["tokens a second"] + [ranged(s, "{:,.0f}".format) for _, s, _ in rows],
                    ["KV cache"] + [gib(m["kv_cache"]) for _, _, m in rows]])
    return "Scaling with sequences", lines, {
        "gpu-sequences": plot.lines("Several sequences at once", "tokens a second", "sequences",
                                    [n for n, _, _ in rows], ["Q4_K_M"], [[s[0] for _, s, _ in rows]])}


def gpu_context(raw):
    rows = depth_rows(raw)
    lines = ["Tokens a second after a growing context, Llama-3-8B shape, Q4_K_M (medians).", ""]
    lines += table(["tokens before"] + [f"{d:,}" for d, _ in rows], [["tokens a second"] + [f"{s:,.0f}" for _, s in rows]])
    return "Scaling with context", lines, {
        "gpu-context": plot.lines("Decoding after a context", "tokens a second", "tokens before",
                                  [d for d, _ in rows], ["Q4_K_M"], [[s for _, s in rows]])}


def gpu_starts(raw):
    found = {}
    for run in raw["runs"]:
        shape, kind, _ = run["key"].split(" ")
        found.setdefault((shape, kind), []).append(run["output"])
    rows = []
    for (shape, kind), outputs in found.items():
        load, first = (spread([o[name] for o in outputs]) for name in ("load_ms", "first_token_ms"))
        memory = outputs[0]["memory"]
        rows.append([shape, named(kind), f"{load[0]:,.0f} ms ({load[1]:,.0f} to {load[2]:,.0f})", f"{first[0]:,.0f} ms",
                     gib(memory["weights"]), gib(memory["peak"]), gib(memory["resident_peak"])])
    lines = ["From the start of the program to the model on the device (the file in the page cache), then to the first token; memory of the",
             "weights, the most the device gave out, and the most the process held on the host.", ""]
    lines += table(["shape", "type", "loading", "first token", "weights", "device", "host"], rows)
    return "Time to the first token, and memory", lines, {}


def gpu_sanitizer(raw):
    speeds = {run["key"]: run["output"]["decode_per_second"] for run in raw["runs"]}
    plain = speeds.get("greta off") or max(speeds.values())
    rows = [[name, f"{speed:,.1f}", f"{plain / speed:.2f}"] for name, speed in speeds.items()]
    lines = ["The bundled model decoding 64 tokens, alone, with greta's audit, and under NVIDIA's tool. They do not look for the same things:",
             "compute-sanitizer checks every access of a kernel, greta every call, copy and declared range, and where a fault came from.", ""]
    lines += table(["", "tokens a second", "times as slow"], rows)
    return "Compared with compute-sanitizer", lines, {
        "gpu-sanitizer": plot.bars("Decoding while watched", "tokens a second", list(speeds), ["speed"],
                                   [[(s, None, None) for s in speeds.values()]])}


SECTIONS = {"peers": peers, "start": starts, "audit-cost": audit_cost, "context": context, "sequences": sequences,
            "gpu-speed": gpu_speed, "gpu-peers": gpu_peers, "gpu-sequences": gpu_sequences, "gpu-audit-cost": audit_cost,
            "gpu-context": gpu_context, "gpu-start": gpu_starts, "gpu-sanitizer": gpu_sanitizer}


# ---- The page ----------------------------------------------------------------------------------

def describe(machine):
    parts = [f"{machine['cores']} cores of {machine['processor']} ({machine['instructions']})",
             f"{machine['memory_gib']} GiB", machine["system"]]
    if "gpu" in machine:
        parts.insert(0, f"**{machine['gpu']}**, {machine['driver']}")
    return ", ".join(parts)


def source_lines(raw, path):
    """Which commands, when, of what: the first of them in full."""
    runs = raw["runs"]
    dates, commits = sorted({run["date"] for run in runs}), sorted({run["commit"] for run in runs})
    when = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    command = runs[0]["command"]
    return ["", "```", command if len(command) < 150 else command[:147] + "...", "```", "",
            (f"And {len(runs) - 1} more; " if len(runs) > 1 else "") + f"{when}; commit {', '.join(commits)}; [raw]({path})"]


def wrapped(text):
    """text with its paragraphs wrapped; tables, headings, pictures and code as they are."""
    lines, paragraph, code = [], [], False
    for line in [*text.split("\n"), None]:
        if line is not None and line and not line.startswith(("|", "#", "!", "```")) and not code:
            paragraph.append(line)
            continue
        if paragraph:
            lines += textwrap.wrap(" ".join(paragraph), 118, break_long_words=False, break_on_hyphens=False)
            paragraph = []
        if line is not None:
            code ^= line.startswith("```")
            lines.append(line)
    return "\n".join(lines)


def make(results):
    """The page's text, and the plots by path below the results."""
    results = pathlib.Path(results)
    lines, plots = [INTRO, "", "## Summary", "", SUMMARY, "", *summary_table(results)], {}
    for folder in sorted(path for path in results.glob("*") if path.is_dir()):
        files = [folder / f"{name}.json" for name in ORDER if (folder / f"{name}.json").exists()]
        machines = []
        for path in files:
            raw = json.loads(path.read_text())
            if raw["machine"] not in machines:
                machines.append(raw["machine"])
                lines += ["", f"## {folder.name}", "", describe(raw["machine"]) + "."]
            title, body, made = SECTIONS[raw["section"]](raw)
            lines += ["", f"### {title} ({folder.name})", ""] + body
            lines += source_lines(raw, f"results/{folder.name}/{path.name}")
            for name, svg in made.items():
                plots[f"{folder.name}/{name}.svg"] = svg
                lines += ["", f"![{title}](results/{folder.name}/{name}.svg)"]
    return wrapped("\n".join(lines) + "\n"), plots


README_BEGIN, README_END = "<!-- measured: begin (bench/run --render) -->\n", "<!-- measured: end -->\n"

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


def readme_with(readme, results):
    head, rest = readme.split(README_BEGIN, 1)
    return head + README_BEGIN + readme_block(results) + README_END + rest.split(README_END, 1)[1]


def outputs(results, page, readme):
    """Everything that is made: path -> text."""
    text, plots = make(results)
    made = {str(page): text, **{str(pathlib.Path(results) / path): svg for path, svg in plots.items()}}
    if pathlib.Path(readme).exists():
        made[str(readme)] = readme_with(pathlib.Path(readme).read_text(), results)
    return made


def write(results, page, readme):
    made = outputs(results, page, readme)
    for path, text in made.items():
        pathlib.Path(path).write_text(text)
    print(f"wrote {page} and {len(made) - 1} more")


def check(results, page, readme):
    made = outputs(results, page, readme)
    wrong = [path for path, text in made.items() if not pathlib.Path(path).exists() or pathlib.Path(path).read_text() != text]
    stray = sorted(str(path) for path in pathlib.Path(results).glob("*/*.svg") if str(path) not in made)
    for path in wrong + stray:
        print(f"{path}: not what the raw files give; run bench/run --render", file=sys.stderr)
    return 1 if wrong or stray else 0
