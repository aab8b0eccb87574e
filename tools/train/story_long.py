"""story_long.py - simple stories of a page: the corpus's own, and those of the teachers that are kept.

Nine of ten simple stories of the corpus end before 220 words, and those that do not seldom begin with
"Once upon a time": they begin "Lily and Ben were playing in the garden." A model that learns them as
they are tells a long story only where it is begun like that. So the long ones are taught a second
time, with the usual beginning before them."""
import re

OPENING = "Once upon a time"
GIRLS = {"Lily", "Sara", "Anna", "Lila", "Mia", "Jen", "Jill", "Susie", "Cindy", "Bella", "Lena", "Lisa",
         "Sally", "Sue", "Emma", "Amy", "Lucy", "Daisy", "Jane", "Molly"}
BOYS = {"Tom", "Ben", "Tim", "Sam", "Tommy", "John", "Bob", "Ernie", "Timmy", "Jimmy", "Pete", "Leo", "Jack",
        "Max", "Jim", "Billy"}
PAST = "(?:was|were|had|liked|loved|wanted|lived|went|saw|found|played)"
PAIR = re.compile(rf"([A-Z][a-z]+) and [A-Z][a-z]+ {PAST}\b")
ONE = re.compile(rf"([A-Z][a-z]+) ({PAST}) (an? (?:\w+ ){{0,3}})?")


def reopened(story):
    """The story begun with the usual words, or None where it is not begun by a name that tells whom
    they should speak of, in the past tense."""
    pair, one = PAIR.match(story), ONE.match(story)
    name = (pair or one).group(1) if pair or one else None
    if name not in GIRLS | BOYS:
        return None
    kind, pronoun = ("girl", "She") if name in GIRLS else ("boy", "He")
    begin = f"{OPENING}, there was a little {kind} named {name}. "
    if pair:
        return begin + story
    if one.group(2) == "was" and one.group(3) and not re.search(r"\b(girl|boy)\b", one.group(3)):
        return None  # "Tom was a dog"
    return begin + pronoun + story[len(name):]


def of_corpus(documents, least, most):
    """The documents of least to most words; each that can be is there a second time, reopened. Files
    whose boundaries were lost have documents of several stories: one that begins again is left out."""
    stories = [document for document in documents
               if least <= len(document.split()) <= most and document.count(OPENING) <= 1]
    return stories + [again for again in map(reopened, stories) if again]


def repeated(words, run):
    """Share of the runs of `run` words that stood there before."""
    runs = [tuple(words[at:at + run]) for at in range(len(words) - run + 1)]
    return 1 - len(set(runs)) / len(runs) if runs else 0.0


def good(story, least, most, repeats):
    """Whether a sampled story is long enough, does not walk in circles and closes once: the teachers
    like to add one lesson to another."""
    words = story.split()
    closings = len(re.findall(r"\b(?:learned|lesson|From that day|the moral)\b", story, re.IGNORECASE))
    return (least <= len(words) <= most and repeated(words, 4) <= repeats and
            repeated(words, 8) == 0 and closings <= 2)
