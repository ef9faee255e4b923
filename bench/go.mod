module github.com/tenure-go/tenure/bench

go 1.26.0

require github.com/tenure-go/tenure v0.0.0

require golang.org/x/sys v0.49.0

require github.com/ebitengine/purego v0.11.2 // indirect

replace github.com/tenure-go/tenure => ../
