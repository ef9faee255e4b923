package oip

import (
	"math"
	"strconv"
	"time"

	"github.com/tenure-go/tenure/dtype"
)

// maxTensors is how many inputs, or outputs, a request may have.
const maxTensors = 4096

// maxRank is how many dimensions a tensor of a request may have.
const maxRank = 64

// Request is a request without the tensors.
type Request struct {
	Model    string // in messages of gRPC; over HTTP it is in the path
	Version  string // likewise
	ID       string
	Inputs   []Input
	Outputs  []Output // nil: all, in the form of Binary
	Binary   bool     // outputs that say nothing else are binary
	Priority uint64   // 1 is the most urgent, 0 the default
	Timeout  time.Duration
	Sequence bool // it belongs to a sequence of requests
}

// Input is a tensor of a request. One of Data, Size, Contents and Region says
// where its elements are.
type Input struct {
	Name     string
	Type     dtype.DType // dtype.String for BYTES
	Shape    []int
	Data     []byte  // the elements as JSON, nil if they are not there
	Size     int64   // bytes of the elements behind the rest of the request, -1 if they are not there
	Contents []byte  // the elements as an InferTensorContents, nil if they are not there
	Region   *Region // of shared memory that has the elements
}

// Output is a tensor that a request wants.
type Output struct {
	Name    string
	Binary  bool
	Classes int     // so many of the largest elements with their places, in place of the tensor; 0: the tensor
	Region  *Region // of shared memory into which it is written
}

// Region is a part of a region of shared memory that was registered before.
type Region struct {
	Name         string
	Offset, Size int64
}

// ParseRequest reads the JSON of a request.
func ParseRequest(text []byte) (*Request, error) {
	s := scanner{text: text}
	r := &Request{}
	var outputs []wanted
	var err error
	err = s.object(func(key string) error {
		switch key {
		case "id":
			r.ID, err = s.id()
			return err
		case "parameters":
			return s.object(func(key string) error { return r.parameter(&s, key) })
		case "inputs":
			r.Inputs = nil
			return s.array(func() error {
				if len(r.Inputs) == maxTensors {
					return messagef("got more than %d inputs, want fewer", maxTensors)
				}
				in, err := s.input()
				r.Inputs = append(r.Inputs, in)
				return err
			})
		case "outputs":
			outputs = nil
			return s.array(func() error {
				if len(outputs) == maxTensors {
					return messagef("got more than %d outputs, want fewer", maxTensors)
				}
				out, err := s.output()
				outputs = append(outputs, out)
				return err
			})
		}
		_, err := s.value()
		return err
	})
	if err == nil {
		err = s.end()
	}
	if err != nil {
		return nil, err
	}
	for _, o := range outputs {
		if !o.told {
			o.Binary = r.Binary
		}
		r.Outputs = append(r.Outputs, o.Output)
	}
	return r, nil
}

// id reads the name of a request; null is none.
func (s *scanner) id() (string, error) {
	if s.space() == 'n' {
		_, err := s.word()
		return "", err
	}
	return s.str()
}

// parameter reads a parameter of the request.
func (r *Request) parameter(s *scanner, key string) (err error) {
	switch key {
	case "binary_data_output":
		r.Binary, err = s.boolean()
		return err
	case "priority":
		n, err := s.integer()
		if err == nil && n < 0 {
			return messagef("priority: got %d, want zero or more", n)
		}
		r.Priority = uint64(n)
		return err
	case "timeout":
		n, err := s.integer()
		if err == nil && (n < 0 || n > math.MaxInt64/int64(time.Microsecond)) {
			return messagef("timeout: got %d, want microseconds, zero or more", n)
		}
		r.Timeout = time.Duration(n) * time.Microsecond
		return err
	case "sequence_id":
		id, err := s.value()
		r.Sequence = err == nil && string(id) != "0" && string(id) != `""`
		return err
	}
	_, err = s.value()
	return err
}

