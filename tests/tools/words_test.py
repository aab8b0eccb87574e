"""tools/words.py: it finds each habit, raises no alarm over plain English, and its counts only fall.
words_test.py SOURCE"""

import pathlib
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(sys.argv.pop(1))

# One line of a comment for each rule, and what must be reported.
HABITS = {
    "of-fragment": "Of a GPU: read instead of /dev/kmsg.",
    "who-fragment": "It is copied. Who has much to copy does it from several threads.",
    "so-much-of": "So much of the weights is worth a thread.",
    "behind": "A zero stands behind the last byte.",
    "beside": "A record beside the file.",
    "told": "The observer is told.",
    "nobody": "Nobody waits for it.",
    "how-manieth": "The how manieth of its process.",
    "is-had": "One allocation, which is had faster.",
    "whether-it-pays": "Whether that pays.",
    "expected-to-work": "expected it to work, found error 700",
    "held-against": "Each row is held against the table.",
    "for-so-long": "No progress for so long is a hang.",
    "of-them-those": "Errors: of them those that were seen.",
    "anew": "The page is written anew.",
    "reading-prompts": "Reading a prompt takes longer.",
    "pieces": "Copied in pieces of 2 MiB.",
    "team": "A team owns 2,048 columns.",
    "product": "Tiles of a product.",
    "levels": "16 bytes of 4-bit levels.",
    "seed-ticket": "Found by B3.62, hypothesis H3.",
}
PLAIN = """/* The tile behaves as a whole: of all rows it takes one. Both kinds are told apart by the person who
 * wrote them; of course it is the product of two numbers, at all audit levels, on H100 and H200.
 *
 * Who waits? The look-behind of a pattern. */
static const char *text = "of them, and " "who is first";
"""


class Words(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.folder.name)
        self.addCleanup(self.folder.cleanup)
        (self.root / "tools").mkdir()

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def words(self, *options):
        """(exit status, what it printed)"""
        done = subprocess.run([sys.executable, "-B", SOURCE / "tools/words.py", *options, self.root],
                              capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    def git(self, *words):
        identity = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", "-C", self.root, *identity, *words], check=True, capture_output=True)

    def test_finds_each_habit(self):
        for slug, line in HABITS.items():
            with self.subTest(slug):
                self.write("src/ops/a.c", f"int a;\n/* {line} */\n")
                status, said = self.words()
                self.assertEqual(status, 1, said)
                self.assertIn(f"src/ops/a.c:2: {slug}: ", said)

    def test_finds_them_in_strings_scripts_and_pages(self):
        for name, text in {"src/a.c": 'error("nobody\\n"\n      "knows");\n',
                           "src/b.h": "/* The row\n * beside\n * it. */\n",
                           "tools/a.py": "x = 1  # told\n", "tools/b.py": '"""Written anew."""\n',
                           "tests/a.sh": "# Nobody\necho\n", "docs/a.md": "Told by\na page.\n"}.items():
            with self.subTest(name):
                self.write(name, text)
                self.assertEqual(self.words()[0], 1)
                (self.root / name).unlink()

    def test_names_the_line_within_a_comment(self):
        self.write("src/a.c", "\n/* One.\n * Two.\n * Of three: four. */\n")
        self.assertIn("src/a.c:4: of-fragment", self.words()[1])

    def test_no_alarm_over_plain_english(self):
        self.write("src/ops/a.c", PLAIN)
        self.assertEqual(self.words(), (0, "words: 0 findings\n"))

    def test_no_alarm_over_code(self):
        self.write("src/a.c", "int nobody, beside; char c = '\"'; int behind(void);\n")
        self.write("docs/a.md", "Run `beside` and\n\n```\nnobody\n```\n")
        self.assertEqual(self.words()[0], 0)

    def test_line_length(self):
        self.write("docs/a.md", "x" * 121 + "\n")
        self.assertIn("docs/a.md:1: line-length", self.words()[1])
        self.write("docs/a.md", f"{'x' * 120}\n| {'x' * 200} |\n```\n{'x' * 200}\n```\n")
        self.assertEqual(self.words()[0], 0)

    def test_exception_needs_a_reason(self):
        self.write("src/a.c", "/* Nobody. */\n")
        self.write("tools/words_allowed.txt", "src/a.c Nobody the name of a user\n")
        self.assertEqual(self.words()[0], 0)
        self.write("tools/words_allowed.txt", "src/a.c Nobody\n")
        self.assertEqual(self.words()[0], 2)

    def test_subjects(self):
        self.git("init", "-q")
        self.git("commit", "-q", "--allow-empty", "-m", "Begin")
        self.git("tag", "base")
        self.git("commit", "-q", "--allow-empty", "-m", "Name the launch by its own finished mark")
        self.git("commit", "-q", "--allow-empty", "-m", "Process the last row; Address two bugs".split(";", 1)[0])
        self.assertEqual(self.words("--commits", "base")[0], 0)
        for subject, fault in {"x" * 73: "73 characters", "Do this; do that": "a semicolon",
                               "Do this.": "a full stop", "do this": "a capital letter",
                               "Added this": "not an imperative", "Adds this": "not an imperative",
                               "Adding this": "not an imperative"}.items():
            with self.subTest(subject):
                self.git("commit", "-q", "--allow-empty", "-m", subject)
                status, said = self.words("--commits", "HEAD~1")
                self.assertEqual(status, 1)
                self.assertIn(fault, said)
        self.assertEqual(self.words("--commits", "nothing")[0], 2)

    def test_the_project(self):
        self.root = SOURCE
        status, said = self.words()
        self.assertEqual(status, 0, said)


if __name__ == "__main__":
    unittest.main()
