package share

import (
	"errors"
	"math"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/shape"
)

func someOffer(t testing.TB) offer {
	s := ok(shape.Of(3, 4))(t)
	return offer{serial: 7, arena: 9, offset: 128, bytes: 64, generation: 5, dt: dtype.F32, layout: ok(shape.Strided(s, 1, 4))(t), first: 0, label: "größe"}
}

func TestOfferGoesThrough(t *testing.T) {
	for _, m := range []offer{
		someOffer(t),
		{serial: 1, arena: 1, bytes: 0, dt: dtype.F64, layout: shape.RowMajor(ok(shape.Of(0, 3))(t))},
		{serial: 1, arena: 1, bytes: 8, dt: dtype.C64, layout: shape.RowMajor(shape.Scalar())},
		{serial: 1, arena: 1, bytes: 2, dt: dtype.I4, layout: shape.RowMajor(ok(shape.Of(3))(t))},
		{bytes: 24, dt: dtype.I16, layout: shape.RowMajor(ok(shape.Of(1, 2, 1, 3, 1, 2, 1, 1))(t)), label: strings.Repeat("x", maxLabel)},
	} {
		b := m.append(nil)
		if len(b) != offerBytes {
			t.Fatalf("an offer takes %d bytes, want %d", len(b), offerBytes)
		}
		got, err := parseOffer(b, "")
		if err != nil || got != m {
			t.Errorf("got %+v, %v, want %+v", got, err, m)
		}
	}
}

func TestMalformedOffers(t *testing.T) {
	for name, c := range map[string]struct {
		at    int
		bytes []byte
		want  string
	}{
		"serial":           {0, make([]byte, 8), "want a serial"},
		"arena":            {8, make([]byte, 8), "want a serial, an arena"},
		"offset":           {16, []byte{1}, "multiple of 64"},
		"huge offset":      {23, []byte{0x80}, "below 2^63"},
		"block too small":  {24, []byte{47}, "within its block of 47 bytes"},
		"huge block":       {31, []byte{0xff}, "below 2^63"},
		"type":             {36, []byte{99}, "unknown type"},
		"lanes":            {38, []byte{4}, "unknown type"},
		"packed, strided":  {36, []byte{0, 4}, "want it packed"},
		"rank":             {40, []byte{9}, "rank 9"},
		"rank too low":     {40, []byte{1}, "in dimension 1, want 0"},
		"device":           {41, []byte{3}, "want host memory"},
		"device number":    {42, []byte{1}, "want host memory"},
		"flags":            {44, []byte{2}, "flags 0x2"},
		"inline, serial":   {44, []byte{1}, "inline offer"},
		"first":            {48, []byte{17}, "from byte 17 on"},
		"first negative":   {55, []byte{0xff}, "below 2^63"},
		"event":            {56, []byte{1}, "leaves 0"},
		"size negative":    {71, []byte{0xff}, "sizes"},
		"size overflows":   {71, []byte{0x40}, "sizes"},
		"stride":           {136, []byte{9}, "within its block"},
		"stride negative":  {136, []byte{0xfc, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, "within its block"},
		"label":            {192, []byte{0xff}, "want UTF-8"},
		"label with zeros": {250 - 10, []byte{'x'}, "padded with zeros"},
		"end":              {255, []byte{1}, "leaves 0"},
	} {
		m := someOffer(t)
		b := m.append(nil)
		copy(b[c.at:], c.bytes)
		if _, err := parseOffer(b, ""); !errors.Is(err, ErrPeer) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want ErrPeer with %q", name, err, c.want)
		}
	}
}

func TestMalformedPackets(t *testing.T) {
	head := func(k kind, count int, request uint32, body int) []byte {
		return append(header{k, count, request}.append(nil), make([]byte, body)...)
	}
	for name, c := range map[string]struct {
		packet []byte
		want   string
	}{
		"empty":                 {nil, "a packet of 0 bytes"},
		"short":                 {make([]byte, 7), "a packet of 7 bytes"},
		"long":                  {make([]byte, maxPacket+1), "a packet of 65537 bytes"},
		"kind 0":                {head(0, 0, 0, 0), "message 0"},
		"kind 21":               {head(kinds, 0, 0, 0), "message 21"},
		"byte 1":                {[]byte{byte(kindEnd), 1, 0, 0, 0, 0, 0, 0}, "in byte 1 of END"},
		"count in END":          {head(kindEnd, 1, 0, 0), "count 1 in END"},
		"no count in RELEASE":   {head(kindRelease, 0, 0, 0), "count 0 in RELEASE"},
		"too many in RELEASE":   {head(kindRelease, 501, 0, 501*8), "count 501 in RELEASE"},
		"body of RELEASE":       {head(kindRelease, 2, 0, 8), "want 16 to 16"},
		"question 0":            {head(kindTicket, 0, 0, 8), "request 0 in TICKET"},
		"question in MAPPED":    {head(kindMapped, 0, 3, 8), "request 3 in MAPPED"},
		"body of MAPPED":        {head(kindMapped, 0, 0, 9), "want 8 to 8"},
		"body of GET":           {head(kindGet, 0, 1, 256), "want 1 to 255"},
		"body of TEXT":          {head(kindText, 0, 1, 60001), "want 0 to 60000"},
		"body of OFFER":         {head(kindOffer, 2, 0, 511), "want 512 to"},
		"too long reason of NO": {head(kindNo, 0, 1, 205), "want 4 to 204"},
		"descriptor too many":   {head(kindOffer, 201, 0, 201*256), "count 201 in OFFER"},
		"no HELLO":              {head(kindHello, 0, 0, 63), "want 64 to 64"},
		"reason without errno":  {head(kindRefused, 0, 0, 8), "want 16 to 216"},
	} {
		if _, _, err := parseHeader(c.packet); !errors.Is(err, ErrPeer) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want ErrPeer with %q", name, err, c.want)
		}
	}
}