// input reads an input.
func (s *scanner) input() (Input, error) {
	in := Input{Size: -1}
	shaped := false
	err := s.object(func(key string) (err error) {
		switch key {
		case "name":
			in.Name, err = s.str()
		case "datatype":
			in.Type, err = s.datatype()
		case "shape":
			shaped = true
			in.Shape, err = s.shape()
		case "data":
			in.Data, err = s.value()
		case "parameters":
			err = s.object(func(key string) error {
				switch key {
				case "binary_data_size":
					in.Size, err = s.integer()
					if err == nil && in.Size < 0 {
						err = messagef("binary_data_size: got %d, want zero or more", in.Size)
					}
				case regionName, regionOffset, regionSize:
					in.Region, err = s.region(in.Region, key)
				default:
					_, err = s.value()
				}
				return err
			})
		default:
			_, err = s.value()
		}
		return err
	})
	switch {
	case err != nil:
	case in.Name == "":
		err = messagef("got an input without a name")
	case in.Type == dtype.Invalid:
		err = messagef("input %q: got no datatype", in.Name)
	case !shaped:
		err = messagef("input %q: got no shape", in.Name)
	case in.Region != nil && (in.Data != nil || in.Size >= 0):
		err = messagef("input %q: got elements and shared_memory_region, want one of them", in.Name)
	case in.Data != nil && in.Size >= 0:
		err = messagef("input %q: got data and binary_data_size, want one of them", in.Name)
	default:
		err = in.Region.check(in.Name)
	}
	return in, err
}

// The parameters that name a part of a region of shared memory.
const (
	regionName   = "shared_memory_region"
	regionOffset = "shared_memory_offset"
	regionSize   = "shared_memory_byte_size"
)

// region reads one of the parameters into r, or into a new region.
func (s *scanner) region(r *Region, key string) (*Region, error) {
	if r == nil {
		r = &Region{}
	}
	if key == regionName {
		var err error
		r.Name, err = s.str()
		return r, err
	}
	n, err := s.integer()
	if err == nil {
		err = r.set(key, n)
	}
	return r, err
}

// set sets the offset or the size.
func (r *Region) set(key string, n int64) error {
	if n < 0 {
		return messagef("%s: got %d, want zero or more", key, n)
	}
	if key == regionOffset {
		r.Offset = n
	} else {
		r.Size = n
	}
	return nil
}

// check wants a name.
func (r *Region) check(tensor string) error {
	if r != nil && r.Name == "" {
		return messagef("%q: got an offset or size in shared memory, want a %s with it", tensor, regionName)
	}
	return nil
}

func (s *scanner) datatype() (dtype.DType, error) {
	name, err := s.str()
	if err != nil {
		return dtype.Invalid, err
	}
	d, ok := datatypes[name]
	if !ok {
		return dtype.Invalid, messagef("got the datatype %q, want one of the protocol, such as FP32 or INT64", clip([]byte(name)))
	}
	return d, nil
}

func (s *scanner) shape() ([]int, error) {
	dims := []int{}
	err := s.array(func() error {
		n, err := s.integer()
		switch {
		case err != nil:
			return err
		case n < 0 || n > math.MaxInt32:
			return messagef("shape: got the size %d, want 0 to %d", n, math.MaxInt32)
		case len(dims) == maxRank:
			return messagef("shape: got more than %d dimensions, want fewer", maxRank)
		}
		dims = append(dims, int(n))
		return nil
	})
	return dims, err
}

// wanted is an output that a request wants; told means that it says whether it
// is binary.
type wanted struct {
	Output
	told bool
}

// output reads an output.
func (s *scanner) output() (o wanted, err error) {
	err = s.object(func(key string) (err error) {
		switch key {
		case "name":
			o.Name, err = s.str()
		case "parameters":
			err = s.object(func(key string) error {
				switch key {
				case "binary_data":
					o.told = true
					o.Binary, err = s.boolean()
				case "classification":
					var n int64
					if n, err = s.integer(); err == nil && (n < 0 || n > math.MaxInt32) {
						err = messagef("classification: got %d, want 0 to %d", n, math.MaxInt32)
					}
					o.Classes = int(n)
				case regionName, regionOffset, regionSize:
					o.Region, err = s.region(o.Region, key)
				default:
					_, err = s.value()
				}
				return err
			})
		default:
			_, err = s.value()
		}
		return err
	})
	if err == nil && o.Name == "" {
		err = messagef("got an output without a name")
	}
	if err == nil {
		err = o.Region.check(o.Name)
	}
	return o, err
}

// HeaderLength reads the header Inference-Header-Content-Length: the bytes of
// the JSON in front of binary tensors. The result is -1 without one.
func HeaderLength(value string) (int64, error) {
	if value == "" {
		return -1, nil
	}
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n < 0 {
		return 0, messagef("Inference-Header-Content-Length: got %q, want a number of bytes", clip([]byte(value)))
	}
	return n, nil
}
