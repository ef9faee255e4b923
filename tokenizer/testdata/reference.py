"""Encodes texts with the reference library: one JSON object a line, in and out.

{"load": TEXT OF A tokenizer.json} answers {} or {"error": ...}; the requests
after it use that tokenizer. {"text": ..., "pair": ..., "special": true} answers
with the encoding and with what its ids decode to; {"stream": IDS} with the
parts of a decoding stream; {"batch": TEXTS} with a list of encodings.
"""

import json
import sys
import time

import tokenizers
from tokenizers.decoders import DecodeStream


def fields(enc):
    return {
        "ids": enc.ids,
        "types": enc.type_ids,
        "mask": enc.attention_mask,
        "special": enc.special_tokens_mask,
        "words": [-1 if w is None else w for w in enc.word_ids],
        "offsets": enc.offsets,
        "tokens": enc.tokens,
        "overflow": [fields(e) for e in enc.overflowing],
    }


def answer(tok, request):
    if "stream" in request:
        stream = DecodeStream(skip_special_tokens=request["skip"])
        return {"parts": [stream.step(tok, i) or "" for i in request["stream"]]}
    if "batch" in request:
        return {"batch": [fields(e) for e in tok.encode_batch(request["batch"])]}
    if "time" in request:
        begin = time.process_time()
        for text in request["time"]:
            tok.encode(text)
        return {"seconds": time.process_time() - begin}
    enc = tok.encode(request["text"], request.get("pair"), add_special_tokens=request["special"])
    out = fields(enc)
    out["skipped"] = tok.decode(enc.ids, skip_special_tokens=True)
    out["decoded"] = tok.decode(enc.ids, skip_special_tokens=False)
    return out


def main():
    tok = None
    for line in sys.stdin:
        request = json.loads(line)
        # A panic of the library derives from BaseException.
        try:
            if "load" in request:
                tok = tokenizers.Tokenizer.from_str(request["load"])
                out = {}
            else:
                out = answer(tok, request)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as e:
            out = {"error": str(e) or type(e).__name__}
        sys.stdout.write(json.dumps(out, ensure_ascii=True) + "\n")
        sys.stdout.flush()


main()
