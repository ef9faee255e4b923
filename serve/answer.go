package serve

import (
	"bytes"
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/serve/internal/oip"
	"github.com/tenure-go/tenure/tensor"
)

// send writes an answer. Once it has begun there is no error but that of a
// client that has gone.
func (q *request) send(w http.ResponseWriter, head *oip.Answer) error {
	out := &answer{w: w, conn: http.NewResponseController(w), stall: q.server.config.Stall}
	length, binary := 0, false
	for _, r := range head.Outputs {
		if r.Size >= 0 {
			length += len(r.Data)
			binary = true
		}
	}
	if !binary {
		w.Header().Set("Content-Type", "application/json")
		_, err := head.WriteTo(out) // a short one gets a Content-Length by net/http
		return gone(err)
	}
	var text bytes.Buffer
	if _, err := head.WriteTo(&text); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Inference-Header-Content-Length", strconv.Itoa(text.Len()))
	w.Header().Set("Content-Length", strconv.Itoa(text.Len()+length))
	_, err := out.Write(text.Bytes())
	for _, r := range head.Outputs {
		if err == nil && r.Size >= 0 {
			_, err = out.Write(r.Data)
		}
	}
	return gone(err)
}

// goneError is the error of an answer that nobody takes.
type goneError struct{ error }

func (goneError) Is(target error) bool { return target == errStopped }

func gone(err error) error {
	if err != nil {
		return goneError{err}
	}
	return nil
}

// resultOf describes an output in the form that the client wants. data is the
// bytes of x.
func resultOf(o oip.Output, info tenure.Info, x *tensor.Tensor, data []byte) (oip.Result, error) {
	r := oip.Result{Name: o.Name, Type: elementType(info), Shape: x.Shape().Sizes(), Size: -1, Data: data}
	if info.Text {
		r.Shape, r.Data = r.Shape[:len(r.Shape)-1], nil
		var err error
		r.Strings, err = tensor.Strings(x)
		return r, err
	}
	if o.Classes > 0 {
		return classified(r, x, o.Classes)
	}
	return r, nil
}

// classified returns the largest elements of each row, with their places, as
// strings of the form "value:place". The first dimension is that of rows, if
// there are several dimensions.
func classified(r oip.Result, x *tensor.Tensor, most int) (oip.Result, error) {
	values, err := tensor.Float64s(x)
	if err != nil {
		return r, err
	}
	rows, shape := 1, []int{}
	if len(r.Shape) > 1 {
		rows, shape = r.Shape[0], []int{r.Shape[0]}
	}
	width := 0
	if rows > 0 {
		width = len(values) / rows
	}
	most = min(most, width)
	out := oip.Result{Name: r.Name, Type: dtype.String, Shape: append(shape, most), Size: -1, Strings: make([]string, 0, rows*most)}
	for row := range rows {
		part := values[row*width : (row+1)*width]
		order := make([]int, width)
		for i := range order {
			order[i] = i
		}
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(part[b], part[a]) })
		for _, i := range order[:most] {
			out.Strings = append(out.Strings, fmt.Sprintf("%f:%d", part[i], i))
		}
	}
	return out, nil
}
