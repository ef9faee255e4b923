package contrib

import "github.com/tenure-go/tenure/internal/onnx/lift"

// What to do instead of what an operator of refusedTable asks for.
const (
	generation = "the operator is a loop that generates text, with the network as its body; export the encoder and the decoder as models of their own, and run the decoder for each token"
	compiled   = "the operator holds a network that was compiled for one device; use the model from which it was compiled"
	ordered    = "the operator computes in layouts of one device; quantise the model in the form QDQ"
	packedFor  = "the operator's weights are packed for one device; quantise the model with MatMulNBits"
)

// refusedTable has the operators that are known and not read.
var refusedTable = map[string]lift.Operator{
	"BeamSearch":        {Refusal: generation},
	"GreedySearch":      {Refusal: generation},
	"Sampling":          {Refusal: generation},
	"WhisperBeamSearch": {Refusal: generation},

	"EPContext": {Refusal: compiled},
	"Snpe":      {Refusal: compiled},

	"DequantizeWithOrder":         {Refusal: ordered},
	"QOrderedAttention":           {Refusal: ordered},
	"QOrderedGelu":                {Refusal: ordered},
	"QOrderedLayerNormalization":  {Refusal: ordered},
	"QOrderedLongformerAttention": {Refusal: ordered},
	"QOrderedMatMul":              {Refusal: ordered},
	"QuantizeWithOrder":           {Refusal: ordered},

	"MatMulFpQ4":   {Refusal: packedFor},
	"MatMulPacked": {Refusal: packedFor},
	"GatherPacked": {Refusal: packedFor},
}
