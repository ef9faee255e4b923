package serve

// tokenTally is what statistics say of a model that generates text.
type tokenTally struct {
	Prompt     int64 `json:"prompt_tokens"`
	Completion int64 `json:"completion_tokens"`
	Runs       int64 `json:"runs"`
	Sequences  int   `json:"sequences"`
	Length     int   `json:"max_length"`
	States     int64 `json:"state_bytes"`
	Budget     int64 `json:"state_budget_bytes"`
}

// tally returns the counts, nil for another model.
func (g *generator) tally() *tokenTally {
	if g == nil {
		return nil
	}
	c, f := g.now(), g.states.figures()
	return &tokenTally{c.prompt, c.completion, c.runs, c.running, g.length, f.used, f.budget}
}

// generationMetrics appends the counts of the models that generate text.
func generationMetrics(e *exposition, list []*model) {
	for _, f := range []struct {
		name, kind, help string
		value            func(t *tokenTally) int64
	}{
		{"tenure_generation_prompt_tokens_total", "counter", "Tokens of prompts that were read", func(t *tokenTally) int64 { return t.Prompt }},
		{"tenure_generation_tokens_total", "counter", "Tokens that were drawn", func(t *tokenTally) int64 { return t.Completion }},
		{"tenure_generation_runs_total", "counter", "Runs of parts of prompts, and of sequences together", func(t *tokenTally) int64 { return t.Runs }},
		{"tenure_generation_sequences", "gauge", "Sequences that are generated now", func(t *tokenTally) int64 { return int64(t.Sequences) }},
		{"tenure_generation_state_bytes", "gauge", "Bytes of states that are promised to sequences", func(t *tokenTally) int64 { return t.States }},
		{"tenure_generation_state_budget_bytes", "gauge", "Bytes of states that sequences may have", func(t *tokenTally) int64 { return t.Budget }},
	} {
		e.family(f.name, f.kind, f.help)
		for _, m := range list {
			if t := m.gen.tally(); t != nil {
				e.sample(f.name, m.labels(""), f.value(t))
			}
		}
	}
}
