"""Trains the tokenizers of this folder with the reference library.

    pip install tokenizers sentencepiece
    python make.py

The text is in this file and the seeds are fixed. Unigram training sums in the
order of a hash table, so that another run can write other scores: then
`go test ./tokenizer -run TestGolden -update` must follow.
"""

import base64
import json
import pathlib
import random
import tempfile

import sentencepiece
from tokenizers import (
    AddedToken,
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

HERE = pathlib.Path(__file__).parent

TEXT = """
The quick brown fox jumps over the lazy dog, and the dog doesn't mind.
A tensor is a handle on memory outside the heap; who holds these bytes?
We'll see what they've said: I'm sure it's fine, they'd agree, you're right.
Models run in an amount of memory that is known before the run begins.
She sells sea shells on the sea shore; the shells she sells are sea shells.
How much wood would a woodchuck chuck if a woodchuck could chuck wood?
Portez ce vieux whisky au juge blond qui fume; où est le garçon naïf?
Falsches Üben von Xylophonmusik quält jeden größeren Zwerg.
El pingüino Wenceslao hizo kilómetros bajo exhaustiva lluvia y frío.
Příliš žluťoučký kůň úpěl ďábelské ódy. Zażółć gęślą jaźń.
Съешь же ещё этих мягких французских булок, да выпей чаю.
Ξεσκεπάζω την ψυχοφθόρα βδελυγμία.
いろはにほへと ちりぬるを わかよたれそ つねならむ。色は匂へど散りぬるを
天地玄黃 宇宙洪荒 日月盈昃 辰宿列張。我们今天学习中文,明天再说。
다람쥐 헌 쳇바퀴에 타고파. 키스의 고유조건은 입술끼리 만나야 한다.
דג סקרן שט בים מאוכזב ולפתע מצא חברה. نص حكيم له سر قاطع وذو شأن عظيم.
ऋषियों को सताने वाले दुष्ट राक्षसों के राजा रावण का सर्वनाश करने वाले।
เป็นมนุษย์สุดประเสริฐเลิศคุณค่า กว่าบรรดาฝูงสัตว์เดรัจฉาน
def run(x, y=None):\n    return x if y is None else x + y  # 3.14
for (int i = 0; i < 1024; i++) { sum += a[i] * b[i]; }
{"ids": [101, 2023, 2003, 102], "mask": [1, 1, 1, 1], "type": null}
😀 😃 👍🏽 👩‍👩‍👧 🇫🇷 ❤️ © ® ™ ½ ² Ⅷ ﬁ ﬂ Å é ñ ǆ
""".strip().splitlines()


def corpus():
    draw = random.Random(1)
    words = [w for line in TEXT for w in line.split()]
    lines = [line.replace("\\n", "\n") for line in TEXT] * 20
    for _ in range(1500):
        lines.append(" ".join(draw.choice(words) for _ in range(draw.randrange(3, 15))))
    for _ in range(300):
        lines.append(f"{draw.randrange(10 ** draw.randrange(1, 9))} {draw.random():.4f}")
    return lines


def save(name, tok, change=None):
    doc = json.loads(tok.to_str())
    if change:
        change(doc)
    text = json.dumps(doc, ensure_ascii=False, separators=(",", ":"))
    Tokenizer.from_str(text)
    (HERE / name).write_text(text + "\n", encoding="utf-8")


def wordpiece(lines):
    tok = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tok.normalizer = normalizers.BertNormalizer()
    tok.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", AddedToken("[MASK]", lstrip=True)]
    tok.train_from_iterator(lines, trainers.WordPieceTrainer(vocab_size=1200, special_tokens=special))
    tok.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", tok.token_to_id("[CLS]")), ("[SEP]", tok.token_to_id("[SEP]"))],
    )
    tok.decoder = decoders.WordPiece()
    save("wordpiece.json", tok)


def wordlevel(lines):
    tok = Tokenizer(models.WordLevel(unk_token="<unk>"))
    tok.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])
    tok.pre_tokenizer = pre_tokenizers.Whitespace()
    tok.train_from_iterator(lines, trainers.WordLevelTrainer(vocab_size=400, special_tokens=["<unk>", "<pad>"]))
    save("wordlevel.json", tok)


