package share

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/shape"
)

// kind is the kind of a message. This file follows docs/share.md.
type kind uint8

const (
	kindHello kind = 1 + iota
	kindArena
	kindMapped
	kindRefused
	kindRetire
	kindUnmapped
	kindOffer
	kindRelease
	kindTicket
	kindTicketed
	kindClaim
	kindCancel
	kindGet
	kindList
	kindText
	kindDrop
	kindNo
	kindEnd
	kindEvent
	kindOpened
	kinds
)

var kindNames = [kinds]string{"message 0", "HELLO", "ARENA", "MAPPED", "REFUSED", "RETIRE", "UNMAPPED", "OFFER", "RELEASE", "TICKET", "TICKETED",
	"CLAIM", "CANCEL", "GET", "LIST", "TEXT", "DROP", "NO", "END", "EVENT", "OPENED"}

func (k kind) String() string {
	if k < kinds {
		return kindNames[k]
	}
	return fmt.Sprintf("message %d", uint8(k))
}

const (
	version      = 2 // that this end announces; what the other end announces may be lower
	firstVersion = 1

	maxPacket       = 65536
	headBytes       = 8
	helloBytes      = 64
	arenaBytes      = 32
	deviceBytes     = 64 // of ARENA for memory of a device
	eventBytes      = 80
	allocationBytes = 128 // of ARENA for an allocation of another allocator
	offerBytes      = 256
	ticketBytes     = 16
	maxOffers       = 200
	maxReleases     = 500
	maxInline       = 65000
	maxText         = 60000
	maxReason       = 200
	maxName         = 255
	maxRank         = 8
	maxLabel        = 56
	maxMaxLeases    = 1 << 20
	arenaMultiple   = 4096
	blockMultiple   = 64

	flagInline = 1

	// The device types of DLPack.
	hostMemory = 1
	cudaMemory = 2

	// capDevices: the sender of HELLO knows arenas of devices, EVENT and
	// OPENED.
	capDevices = 1
	// capAllocations: it also knows arenas of other allocators' memory.
	capAllocations = 2
)

var magic = [4]byte{'T', 'N', 'U', 'R'}

// The codes of NO.
const (
	noName uint32 = 1 + iota
	noTicket
	noCredit
	notAllowed
	noMemory
	notSupported
)

var le = binary.LittleEndian

// header is the beginning of every packet.
type header struct {
	kind    kind
	count   int
	request uint32
}

func (h header) append(b []byte) []byte {
	b = append(b, byte(h.kind), 0)
	b = le.AppendUint16(b, uint16(h.count))
	return le.AppendUint32(b, h.request)
}

// endsQuestion reports whether this is the last message of an answer.
func (h header) endsQuestion() bool {
	return h.request != 0 && (h.kind == kindOffer || forms[h.kind].answer && h.count == 0)
}

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrPeer, fmt.Sprintf(format, args...))
}

// parseHeader returns the header of a packet and the body, whose size fits the
// kind.
func parseHeader(p []byte) (h header, body []byte, err error) {
	if len(p) < headBytes || len(p) > maxPacket {
		return h, nil, malformed("got a packet of %d bytes, want %d to %d", len(p), headBytes, maxPacket)
	}
	h = header{kind: kind(p[0]), count: int(le.Uint16(p[2:])), request: le.Uint32(p[4:])}
	if p[1] != 0 {
		return h, nil, malformed("got %d in byte 1 of %s, want 0", p[1], h.kind)
	}
	if h.kind == 0 || h.kind >= kinds {
		return h, nil, malformed("got message %d, want 1 to %d", h.kind, kinds-1)
	}
	body = p[headBytes:]
	return h, body, h.check(len(body))
}

// form describes the permitted count, request and body of a kind.
type form struct {
	minCount, maxCount int
	question, answer   bool // it has a request number
	least, most        int  // bytes of the body
	each               int  // bytes of the body for each of count
}

