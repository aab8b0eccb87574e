"""The parts of the page: a raw file becomes a title, lines, and plots by name (as SVG)."""
import statistics

from page import plot


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return lines + ["| " + " | ".join(row) + " |" for row in rows]


def spread(values):
    return statistics.median(values), min(values), max(values)


def gib(count):
    return f"{count / 2**30:.2f} GiB"


def named(kind):
    return kind.upper()


def describe(machine):
    parts = [f"{machine['cores']} cores of {machine['processor']} ({machine['instructions']})",
             f"{machine['memory_gib']} GiB", machine["system"]]
    if "gpu" in machine:
        parts.insert(0, f"**{machine['gpu']}**, {machine['driver']}")
    return ", ".join(parts)


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


ORDER = ["peers", "start", "audit-cost", "context", "sequences", "gpu-speed", "gpu-peers", "gpu-sequences",
         "gpu-audit-cost", "gpu-context", "gpu-start", "gpu-sanitizer"]

SECTIONS = {"peers": peers, "start": starts, "audit-cost": audit_cost, "context": context, "sequences": sequences,
            "gpu-speed": gpu_speed, "gpu-peers": gpu_peers, "gpu-sequences": gpu_sequences, "gpu-audit-cost": audit_cost,
            "gpu-context": gpu_context, "gpu-start": gpu_starts, "gpu-sanitizer": gpu_sanitizer}
