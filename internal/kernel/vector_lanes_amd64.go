package kernel

import (
	"fmt"
	"strings"

	"github.com/tenure-go/tenure/dtype"
)

// laneTypes are the element types by their number.
var laneTypes = [laneKinds]dtype.DType{dtype.F32, dtype.F64, dtype.I8, dtype.U8, dtype.I16, dtype.U16, dtype.I32, dtype.U32, dtype.I64, dtype.U64}

// signedOf is the integer type of the same size that has a sign: many loops do not ask for it.
func signedOf(dt dtype.DType) dtype.DType {
	switch dt {
	case dtype.U8:
		return dtype.I8
	case dtype.U16:
		return dtype.I16
	case dtype.U32:
		return dtype.I32
	case dtype.U64:
		return dtype.I64
	}
	return dt
}

// laneCode is a generated table, and the one whose loops compute long rows of all but conversions of floats, as rowCode's do.
type laneCode struct{ all, long map[string]lane }

// install fills the dispatch point.
func (v laneCode) install() {
	find := func(words ...any) lane {
		name := strings.TrimSuffix(fmt.Sprintln(words...), "\n")
		l, ok := v.all[name]
		if !ok {
			return v.long[name]
		}
		if long, both := v.long[name]; both && words[0] != "columns" && words[0] != "exp" && words[0] != "log" && !(words[0] == "cast" && words[1].(dtype.DType).IsFloat()) {
			l.long = &long
		}
		return l
	}
	forms := [laneForms]string{"vv", "vs", "sv"}
	for op, name := range binaryNames {
		for k, dt := range laneTypes {
			if op := BinaryOp(op); op == Add || op == Sub || op == Mul {
				dt = signedOf(dt)
			}
			for f, form := range forms {
				lanes.binary[op][k][f] = find(name, dt, form)
			}
		}
	}
	for op, name := range map[BinaryOp]string{BitAnd: "and", BitOr: "or", BitXor: "xor"} {
		lanes.bits[op] = find(name, "bits", "vv")
	}
	for op, name := range predicateNames {
		for k, dt := range laneTypes {
			for f, form := range forms[:secondRow] {
				lanes.predicate[op][k][f] = find(name, dt, form)
			}
		}
		lanes.logic[op] = find(name, "bool", "vv")
	}
	for op, name := range unaryNames {
		for k, dt := range laneTypes {
			if UnaryOp(op) == Neg {
				dt = signedOf(dt)
			}
			lanes.unary[op][k] = find(name, dt)
		}
	}
	for k, dt := range laneTypes {
		lanes.clamp[k] = find("clamp", dt)
		for q, to := range laneTypes {
			lanes.cast[k][q] = castLaneOf(find, dt, to)
		}
		lanes.cast[laneKinds][k] = castLaneOf(find, dtype.Bool, dt)
	}
	for k, dt := range laneTypes {
		for _, op := range []BinaryOp{Add, Max, Min} {
			as := dt
			if op == Add {
				as = signedOf(dt)
			}
			lanes.total[k][op], lanes.columns[k][op] = find("total", op, as), find("columns", op, as)
		}
	}
	lanes.gather = find("gather", dtype.F32, dtype.F64)
	for size := range lanes.where {
		lanes.backwards[size], lanes.second[size] = find("backwards", 1<<size), find("every second", 1<<size)
		for i := range 2 {
			for j := range 2 {
				lanes.where[size][i][j] = find("where", 1<<size, "vs"[i:i+1]+"vs"[j:j+1])
			}
		}
	}
	lanes.not, lanes.truth = find("not", "bool"), find("truth", "bool")
}

// castLaneOf finds the loop that makes the bits of a conversion: between integers the type that is cut or made only has a size.
func castLaneOf(find func(words ...any) lane, from, to dtype.DType) lane {
	if to.IsInt() && !from.IsFloat() {
		to = signedOf(to)
		if to.Size() < from.Size() {
			from = signedOf(from)
		}
	}
	return find("cast", from, to)
}
