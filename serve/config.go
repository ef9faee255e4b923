package serve

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/serve/internal/oip"
)

// Config says what a server serves, and within which limits. The zero value of
// a limit stands for its default.
type Config struct {
	// Paths are what is served: files of models (NAME=FILE gives one a name),
	// folders of one model, with its versions in numbered folders, and folders
	// of such files and folders.
	Paths []string

	// Explicit permits clients to load and unload models. With Empty as well,
	// none is loaded at first.
	Explicit, Empty bool

	// SharedMemory permits clients on this machine to pass tensors in regions
	// of the system's shared memory that belong to the server's user. It needs
	// Linux.
	SharedMemory bool

	Memory  int64 // bytes that models and requests may take; 0: what the machine or container permits; -1: no bound
	MaxBody int64 // bytes of a request, 64 MiB by default

	// Evict permits the server to unload models that no request uses, those
	// used longest ago first, when another model or request needs their memory.
	// Such a model is loaded again when a request for it comes. One whose
	// configuration has the parameter evict of false stays.
	Evict bool

	// MaxQueue is how many requests of a model may wait, 256 by default; others
	// are refused. A model's own configuration may say less.
	MaxQueue int

	// MaxBatch makes the server run requests together, so many rows at most,
	// for models whose inputs and outputs all have an open first dimension and
	// whose own configuration says nothing else. Each row of an output must
	// depend on its own rows of the inputs alone. 0 and 1: no.
	MaxBatch int

	Patience time.Duration // that a request waits for memory and for its turn, 10 s by default
	Stall    time.Duration // in which a client must send, or take, the next 64 KiB, 30 s by default
	Drain    time.Duration // between a server's end and its refusal of requests, in which it says that it is not ready
	Exit     time.Duration // that requests under way have at a server's end, 30 s by default

	Name    string          // of the server, "tenure" by default
	Token   string          // that requests must bear; "": none
	Pprof   bool            // serve /debug/pprof
	Threads int             // of all runs of a model together, GOMAXPROCS by default
	Options []tenure.Option // how models are loaded; nil: with tenure.Read, so that files may be overwritten while they are served
	Log     *slog.Logger    // nil: nothing is logged
}

const (
	defaultBody  = 64 << 20
	defaultQueue = 256
	mostBatch    = 1 << 20
	mostRuns     = 1024
)

