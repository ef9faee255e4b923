package main

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/tenure-go/tenure/dtype"
)

// files makes the operands' files, each once.
type files struct {
	dir  string
	made map[string]string
}

// of returns the file of an operand, the number of which among those of its
// operation makes it another one.
func (f *files) of(o operand, number int) (string, error) {
	key := fmt.Sprint(o.rule, o.dt, o.elements(), number)
	if name, ok := f.made[key]; ok {
		return name, nil
	}
	data, err := fill(o, uint64(number+1))
	if err != nil {
		return "", err
	}
	name := filepath.Join(f.dir, strconv.Itoa(len(f.made)))
	if err := os.WriteFile(name, data, 0o666); err != nil {
		return "", err
	}
	f.made[key] = name
	return name, nil
}

// fill draws the elements of an operand by its rule:
//
//	unit     floats in [-1, 1)
//	wide     numbers in [-1e6, 1e6) with a fraction
//	int      integers in [-1000, 1000)
//	byte     integers in [0, 256)
//	bool     0 or 1
//	index n  integers in [0, n)
func fill(o operand, seed uint64) ([]byte, error) {
	word, limit, _ := strings.Cut(o.rule, " ")
	n := 0
	if word == "index" {
		var err error
		if n, err = strconv.Atoi(limit); err != nil {
			return nil, err
		}
	}
	value := func(r uint64) float64 {
		switch word {
		case "unit":
			return float64(r>>40)/(1<<23) - 1
		case "wide":
			return float64(r>>40)/(1<<23)*1e6 - 1e6
		case "int":
			hi, _ := bits.Mul64(r, 2000)
			return float64(hi) - 1000
		case "byte":
			return float64(r >> 56)
		case "bool":
			return float64(r >> 63)
		}
		hi, _ := bits.Mul64(r, uint64(n))
		return float64(hi)
	}
	size := o.dt.Size()
	data := make([]byte, o.bytes())
	x := seed
	for at := 0; at < len(data); at += size {
		x = x*6364136223846793005 + 1442695040888963407
		if err := put(data[at:], o.dt, value((x^x>>32)*0x9E3779B97F4A7C15)); err != nil {
			return nil, err
		}
	}
	return data, nil
}

func put(to []byte, dt dtype.DType, v float64) error {
	switch dt {
	case dtype.F64:
		binary.LittleEndian.PutUint64(to, math.Float64bits(v))
	case dtype.F32:
		binary.LittleEndian.PutUint32(to, math.Float32bits(float32(v)))
	case dtype.F16:
		binary.LittleEndian.PutUint16(to, uint16(dtype.Float16FromFloat32(float32(v))))
	case dtype.I64:
		binary.LittleEndian.PutUint64(to, uint64(int64(v)))
	case dtype.I32:
		binary.LittleEndian.PutUint32(to, uint32(int32(v)))
	case dtype.U8, dtype.Bool:
		to[0] = byte(v)
	default:
		return fmt.Errorf("operand: got type %s, want one that numbers are drawn for", dt)
	}
	return nil
}

func get(from []byte, dt dtype.DType) float64 {
	switch dt {
	case dtype.F64:
		return math.Float64frombits(binary.LittleEndian.Uint64(from))
	case dtype.F32:
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(from)))
	case dtype.F16:
		return float64(dtype.Float16(binary.LittleEndian.Uint16(from)).Float32())
	case dtype.I64:
		return float64(int64(binary.LittleEndian.Uint64(from)))
	case dtype.I32:
		return float64(int32(binary.LittleEndian.Uint32(from)))
	}
	return float64(from[0])
}

// difference is the largest difference of two results of a type, relative to
// numbers above 1.
func difference(dt dtype.DType, x, y []byte) (float64, error) {
	if len(x) != len(y) {
		return 0, fmt.Errorf("got %d bytes from Tenure and %d from numpy, want as many", len(x), len(y))
	}
	most, size := 0.0, dt.Size()
	for at := 0; at < len(x); at += size {
		v, w := get(x[at:], dt), get(y[at:], dt)
		if v == w || v != v && w != w {
			continue
		}
		d := math.Abs(v-w) / max(1, math.Abs(w))
		if math.IsNaN(d) {
			d = math.Inf(1)
		}
		most = max(most, d)
	}
	return most, nil
}
