"""greta render on published chat templates, with what Jinja makes of them: the folder shared/chat next to the
project. Exit status 77 where it is not there. render_shared_test.py SOURCE GRETA"""
import json
import pathlib
import subprocess
import sys
import tempfile

SOURCE, GRETA = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
CHAT = SOURCE.parent / "shared" / "chat"
SHOWN = 10


def render(folder, template, case):
    variables = folder / "variables.json"
    variables.write_text(json.dumps(case["input"]), encoding="utf-8")
    command = [GRETA, "render", "--chat-template", template, "--variables", variables]
    if "now" in case:
        command += ["--now", case["now"]]
    if case.get("continue_final_message"):
        command += ["--continue-final-message"]
    return subprocess.run(command, capture_output=True, check=False)


def problem_of(case, done):
    """What is wrong, or None."""
    if "error" not in case:
        if done.returncode != 0:
            return f"exit {done.returncode}: {done.stderr.decode()}"
        return None if done.stdout == case["expected"].encode() else f"found {done.stdout!r}"
    if done.returncode != 1 or done.stdout:
        return f"expected a failure, exit {done.returncode}"
    message = case["error"]["message"]
    if case["error"]["kind"] == "raise_exception" and message.encode() not in done.stderr:
        return f"expected the message {message!r}, found {done.stderr!r}"
    return None


def main():
    if not CHAT.is_dir():
        print("skipped: no shared/chat next to the project")
        return 77
    count, wrong = 0, []
    with tempfile.TemporaryDirectory() as name:
        for path in sorted((CHAT / "cases").glob("*.json")):
            template = CHAT / "templates" / (path.stem + ".jinja")
            for case in json.loads(path.read_text(encoding="utf-8")):
                problem = problem_of(case, render(pathlib.Path(name), template, case))
                count += 1
                if problem:
                    wrong.append(f"{path.stem}: {case['name']}: {problem}")
    print(f"{count - len(wrong)} of {count} cases exact")
    print("\n".join(wrong[:SHOWN]))
    return 1 if wrong or count < 1000 else 0


sys.exit(main())
