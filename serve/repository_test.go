package serve

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// shown lists what was found: names, versions and the configuration.
func shown(t *testing.T, dir string, all map[string]*source) string {
	t.Helper()
	var list []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		s := all[name]
		line := name
		for _, v := range slices.Sorted(maps.Keys(s.versions)) {
			rel, err := filepath.Rel(dir, s.versions[v])
			if err != nil {
				t.Fatal(err)
			}
			line += fmt.Sprintf(" %d:%s", v, filepath.ToSlash(rel))
		}
		if s.config != "" {
			line += " configured"
		}
		list = append(list, line)
	}
	return strings.Join(list, "\n")
}

func TestFind(t *testing.T) {
	x := []byte("x")
	dir := write(t, map[string][]byte{
		"repo/a/1/model.onnx": x, "repo/a/20/other.onnx": x, "repo/a/03/model.onnx": x, "repo/a/config.json": []byte("{}"),
		"repo/b.onnx": x, "repo/c/model.onnx": x, "repo/d/only.onnx": x, "repo/notes/readme.txt": x, "repo/.hidden/model.onnx": x, "repo/empty/config.json": x,
		"repo/two/1/x.onnx": x, "repo/two/1/y.onnx": x,
		"single/resnet.onnx": x, "kserve/model.onnx": x, "pair/p.onnx": x, "pair/q.onnx": x, "nothing/readme.txt": x,
	})
	at := func(p string) string { return filepath.Join(dir, p) }
	for _, c := range []struct {
		paths []string
		want  string
	}{
		{[]string{at("repo")}, "a 1:repo/a/1/model.onnx 20:repo/a/20/other.onnx configured\nb 1:repo/b.onnx\nc 1:repo/c/model.onnx\nd 1:repo/d/only.onnx\nempty configured"},
		{[]string{at("repo/a")}, "a 1:repo/a/1/model.onnx 20:repo/a/20/other.onnx configured"},
		{[]string{at("single")}, "resnet 1:single/resnet.onnx"},
		{[]string{at("kserve")}, "kserve 1:kserve/model.onnx"},
		{[]string{"named=" + at("kserve"), "one=" + at("pair/p.onnx"), at("pair/q.onnx")}, "named 1:kserve/model.onnx\none 1:pair/p.onnx\nq 1:pair/q.onnx"},
		{[]string{at("pair")}, "p 1:pair/p.onnx\nq 1:pair/q.onnx"},
		{[]string{at("kserve/model.onnx")}, "kserve 1:kserve/model.onnx"},
		{[]string{at("nothing")}, ""},
	} {
		all, err := find(c.paths)
		if got := ""; err == nil {
			if got = shown(t, dir, all); got != c.want {
				t.Errorf("%v: got\n%s\nwant\n%s", c.paths, got, c.want)
			}
		} else {
			t.Errorf("%v: %v", c.paths, err)
		}
	}
	for want, paths := range map[string][]string{
		"got a second model":      {at("pair"), at("pair/p.onnx")},
		"no such file":            {at("missing")},
		"got no model in":         {"x=" + at("nothing")},
		"without slashes":         {"a/b=" + at("pair/p.onnx")},
		"got the model name \"..": {"..=" + at("pair/p.onnx")},
	} {
		if _, err := find(paths); err == nil || !strings.Contains(err.Error(), want) && !strings.Contains(want, "no such file") {
			t.Errorf("%v: got %v, want %s", paths, err, want)
		}
	}
}

