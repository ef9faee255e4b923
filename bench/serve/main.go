// Command serve measures tenure serve.
//
//	go run ./serve [flags]
//
// It builds the command tenure, starts it and a server of the same protocol
// that grpc-go makes and that runs nothing, and sends both the same requests in
// turns, seven times or more. README.md describes the measurements.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"

	"github.com/tenure-go/tenure/bench/internal/onnxfile"
	"github.com/tenure-go/tenure/bench/internal/results"
)

func main() {
	log.SetFlags(0)
	servePlainIfAsked()
	if err := run(os.Args[1:]); err != nil {
		log.Fatal(err)
	}
}

// bench is a run of the command.
type bench struct {
	dir     string // for files
	root    string // of the sources
	command string // tenure
	turns   int
	span    time.Duration // of a turn
	sizes   []int
	clients []int
	load    overloadOptions
	result  *results.Result
}

type modelSet map[string]*onnxfile.Graph

// models writes a repository, and returns its folder.
func (b *bench) models(name string, set modelSet, configs map[string]string) (string, error) {
	dir := filepath.Join(b.dir, name)
	return dir, repository(dir, set, configs)
}

// add adds a row, and prints it.
func (b *bench) add(words []string, figures ...results.Named) {
	b.result.Add(words, figures...)
	say(words, figures)
}

// part is a group of measurements.
type part struct {
	name    string
	measure func(*bench) error
}

var parts = []part{{"wire", (*bench).wire}, {"json", (*bench).text}, {"batch", (*bench).batching}, {"generate", (*bench).generation}, {"overload", (*bench).overload}}

func run(args []string) (err error) {
	b := &bench{}
	var output results.Output
	flags := flag.NewFlagSet("serve", flag.ContinueOnError)
	var names []string
	for _, p := range parts {
		names = append(names, p.name)
	}
	chosen := flags.String("parts", strings.Join(names, ","), "what is measured, by commas")
	sizes := flags.String("sizes", "4,4096,65536,602112,8388608", "bytes of a request's tensor, by commas")
	clients := flags.String("clients", "1,4,16", "clients at a time, by commas")
	flags.IntVar(&b.turns, "turns", 7, "turns of each side")
	millis := flags.Int("ms", int(span.Milliseconds()), "length of a turn in milliseconds: one request of each client at least")
	from := flags.Bool("from", false, "the arguments are files written by -results: join them into one")
	b.load.flags(flags)
	output.Flags(flags)
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *from {
		return join(flags.Args(), output)
	}
	if b.sizes, err = numbersOf("-sizes", *sizes, 4); err != nil {
		return err
	}
	if b.clients, err = numbersOf("-clients", *clients, 1); err != nil {
		return err
	}
	if b.turns < 1 || *millis < 1 {
		return fmt.Errorf("-turns, -ms: got %d and %d, want 1 or more", b.turns, *millis)
	}
	b.span = time.Duration(*millis) * time.Millisecond
	if b.dir, err = os.MkdirTemp("", "tenure-bench"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	if err := b.build(); err != nil {
		return err
	}
	b.result = results.New("serve", map[string]string{"grpc-go": grpc.Version}, "part", "request", "clients")
	for name := range strings.SplitSeq(*chosen, ",") {
		i := slices.Index(names, name)
		if i < 0 {
			return fmt.Errorf("-parts: got %q, want some of %q", name, names)
		}
		if err := parts[i].measure(b); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return output.Write(os.Stdout, b.result, b.table)
}

// table prints a table for each part, whose figures differ.
func (b *bench) table(w io.Writer) error {
	for _, p := range parts {
		own := *b.result
		own.Rows = slices.DeleteFunc(slices.Clone(own.Rows), func(row results.Row) bool {
			name, _, _ := strings.Cut(row.Case[0], ",")
			return name != p.name
		})
		if len(own.Rows) == 0 {
			continue
		}
		own.Figures = slices.DeleteFunc(slices.Clone(own.Figures), func(name string) bool {
			_, ok := own.Rows[0].Figures[name]
			return !ok
		})
		if err := own.WriteText(w); err != nil {
			return err
		}
		fmt.Fprintln(w)
	}
	return nil
}

// join makes one result of several.
func join(files []string, output results.Output) error {
	if len(files) == 0 {
		return errors.New("-from: got no files, want some")
	}
	all, err := results.Read(files[0])
	if err != nil {
		return err
	}
	for _, file := range files[1:] {
		r, err := results.Read(file)
		if err == nil {
			err = all.Join(r)
			all.Command += "; " + r.Command
		}
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	return output.Write(os.Stdout, all, nil)
}

// numbersOf reads numbers that commas separate.
func numbersOf(flag, text string, least int) (list []int, err error) {
	for word := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(word)
		if err != nil || n < least {
			return nil, fmt.Errorf("%s: got %q, want numbers from %d up", flag, text, least)
		}
		list = append(list, n)
	}
	return list, nil
}