func TestMalformedHellosAndArenas(t *testing.T) {
	good := hello{version: 1, maxLeases: 1, maxBytes: 1}.append(nil)
	if m, err := parseHello(good); err != nil || m.maxLeases != 1 {
		t.Fatalf("got %+v, %v", m, err)
	}
	for at, c := range map[int]byte{0: 'X', 4: 0, 6: 1, 40: 0, 43: 1, 44: 1, 48: 0, 56: 1} {
		b := append([]byte{}, good...)
		b[at] = c
		if _, err := parseHello(b); !errors.Is(err, ErrPeer) {
			t.Errorf("HELLO with %d at %d: got %v, want ErrPeer", c, at, err)
		}
	}
	arena := arenaNote{id: 1, size: 4096}.append(nil)
	if m, err := parseArena(arena); err != nil || m.size != 4096 {
		t.Fatalf("got %+v, %v", m, err)
	}
	for at, c := range map[int]byte{0: 0, 8: 1, 9: 0, 15: 0x80, 17: 1, 31: 1} {
		b := append([]byte{}, arena...)
		b[at] = c
		if _, err := parseArena(b); !errors.Is(err, ErrPeer) {
			t.Errorf("ARENA with %d at %d: got %v, want ErrPeer", c, at, err)
		}
	}
	arena[16] = 1
	if _, err := parseArena(arena); !errors.Is(err, errArenaKind) || errors.Is(err, ErrPeer) {
		t.Errorf("a kind to come: got %v, want a refusal that is no breach", err)
	}
}

// TestOffersReachNothingBeyondTheirBlock checks the bound against the reach of
// every element, one by one.
func TestOffersReachNothingBeyondTheirBlock(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rank := rapid.IntRange(0, 4).Draw(t, "rank")
		var sizes, strides []int
		for range rank {
			sizes = append(sizes, rapid.IntRange(0, 4).Draw(t, "size"))
			strides = append(strides, rapid.IntRange(-9, 9).Draw(t, "stride"))
		}
		s, err := shape.Of(sizes...)
		if err != nil {
			t.Fatal(err)
		}
		l, err := shape.Strided(s, strides...)
		if err != nil {
			t.Fatal(err)
		}
		m := offer{serial: 1, arena: 1, dt: dtype.I16, layout: l, bytes: rapid.IntRange(0, 200).Draw(t, "bytes"), first: rapid.IntRange(0, 200).Draw(t, "first")}
		_, err = parseOffer(m.append(nil), "")
		low, high := math.MaxInt, math.MinInt
		reach(sizes, strides, m.first/1, &low, &high)
		inside := high == math.MinInt || low >= 0 && high+2 <= m.bytes
		if high == math.MinInt { // no element: the place itself must be within
			inside = m.first <= m.bytes
		}
		if (err == nil) != inside {
			t.Fatalf("%s from %d in %d bytes reaches %d to %d: got %v", l, m.first, m.bytes, low, high+2, err)
		}
	})
}

func reach(sizes, strides []int, at int, low, high *int) {
	if len(sizes) == 0 {
		*low, *high = min(*low, at), max(*high, at)
		return
	}
	for i := range sizes[0] {
		reach(sizes[1:], strides[1:], at+2*i*strides[0], low, high)
	}
}

