"""Writes tables.go: what the reference library knows of each character.

    pip install tokenizers sentencepiece
    python make.py  # takes some minutes

The library is built of parts with tables of different versions of Unicode. The
script asks each part about every character, so that the tables are those that
its encodings follow, whatever the version of Go's.
"""

import pathlib
import subprocess
import sys
import tempfile

import sentencepiece
from tokenizers import Regex, normalizers, pre_tokenizers

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "testdata"))
from make import field  # noqa: E402

ALL = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]
TEXT = "".join(map(chr, ALL))

CATEGORIES = "Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Co".split()
SCRIPTS = (
    "Arabic Armenian Bengali Bopomofo Cyrillic Devanagari Ethiopic Georgian Greek Gujarati Gurmukhi Han Hangul"
    " Hebrew Hiragana Kannada Katakana Khmer Lao Latin Malayalam Mongolian Myanmar Sinhala Tamil Telugu Thai Tibetan"
).split()


def removed(splitter):
    """The characters that a pre-tokenizer drops."""
    kept = {c for piece, _ in splitter.pre_tokenize_str(TEXT) for c in piece}
    return [c for c in ALL if chr(c) not in kept]


def matched(pattern):
    return removed(pre_tokenizers.Split(Regex(pattern), "removed"))


def cut(splitter):
    """The characters that a pre-tokenizer isolates."""
    return [c for c in ALL if len(splitter.pre_tokenize_str(f"a{chr(c)}a")) == 3]


def mapped(normalizer):
    """The characters that a normalizer changes, with what it makes of them."""
    out = {}
    for c in ALL:
        to = normalizer.normalize_str(chr(c))
        if to != chr(c):
            out[c] = to
    return out


def dropped(normalizer):
    return [c for c, to in mapped(normalizer).items() if not to]


def reordered(nfd):
    """The characters with a combining class."""
    return [
        c
        for c in ALL
        if nfd.normalize_str(chr(c) + "\u0334")[0] == "\u0334" or nfd.normalize_str("\u0315" + chr(c))[0] != "\u0315"
    ]


def precompiled(rules):
    """A normalizer that replaces characters by SentencePiece's method."""
    with tempfile.TemporaryDirectory() as folder:
        table, text = pathlib.Path(folder, "rules.tsv"), pathlib.Path(folder, "text")
        table.write_text("".join(f"{ord(k):X}\t{ord(v):X}\n" for k, v in sorted(rules.items())))
        text.write_text("a b c d e\n" * 10)
        sentencepiece.SentencePieceTrainer.train(
            input=str(text), model_prefix=str(pathlib.Path(folder, "m")), vocab_size=20, minloglevel=2,
            normalization_rule_tsv=str(table), hard_vocab_limit=False,
        )
        proto = pathlib.Path(folder, "m.model").read_bytes()
    return normalizers.Precompiled(field(field(proto, 3), 2))


def graphemes():
    """Properties that decide where user-perceived characters end.

    A cluster of fewer than six bytes whose first character has a rule becomes
    what the rule says, with all that it contains. So a mark that is gone shows
    that it belonged to the character before it.
    """
    one = precompiled({"x": "Y", "©": "Y"})
    extend = [c for c in ALL if one.normalize_str("x" + chr(c)) == "Y"]
    prepend = [c for c in ALL if chr(c) not in "x©" and one.normalize_str(chr(c) + "x\u0300").endswith("Y\u0300")]
    picture = [
        c for c in ALL if c not in set(extend) and one.normalize_str("©\u200d" + chr(c)).startswith("Y\u200d")
    ]
    blocks = [(0x900, 0xE00), (0x1000, 0x10A0), (0x1780, 0x1800), (0x1A00, 0x1C00), (0xA980, 0xAB00), (0x10A00, 0x12000)]
    letters = [c for low, high in blocks for c in range(low, high) if c not in set(extend)]
    many = precompiled({chr(c): "Y" for c in letters})
    consonants = [c for c in letters if many.normalize_str(f"\u0915\u094d{chr(c)}\u0300").endswith("\u0300")]
    linkers = [c for c in extend if many.normalize_str(f"\u0915{chr(c)}\u0915\u0300").endswith("\u0300")]
    return {
        "extends": ("continue a user-perceived character (Unicode 17)", extend),
        "prepends": ("begin one that the next character continues", prepend),
        "pictures": ("are joined by ZERO WIDTH JOINER", picture),
        "consonants": ("are joined by a linker", consonants),
        "linkers": ("join consonants", linkers),
    }


