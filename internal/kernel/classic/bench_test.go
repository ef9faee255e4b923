package classic_test

import (
	"fmt"
	"testing"

	"github.com/tenure-go/tenure/internal/kernel/classic"
	"github.com/tenure-go/tenure/internal/kernel/kerneltest"
)

func BenchmarkRows(b *testing.B) {
	r := kerneltest.NewRand(17)
	e := classic.Ensemble[float32, int32]{Outputs: 1, Features: 30}
	for range 500 {
		complete(&e, 8, func() float32 { return 1.6*r.Float32() - 0.8 }, func() int { return r.IntN(e.Features) })
	}
	if err := e.Check(); err != nil {
		b.Fatal(err)
	}
	for _, rows := range []int{1, 64} {
		x, scores, scratch := kerneltest.Uniform(r, rows*e.Features), make([]float32, rows), make([]float32, rows*e.Features)
		b.Run(fmt.Sprint(rows), func(b *testing.B) {
			for b.Loop() {
				e.Rows(scores, nil, x, scratch)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*rows*len(e.Roots)*8), "ns/node")
		})
	}
}