func TestVersionPolicy(t *testing.T) {
	s := &source{name: "m", versions: map[int]string{1: "a", 2: "b", 10: "c"}}
	for text, want := range map[string]string{
		`{}`: "[10]",
		`{"version_policy":{"latest":{"num_versions":2}}}`:     "[2 10]",
		`{"version_policy":{"latest":{"num_versions":9}}}`:     "[1 2 10]",
		`{"version_policy":{"all":{}}}`:                        "[1 2 10]",
		`{"version_policy":{"specific":{"versions":[2,1,2]}}}`: "[1 2]",
		`{"version_policy":{"specific":{"versions":[3]}}}`:     "got version 3, want one of [1 2 10]",
		`{"version_policy":{"specific":{"versions":[]}}}`:      "got no versions",
		`{"version_policy":{"latest":{"num_versions":0}}}`:     "want 1 or more",
	} {
		c, err := parseModelConfig([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		list, err := s.chosen(c.VersionPolicy)
		if got := fmt.Sprint(list, err); !strings.Contains(got, want) {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}

// TestWrongConfigurations wants errors that name the field.
func TestWrongConfigurations(t *testing.T) {
	for text, want := range map[string]string{
		`{"name":"other"}`:        `name: got "other", want "m"`,
		`{"max_batch_size":-1}`:   "max_batch_size: got -1",
		`{"dynamic_batching":{}}`: "dynamic_batching: want max_batch_size",
		`{"max_batch_size":4,"dynamic_batching":{"preferred_batch_size":[5]}}`:                   "preferred_batch_size: got 5",
		`{"max_batch_size":4,"dynamic_batching":{"max_queue_delay_microseconds":-1}}`:            "max_queue_delay_microseconds: got -1",
		`{"max_batch_size":4,"dynamic_batching":{"priority_levels":2}}`:                          "default_priority_level: got 0",
		`{"max_batch_size":4,"dynamic_batching":{"priority_queue_policy":{"1":{}}}}`:             "priority_queue_policy: want",
		`{"max_batch_size":4,"dynamic_batching":{"default_queue_policy":{"max_queue_size":-1}}}`: "default_queue_policy: got a size of -1",
		`{"instance_group":[{"count":-1}]}`:                                                      "instance_group: got -1",
		`{"instance_group":[{"kind":"KIND_GPU"}]}`:                                               `got the kind "KIND_GPU"`,
		`{"input":[{"name":"z","data_type":"TYPE_FP32","dims":[1]}]}`:                            `input: got "z"`,
		`{"input":[{"name":"x","data_type":"TYPE_INT8","dims":[-1,4]}]}`:                         `got the data_type "TYPE_INT8", want TYPE_FP32`,
		`{"output":[{"name":"y","data_type":"TYPE_FP32","dims":[-1,5]}]}`:                        `got the dims [-1 5], want [-1 4]`,
		`{"sequence_batching":{}}`:                                                               `unknown field "sequence_batching"`,
		`{} {}`:                                                                                  "got text behind the object",
		`{"model_warmup":[{"name":"w","inputs":{}}]}`:                                            `w: got no input "x"`,
		`{"model_warmup":[{"name":"w","inputs":{"x":{"dims":[1,3]}}}]}`:                          "w: ",
		`{"default_model_filename":"../m.onnx"}`:                                                 "want a name without a folder",
	} {
		dir := write(t, map[string][]byte{"m/1/model.onnx": doubling(), "m/config.json": []byte(text)})
		s, err := New(t.Context(), Config{Paths: []string{dir}})
		if err == nil {
			t.Errorf("%s: got no error", text)
			_ = s.Close()
			continue
		}
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
	dir := write(t, map[string][]byte{"m/1/model.onnx": nonZero(), "m/config.json": []byte(`{"max_batch_size":4}`)})
	if _, err := New(t.Context(), Config{Paths: []string{dir}}); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), "max_batch_size: got 4, want 0") {
		t.Errorf("got %v, want a refusal: the first dimensions differ", err)
	}
}

func TestServerConfig(t *testing.T) {
	for _, c := range []struct {
		c    Config
		want string
	}{{Config{}, "got no paths"}, {Config{Paths: []string{"."}, MaxBody: -1}, "MaxBody: got -1"}, {Config{Paths: []string{"."}, MaxBatch: 1 << 30}, "MaxBatch: got"}} {
		if _, err := New(t.Context(), c.c); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: got %v, want %s", c.c, err, c.want)
		}
	}
}

// TestMachineMemory reads limits from files as Linux has them.
func TestMachineMemory(t *testing.T) {
	meminfo := []byte("MemTotal:  16384 kB\nMemFree: 1 kB\n")
	for _, c := range []struct {
		files map[string][]byte
		want  int64
	}{
		{nil, math.MaxInt64},
		{map[string][]byte{"proc/meminfo": meminfo}, 16 << 20},
		{map[string][]byte{"proc/meminfo": meminfo, "proc/self/cgroup": []byte("0::/a/b\n"), "sys/fs/cgroup/a/memory.max": []byte("4194304\n"), "sys/fs/cgroup/a/b/memory.max": []byte("max\n")}, 4 << 20},
		{map[string][]byte{"proc/meminfo": meminfo, "proc/self/cgroup": []byte("0::/docker/x\n"), "sys/fs/cgroup/memory.max": []byte("1048576\n")}, 1 << 20},
		{map[string][]byte{"proc/meminfo": meminfo, "proc/self/cgroup": []byte("5:cpu,memory:/c\n4:pids:/\n"), "sys/fs/cgroup/memory/c/memory.limit_in_bytes": []byte("2097152\n"), "sys/fs/cgroup/memory/memory.limit_in_bytes": []byte("9223372036854771712\n")}, 2 << 20},
	} {
		if got := machineMemory(write(t, c.files)); got != c.want {
			t.Errorf("%v: got %d, want %d", slices.Sorted(maps.Keys(c.files)), got, c.want)
		}
	}
	if got := machineBudget(); got <= 0 {
		t.Errorf("got a budget of %d for this machine, want more", got)
	}
}
