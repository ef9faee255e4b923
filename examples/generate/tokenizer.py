"""Writes tokenizer.json and tokenizer_config.json for generate.onnx, whose tokens are characters.

    python3 -m pip install onnx
    python3 tokenizer.py
"""

import json
import pathlib

import onnx

here = pathlib.Path(__file__).parent
model = onnx.load(here / "generate.onnx", load_external_data=False)
characters = next(p.value for p in model.metadata_props if p.key == "characters")
words = {c: i for i, c in enumerate(characters)}
file = {
    "version": "1.0",
    "truncation": None,
    "padding": None,
    "added_tokens": [],
    "normalizer": None,
    "pre_tokenizer": None,
    "post_processor": None,
    "decoder": {"type": "Fuse"},
    "model": {
        "type": "BPE",
        "dropout": None,
        "unk_token": None,
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": False,
        "byte_fallback": False,
        "ignore_merges": False,
        "vocab": words,
        "merges": [],
    },
}
# It was trained on pages, not on chats: an answer goes on from what was said.
template = "{% for message in messages %}{{ message['content'] | trim }}\n{% endfor %}"
config = {"model_max_length": 2048, "chat_template": template}
for name, content in (("tokenizer.json", file), ("tokenizer_config.json", config)):
    (here / name).write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")
