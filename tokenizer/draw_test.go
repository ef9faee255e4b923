package tokenizer_test

import (
	"math/rand/v2"
	"strings"
)

// words are what drawn texts are made of beside characters of all kinds.
var words = strings.Fields(`
the quick brown fox Jumps OVER lazy dogs tensor memory they've I'm we'll it's
DON'T he'd 'S ſ 'ſ garçon naïf größeren Straße Zażółć İstanbul ǅ ŉ съешь мягких
ΣΊΣΥΦΟΣ βδελυγμία いろは ちりぬるを カタカナ ﾊﾟﾋﾟ 天地玄黃 我们今天 𠀀𪚥 漢字かな 다람쥐 ᄀᆞᆨ 헌 דג
سر ذو شأن ऋषियों क्षि เป็น ประเสริฐ 3.14 1024 ٣٤٥ ½ ² Ⅷ ﬁ ﬂ ﷺ é é Å Å ụ̄ 😀 👍🏽 👩‍👩‍👧 🇫🇷🇩 ❤️ ©
def x==y[i]+=1; {"ids":[1,2]} https://a.example/b?c=d&e=%20 C:\\dir a_b __init__ foo-bar U.S.A. ...
<s> </s> <unk> <pad> <mask> [CLS] [SEP] [MASK] [UNK] [PAD] <|eot_id|> <|begin_of_text|> tenure tenures ##s
<0x41> <0xE2> ▁ ▁▁the Ġ Ċ ĠĠ`)

// gaps stand between words.
var gaps = []string{
	" ", " ", " ", " ", "", "  ", "   ", "\t", "\n", "\r\n", "\n\n", " \n ", "\u00a0", "\u3000",
	"\u2028", "\u200b", "\u200d", "\u0085", "\v", "\f", "\u1680", "\u2003 ", ", ", ". ", "      ",
}

// blocks are ranges of characters that need care: letters of several scripts,
// marks, controls, signs, and characters of the newest versions of Unicode.
var blocks = [][2]rune{
	{0, 0x20}, {0x20, 0x7e}, {0x7f, 0xff}, {0x100, 0x24f}, {0x250, 0x2ff}, {0x300, 0x36f}, {0x370, 0x5ff},
	{0x600, 0x8ff}, {0x900, 0xdff}, {0xe00, 0xfff}, {0x1000, 0x1fff}, {0x1100, 0x11ff}, {0x1ab0, 0x1aff},
	{0x1dc0, 0x1eff}, {0x1f00, 0x1fff}, {0x2000, 0x206f}, {0x2070, 0x2bff}, {0x2c00, 0x2fff},
	{0x3000, 0x30ff}, {0x3100, 0x33ff}, {0x4e00, 0x4fff}, {0x9f00, 0x9fff}, {0xa000, 0xabff},
	{0xac00, 0xd7ff}, {0xe000, 0xe0ff}, {0xf900, 0xfaff}, {0xfb00, 0xfdff}, {0xfe00, 0xffff},
	{0x10000, 0x10fff}, {0x11000, 0x11fff}, {0x16000, 0x16fff}, {0x1d000, 0x1d7ff}, {0x1df00, 0x1e9ff},
	{0x1ee00, 0x1f2ff}, {0x1f300, 0x1faff}, {0x1fb00, 0x1fbff}, {0x20000, 0x2a6ff}, {0x2ebf0, 0x323af},
	{0xe0000, 0xe01ef}, {0x10ff00, 0x10ffff}, {0, 0x10ffff},
}

// drawText returns a text of words, spaces and strange characters.
func drawText(rng *rand.Rand) string {
	var b strings.Builder
	switch rng.IntN(12) {
	case 0: // characters of one block
		block := blocks[rng.IntN(len(blocks))]
		for range 1 + rng.IntN(30) {
			b.WriteRune(drawRune(rng, block))
		}
	case 1: // characters of all blocks
		for range 1 + rng.IntN(20) {
			b.WriteRune(drawRune(rng, blocks[rng.IntN(len(blocks))]))
		}
	case 2: // one long word, or one long run
		unit := words[rng.IntN(len(words))]
		if rng.IntN(3) == 0 {
			unit = gaps[rng.IntN(len(gaps))]
		}
		b.WriteString(strings.Repeat(unit, 1+rng.IntN(120)))
	case 3: // a letter under many marks
		b.WriteRune(drawRune(rng, blocks[rng.IntN(len(blocks))]))
		for range rng.IntN(60) {
			marks := [][2]rune{{0x300, 0x36f}, {0x591, 0x5bd}, {0x1dc0, 0x1dff}, {0x20d0, 0x20f0}, {0x3099, 0x309a}}
			b.WriteRune(drawRune(rng, marks[rng.IntN(len(marks))]))
		}
	default:
		for range rng.IntN(25) {
			if rng.IntN(8) == 0 {
				b.WriteRune(drawRune(rng, blocks[rng.IntN(len(blocks))]))
			} else {
				b.WriteString(words[rng.IntN(len(words))])
			}
			b.WriteString(gaps[rng.IntN(len(gaps))])
		}
	}
	return b.String()
}

func drawRune(rng *rand.Rand, block [2]rune) rune {
	for {
		r := block[0] + rng.Int32N(block[1]-block[0]+1)
		if r < 0xd800 || r > 0xdfff {
			return r
		}
	}
}