var forms = [kinds]form{
	kindHello:    {least: helloBytes, most: helloBytes},
	kindArena:    {least: arenaBytes, most: allocationBytes},
	kindMapped:   {least: 8, most: 8},
	kindRefused:  {least: 16, most: 16 + maxReason},
	kindRetire:   {least: 8, most: 8},
	kindUnmapped: {least: 8, most: 8},
	kindOffer:    {minCount: 1, maxCount: maxOffers, least: 0, most: maxInline, each: offerBytes},
	kindRelease:  {minCount: 1, maxCount: maxReleases, each: 8},
	kindTicket:   {question: true, least: 8, most: 8},
	kindTicketed: {answer: true, least: ticketBytes, most: ticketBytes},
	kindClaim:    {question: true, least: ticketBytes, most: ticketBytes},
	kindCancel:   {least: ticketBytes, most: ticketBytes},
	kindGet:      {question: true, least: 1, most: maxName},
	kindList:     {question: true},
	kindText:     {maxCount: 1, answer: true, most: maxText},
	kindDrop:     {question: true, least: 1, most: maxName},
	kindNo:       {answer: true, least: 4, most: 4 + maxReason},
	kindEnd:      {},
	kindEvent:    {least: eventBytes, most: eventBytes},
	kindOpened:   {least: 8, most: 8 + maxReason},
}

func (h header) check(body int) error {
	f := forms[h.kind]
	if h.count < f.minCount || h.count > f.maxCount {
		return malformed("got count %d in %s, want %d to %d", h.count, h.kind, f.minCount, f.maxCount)
	}
	asks := f.question || f.answer
	if asks && h.request == 0 {
		return malformed("got request 0 in %s, want a number", h.kind)
	}
	if !asks && h.request != 0 && h.kind != kindOffer {
		return malformed("got request %d in %s, want 0", h.request, h.kind)
	}
	if rest := body - h.count*f.each; rest < f.least || rest > f.most {
		return malformed("got %s with a body of %d bytes, want %d to %d", h.kind, body, h.count*f.each+f.least, h.count*f.each+f.most)
	}
	return nil
}

// hello is the body of HELLO.
type hello struct {
	version   uint16
	instance  Instance
	boot      [16]byte
	maxLeases uint32
	maxBytes  uint64
	abilities uint64 // bits; 0 in version 1
}

func (m hello) append(b []byte) []byte {
	b = append(b, magic[:]...)
	b = le.AppendUint16(b, m.version)
	b = le.AppendUint16(b, 0)
	b = append(b, m.instance[:]...)
	b = append(b, m.boot[:]...)
	b = le.AppendUint32(b, m.maxLeases)
	b = le.AppendUint32(b, 0)
	b = le.AppendUint64(b, m.maxBytes)
	return le.AppendUint64(b, m.abilities)
}

func parseHello(b []byte) (m hello, err error) {
	if !bytes.Equal(b[:4], magic[:]) {
		return m, malformed("got HELLO with %q in front, want %q", b[:4], magic[:])
	}
	m.version = le.Uint16(b[4:])
	copy(m.instance[:], b[8:])
	copy(m.boot[:], b[24:])
	m.maxLeases = le.Uint32(b[40:])
	m.maxBytes, m.abilities = le.Uint64(b[48:]), le.Uint64(b[56:])
	switch {
	case m.version < firstVersion:
		return m, malformed("got version %d, want %d to %d", m.version, firstVersion, version)
	case le.Uint16(b[6:]) != 0 || le.Uint32(b[44:]) != 0 || m.abilities != 0 && m.version == firstVersion:
		return m, malformed("got HELLO with bytes set that version %d leaves 0", m.version)
	case m.maxLeases < 1 || m.maxLeases > maxMaxLeases:
		return m, malformed("got HELLO with credit for %d leases, want 1 to %d", m.maxLeases, maxMaxLeases)
	case m.maxBytes < 1:
		return m, malformed("got HELLO with credit for no bytes")
	}
	m.maxBytes = min(m.maxBytes, math.MaxInt64)
	return m, nil
}

