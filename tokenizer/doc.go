// Package tokenizer reads tokenizer.json files and turns texts into the ids
// that a language model takes, and ids into text, with the results of the
// reference library (Hugging Face's tokenizers). It needs no cgo and no
// service.
//
//	tok, err := tokenizer.Load("tokenizer.json")
//	if err != nil {
//		return err
//	}
//	e, err := tok.Encode("How many bytes?")
//	if err != nil {
//		return err
//	}
//	ids, err := tensor.Of(e.IDs, 1, e.Len())
//
// # Files
//
// A file has up to five parts, which a text passes in this order: a normalizer
// changes characters, a pre-tokenizer cuts the text into words, the model
// (WordPiece, BPE, Unigram or WordLevel) makes tokens of each, a
// post-processor adds special tokens, and a decoder makes text of tokens.
// docs/tokenizer.md lists what is supported of each. What a file asks for and
// the package lacks, a field that it does not know included, is an error of
// [Load] that names it: a tokenizer that ignored it would return wrong ids.
//
// # Texts
//
// Texts are UTF-8. A byte that is not part of a character is read as U+FFFD.
// Offsets are bytes of the text that was given, whatever the normalizer did to
// it, or characters with [CharOffsets], as the reference library counts.
//
// # Versions of Unicode
//
// The tables of characters are those of the reference library, whose parts
// have those of different versions: normal forms those of Unicode 9, patterns
// those of 16, cases and user-perceived characters those of 17. Tokens do not
// change with the version of Go.
//
// # Ownership
//
// Nothing here owns tensors. The lists of an [Encoding] belong to the caller.
//
// # Concurrency
//
// A [Tokenizer] may be used from any goroutine. Each call takes memory from a
// pool, with the tokens of words that were seen before: at most 4 MiB for each
// processor. A [Stream] is used by one goroutine at a time.
//
// The package is new, and its API is not promised: see ARCHITECTURE.md.
package tokenizer
