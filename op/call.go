package op

import (
	"fmt"

	"github.com/tenure-go/tenure/shape"
)

// Arg is one operand or result of a kernel: its type, where its elements lie
// and its bytes. The zero Arg is an absent operand.
type Arg struct {
	Type
	Layout *shape.Layout // contiguous for kernels that users bring

	// Data are exactly the bytes of the elements. In a layout with gaps they
	// reach from the first element to the end of the last, and those between
	// belong to others.
	Data []byte
}

// Call is one execution of an operator by a kernel. A kernel writes every
// byte of the results and nothing else, and keeps no slice. A result may lie
// in an operand's bytes exactly where the operator's alias rules allow it.
type Call struct {
	*Sig
	Node    string // where the call comes from, for errors
	In, Out []Arg
	Scratch []byte
	Draws   *Draws // the random numbers of the run, nil outside a session
}

// Where names a call in errors: by its node in the model file and its
// operator, or by its operator if node is "", because it comes from no node.
func Where(operator, node string) string {
	if node == "" {
		return operator
	}
	return fmt.Sprintf("node %q (%s)", node, operator)
}