// offer describes a tensor in an OFFER and its place.
type offer struct {
	serial     uint64 // 0 if inline
	arena      uint64
	offset     int // of its block in the arena
	bytes      int // of its block, or of the inline data
	generation uint32
	dt         dtype.DType
	layout     *shape.Layout
	first      int // where element [0,...,0] is in the block
	label      string
	device     uint8 // the type of DLPack; 0 is the host's memory
	mark
}

func (m *offer) append(b []byte) []byte {
	b = le.AppendUint64(b, m.serial)
	b = le.AppendUint64(b, m.arena)
	b = le.AppendUint64(b, uint64(m.offset))
	b = le.AppendUint64(b, uint64(m.bytes))
	b = le.AppendUint32(b, m.generation)
	code, bits, lanes, _ := m.dt.DLPack()
	b = append(b, code, bits)
	b = le.AppendUint16(b, lanes)
	b = append(b, byte(m.layout.Shape().Rank()), max(m.device, hostMemory), 0, 0)
	flags := uint32(0)
	if m.serial == 0 {
		flags = flagInline
	}
	b = le.AppendUint32(b, flags)
	b = le.AppendUint64(b, uint64(m.first))
	b = le.AppendUint32(b, m.slot)
	b = le.AppendUint32(b, m.sequence)
	b = appendDims(b, m.layout.Shape().Sizes())
	b = appendDims(b, m.layout.Strides())
	at := len(b)
	b = append(b, m.label...)
	for len(b) < at+maxLabel+8 {
		b = append(b, 0)
	}
	return b
}

func appendDims(b []byte, dims []int) []byte {
	for i := range maxRank {
		d := 0
		if i < len(dims) {
			d = dims[i]
		}
		b = le.AppendUint64(b, uint64(d))
	}
	return b
}

// parseOffer parses one tensor and checks that every element is within its
// block. The connection checks that the block is within an arena. If the label
// is the expected one, parseOffer allocates no string.
func parseOffer(b []byte, likely string) (m offer, err error) {
	m.serial, m.arena = le.Uint64(b), le.Uint64(b[8:])
	offset, size, first := le.Uint64(b[16:]), le.Uint64(b[24:]), le.Uint64(b[48:])
	m.generation, m.mark = le.Uint32(b[32:]), mark{slot: le.Uint32(b[56:]), sequence: le.Uint32(b[60:])}
	if b[41] != hostMemory {
		m.device = b[41]
	}
	flags, rank := le.Uint32(b[44:]), int(b[40])
	switch {
	case flags&^flagInline != 0:
		return m, malformed("got an offer with flags %#x, want none but %#x", flags, flagInline)
	case rank > maxRank:
		return m, malformed("got an offer of rank %d, want at most %d", rank, maxRank)
	case b[41] != hostMemory && (b[41] != cudaMemory || flags != 0) || b[42] != 0 || b[43] != 0:
		return m, malformed("got an offer on device %d:%d with flags %#x, want host memory, or that of a device without a number", b[41], le.Uint16(b[42:]), flags)
	case b[41] == hostMemory && anySet(b[56:64]) || m.slot == 0 && m.sequence != 0 || anySet(b[248:offerBytes]):
		return m, malformed("got an offer with bytes set that version %d leaves 0", version)
	case offset > math.MaxInt64 || size > math.MaxInt64 || first > math.MaxInt64:
		return m, malformed("got an offer at %d+%d of %d bytes, want each below 2^63", offset, first, size)
	}
	m.offset, m.bytes, m.first = int(offset), int(size), int(first)
	if flags&flagInline != 0 {
		if m.serial != 0 || m.arena != 0 || m.offset != 0 || m.bytes > maxInline {
			return m, malformed("got an inline offer of %d bytes with serial %d in arena %#x, want at most %d bytes, serial 0 and no arena", m.bytes, m.serial, m.arena, maxInline)
		}
	} else if m.serial == 0 || m.arena == 0 || m.offset%blockMultiple != 0 {
		return m, malformed("got an offer with serial %d in arena %#x at %d, want a serial, an arena and a multiple of %d", m.serial, m.arena, m.offset, blockMultiple)
	}
	if m.dt, err = dtype.FromDLPack(b[36], b[37], le.Uint16(b[38:])); err != nil {
		return m, malformed("got an offer of an unknown type: %v", err)
	}
	if m.layout, err = parseLayout(b[64:192], rank); err != nil {
		return m, err
	}
	if err := m.checkPlace(); err != nil {
		return m, err
	}
	m.label, err = parseLabel(b[192:248], likely)
	return m, err
}

