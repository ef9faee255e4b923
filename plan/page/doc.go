// Package page writes a plan as a page for a browser: where the memory goes,
// and why the peak is where it is.
//
// [Write] makes one file that needs nothing else, no network either, and works
// from a disk. It shows all memory to scale, every value at its bytes while it
// lives, the bytes of the arena over the run, what lives in a chosen step and
// why, and the plan's lists, each complete and sortable. It can be zoomed,
// searched and used without a mouse, follows the reader's light or dark theme,
// and prints. docs/plan-page.md shows how to read it.
//
// The page carries the plan's document and a script that computes the rest from
// it. Names in a plan come from a model's file: the page shows them as text,
// and its content security policy lets no script run but its own and nothing be
// loaded. Without a script it shows the plan's report.
//
//	p, err := model.Plan(ctx, nil)
//	err = page.Write(file, p)
//
// The package is apart from plan because html/template would add half a
// megabyte to every program that runs a model. It owns no memory, and Write may
// be called from any number of goroutines.
package page