def byte_bpe(lines):
    tok = Tokenizer(models.BPE())
    tok.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    special = ["<s>", "<pad>", "</s>", "<unk>", AddedToken("<mask>", lstrip=True)]
    trainer = trainers.BpeTrainer(
        vocab_size=1000, special_tokens=special, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    tok.train_from_iterator(lines, trainer)
    tok.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    tok.decoder = decoders.ByteLevel()
    save("bytebpe.json", tok)


LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def split_bpe(lines):
    tok = Tokenizer(models.BPE(ignore_merges=True))
    tok.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(LLAMA3), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    trainer = trainers.BpeTrainer(vocab_size=1000, initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tok.train_from_iterator(lines, trainer)
    tok.add_special_tokens(["<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>"])
    tok.add_tokens([AddedToken("tenure", single_word=True), AddedToken("  indent", normalized=False)])
    begin = tok.token_to_id("<|begin_of_text|>")
    tok.post_processor = processors.Sequence(
        [
            processors.ByteLevel(trim_offsets=True),
            processors.TemplateProcessing(
                single="<|begin_of_text|> $A",
                pair="<|begin_of_text|> $A <|begin_of_text|>:1 $B:1",
                special_tokens=[("<|begin_of_text|>", begin)],
            ),
        ]
    )
    tok.decoder = decoders.ByteLevel()
    save("splitbpe.json", tok)


def fallback_bpe(lines):
    tok = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tok.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    pieces = ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)]
    trainer = trainers.BpeTrainer(vocab_size=1100, special_tokens=pieces, limit_alphabet=300, max_token_length=12)
    tok.train_from_iterator([" ".join(line.split()) for line in lines], trainer)
    tok.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s>:1 $B:1", special_tokens=[("<s>", 1)]
    )
    tok.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )

    def only_three(doc):
        doc["added_tokens"] = doc["added_tokens"][:3]

    save("fallbackbpe.json", tok, only_three)


def charsmap():
    """A small table in the form that SentencePiece compiles."""
    rules = {"\r\n": " ", "\u3000": " ", "\u00a0": " ", "\t": " ", "\n": " ", "\r": " ", "\u200b": ""}
    rules |= {"ﬁ": "fi", "ﬂ": "fl", "½": "1/2", "²": "2", "Ⅷ": "VIII", "™": "TM", "…": "...", "㌔": "キロ"}
    rules |= {"e\u0301": "é", "o\u0302": "ô", "n\u0303": "ñ", "か\u3099": "が", "\u0301": " "}
    rules |= {chr(0xFF01 + i): chr(0x21 + i) for i in range(94)}
    with tempfile.TemporaryDirectory() as folder:
        table, text = pathlib.Path(folder, "rules.tsv"), pathlib.Path(folder, "text")
        hexes = lambda s: " ".join(f"{ord(c):X}" for c in s)
        table.write_text("".join(f"{hexes(k)}\t{hexes(v)}\n" for k, v in sorted(rules.items())))
        text.write_text("\n".join(TEXT))
        sentencepiece.SentencePieceTrainer.train(
            input=str(text), model_prefix=str(pathlib.Path(folder, "m")), vocab_size=500, minloglevel=2,
            character_coverage=1.0, normalization_rule_tsv=str(table), hard_vocab_limit=False,
        )
        proto = pathlib.Path(folder, "m.model").read_bytes()
    return base64.b64encode(field(field(proto, 3), 2)).decode()


def field(message, want):
    """The bytes of one field of a message of protocol buffers."""

    def varint(at):
        value = shift = 0
        while True:
            value |= (message[at] & 127) << shift
            shift += 7
            at += 1
            if message[at - 1] < 128:
                return value, at

    at = 0
    while at < len(message):
        key, at = varint(at)
        match key & 7:
            case 0:
                _, at = varint(at)
            case 5:
                at += 4
            case 2:
                size, at = varint(at)
                if key >> 3 == want:
                    return message[at : at + size]
                at += size
    raise ValueError(f"no field {want}")


def unigram(lines):
    tok = Tokenizer(models.Unigram())
    tok.pre_tokenizer = pre_tokenizers.Metaspace()
    special = ["<pad>", "</s>", "<unk>"]
    trainer = trainers.UnigramTrainer(vocab_size=900, special_tokens=special, unk_token="<unk>", max_piece_length=12)
    tok.train_from_iterator([" ".join(line.split()) for line in lines], trainer)
    tok.post_processor = processors.TemplateProcessing(
        single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", tok.token_to_id("</s>"))]
    )
    tok.decoder = decoders.Metaspace()
    compiled = charsmap()

    def shorten(doc):
        doc["normalizer"] = {
            "type": "Sequence",
            "normalizers": [
                {"type": "Precompiled", "precompiled_charsmap": compiled},
                {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": "▁"},
            ],
        }
        doc["model"]["vocab"] = [[piece, round(score, 4)] for piece, score in doc["model"]["vocab"]]

    save("unigram.json", tok, shorten)


if __name__ == "__main__":
    text = corpus()
    wordpiece(text)
    wordlevel(text)
    byte_bpe(text)
    split_bpe(text)
    fallback_bpe(text)
    unigram(text)
