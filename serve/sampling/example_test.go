package sampling_test

import (
	"fmt"

	"github.com/tenure-go/tenure/serve/sampling"
)

func Example() {
	logits := []float32{1, 3, 2.9, -5}
	likeliest := sampling.New(sampling.Options{}, 0)
	fmt.Println(likeliest.Draw(logits), likeliest.Draw(logits))
	// A token that was drawn becomes less likely.
	other := sampling.New(sampling.Options{Presence: 1}, 0)
	fmt.Println(other.Draw(logits), other.Draw(logits))
	// Output:
	// 1 1
	// 1 2
}
