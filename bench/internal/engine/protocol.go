package engine

// Request is one line from the driver to a process. Do selects the action:
//
//	load     loads Model with Threads and makes its Inputs and Outputs
//	run      runs once untimed, then until Milliseconds have passed, at most Runs times
//	peak     resets the high-water mark of the resident size, and runs and times Runs times
//	outputs  runs once and writes every output into the folder Dir; with Inputs, on these
//	first    runs on Inputs, whose sizes are new, and Runs times more; a run on the inputs of load stands before each
//	grow     runs on each of Sets; states, of which the first set says what they Become, come from the run before
//	text     is grow with states that stay in buffers for Runs rows (Tenure only)
//	prepare  makes the session ready for Inputs, whose sizes are new (Tenure only)
//	counts   counts steps, structures and their instances (Tenure only)
//	profile  runs Runs times and says how long each call took (Tenure only)
//	exit     ends the process
type Request struct {
	Do           string    `json:"do"`
	Model        string    `json:"model,omitempty"`
	Threads      int       `json:"threads,omitempty"`
	Inputs       []Input   `json:"inputs,omitempty"`
	Sets         [][]Input `json:"sets,omitempty"`
	Outputs      []string  `json:"outputs,omitempty"`
	Arena        bool      `json:"arena,omitempty"`   // load: released memory waits for the next run, in an arena
	Into         bool      `json:"into,omitempty"`    // load: every run writes the outputs into the same bytes
	Weights      string    `json:"weights,omitempty"` // load: how weights are held, "compressed" or as usual (Tenure only)
	Milliseconds int       `json:"milliseconds,omitempty"`
	Runs         int       `json:"runs,omitempty"`
	Dir          string    `json:"dir,omitempty"`
}

// Input is an operand of the model: the first numbers of a file.
type Input struct {
	Name string `json:"name"`
	Type string `json:"type"` // "f32", "i64" or another element type
	Dims []int  `json:"dims"`
	File string `json:"file"`
	// Becomes names an output that is the input of the next run: a state that
	// the caller gives up. Tenure has it donated; ONNX Runtime has the output
	// bound to the input's bytes.
	Becomes string `json:"becomes,omitempty"`
}

// Reply is one line from a process to the driver.
type Reply struct {
	Error string  `json:"error,omitempty"`
	About string  `json:"about,omitempty"` // load: the engine and its settings
	Nanos []int64 `json:"nanos,omitempty"` // run, peak: the time of each run; load: the time of loading
	// The resident size in bytes: load says it before and after, peak
	// before the first run and at the mark.
	Before int64            `json:"before,omitempty"`
	After  int64            `json:"after,omitempty"`
	Files  []string         `json:"files,omitempty"`  // outputs: one per output
	Types  []string         `json:"types,omitempty"`  // outputs: the element type of each
	Calls  []Call           `json:"calls,omitempty"`  // profile: the calls of a run, in order
	Counts map[string]int64 `json:"counts,omitempty"` // what else an engine counts, by name
}

// Call is one call of a program and the median time that it took.
type Call struct {
	Op    string `json:"op"`
	Types string `json:"types"`
	Node  string `json:"node"`
	Nanos int64  `json:"nanos"`
}
