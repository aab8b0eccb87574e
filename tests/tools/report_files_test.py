"""report_files_test.py - the files of an audit, as other programs see them: JSON against the schemas
in docs/, the page against an XML and an HTML parser, SARIF, JUnit and the timeline against what
their readers want. Usage: report_files_test.py SOURCE PROGRAM (PROGRAM FOLDER writes the files)."""
import html.parser
import json
import os
import re
import subprocess
import sys
import tempfile
import xml.dom.minidom

try:
    import jsonschema
except ImportError:
    # A python of one's own may shadow the system's, which has the package.
    system = "/usr/bin/python3"
    if os.path.realpath(sys.executable) != os.path.realpath(system) and os.path.exists(system):
        os.execv(system, [system] + sys.argv)
    print("python3-jsonschema is not installed", file=sys.stderr)
    sys.exit(77)

failures = []


def check(condition, message):
    if not condition:
        failures.append(message)


def load(folder, name):
    with open(os.path.join(folder, name), encoding="utf-8") as file:
        return file.read()


def check_schema(source, folder, name):
    with open(os.path.join(source, "docs", "schema", name + ".schema.json"), encoding="utf-8") as file:
        schema = json.load(file)
    jsonschema.Draft7Validator.check_schema(schema)
    validator = jsonschema.Draft7Validator(schema)
    document = json.loads(load(folder, name + ".json"))
    for error in validator.iter_errors(document):
        failures.append(f"{folder}/{name}.json: {list(error.path)}: {error.message[:200]}")
    # The schema must be able to say no.
    broken = dict(document, surprise=1)
    check(list(validator.iter_errors(broken)), f"{name}: the schema takes anything")
    del broken["surprise"]
    broken["schema_version"] = 2
    check(list(validator.iter_errors(broken)), f"{name}: the schema takes any version")


class Page(html.parser.HTMLParser):
    """Elements, ids, links and everything that would be loaded or run."""

    def __init__(self):
        super().__init__()
        self.ids, self.tags, self.outside, self.links = [], set(), [], []

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        for key, value in attributes:
            if key == "id":
                self.ids.append(value)
            if (tag, key) == ("a", "href"):
                self.links.append(value)
            elif key in ("src", "href", "srcset", "data") or key.startswith("on"):
                self.outside.append((tag, key, value))


def check_links(folder, page):
    """They lead to sections of the page and to files next to it, never elsewhere."""
    sections = [link[1:] for link in page.links if link.startswith("#")]
    check(sections and set(sections) <= set(page.ids), f"{folder}: links to no section: {sections}")
    files = [link for link in page.links if not link.startswith("#")]
    for name in files:
        check(re.fullmatch(r"[A-Za-z0-9_.~%-]+(/[A-Za-z0-9_.~%-]+)*", name) and ".." not in name,
              f"{folder}: links to {name}")
        check(name.startswith("run/") or os.path.exists(os.path.join(folder, name)),
              f"{folder}: links to {name}, which is not there")
    check("summary.json" in files, f"{folder}: no link to summary.json")


def check_page(folder, rich):
    text = load(folder, "report.html")
    xml.dom.minidom.parseString(text)
    page = Page()
    page.feed(text)
    check(len(page.ids) == len(set(page.ids)), f"{folder}: an id stands twice")
    check(not page.outside, f"{folder}: loads or runs {page.outside}")
    check_links(folder, page)
    check("script" not in page.tags, f"{folder}: has a script")
    for name in ("verdicts", "summary", "stage", "matrix", "evidence"):
        check(name in page.ids, f"{folder}: no section {name}")
    check(not rich or "svg" in page.tags, f"{folder}: no figure")


def check_junit(folder):
    suites = xml.dom.minidom.parseString(load(folder, "junit.xml")).documentElement
    check(suites.tagName == "testsuites", "junit: root")
    total = 0
    for suite in suites.getElementsByTagName("testsuite"):
        cases = suite.getElementsByTagName("testcase")
        total += len(cases)
        check(int(suite.getAttribute("tests")) == len(cases), "junit: tests of a suite")
        for attribute, element in (("failures", "failure"), ("errors", "error"),
                                   ("skipped", "skipped")):
            found = len(suite.getElementsByTagName(element))
            check(int(suite.getAttribute(attribute)) == found, f"junit: {attribute} of a suite")
        for case in cases:
            check(case.getAttribute("name") and case.getAttribute("classname"), "junit: a name")
            float(case.getAttribute("time"))
    check(int(suites.getAttribute("tests")) == total, "junit: tests in all")


def check_sarif(folder):
    root = json.loads(load(folder, "findings.sarif"))
    check(root["version"] == "2.1.0", "sarif: version")
    run = root["runs"][0]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    check(len(rules) == 16, "sarif: rules")
    for result in run["results"]:
        check(rules[result["ruleIndex"]] == result["ruleId"], "sarif: rule of a result")
        check(result["kind"] in ("fail", "pass", "open", "notApplicable"), "sarif: kind")
        check(result["kind"] == "fail" or result["level"] == "none", "sarif: level of no failure")
        check(result["message"]["text"], "sarif: message")
        for location in result.get("locations", []):
            region = location.get("physicalLocation", {}).get("region")
            check(region is None or region["startLine"] >= 1, "sarif: line")


def check_timeline(folder, rich):
    entries = json.loads(load(folder, "timeline.json"))["traceEvents"]
    check(bool(entries) == rich, f"{folder}: timeline")
    tracks, begun = {}, set()
    for entry in entries:
        if entry["ph"] == "X":
            tracks.setdefault((entry["pid"], entry["tid"]), []).append(entry)
        if entry["ph"] == "s":
            begun.add(entry["id"])
    for entry in entries:
        if entry["ph"] == "f":
            check(entry["id"] in begun, f"timeline: arrow {entry['id']} ends and never began")
    # Slices of one track must not overlap: viewers drop or misplace them.
    for (process, track), slices in tracks.items():
        slices.sort(key=lambda entry: entry["ts"])
        for before, after in zip(slices, slices[1:]):
            check(before["ts"] + before["dur"] <= after["ts"] + 1e-6,
                  f"timeline: {process}/{track}: {before} overlaps {after}")


def main():
    source, program = sys.argv[1], sys.argv[2]
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([program, folder], check=True)
        for name in ("rich", "empty"):
            part = os.path.join(folder, name)
            check_schema(source, part, "summary")
            check_schema(source, part, "manifest")
            check_page(part, name == "rich")
            check_junit(part)
            check_sarif(part)
            check_timeline(part, name == "rich")
            for language in ("en", "es"):
                check(load(part, f"report.{language}.md").startswith("# "), "markdown: title")
    for failure in failures:
        print(failure, file=sys.stderr)
    sys.exit(1 if failures else 0)


main()
