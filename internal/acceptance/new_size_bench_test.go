package acceptance

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/internal/modeltest"
	"github.com/tenure-go/tenure/shape"
)

// newSizes are the sizes at which a model is run, in their order. The first few
// make the structures.
type newSizes struct {
	name, model string
	sizes       []map[string]int
	warm        int
}

func sizesToMeet() []newSizes {
	var bert, growing, prompts, unet, resnet []map[string]int
	for n := range 59 {
		bert = append(bert, map[string]int{"batch": 2, "sequence": 5 + n*37%59})
		growing = append(growing, map[string]int{"batch": 1, "sequence": 1, "past_sequence": 1 + n})
		prompts = append(prompts, map[string]int{"batch": 1, "sequence": 2 + n*7%31, "past_sequence": n * 11 % 31})
		unet = append(unet, map[string]int{"height": 16 * (1 + n%7), "width": 16 * (1 + n%8)})
		resnet = append(resnet, map[string]int{"height": 32 + n*37%59, "width": 32 + n*53%59})
	}
	return []newSizes{{"bert_tiny", "bert_tiny", bert, 4}, {"gpt2_tiny", "gpt2_tiny", growing, 4}, {"gpt2_tiny, prompts", "gpt2_tiny", prompts, 4},
		{"unet_tiny", "unet_tiny", unet, 9}, {"resnet18_thin_bn", "resnet18_thin_bn", resnet, 9}}
}

// BenchmarkNewSize runs models at sizes that they have not met. Of each size it
// times the first run (first-us) and the last of three (seen-us), and reports
// the medians, and the median of their difference by the number of final calls.
// When all sizes were met, a new model goes on.
func BenchmarkNewSize(b *testing.B) {
	eachNewSize(b, func(b *testing.B, list newSizes, load func() *tenure.Model) {
		var first, seen, more []time.Duration
		var s *tenure.Session
		run := func(in tenure.Inputs) time.Duration {
			start := time.Now()
			out, err := s.Run(b.Context(), in)
			took := time.Since(start)
			if err != nil {
				b.Fatal(err)
			}
			if err := out.Release(); err != nil {
				b.Fatal(err)
			}
			return took
		}
		steps, next := 0, len(list.sizes)
		for b.Loop() {
			if next == len(list.sizes) {
				shape.Clear()
				s = modeltest.Session(b, load(), tenure.WithThreads(1))
				for next = range list.warm {
					in := inputsOf(b, s.Model(), list.sizes[next])
					run(in)
					plan, err := s.PlanFor(b.Context(), in)
					if err != nil {
						b.Fatal(err)
					}
					steps = len(plan.Steps)
				}
				next++
			}
			in := inputsOf(b, s.Model(), list.sizes[next])
			next++
			a := run(in)
			run(in)
			c := run(in)
			first, seen, more = append(first, a), append(seen, c), append(more, a-c)
			for _, x := range in {
				_ = x.Tensor().Release()
			}
		}
		median := func(list []time.Duration) float64 {
			slices.Sort(list)
			return float64(list[len(list)/2].Nanoseconds())
		}
		b.ReportMetric(median(first)/1e3, "first-us")
		b.ReportMetric(median(seen)/1e3, "seen-us")
		b.ReportMetric(median(more)/float64(steps), "ns/step")
		b.ReportMetric(0, "ns/op")
		f := s.Model().Structures()
		b.Logf("%d steps; the last model: %d structures, %d instances", steps, f.Compiled-f.Instances, f.Instances)
	})
}

// BenchmarkPrepareNewSize makes sessions ready for sizes that they do not know:
// all of a first run but the run. The sessions keep plans of fewer sizes than
// there are. The shapes of most sizes are in use by none.
func BenchmarkPrepareNewSize(b *testing.B) {
	eachNewSize(b, func(b *testing.B, list newSizes, load func() *tenure.Model) {
		s := modeltest.Session(b, load(), tenure.WithThreads(1), tenure.WithPlans(8))
		var sets []tenure.Shapes
		for _, sizes := range list.sizes {
			set := tenure.Shapes{}
			for name, x := range inputsOf(b, s.Model(), sizes) {
				set[name] = x.Tensor().Shape().Sizes()
				_ = x.Tensor().Release()
			}
			sets = append(sets, set)
			if err := s.Prepare(b.Context(), set); err != nil {
				b.Fatal(err)
			}
		}
		plan, err := s.Plan(b.Context(), sets[0])
		if err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		next := len(sets)
		for b.Loop() {
			if next == len(sets) {
				b.StopTimer()
				shape.Clear()
				b.StartTimer()
				next = 0
			}
			if err := s.Prepare(b.Context(), sets[next]); err != nil {
				b.Fatal(err)
			}
			next++
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(plan.Steps)), "ns/step")
	})
}

// eachNewSize calls f for every model that is measured.
func eachNewSize(b *testing.B, f func(b *testing.B, list newSizes, load func() *tenure.Model)) {
	for _, list := range sizesToMeet() {
		b.Run(list.name, func(b *testing.B) {
			path := filepath.Join(modeltest.SharedDir(b, filepath.Join("models", list.model)), "model.onnx")
			f(b, list, func() *tenure.Model { return modeltest.Load(b, path) })
		})
	}
	b.Run("encoder", func(b *testing.B) {
		list := newSizes{warm: 4}
		for n := range 59 {
			list.sizes = append(list.sizes, map[string]int{"tokens": 5 + n*37%59})
		}
		f(b, list, func() *tenure.Model {
			p, table := encoder(b, shape.Sym("tokens"))
			m, err := tenure.LoadProgram(p, table)
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { _ = m.Close() })
			return m
		})
	})
}
