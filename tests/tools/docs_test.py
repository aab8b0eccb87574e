"""Documents against the code they speak of: docs_test.py SOURCE GRETA BUILD.

Environment variables, exit codes, options in man pages, links, the index, examples for pipelines,
and what is generated (the benchmark page, the picture in the README)."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

SOURCE, GRETA, BUILD = (pathlib.Path(argument).resolve() for argument in sys.argv[1:4])

try:
    import yaml
except ImportError:
    yaml = None


def read(path):
    return (SOURCE / path).read_text("utf-8")


def greta(*words):
    return subprocess.run([str(GRETA), *words], capture_output=True, text=True, check=True).stdout


def variables_read(folder):
    """Names that C code takes from the environment: of getenv and of its helpers in run.c. A macro
    stands for its text."""
    sources = [path for kind in ("*.c", "*.h") for path in sorted((SOURCE / "src").rglob(kind))]
    macros = {}
    for path in sources:
        macros.update(re.findall(r'#define (\w+) "([A-Z0-9_]+)"', path.read_text("utf-8")))
    names = {"cli": set(), "interpose": set()}
    for path in sources:
        text = path.read_text("utf-8")
        found = set(re.findall(r'getenv\("([A-Z0-9_]+)"', text))
        if path.name == "run.c":
            found |= set(re.findall(r'\bis_set\("([A-Z0-9_]+)"', text))
            found |= set(re.findall(r'\bset_folder\([^,]+,\s*"([A-Z0-9_]+)"', text))
        for other in re.findall(r'getenv\(([^")]+)\)', text):
            # Anything else would be a variable this test does not see.
            assert other in macros or (other == "name" and path.name == "run.c"), f"{path}: getenv({other})"
            found |= {macros[other]} if other in macros else set()
        part = path.relative_to(SOURCE / "src").parts[0]
        assert not found or part in names, f"{path} reads the environment: only cli and interpose may"
        if found:
            names[part] |= found
    return names[folder]


class Environment(unittest.TestCase):
    def listed(self, part):
        pages = read("docs/environment.md").split("\n## ")
        section = next(page for page in pages if page.startswith(part))
        return set(re.findall(r"^\| `([A-Z0-9_]+)` \|", section, re.MULTILINE))

    def test_page_lists_what_is_read(self):
        names = variables_read("cli")
        self.assertGreaterEqual(len(names), 9)
        self.assertEqual(self.listed("greta's"), names)
        self.assertLessEqual(variables_read("interpose"), self.listed("In a traced program"))

    def test_man_page_lists_what_is_read(self):
        section = greta("manual").split(".SH ENVIRONMENT")[1].split(".SH ")[0]
        self.assertEqual(set(re.findall(r"\\fB([A-Z0-9_]+)\\fR=", section)), variables_read("cli"))

    def test_locked_environment(self):
        table = re.search(r"lock_environment\[\] = \{(.*?)\};", read("src/campaign/lock.c"), re.DOTALL).group(1)
        for setting in re.findall(r'"([A-Z0-9_]+=[0-9]+)"', table):
            self.assertIn(f"`{setting}`", read("docs/environment.md"))
        prefixes = re.search(r"prefixes\[\] = \{(.*?)\};", read("src/campaign/audit_begin.c"), re.DOTALL).group(1)
        for prefix in re.findall(r'"([A-Z]+_)"', prefixes):
            self.assertIn(f"`{prefix}`", read("docs/environment.md"))


class ExitCodes(unittest.TestCase):
    def codes(self):
        body = re.search(r"enum cli_exit \{(.*?)\};", read("src/cli/cli.h"), re.DOTALL).group(1)
        return re.findall(r"= (\d+)", body)

    def test_pages(self):
        codes = self.codes()
        self.assertIn("130", codes)
        self.assertEqual(re.findall(r"^\| (\d+) \|", read("docs/exit-codes.md"), re.MULTILINE), codes)
        for page in [greta("manual"), greta("manual", "infer")]:
            section = page.split(".SH EXIT STATUS")[1].split(".SH ")[0]
            self.assertEqual(re.findall(r"^(\d+)$", section, re.MULTILINE), codes)
        told = greta("--help").split("exit status:")[1]
        self.assertEqual(re.findall(r"\b(\d+) ", told), codes)


class ManPages(unittest.TestCase):
    def commands(self):
        listed = greta("--help").split("commands:\n")[1].split("\n\n")[0]
        names = re.findall(r"^  ([a-z-]+) ", listed, re.MULTILINE)
        self.assertGreater(len(names), 10)
        return names

    def test_every_command_and_option(self):
        main = greta("manual").replace("\\-", "-")
        for command in self.commands():
            page = greta("manual", command).replace("\\-", "-")
            self.assertIn(f"greta-{command}", main)
            shown = greta(command, "--help")
            if "options:" not in shown:
                continue
            names = re.findall(r"^  (-[^ ].*?)(?:  |$)", shown.split("options:\n")[1].split("\nexamples:")[0], re.MULTILINE)
            self.assertTrue(names, command)
            for line in names:
                for option in re.findall(r"(?:^|, )(--?[A-Za-z][A-Za-z0-9-]*)", line):
                    self.assertIn(f"\\fB{option}\\fR", page, f"{command} {option}")

    def test_built(self):
        built = {path.name for path in (BUILD / "man").glob("*.1")}
        self.assertEqual(built, {"greta.1"} | {f"greta-{command}.1" for command in self.commands()})


class Pages(unittest.TestCase):
    PAGES = sorted(path for folder in ["", "docs", "bench", "models", "tools/train", "examples/ci"]
                   for path in (SOURCE / folder).glob("*.md"))

    def test_links_lead_somewhere(self):
        self.assertGreater(len(self.PAGES), 15)
        for page in self.PAGES:
            text = re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL)
            for target in re.findall(r"\]\(([^)#\s]+)", text) + re.findall(r'(?:src|href)="([^"#]+)"', text):
                if not target.startswith(("http:", "https:")):
                    self.assertTrue((page.parent / target).exists(), f"{page.relative_to(SOURCE)}: {target}")

    def test_index_names_every_page(self):
        index, front = read("docs/README.md"), read("README.md")
        for page in (SOURCE / "docs").glob("*.md"):
            if page.name != "README.md":
                self.assertTrue(f"({page.name})" in index or f"(docs/{page.name})" in front, page.name)

    def test_files_named_are_there(self):
        """Paths of this tree in guides."""
        for page in ["docs/add-an-op.md", "docs/add-a-backend.md", "docs/add-an-architecture.md", "ARCHITECTURE.md", "README.md"]:
            for path in re.findall(r"`((?:src|tests|tools|docs|cmake|bench|models|examples)/[A-Za-z0-9_./-]+)`", read(page)):
                if "NAME" not in path:
                    self.assertTrue((SOURCE / path).exists(), f"{page}: {path}")

    def test_generated(self):
        for command in [["bench/run", "--check"], ["tools/film.py", "--check"]]:
            checked = subprocess.run([sys.executable, "-B", *command], cwd=SOURCE, capture_output=True, text=True, check=False)
            self.assertEqual(checked.returncode, 0, checked.stderr)


class Examples(unittest.TestCase):
    SLURM = SOURCE / "examples/ci/audit.sbatch"

    def scripts(self):
        """Shell scripts: the Slurm job, and every step of the workflow."""
        yield self.SLURM.read_text("utf-8")
        if yaml:
            workflow = yaml.safe_load(read("examples/ci/github-actions.yml"))
            for job in workflow["jobs"].values():
                for step in job["steps"]:
                    self.assertTrue(("run" in step) != ("uses" in step), step)
                    if "run" in step:
                        yield re.sub(r"\$\{\{.*?\}\}", "x", step["run"])

    def test_workflow(self):
        if not yaml:
            self.skipTest("python3-yaml is not installed")
        workflow = yaml.safe_load(read("examples/ci/github-actions.yml"))
        self.assertIn("pull_request", workflow[True])  # YAML reads `on` as true
        steps = workflow["jobs"]["audit"]["steps"]
        self.assertTrue(any("audit --device" in step.get("run", "") for step in steps))

    def test_shell_syntax(self):
        for script in self.scripts():
            checked = subprocess.run(["bash", "-n"], input=script, capture_output=True, text=True, check=False)
            self.assertEqual(checked.returncode, 0, checked.stderr)

    def test_options_exist(self):
        text = self.SLURM.read_text("utf-8") + read("examples/ci/github-actions.yml") + read("docs/exit-codes.md")
        known = greta("audit", "--help") + greta("infer", "--help")
        used = set(re.findall(r" (--(?:device|locked|matrix|artifacts|json|model|baseline|max-tokens|resume|keep|unfinished)[a-z-]*)", text))
        self.assertGreater(len(used), 6)
        for option in used:
            self.assertRegex(known, rf"(?<![a-z-]){option}(?![a-z-])")

    def slurm(self, folder, status):
        """The job with a stand-in for greta that writes what it was given and ends with status."""
        program = pathlib.Path(folder) / "greta"
        program.write_text('#!/bin/bash\n[ "$1" = devices ] && exit\necho "$@" >>"$ARTIFACTS/line"\n'
                           f'exit {status}\n')
        program.chmod(0o755)
        artifacts = pathlib.Path(folder) / "artifacts"
        environment = {**os.environ, "GRETA": str(program), "ARTIFACTS": str(artifacts)}
        run = subprocess.run(["bash", str(self.SLURM), "m.gguf"], env=environment, capture_output=True, text=True, check=False)
        return run.returncode, (artifacts / "line").read_text().split("\n")

    def test_slurm_passes_the_status_on(self):
        for status in [0, 1, 3, 4]:
            with tempfile.TemporaryDirectory() as folder:
                code, lines = self.slurm(folder, status)
                self.assertEqual(code, status)
                self.assertIn("audit --model m.gguf --matrix A:bare:50", lines[0])
                self.assertRegex(lines[0], "--baseline [^ ]*/artifacts/last ")
                self.assertRegex(lines[1], "^audit prune --artifacts [^ ]*/artifacts --keep 50$")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
