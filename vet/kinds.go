package vet

import (
	"go/types"
	"strings"
)

// kind classifies types for this analysis.
type kind uint8

const (
	nothing   kind = iota
	aTensor        // *tensor.Tensor: ended by Release, given up by Donate and Reuse
	aView          // tensor.View and tensor.Bytes, by value or by pointer: its data ends with it
	container      // tenure.Outputs, share.Received: their tensors may be released one by one
	closer         // a model, session, scope, arena, buffer, owner, archive ...
	ender          // a type parameter or interface with Release or Close: its values may be of the other kinds
)

// closers are the types with a Close or Release, by package.
var closers = map[string]map[string]bool{
	module:                      {"Model": true, "Session": true, "Binding": true},
	eagerPath:                   {"Scope": true},
	module + "/memory":          {"Arena": true, "Buffer": true},
	module + "/share":           {"Owner": true, "Listener": true, "Peer": true},
	tensorPath + "/npy":         {"Archive": true},
	tensorPath + "/safetensors": {"File": true},
}

// kindOf returns the kind of a type.
func kindOf(t types.Type) kind {
	t = types.Unalias(t)
	_, pointer := t.(*types.Pointer)
	switch {
	case named(t, tensorPath, "View"), named(t, tensorPath, "Bytes"):
		return aView
	case named(t, tensorPath, "Tensor") && pointer:
		return aTensor
	case named(t, module, "Outputs") && !pointer, named(t, module+"/share", "Received") && pointer:
		return container
	case pointer:
		if path, name := nameOf(t); closers[path][name] {
			return closer
		}
	case canEnd(t):
		return ender
	}
	return nothing
}

// endsByMethod reports whether a method of that name ends a value of the kind.
func (k kind) endsByMethod(name string) bool {
	if k == closer || k == ender {
		return name == "Close" || name == "Release" || name == "CloseWhenIdle"
	}
	return name == "Release"
}

// noun returns the name of the kind in reports.
func (k kind) noun(t types.Type) string {
	switch k {
	case aTensor:
		return "tensor"
	case aView:
		return "view"
	}
	_, name := nameOf(t)
	return strings.ToLower(name)
}

// canEnd reports whether a type parameter or an interface has a method that
// ends its value.
func canEnd(t types.Type) bool {
	if !types.IsInterface(t) { // of a type parameter too: its constraint
		return false
	}
	i, ok := t.Underlying().(*types.Interface)
	if !ok {
		return false
	}
	for m := range types.NewMethodSet(i).Methods() {
		if name := m.Obj().Name(); name == "Release" || name == "Close" {
			return true
		}
	}
	return false
}

// nameOf returns package and name of t, or of the type that it points to.
func nameOf(t types.Type) (path, name string) {
	t = types.Unalias(t)
	if p, ok := t.(*types.Pointer); ok {
		t = types.Unalias(p.Elem())
	}
	n, ok := t.(*types.Named)
	if !ok || n.Obj().Pkg() == nil {
		return "", ""
	}
	return n.Obj().Pkg().Path(), n.Obj().Name()
}

// named reports whether t, or the type that it points to, is the named type of
// package path.
func named(t types.Type, path, name string) bool {
	p, n := nameOf(t)
	return n == name && p == path
}

func isTensor(t types.Type) bool { return kindOf(t) == aTensor }

func isView(t types.Type) bool { return kindOf(t) == aView }

func isError(t types.Type) bool {
	return types.Identical(t, types.Universe.Lookup("error").Type())
}

// descriptions are the methods of a tensor, view, container or closer that may
// be called after its end.
var descriptions = map[string]bool{
	"DType": true, "Shape": true, "Layout": true, "NumElements": true, "NumBytes": true, "String": true, "Alive": true, "Holders": true,
	"IsExclusive": true, "IsDonatable": true, "WhyNotWritable": true, "WhyNotDonatable": true, "Tensor": true, "Semantics": true,
	"Err": true, "Stats": true, "Len": true, "Flags": true, "Purpose": true, "Inputs": true, "Outputs": true, "Info": true, "Metadata": true,
	"State": true, "Outstanding": true, "Collect": true, "Done": true, "Owner": true,
}

// ours are the packages that follow the rules: their functions borrow
// arguments, and the caller must release their results.
var ours = map[string]bool{
	module: true, tensorPath: true, tensorPath + "/npy": true, tensorPath + "/safetensors": true, eagerPath: true,
	module + "/dlpack": true, module + "/share": true, module + "/cuda": true, module + "/memory": true, module + "/memory/memorytest": true,
}

func isOurs(fn *types.Func) bool { return fn != nil && fn.Pkg() != nil && ours[fn.Pkg().Path()] }

// printers are packages whose functions only read their arguments.
var printers = map[string]bool{"fmt": true, "log": true, "log/slog": true, "testing": true, "errors": true}

// gives reports whether the caller must release result i of a function of ours.
func gives(fn *types.Func, i int) bool {
	sig := fn.Signature()
	t := sig.Results().At(i).Type()
	k := kindOf(t)
	if k == nothing {
		return false
	}
	recv := sig.Recv()
	if recv != nil && named(recv.Type(), eagerPath, "Scope") {
		return fn.Name() == "Keep"
	}
	if recv != nil && named(recv.Type(), tensorPath, "Taken") {
		return false
	}
	if recv != nil && named(recv.Type(), module, "Outputs") {
		return false // the outputs own it
	}
	for p := range sig.Params().Variables() {
		if named(p.Type(), eagerPath, "Scope") {
			return false // the scope owns it
		}
	}
	if k == closer {
		if recv != nil && (named(recv.Type(), module+"/share", "Owner") || named(recv.Type(), module+"/share", "Listener")) {
			return named(t, module+"/memory", "Buffer") // an owner closes its listeners and peers
		}
		if fn.Name() == "NewArchive" || fn.Name() == "Parse" {
			return false // over bytes of the program: there is nothing to close
		}
		// An accessor, such as Peer.Owner, has no error.
		return isError(sig.Results().At(sig.Results().Len()-1).Type()) || strings.HasPrefix(fn.Name(), "New")
	}
	return fn.Name() != "Tensor"
}