func parseLayout(b []byte, rank int) (*shape.Layout, error) {
	var sizes, strides [maxRank]int
	for i := range maxRank {
		sizes[i], strides[i] = int(le.Uint64(b[8*i:])), int(le.Uint64(b[8*maxRank+8*i:]))
		if i >= rank && (sizes[i] != 0 || strides[i] != 0) {
			return nil, malformed("got an offer of rank %d with size %d and stride %d in dimension %d, want 0", rank, sizes[i], strides[i], i)
		}
	}
	// The errors get copies, so that the arrays stay on the stack otherwise.
	s, err := shape.Of(sizes[:rank]...)
	if err != nil {
		return nil, malformed("got an offer with sizes %v: %v", slices.Clone(sizes[:rank]), err)
	}
	l, err := shape.Strided(s, strides[:rank]...)
	if err != nil {
		return nil, malformed("got an offer with sizes %v and strides %v: %v", slices.Clone(sizes[:rank]), slices.Clone(strides[:rank]), err)
	}
	return l, nil
}

// checkPlace checks that every element is within the block.
func (m *offer) checkPlace() error {
	low, high := m.layout.Span()
	each := m.dt.Size()
	if m.serial == 0 {
		n, err := m.dt.ByteLen(m.layout.Shape().NumElements())
		if err != nil || !m.layout.IsContiguous() || m.first != 0 || n != m.bytes {
			return malformed("got an inline offer of %s%s from byte %d of %d on, want its elements in row-major order and nothing else", m.dt, m.layout, m.first, m.bytes)
		}
		return nil
	}
	if each == 0 {
		n, err := m.dt.ByteLen(m.layout.Shape().NumElements())
		if err != nil || !m.layout.IsContiguous() || n > m.bytes-m.first {
			return malformed("got an offer of %s%s from byte %d on, want it packed within %d bytes", m.dt, m.layout, m.first, m.bytes)
		}
		return nil
	}
	// A layout reaches at most 2^58 elements in either direction, of at most 16
	// bytes, so nothing here overflows.
	if start, end := m.first+low*each, m.first+(high+1)*each; start < 0 || start > m.bytes || end > m.bytes {
		return malformed("got an offer of %s%s from byte %d on, want it within its block of %d bytes", m.dt, m.layout, m.first, m.bytes)
	}
	return nil
}

func parseLabel(b []byte, likely string) (string, error) {
	end := bytes.IndexByte(b, 0)
	if end < 0 {
		end = len(b)
	}
	if anySet(b[end:]) || !utf8.Valid(b[:end]) {
		return "", malformed("got an offer with the label %q, want UTF-8 padded with zeros", b)
	}
	if string(b[:end]) == likely {
		return likely, nil
	}
	return string(b[:end]), nil
}

func anySet(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return true
		}
	}
	return false
}

// parseRefusal returns the reason in the body of a REFUSED.
func parseRefusal(body []byte) (why error, err error) {
	if anySet(body[12:16]) || !utf8.Valid(body[16:]) {
		return nil, malformed("got REFUSED with % x and the reason %q, want zeros and UTF-8", body[12:16], body[16:])
	}
	text := string(body[16:])
	if errno := le.Uint32(body[8:]); errno != 0 {
		return fmt.Errorf("%w: %w %s", ErrRefused, syscall.Errno(errno), text), nil
	}
	return fmt.Errorf("%w: %s", ErrRefused, text), nil
}

// reason truncates a text to the length that NO and REFUSED permit, at a
// character boundary.
func reason(text string) string {
	text = strings.ToValidUTF8(text, "?")
	if len(text) <= maxReason {
		return text
	}
	n := maxReason
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}