// FuzzParse: no packet makes the parsers panic, and a packet that they accept
// is written the same way.
func FuzzParse(f *testing.F) {
	m := someOffer(f)
	f.Add(m.append(header{kind: kindOffer, count: 1}.append(nil)))
	f.Add(hello{version: 1, maxLeases: 1, maxBytes: 1}.append(header{kind: kindHello}.append(nil)))
	f.Add(arenaNote{id: 1, size: 4096}.append(header{kind: kindArena}.append(nil)))
	f.Add(arenaNote{id: 1, size: 4 << 20, kind: cudaArena, uuid: UUID{1, 15: 2}, pages: 2 << 20}.append(header{kind: kindArena}.append(nil)))
	f.Add(arenaNote{id: 1, size: 1000, kind: allocationArena, uuid: UUID{1, 15: 2}, handle: [64]byte{1, 63: 2}}.append(header{kind: kindArena}.append(nil)))
	f.Add(eventNote{slot: 1, kind: cudaArena, handle: [64]byte{1}}.append(header{kind: kindEvent}.append(nil)))
	f.Add(append(header{kind: kindOpened}.append(nil), 1, 0, 0, 0, 1, 0, 0, 0, 'n', 'o'))
	f.Fuzz(func(t *testing.T, packet []byte) {
		h, body, err := parseHeader(packet)
		if err != nil {
			if !errors.Is(err, ErrPeer) {
				t.Errorf("got %v, want ErrPeer", err)
			}
			return
		}
		switch h.kind {
		case kindHello:
			if m, err := parseHello(body); err == nil && m.version == version && string(m.append(nil)) != string(body) && m.maxBytes != math.MaxInt64 {
				t.Errorf("HELLO %x comes back as %x", body, m.append(nil))
			}
		case kindRefused:
			if why, err := parseRefusal(body); err == nil && !utf8.ValidString(why.Error()) {
				t.Errorf("REFUSED %x says %q", body, why)
			}
		case kindArena:
			if m, err := parseArena(body); err == nil && string(m.append(nil)) != string(body) {
				t.Errorf("ARENA %x comes back as %x", body, m.append(nil))
			}
		case kindEvent:
			if m, err := parseEvent(body); err == nil && string(m.append(nil)) != string(body) {
				t.Errorf("EVENT %x comes back as %x", body, m.append(nil))
			}
		case kindOpened:
			if _, why, err := parseOpened(body); err == nil && why != nil && !utf8.ValidString(why.Error()) {
				t.Errorf("OPENED %x says %q", body, why)
			}
		case kindOffer:
			for i := range h.count {
				b := body[i*offerBytes : (i+1)*offerBytes]
				m, err := parseOffer(b, "")
				if err != nil {
					continue
				}
				if got := m.append(nil); string(got) != string(b) {
					t.Errorf("OFFER %x comes back as %x", b, got)
				}
				low, high := m.layout.Span()
				if each := m.dt.Size(); m.first+low*each < 0 || m.first+(high+1)*each > m.bytes {
					t.Errorf("%+v reaches outside of its block", m)
				}
			}
		}
	})
}

// TestReasons: what one end says of why it refuses arrives as text, or not at
// all.
func TestReasons(t *testing.T) {
	body := func(errno, zero uint32, text string) []byte {
		b := le.AppendUint64(nil, 7)
		return append(le.AppendUint32(le.AppendUint32(b, errno), zero), text...)
	}
	for _, c := range []struct {
		body []byte
		want string
	}{
		{body(0, 0, "no room"), "refused: no room"},
		{body(uint32(syscall.EMFILE), 0, "for π"), "refused: " + syscall.EMFILE.Error() + " for π"},
		{body(0, 0, ""), "refused: "},
	} {
		why, err := parseRefusal(c.body)
		if err != nil || !errors.Is(why, ErrRefused) || why.Error() != c.want {
			t.Errorf("%x: got %v, %v, want %q", c.body, why, err, c.want)
		}
	}
	for _, bad := range [][]byte{body(0, 1, "x"), body(0, 0, "caf\xe9"), body(24, 0, "\xff")} {
		if why, err := parseRefusal(bad); !errors.Is(err, ErrPeer) || !utf8.ValidString(err.Error()) {
			t.Errorf("%x: got %v, %v, want ErrPeer in UTF-8", bad, why, err)
		}
	}
	for _, text := range []string{"short", "caf\xe9 \xff\xfe", strings.Repeat("π", 150), strings.Repeat("a", 199) + "π", strings.Repeat("a\xff", 150)} {
		got := reason(text)
		if len(got) > maxReason || !utf8.ValidString(got) || len(got) < min(len(text), maxReason)-3 {
			t.Errorf("%q: got %q, want as much of it as fits, in UTF-8", text, got)
		}
	}
}

// TestInlineOffersAreExact: the bytes behind an inline offer are its elements
// and nothing else.
func TestInlineOffersAreExact(t *testing.T) {
	m := offer{dt: dtype.U16, layout: shape.RowMajor(shape.MustOf(2, 3)), bytes: 12}
	if _, err := parseOffer(m.append(nil), ""); err != nil {
		t.Fatal(err)
	}
	for _, wrong := range []offer{{bytes: 14, first: 2}, {bytes: 14}, {bytes: 10}} {
		wrong.dt, wrong.layout = m.dt, m.layout
		if _, err := parseOffer(wrong.append(nil), ""); !errors.Is(err, ErrPeer) || !strings.Contains(err.Error(), "inline offer") {
			t.Errorf("from byte %d of %d on: got %v, want ErrPeer with \"inline offer\"", wrong.first, wrong.bytes, err)
		}
	}
}
