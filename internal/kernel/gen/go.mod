module github.com/tenure-go/tenure/internal/kernel/gen

go 1.26.0
