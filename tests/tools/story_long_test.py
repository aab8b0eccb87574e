"""tools/train/story_long.py: which stories are long, how they are begun again, which sampled ones are kept.
story_long_test.py SOURCE"""
import pathlib
import sys
import unittest

SOURCE = pathlib.Path(sys.argv[1]).resolve()
sys.path.insert(0, str(SOURCE / "tools/train"))
import story_long  # noqa: E402


def different(count):
    """Words none of which comes twice."""
    return " ".join(f"w{number}" for number in range(count))


class Reopened(unittest.TestCase):
    def test_begun_by_whom_it_is_about(self):
        for story, wanted in (
                ("Lily and Ben were playing.", "Once upon a time, there was a little girl named Lily. Lily and Ben were playing."),
                ("Tom liked balloons.", "Once upon a time, there was a little boy named Tom. He liked balloons."),
                ("Lila was a restless girl who liked to explore.",
                 "Once upon a time, there was a little girl named Lila. She was a restless girl who liked to explore.")):
            self.assertEqual(story_long.reopened(story), wanted)

    def test_left_as_it_is(self):
        for story in ("Once upon a time, there was a dog.", "Lily and Ben are friends.", "Anna loves to dance.",
                      "Tom was a dog who liked bones.", "The bird was sad.", "Quibble and Ben were playing.", ""):
            self.assertIsNone(story_long.reopened(story), story)

    def test_of_corpus(self):
        short, long, other = "Tom liked tea.", "Tom liked " + different(20), "The end " + different(20)
        merged = "Once upon a time a. " + different(10) + " Once upon a time b. " + different(10)
        self.assertEqual(story_long.of_corpus([short, long, merged, other, different(50)], 10, 40),
                         [long, other, story_long.reopened(long)])


class Good(unittest.TestCase):
    def test_length(self):
        kept = [count for count in (9, 10, 40, 41) if story_long.good(different(count), 10, 40, 0.0)]
        self.assertEqual(kept, [10, 40])

    def test_circles(self):
        self.assertAlmostEqual(story_long.repeated("a b c d a b c d".split(), 4), 0.2)
        self.assertEqual(story_long.repeated(["a"], 4), 0.0)
        once = different(30)
        self.assertTrue(story_long.good(once + " w1 w2 w3 w4 end", 10, 90, 0.05))
        self.assertFalse(story_long.good(once + " w1 w2 w3 w4 end", 10, 90, 0.02))
        self.assertFalse(story_long.good(different(300) + " " + different(8), 10, 900, 0.5))

    def test_closes_once(self):
        self.assertTrue(story_long.good(different(20) + " From that day on he learned.", 10, 90, 0.0))
        self.assertFalse(story_long.good(different(20) + " From that day on he learned. He also learned", 10, 90, 0.0))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