def ranges(chars):
    out = []
    for c in chars:
        # Nothing asks about surrogates: a range may cross them.
        if out and (c == out[-1][1] + 1 or (out[-1][1], c) == (0xD7FF, 0xE000)):
            out[-1][1] = c
        else:
            out.append([c, c])
    return out


def lines(items, width=100):
    text, line = "", ""
    for item in items:
        if len(line) + len(item) + 2 > width:
            text += f"\t{line.rstrip()}\n"
            line = ""
        line += item + ", "
    return text + (f"\t{line.rstrip()}\n" if line else "")


def table(name, doc, chars):
    return f"// {name} {doc}.\nvar {name} = []span{{\n" + lines(f"{{{a:#x}, {b:#x}}}" for a, b in ranges(chars)) + "}\n\n"


def lowercase():
    to = mapped(normalizers.Lowercase())
    single = {c: ord(s) for c, s in to.items() if len(s) == 1}
    several = {c: s for c, s in to.items() if len(s) != 1}
    assert list(several) == [0x130], several
    runs = []
    for c in sorted(single):
        delta = single[c] - c
        if runs and runs[-1][3] == delta and c - runs[-1][1] in (1, 2):
            step = c - runs[-1][1]
            if runs[-1][2] in (0, step):
                runs[-1][1:3] = [c, step]
                continue
        runs.append([c, c, 0, delta])
    items = (f"{{{a:#x}, {b:#x}, {max(s, 1)}, {d}}}" for a, b, s, d in runs)
    return "// lowers are the characters that have a lower case.\nvar lowers = []shift{\n" + lines(items) + "}\n\n"


def main():
    category = {}
    for i, name in enumerate(CATEGORIES):
        for c in matched(rf"\p{{{name}}}+"):
            category[c] = i + 1
    runs, last = [], None
    for c in ALL:
        if category.get(c, 0) != last:
            last = category.get(c, 0)
            runs.append(f"{{{c:#x}, {last}}}")
    out = "// Code generated by make.py; DO NOT EDIT.\n\npackage chars\n\n"
    out += "// categories are the general categories: each holds up to the next row.\nvar categories = []from{\n"
    out += lines(runs) + "}\n\n"

    out += table("patternWords", "are what \\w is in patterns", matched(r"\w+"))
    out += table("patternSpaces", "are what \\s is in patterns", matched(r"\s+"))
    whitespace = pre_tokenizers.Whitespace()
    spaces = removed(pre_tokenizers.WhitespaceSplit())
    assert spaces == removed(whitespace)
    out += table("spaces", "are the white space of normalizers and pre-tokenizers", spaces)
    # A word and a sign beside it are two pieces.
    words = [c for c in ALL if len(whitespace.pre_tokenize_str(f"a{chr(c)}")) == 1 and c not in set(spaces)]
    out += table("words", "are the word characters of the pre-tokenizer Whitespace", words)
    out += table("numbers", "are what the pre-tokenizer Digits isolates", cut(pre_tokenizers.Digits(True)))
    out += table("punctuation", "is what Punctuation isolates", cut(pre_tokenizers.Punctuation()))
    bert = dict(clean_text=False, handle_chinese_chars=False, strip_accents=False, lowercase=False)
    out += table("controls", "are what BertNormalizer drops", dropped(normalizers.BertNormalizer(**bert | {"clean_text": True})))
    accents = dropped(normalizers.BertNormalizer(**bert | {"strip_accents": True}))
    out += table("accents", "are the marks that BertNormalizer drops", accents)
    out += table("marks", "are what StripAccents drops", dropped(normalizers.StripAccents()))

    decomposed = set(mapped(normalizers.NFKD())) | set(mapped(normalizers.NFD()))
    active = sorted(decomposed | set(reordered(normalizers.NFD())))
    out += table("composites", "are the characters that have a decomposition or a combining class", active)
    out += lowercase()
    for name, (doc, found) in graphemes().items():
        out += table(name, doc, found)
    out += "// scripts are those that patterns may name.\nvar scripts = map[string][]span{\n"
    for name in SCRIPTS:
        body = ", ".join(f"{{{a:#x}, {b:#x}}}" for a, b in ranges(matched(rf"\p{{{name}}}+")))
        out += f'\t"{name.lower()}": {{{body}}},\n'
    out += "}\n"
    path = pathlib.Path(__file__).with_name("tables.go")
    path.write_text(out)
    subprocess.run(["gofmt", "-w", str(path)], check=True)


if __name__ == "__main__":
    main()
