"""story_text.py - the corpus as documents, its tokenizer, and documents as token ids.

A corpus file is plain text; every document is followed by a line <|endoftext|>. In token ids a
document begins with that token (id 0) and has no line end after its last line."""
import lzma
import pathlib

END = "<|endoftext|>"
END_ID = 0
# The splitting rule that GGUF files call "qwen2": a word with the one mark before it, digits one by
# one, marks with the line ends after them. It has to be what greta's src/tokenizer/patterns.c has.
PRE_NAME = "qwen2"
PRE_PATTERN = (r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
               r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
               r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")


def read(folder, group):
    path = pathlib.Path(folder) / f"{group}.txt"
    if path.exists():
        text = path.read_text("utf-8")
    else:
        with lzma.open(f"{path}.xz", "rt", encoding="utf-8", newline="") as file:
            text = file.read()
    documents = [part.strip("\n") for part in text.split(END)]
    return [document for document in documents if document]


def joined(documents):
    """What `greta eval` is given: its tokens are exactly those of `stream`."""
    return END.join(documents) + END


def make_tokenizer(documents, vocab_size):
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(PRE_PATTERN), behavior="isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=vocab_size, special_tokens=[END],
                                  initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
                                  show_progress=False)
    tokenizer.train_from_iterator(iter(documents), trainer=trainer, length=len(documents))
    assert tokenizer.get_vocab_size() == vocab_size and tokenizer.token_to_id(END) == END_ID
    return tokenizer


def encode(tokenizer, documents):
    """A numpy array of ids for each document, each beginning with END_ID."""
    import numpy
    batch = tokenizer.encode_batch(documents, add_special_tokens=False)
    return [numpy.array([END_ID] + item.ids, dtype=numpy.uint16) for item in batch]


def stream(encoded):
    import numpy
    return numpy.concatenate(encoded + [numpy.array([END_ID], dtype=numpy.uint16)])


def cut(encoded, window):
    """All of the documents as rows of `window` tokens. A document that a row cuts off begins again in
    the next row, unless it had the row for itself: then it goes on there."""
    import numpy
    ids = stream(encoded)
    starts = numpy.cumsum([0] + [len(document) for document in encoded])
    rows, at = [], 0
    while at + window <= len(ids):
        rows.append(ids[at:at + window])
        begun = starts[numpy.searchsorted(starts, at + window - 1, "right") - 1]
        at = int(begun) if begun > at else at + window - 1
    return rows


def documents(rows, whole=False):
    """The documents of rows that hold several, each from its begin token on. whole: without the last of
    each row, which may have been cut off."""
    import numpy
    return [part for row in rows
            for part in numpy.split(row, numpy.flatnonzero(row == END_ID)[1:])[:-1 if whole else None]]


def token_bytes():
    """The characters of byte-level tokens and the byte each stands for."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {**{chr(byte): byte for byte in printable},
            **{chr(0x100 + number): byte for number, byte in enumerate(others)}}


def metadata(tokenizer_json):
    """GGUF metadata of a tokenizer from the text of its tokenizer.json."""
    import json
    model = json.loads(tokenizer_json)["model"]
    tokens = sorted(model["vocab"], key=model["vocab"].get)
    assert [model["vocab"][token] for token in tokens] == list(range(len(tokens)))
    assert tokens[END_ID] == END
    merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in model["merges"]]
    return [("tokenizer.ggml.model", "str", "gpt2"),
            ("tokenizer.ggml.pre", "str", PRE_NAME),
            ("tokenizer.ggml.tokens", "[str]", tokens),
            ("tokenizer.ggml.token_type", "[i32]", [3 if t == END else 1 for t in tokens]),
            ("tokenizer.ggml.merges", "[str]", merges),
            ("tokenizer.ggml.bos_token_id", "u32", END_ID),
            ("tokenizer.ggml.eos_token_id", "u32", END_ID),
            ("tokenizer.ggml.add_bos_token", "bool", True)]
