package memory

import "encoding/json"

// Var is the statistics as a variable of package expvar, which shows them under
// /debug/vars:
//
//	expvar.Publish("tenure.memory", memory.Var{})
//
// This package does not publish it itself, because importing expvar links
// net/http into the program and registers a handler on its default mux.
type Var struct{}

// String returns the present statistics as a JSON object.
func (Var) String() string {
	type usage struct {
		Current int64 `json:"current"`
		Peak    int64 `json:"peak"`
		Buffers int64 `json:"buffers"`
	}
	type device struct {
		Total    usage            `json:"total"`
		Purposes map[string]usage `json:"purposes"`
		Limit    int64            `json:"limit"`
	}
	f := Stats()
	out := struct {
		Total       usage             `json:"total"`
		Purposes    map[string]usage  `json:"purposes"`
		Limit       int64             `json:"limit"`
		Files       int64             `json:"files"`
		System      int64             `json:"system"`
		Cached      int64             `json:"cached"`
		Handles     int64             `json:"handles"`
		Leaks       int64             `json:"leaks"`
		LeakedBytes int64             `json:"leaked_bytes"`
		Devices     map[string]device `json:"devices,omitempty"`
	}{usage(f.Total), map[string]usage{}, f.Limit, f.Files, f.System, f.Cached, f.Handles, f.Leaks, f.LeakedBytes, map[string]device{}}
	for _, p := range Purposes() {
		out.Purposes[p.String()] = usage(f.Of(p))
	}
	for _, d := range Devices() {
		f := d.Stats()
		figures := device{usage(f.Total), map[string]usage{}, f.Limit}
		for _, p := range Purposes() {
			figures.Purposes[p.String()] = usage(f.Of(p))
		}
		out.Devices[d.String()] = figures
	}
	b, err := json.Marshal(out)
	if err != nil {
		return "{}" // Marshal cannot fail on integers
	}
	return string(b)
}