// check completes a configuration.
func (c Config) check() (Config, error) {
	if len(c.Paths) == 0 {
		return c, fmt.Errorf("got no paths, want files or folders of models: %w", ErrConfig)
	}
	for _, limit := range []struct {
		name  string
		value int64
		least int64
	}{{"Memory", c.Memory, -1}, {"MaxBody", c.MaxBody, 0}, {"MaxQueue", int64(c.MaxQueue), 0}, {"MaxBatch", int64(c.MaxBatch), 0}, {"Threads", int64(c.Threads), 0},
		{"Patience", int64(c.Patience), 0}, {"Stall", int64(c.Stall), 0}, {"Drain", int64(c.Drain), 0}, {"Exit", int64(c.Exit), 0}} {
		if limit.value < limit.least {
			return c, fmt.Errorf("%s: got %d, want %d or more: %w", limit.name, limit.value, limit.least, ErrConfig)
		}
	}
	if c.MaxBatch > mostBatch {
		return c, fmt.Errorf("MaxBatch: got %d, want at most %d: %w", c.MaxBatch, mostBatch, ErrConfig)
	}
	switch {
	case c.Memory == 0:
		c.Memory = machineBudget()
	case c.Memory < 0:
		c.Memory = math.MaxInt64 / 4
	}
	c.MaxBody = or(c.MaxBody, defaultBody)
	c.MaxQueue = or(c.MaxQueue, defaultQueue)
	c.Patience = or(c.Patience, 10*time.Second)
	c.Stall = or(c.Stall, 30*time.Second)
	c.Exit = or(c.Exit, 30*time.Second)
	c.Name = or(c.Name, "tenure")
	c.Threads = or(c.Threads, runtime.GOMAXPROCS(0))
	if c.Options == nil {
		c.Options = []tenure.Option{tenure.WithWeights(tenure.Read)}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c, nil
}

func or[T comparable](v, standard T) T {
	var zero T
	if v == zero {
		return standard
	}
	return v
}

// ModelConfig is the configuration of a model: the fields of Triton's that
// apply here, under their names. A model needs none.
type ModelConfig struct {
	Name             string          `json:"name"`
	Platform         string          `json:"platform"`
	Backend          string          `json:"backend"`
	VersionPolicy    *VersionPolicy  `json:"version_policy,omitempty"`
	MaxBatchSize     int             `json:"max_batch_size"`
	Input            []TensorConfig  `json:"input"`
	Output           []TensorConfig  `json:"output"`
	DynamicBatching  *DynamicBatch   `json:"dynamic_batching,omitempty"`
	InstanceGroup    []InstanceGroup `json:"instance_group,omitempty"`
	ModelWarmup      []Warmup        `json:"model_warmup,omitempty"`
	Optimization     any             `json:"optimization,omitempty"` // of other servers: it does not apply here
	Parameters       map[string]any  `json:"parameters,omitempty"`
	DefaultModelFile string          `json:"default_model_filename,omitempty"`
}

// VersionPolicy says which versions of a model are loaded: one of the fields is
// set. Without a policy it is the highest.
type VersionPolicy struct {
	Latest *struct {
		NumVersions int `json:"num_versions"`
	} `json:"latest,omitempty"`
	All      *struct{} `json:"all,omitempty"`
	Specific *struct {
		Versions []int `json:"versions"`
	} `json:"specific,omitempty"`
}

// TensorConfig describes an input or output, without its first dimension where
// MaxBatchSize is 1 or more. -1 is any size.
type TensorConfig struct {
	Name     string `json:"name"`
	DataType string `json:"data_type"` // TYPE_FP32
	Dims     []int  `json:"dims"`
}

// DynamicBatch says how requests are run together.
type DynamicBatch struct {
	PreferredBatchSize   []int                  `json:"preferred_batch_size,omitempty"`
	MaxQueueDelay        int64                  `json:"max_queue_delay_microseconds,omitempty"`
	PriorityLevels       uint64                 `json:"priority_levels,omitempty"`
	DefaultPriorityLevel uint64                 `json:"default_priority_level,omitempty"`
	DefaultQueuePolicy   *QueuePolicy           `json:"default_queue_policy,omitempty"`
	PriorityQueuePolicy  map[string]QueuePolicy `json:"priority_queue_policy,omitempty"`
}

// QueuePolicy bounds a queue.
type QueuePolicy struct {
	DefaultTimeout       int64 `json:"default_timeout_microseconds,omitempty"`
	AllowTimeoutOverride bool  `json:"allow_timeout_override,omitempty"`
	MaxQueueSize         int   `json:"max_queue_size,omitempty"`
}

// InstanceGroup says how many runs of a model there are at a time.
type InstanceGroup struct {
	Name  string `json:"name,omitempty"`
	Kind  string `json:"kind,omitempty"` // KIND_CPU, KIND_AUTO
	Count int    `json:"count,omitempty"`
}

// Warmup is the sizes of a run that is made when the model is loaded, of zeros.
type Warmup struct {
	Name      string `json:"name,omitempty"`
	BatchSize int    `json:"batch_size,omitempty"`
	Inputs    map[string]struct {
		DataType string `json:"data_type,omitempty"`
		Dims     []int  `json:"dims"`
		ZeroData bool   `json:"zero_data,omitempty"`
	} `json:"inputs"`
}

// parseModelConfig reads a configuration. A field that is not known is an
// error: the model might be meant to run otherwise.
func parseModelConfig(text []byte) (*ModelConfig, error) {
	c := &ModelConfig{}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	err := d.Decode(c)
	if err == nil {
		if _, more := d.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("got text behind the object")
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", strings.TrimPrefix(err.Error(), "json: "), ErrConfig)
	}
	return c, nil
}

// datatype is the name of a type in configurations.
func datatype(d dtype.DType, isText bool) string {
	if isText {
		return "TYPE_STRING"
	}
	return "TYPE_" + oip.Name(d)
}

// typeName returns the protocol's name of the type of an input or output.
func typeName(i tenure.Info) string {
	if i.Text {
		return oip.Name(dtype.String)
	}
	return oip.Name(i.DType)
}

// dims are the sizes of an input or output as clients see them, -1 for any.
func dims(i tenure.Info) []int {
	if i.Shape == nil {
		return []int{-1}
	}
	list := []int{}
	for _, d := range i.Shape.Dims() {
		n, ok := d.Size()
		if !ok {
			n = -1
		}
		list = append(list, n)
	}
	if i.Text {
		list = list[:len(list)-1] // the bytes of each string
	}
	return list
}

// complete checks the configuration of a model, and derives from the model what
// it leaves out.
func (c *ModelConfig) complete(name string, m *tenure.Model, s Config) error {
	if c.Name != "" && c.Name != name {
		return fmt.Errorf("name: got %q, want %q, the name of its folder: %w", c.Name, name, ErrConfig)
	}
	c.Name, c.Platform, c.Backend = name, "onnxruntime_onnx", "onnxruntime"
	told := c.MaxBatchSize > 0 || c.DynamicBatching != nil
	if !told && s.MaxBatch > 1 && batches(m) {
		c.MaxBatchSize, c.DynamicBatching = s.MaxBatch, &DynamicBatch{}
	}
	switch {
	case c.MaxBatchSize < 0 || c.MaxBatchSize > mostBatch:
		return fmt.Errorf("max_batch_size: got %d, want 0 to %d: %w", c.MaxBatchSize, mostBatch, ErrConfig)
	case c.MaxBatchSize > 0 && !batches(m):
		return fmt.Errorf("max_batch_size: got %d, want 0: the inputs and outputs of the model do not all have an open first dimension of one name: %w", c.MaxBatchSize, ErrConfig)
	case c.DynamicBatching != nil && c.MaxBatchSize == 0:
		return fmt.Errorf("dynamic_batching: want max_batch_size with it: %w", ErrConfig)
	}
	if b := c.DynamicBatching; b != nil {
		if err := b.check(c.MaxBatchSize); err != nil {
			return fmt.Errorf("dynamic_batching: %w: %w", err, ErrConfig)
		}
	}
	if n := c.instances(); n < 1 || n > mostRuns {
		return fmt.Errorf("instance_group: got %d runs at a time, want 1 to %d: %w", n, mostRuns, ErrConfig)
	}
	for _, g := range c.InstanceGroup {
		if g.Kind != "" && g.Kind != "KIND_CPU" && g.Kind != "KIND_AUTO" {
			return fmt.Errorf("instance_group: got the kind %q, want KIND_CPU or KIND_AUTO: %w", g.Kind, ErrConfig)
		}
	}
	var err error
	if c.Input, err = tensors("input", c.Input, m.Inputs(), c.MaxBatchSize > 0); err != nil {
		return err
	}
	c.Output, err = tensors("output", c.Output, m.Outputs(), c.MaxBatchSize > 0)
	return err
}

func (b *DynamicBatch) check(most int) error {
	for _, n := range b.PreferredBatchSize {
		if n < 1 || n > most {
			return fmt.Errorf("preferred_batch_size: got %d, want 1 to max_batch_size, %d", n, most)
		}
	}
	if b.MaxQueueDelay < 0 || b.MaxQueueDelay > int64(time.Minute/time.Microsecond) {
		return fmt.Errorf("max_queue_delay_microseconds: got %d, want zero to a minute", b.MaxQueueDelay)
	}
	if b.DefaultPriorityLevel > b.PriorityLevels || b.PriorityLevels > 0 && b.DefaultPriorityLevel == 0 {
		return fmt.Errorf("default_priority_level: got %d, want 1 to priority_levels, %d", b.DefaultPriorityLevel, b.PriorityLevels)
	}
	if len(b.PriorityQueuePolicy) > 0 {
		return errors.New("priority_queue_policy: want default_queue_policy, which holds for all levels")
	}
	if p := b.DefaultQueuePolicy; p != nil && (p.MaxQueueSize < 0 || p.DefaultTimeout < 0) {
		return fmt.Errorf("default_queue_policy: got a size of %d and a timeout of %d, want zero or more", p.MaxQueueSize, p.DefaultTimeout)
	}
	return nil
}

// tensors compares what a configuration says of inputs or outputs with the
// model, and returns all of them.
func tensors(what string, told []TensorConfig, infos []tenure.Info, batched bool) ([]TensorConfig, error) {
	list := make([]TensorConfig, 0, len(infos))
	for _, info := range infos {
		t := TensorConfig{Name: info.Name, DataType: datatype(info.DType, info.Text), Dims: dims(info)}
		if batched {
			t.Dims = t.Dims[1:]
		}
		list = append(list, t)
	}
	for _, t := range told {
		i := slices.IndexFunc(list, func(l TensorConfig) bool { return l.Name == t.Name })
		switch {
		case i < 0:
			return nil, fmt.Errorf("%s: got %q, which the model does not have: %w", what, t.Name, ErrConfig)
		case t.DataType != list[i].DataType:
			return nil, fmt.Errorf("%s %q: got the data_type %q, want %s: %w", what, t.Name, t.DataType, list[i].DataType, ErrConfig)
		case len(t.Dims) != len(list[i].Dims) || !slices.EqualFunc(t.Dims, list[i].Dims, func(a, b int) bool { return a == b || a == -1 || b == -1 }):
			return nil, fmt.Errorf("%s %q: got the dims %v, want %v: %w", what, t.Name, t.Dims, list[i].Dims, ErrConfig)
		}
	}
	return list, nil
}

// batches reports whether all inputs and outputs have an open first dimension,
// of one name where they have names.
func batches(m *tenure.Model) bool {
	var symbol string
	all := slices.Concat(m.Inputs(), m.Outputs())
	for _, i := range all {
		if i.Shape == nil || i.Shape.Rank() == 0 || i.Text && i.Shape.Rank() == 1 || i.Of != nil {
			return false
		}
		d := i.Shape.Dim(0)
		if _, known := d.Size(); known {
			return false
		}
		name, _ := d.Symbol()
		if symbol == "" {
			symbol = name
		}
		if name != "" && name != symbol {
			return false
		}
	}
	return len(m.Inputs()) > 0
}

// instances is how many runs there are at a time.
func (c *ModelConfig) instances() int {
	n := 0
	for _, g := range c.InstanceGroup {
		if g.Count < 0 {
			return -1
		}
		n += max(g.Count, 1)
	}
	return max(n, 1)
}
