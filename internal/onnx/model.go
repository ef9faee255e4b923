package onnx

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"

	"github.com/tenure-go/tenure/internal/onnx/lift"
	"github.com/tenure-go/tenure/internal/onnx/wire"
	"github.com/tenure-go/tenure/internal/weights"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
)

// The operator sets of ONNX that are read.
const (
	MinOpset = lift.MinOpset
	MaxOpset = lift.MaxOpset
)

// Options configure how a model is read. The zero Options are the defaults.
type Options struct {
	Registry *op.Registry // operators; nil for op.Builtin()
	FS       fs.FS        // where external data are read from, instead of the model's folder
	Read     bool         // files are read into memory instead of being mapped
	Outputs  []string     // values of the graph that are its outputs instead of those that the file declares; nil for these

	// Share is where weights lie that would have to be made in memory, and
	// files that are read; nil for memory of the process alone.
	Share weights.Share

	// Progress is called while files are read and weights are packed: done of
	// total bytes of a stage. It may be nil.
	Progress func(stage string, done, total int64)
}

// store makes the store of the weights of a model in a folder.
func (o *Options) store(dir string) *weights.Store {
	return weights.New(weights.Options{Dir: dir, FS: o.FS, Read: o.Read, Share: o.Share, Progress: o.Progress})
}

// Model is a model as read. The caller owns it and closes it.
type Model struct {
	Program *ir.Program
	Weights *weights.Store

	// Inputs and Outputs are the file's declarations, in its order, without
	// inputs that have an initializer. They may name dimensions that Program
	// knows under another symbol or not at all.
	Inputs, Outputs []Value

	// Notes are remarks on contents of the file and their treatment.
	Notes []string

	IRVersion       int64
	Opsets          map[string]int64 // by domain; "" is that of ONNX
	Producer        string
	ProducerVersion string
	Domain          string // whose model it is, such as com.example
	Version         int64  // of the model, in its domain
	Doc             string
	Graph           string // the name of its graph
	GraphDoc        string
	Metadata        map[string]string
}

// Value is an input or output as the file declares it, or a part of one that is
// no tensor. If Text is set it holds strings, and Type is that of their bytes:
// its last dimension, which the file does not have, is how many bytes each
// string takes, filled up with zeros.
type Value = lift.Value

// Kind says what an input or output of a model is, other than a tensor.
type Kind = lift.Kind

// The kinds of inputs and outputs that are no tensors.
const (
	Sequence         = lift.Sequence
	Optional         = lift.Optional
	OptionalSequence = lift.OptionalSequence
	Map              = lift.Map
	MapSequence      = lift.MapSequence
)

// What follows the name of an input or output that is no tensor in the names of
// its parts.
const (
	Elements = lift.Elements
	Sizes    = lift.Sizes
	Has      = lift.Has
	Keys     = lift.Keys
	Values   = lift.Values
)

// TableWidth and MaxElementRank are the number of columns of NAME.sizes and the
// largest rank of an element.
const (
	TableWidth     = lift.TableWidth
	MaxElementRank = lift.MaxElementRank
)

// Load reads the model in the file at path. Unless opts say otherwise the file
// is mapped, not read: then it must not be truncated while the model is in use.
// The error of a file that is no model, such as a Git LFS pointer, a page of
// HTML or an archive, names its kind; it wraps [tensor.ErrCorrupt].
func Load(path string, opts Options) (*Model, error) {
	w := opts.store(filepath.Dir(path))
	data, err := w.MapFile(path)
	if err != nil {
		return nil, fmt.Errorf("onnx: load: %w", err)
	}
	m, err := parse(data, w, opts)
	if err != nil {
		return nil, fmt.Errorf("onnx: %s: %w", path, err)
	}
	return m, nil
}

// LoadFS reads the model in a file of a file system, with its external data
// beside it. opts.FS has no part in it.
func LoadFS(fsys fs.FS, name string, opts Options) (*Model, error) {
	folder, err := fs.Sub(fsys, path.Dir(name))
	if err != nil {
		return nil, fmt.Errorf("onnx: load: %w", err)
	}
	opts.FS = folder
	w := opts.store("")
	data, err := w.ReadFS(fsys, name)
	if err != nil {
		return nil, fmt.Errorf("onnx: load: %w", err)
	}
	m, err := parse(data, w, opts)
	if err != nil {
		return nil, fmt.Errorf("onnx: %s: %w", name, err)
	}
	return m, nil
}

// Parse reads the model in data, which it borrows until the model is closed:
// it must not be written. dir is the folder of external data, "" for none.
func Parse(data []byte, dir string, opts Options) (*Model, error) {
	m, err := parse(data, opts.store(dir), opts)
	if err != nil {
		return nil, fmt.Errorf("onnx: %w", err)
	}
	return m, nil
}

// parse takes over w: it closes it unless the model gets it.
func parse(data []byte, w *weights.Store, opts Options) (*Model, error) {
	proto, err := wire.Decode(data)
	if err == nil {
		err = lift.Order(proto)
	}
	if err != nil {
		return nil, errors.Join(err, w.Close())
	}
	if opts.Registry == nil {
		opts.Registry = op.Builtin()
	}
	m := &Model{
		Weights:         w,
		IRVersion:       proto.IRVersion,
		Producer:        proto.Producer,
		ProducerVersion: proto.ProducerVersion,
		Domain:          proto.Domain,
		Version:         proto.Version,
		Doc:             proto.Doc,
		Metadata:        map[string]string{},
	}
	m.Graph, m.GraphDoc = proto.Graph.Name, proto.Graph.Doc
	for _, e := range proto.Metadata {
		m.Metadata[e.Key] = e.Value
	}
	if opts.Outputs != nil {
		dropped, err := choose(proto.Graph, opts.Outputs)
		if err != nil {
			return nil, errors.Join(err, w.Close())
		}
		if dropped > 0 {
			m.Notes = append(m.Notes, fmt.Sprintf("the chosen outputs do not need %d of the nodes", dropped))
		}
	}
	r, err := lift.Import(proto, lift.Options{Registry: opts.Registry, Operators: known(), Weights: w, FileSize: len(data)})
	if err == nil && len(r.Missing) > 0 {
		err = unsupported(r.Missing)
	}
	if err != nil {
		return nil, errors.Join(err, w.Close())
	}
	m.Program, m.Opsets, m.Notes = r.Program, r.Opsets, append(m.Notes, r.Notes...)
	m.Inputs, m.Outputs = r.Inputs, r.Outputs
	return m, nil
}

// Close frees the weights and unmaps the file.
func (m *Model) Close() error { return m.Weights.Close() }
