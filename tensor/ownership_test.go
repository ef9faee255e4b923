package tensor

import (
	"errors"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/shape"
)

func TestWhyNotDonatable(t *testing.T) {
	memorytest.Check(t)
	x := vector(t, 1, 2, 3, 4, 5)
	check := func(name string, x *Tensor, kind error, text string) {
		t.Helper()
		err := x.WhyNotDonatable()
		if !errors.Is(err, kind) || kind == nil && err != nil || err != nil && !strings.Contains(err.Error(), text) {
			t.Errorf("%s: got %v, want kind %v and text %q", name, err, kind, text)
		}
		if x.IsDonatable() != (kind == nil) {
			t.Errorf("%s: got donatable %v, want %v", name, x.IsDonatable(), kind == nil)
		}
	}
	check("alone", x, nil, "")
	view := ok(x.Slice(Range{Stop: 2}))(t)
	check("viewed", x, ErrShared, "2 holders")
	release(t, x)
	check("released", x, ErrReleased, "released")
	check("a small rest", view, ErrNotReusable, "pin the rest")
	if !view.IsExclusive() {
		t.Error("a small rest may be written by its owner")
	}
	release(t, view)

	row := ok(vector(t, 1, 2).Donate().Reshape(1, 2))(t)
	wide := ok(row.Broadcast(3, 2))(t)
	release(t, row)
	check("broadcast", wide, ErrLayout, "share a byte")
	release(t, wide)

	borrowed := ok(Wrap([]int32{1, 2}, 2))(t)
	check("imported", borrowed, ErrShared, "imported")
	release(t, borrowed)

	y := vector(t, 1)
	if err := y.h.Export(); err != nil {
		t.Fatal(err)
	}
	check("exported", y, ErrShared, "1 export is out")
	y.h.EndExport()
	release(t, y)
	check("nil", nil, ErrNoTensor, "no tensor")
}

// One clone that came and went must not forbid reuse for ever.
func TestExclusiveAgainAfterASharerLeft(t *testing.T) {
	memorytest.Check(t)
	x := vector(t, 1, 2, 3)
	for range 3 {
		v := ok(x.View())(t)
		if x.IsExclusive() || v.IsExclusive() {
			t.Fatal("two holders: want neither exclusive")
		}
		release(t, v)
		if !x.IsExclusive() {
			t.Fatalf("one holder again: %v", x.WhyNotWritable())
		}
	}
	release(t, x)
}

func TestTakeBuffer(t *testing.T) {
	memorytest.Check(t)
	x := vector(t, 1, 2, 3, 4)
	at := address(x)
	view := ok(x.View())(t)
	if _, _, err := x.TakeBuffer(); !errors.Is(err, ErrShared) || x.h.Err() != nil {
		t.Errorf("with two holders: got %v, want ErrShared and a live tensor", err)
	}
	release(t, view)
	rest := ok(x.Donate().Slice(Range{Start: 1, Stop: End}))(t)
	buf, offset, err := rest.TakeBuffer()
	if err != nil {
		t.Fatal(err)
	}
	if offset != 4 || &buf.Bytes()[0] != at || !buf.IsExclusive() {
		t.Errorf("got offset %d, %d holders, want byte 4 of the same bytes, exclusive", offset, buf.Holders())
	}
	if err := rest.Release(); !errors.Is(err, ErrDonated) || !strings.Contains(err.Error(), "take buffer") {
		t.Errorf("the tensor: got %v, want ErrDonated to take buffer", err)
	}
	y := ok(FromBuffer(buf, offset, dtype.I32, shape.RowMajor(shape.MustOf(3))))(t)
	if err := buf.Release(); err != nil {
		t.Error(err)
	}
	wantValues[int32](t, y, 2, 3, 4)
	if !y.IsExclusive() {
		t.Errorf("a tensor of the buffer: %v", y.WhyNotWritable())
	}
	release(t, y)
	if _, _, err := (*Tensor)(nil).TakeBuffer(); !errors.Is(err, ErrNoTensor) {
		t.Errorf("nil: got %v", err)
	}
}

// In place, the record of the operand goes on as the result's: the number of
// handles and holders never moves.
func TestMovedHandleIsAnother(t *testing.T) {
	memorytest.Check(t)
	x := vector(t, 1, 2, 3)
	first := x
	handles := memory.Stats().Handles
	for range 5 {
		y := ok(negate(x.Donate()))(t)
		if y.Holders() != 1 || memory.Stats().Handles != handles {
			t.Fatalf("got %d holders and %d handles, want 1 and %d", y.Holders(), memory.Stats().Handles, handles)
		}
		wantErr(t, "the first", second(Read[int32](first)), ErrDonated)
		x = y
	}
	release(t, x)
	wantErr(t, "after the end", x.Release(), ErrReleased)
}

// A release while an operation has the tensor succeeds and takes effect at its
// end, also if the operation is in place.
func TestReleaseUnderADonation(t *testing.T) {
	memorytest.Check(t)
	x := vector(t, 1, 2, 3)
	k := ok(Take("negate", x.Donate()))(t)
	y := ok(k.Keep(0, dtype.I32, x.Layout()))(t)
	release(t, x)
	k.Commit()
	wantValues[int32](t, y, 1, 2, 3)
	release(t, y)

	x = vector(t, 4)
	k = ok(Take("negate", x.Reuse()))(t)
	release(t, x)
	k.Rollback()
	wantErr(t, "after the rollback", x.Release(), ErrReleased)
}

func TestBeginTwiceIsABug(t *testing.T) {
	x := vector(t, 1)
	defer x.Release()
	var k Taken
	op := NewOperation("negate")
	if err := k.Begin(op, x); err != nil || op.Name() != "negate" {
		t.Fatal(err)
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("begin before the end: got no panic")
			}
		}()
		_ = k.Begin(op, x)
	}()
	k.Rollback()
	if err := k.Begin(op, x); err != nil {
		t.Errorf("begin after the end: %v", err)
	}
	k.Commit()
	k.Clear()
}

func BenchmarkBookkeeping(b *testing.B) {
	x, err := Of([]int32{1}, 1)
	if err != nil {
		b.Fatal(err)
	}
	defer x.Release()
	op := NewOperation("negate")
	b.Run("borrow", func(b *testing.B) {
		var k Taken
		for b.Loop() {
			if err := k.Begin(op, x); err != nil {
				b.Fatal(err)
			}
			k.Commit()
		}
	})
	b.Run("donate", func(b *testing.B) { // without the header of the result
		b.ReportAllocs()
		var k Taken
		var at [2]Tensor
		at[0].buf, at[0].layout, at[0].size, at[0].dt, at[0].h = x.buf, x.layout, x.size, x.dt, x.h
		i := 0
		for b.Loop() {
			if err := k.Begin(op, at[i].Donate()); err != nil {
				b.Fatal(err)
			}
			next := &at[1-i]
			next.buf, next.layout, next.size, next.dt = x.buf, x.layout, x.size, x.dt
			k.claims[0].kept = next
			k.Commit()
			i = 1 - i
		}
		x.h = at[i].h
	})
}
