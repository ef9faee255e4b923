// Command shape shows what interned shapes cost.
//
//	(cd .. && go test ./shape -run '^$' -bench . -count 5) | go run ./shape table
//	go run ./shape storm [-shapes 10000000] [-goroutines 8]
//
// Table reads the output of package shape's benchmarks and sets those who
// intern side by side, each figure the least of its repetitions: time,
// allocations where there are any, and how many times as long as the trie
// another takes.
//
// Storm makes and drops many different shapes, holding each for a moment, and
// prints the rate, the process's peak memory, and the memory that is left at
// the end. A map outside records the holders of each shape: the storm fails
// if two shapes are ever equal and not one pointer, or if one stays. All of
// its objects are the collector's; its goroutines end before it does.
package main

import (
	"flag"
	"fmt"
	"log"
	"os"

	"github.com/tenure-go/tenure/bench/internal/results"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("shape: ")
	if len(os.Args) < 2 {
		log.Fatal("got no command, want table or storm")
	}
	if err := run(os.Args[1], os.Args[2:]); err != nil {
		log.Fatal(err)
	}
}

func run(command string, args []string) error {
	flags := flag.NewFlagSet("shape", flag.ExitOnError)
	var output results.Output
	output.Flags(flags)
	shapes := flags.Int("shapes", 10_000_000, "storm: how many different shapes")
	goroutines := flags.Int("goroutines", 8, "storm: how many goroutines make them together")
	flags.Parse(args)
	switch command {
	case "table":
		return printTable(os.Stdin, os.Stdout, output)
	case "storm":
		return storm(*shapes, *goroutines, output)
	}
	return fmt.Errorf("got command %q, want table or storm", command)
}
