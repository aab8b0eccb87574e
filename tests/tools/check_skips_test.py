"""tools/check_skips.py: every skipped test has a line with a reason. check_skips_test.py SOURCE"""

import pathlib
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(sys.argv.pop(1))
JUNIT = """<testsuite name="x" tests="3" skipped="2">
<testcase name="unit/runs_test" status="run"/>
<testcase name="gpu/ops_test" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/>
<system-out>begins
skipped: no GPU</system-out></testcase>
<testcase name="unit/forgotten_test" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/></testcase>
</testsuite>
"""


class CheckSkips(unittest.TestCase):
    def check(self, allowed, *options, junit=JUNIT):
        """(exit status, what it printed)"""
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "allowed").write_text(allowed, encoding="utf-8")
            (folder / "junit.xml").write_text(junit, encoding="utf-8")
            done = subprocess.run([SOURCE / "tools/check_skips.py", folder / "allowed", *options,
                                   folder / "junit.xml"], capture_output=True, text=True, check=False)
            return done.returncode, done.stdout + done.stderr

    def test_all_have_a_reason(self):
        status, words = self.check("# a comment\ngpu/*  no GPU\n\nunit/forgotten_test  why not\n")
        self.assertEqual((status, words), (0, "2 skipped, 0 of them without a reason\n"))

    def test_one_has_none(self):
        status, words = self.check("gpu/*  no GPU\n")
        self.assertEqual(status, 1)
        self.assertIn("unit/forgotten_test: no reason printed", words)
        self.assertNotIn("gpu/ops_test", words)
        self.assertIn("2 skipped, 1 of them", words)

    def test_words_of_a_test_are_shown(self):
        self.assertIn("gpu/ops_test: skipped: no GPU", self.check("")[1])

    def test_a_line_that_fits_nothing_is_a_note(self):
        status, words = self.check("gpu/*  a\nunit/*  b\nfake_*  c\n")
        self.assertEqual(status, 0)
        self.assertIn("nothing was skipped that matches 'fake_*'", words)

    def test_skipped_by_name(self):
        self.assertEqual(self.check("gpu/* a\nunit/* b\n", "--skipped", "fresh_machine")[0], 1)
        self.assertEqual(self.check("gpu/* a\nunit/* b\nfresh_* c\n", "--skipped", "fresh_machine")[0], 0)

    def test_what_cannot_be_read(self):
        status, words = self.check("gpu/*\n")
        self.assertEqual(status, 2)
        self.assertIn("expected a pattern and a reason", words)
        self.assertEqual(self.check("gpu/* a\n", junit="<testsuite")[0], 2)

    def test_the_real_list(self):
        rows = (SOURCE / "tests/allowed-skips").read_text(encoding="utf-8")
        none = '<testsuite name="x" tests="1"><testcase name="a" status="run"/></testsuite>'
        self.assertEqual(self.check(rows, junit=none)[0], 0)


if __name__ == "__main__":
    unittest.main()
