package command

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/tenure-go/tenure/plan"
	"github.com/tenure-go/tenure/serve"
)

// serverFlags are the flags of tenure serve.
type serverFlags struct {
	address   string
	second    string // address
	memory    string
	maxBody   string
	tokenFile string
	cert, key string
	weights   string
	config    serve.Config
}

func serverCommand() *cobra.Command {
	var f serverFlags
	cmd := &cobra.Command{
		Use:   "serve DIR|MODEL...",
		Short: "Answer requests for inference over HTTP and gRPC",
		Long: `serve loads models and answers requests for inference until it is interrupted:
by the Open Inference Protocol, version 2, over HTTP with JSON or binary
tensors, and over gRPC, as the clients of Triton and KServe speak it. Both are
answered at the same port.

A MODEL is an .onnx file, or NAME=FILE, or a folder of one model with its
versions in numbered folders. A DIR has such files and folders. A folder of a
model may have a config.pbtxt, or config.json, with the fields of Triton's model
configuration that apply here. A decoder with a tokenizer.json beside it answers
completions and chats of OpenAI's clients, at /v1, and an encoder embeddings.
docs/serve.md describes requests, fields and metrics.

The bytes that models, and what waits and runs, are promised together stay
within --memory: a request that does not fit waits, and is answered with 503 and
Retry-After if that takes too long; one that never fits is refused at once. What
a request of given shapes would take is the answer of POST
/v2/models/NAME/plan. With --evict more models may be served than fit at a time.

When it is interrupted, or stopped with SIGTERM, it says for --drain that it is
not ready, refuses further requests, and ends when those under way are answered,
at the latest after --exit-timeout.`,
		Example: `  tenure serve examples/digits
  tenure serve examples/generate
  tenure serve models --address :8080 --memory 2GiB --batch 16
  tenure serve models --memory 2GiB --evict
  tenure serve model.onnx --token-file token --tls-cert cert.pem --tls-key key.pem`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("%sgot 0 arguments, want DIR|MODEL...", prefix(cmd))
			}
			return nil
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveDefault
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			f.config.Paths = args
			f.config.Log = slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: slog.LevelWarn}))
			return f.serve(cmd.Context(), cmd.OutOrStdout())
		},
	}
	f.add(cmd)
	return cmd
}

func (f *serverFlags) add(cmd *cobra.Command) {
	flags, c := cmd.Flags(), &f.config
	flags.SortFlags = false
	flags.StringVar(&f.address, "address", "localhost:8000", "listen at `HOST:PORT`; without a host at all addresses of the machine")
	flags.StringVar(&f.second, "grpc-address", "", "listen at this `HOST:PORT`, too, for clients that want another port for gRPC (default: none)")
	flags.StringVar(&f.memory, "memory", "", "the most bytes that models and requests take, `SIZE` such as 2GiB (default: what the container or the machine has, less an eighth)")
	flags.BoolVar(&c.Evict, "evict", false, "unload models that no request uses when others need their memory, those used longest ago first, and load them again when a request comes")
	flags.StringVar(&f.maxBody, "max-body", "64MiB", "the largest request, `SIZE`")
	flags.IntVar(&c.MaxQueue, "queue", 256, "how many requests of a model may wait")
	flags.IntVar(&c.MaxBatch, "batch", 0, "run requests together, so many rows at most, for models whose rows do not depend on each other (default: only where a configuration says so)")
	flags.BoolVar(&c.Explicit, "explicit", false, "let clients load and unload the models of DIR")
	flags.BoolVar(&c.Empty, "empty", false, "load no model at first; with --explicit")
	flags.BoolVar(&c.SharedMemory, "shared-memory", false, "let clients on this machine pass tensors in regions of shared memory that belong to this user (Linux)")
	flags.DurationVar(&c.Patience, "patience", 10*time.Second, "how long a request waits for memory and for its run")
	flags.DurationVar(&c.Stall, "stall", 30*time.Second, "how long a client has to send, or take, the next 64 KiB")
	flags.DurationVar(&c.Drain, "drain", 0, "how long it answers at its end while it says that it is not ready")
	flags.DurationVar(&c.Exit, "exit-timeout", 30*time.Second, "how long requests under way have at its end")
	flags.StringVar(&c.Name, "server-name", "tenure", "the `NAME` in its metadata; some clients want triton")
	flags.StringVar(&f.tokenFile, "token-file", "", "answer only requests with the token in `FILE` (Authorization: Bearer)")
	flags.StringVar(&f.cert, "tls-cert", "", "answer by TLS, with the certificate in `FILE`, which is read again when it changes")
	flags.StringVar(&f.key, "tls-key", "", "the key of the certificate, `FILE`")
	flags.BoolVar(&c.Pprof, "pprof", false, "serve profiles of the process at /debug/pprof/")
	flags.IntVar(&c.Threads, "threads", 0, "workers of the runs of a model together (default: one per processor)")
	flags.StringVar(&f.weights, "weights", "read", "`HOW` weights are held: read, or mapped or compressed, with which a file that is truncated ends the process")
}

var sizePattern = regexp.MustCompile(`^(\d+)(|B|KiB|MiB|GiB|TiB)$`)

// parseSize reads a number of bytes, such as 2GiB.
func parseSize(flag, text string) (int64, error) {
	if m := sizePattern.FindStringSubmatch(text); m != nil {
		shift := map[string]int{"KiB": 10, "MiB": 20, "GiB": 30, "TiB": 40}[m[2]]
		if n, err := strconv.ParseInt(m[1], 10, 64); err == nil && n > 0 && n <= plan.MaxBytes>>shift {
			return n << shift, nil
		}
	}
	return 0, usagef("%s: got %q, want a size such as 1000000, 512MiB or 2GiB", flag, text)
}

// check completes the configuration from the flags.
func (f *serverFlags) check() (err error) {
	c := &f.config
	if f.memory != "" {
		if c.Memory, err = parseSize("--memory", f.memory); err != nil {
			return err
		}
	}
	if c.MaxBody, err = parseSize("--max-body", f.maxBody); err != nil {
		return err
	}
	if err := checkThreads(c.Threads); err != nil {
		return err
	}
	if c.Options, err = weightOptions(f.weights); err != nil {
		return err
	}
	switch {
	case c.MaxQueue < 1:
		return usagef("--queue: got %d, want 1 or more", c.MaxQueue)
	case c.MaxBatch < 0:
		return usagef("--batch: got %d, want zero or more", c.MaxBatch)
	case c.Patience <= 0 || c.Stall <= 0 || c.Exit <= 0 || c.Drain < 0:
		return usagef("--patience, --stall, --exit-timeout, --drain: got %v, %v, %v and %v, want times above zero, and --drain zero or more", c.Patience, c.Stall, c.Exit, c.Drain)
	case c.SharedMemory && runtime.GOOS != "linux":
		return usagef("--shared-memory: got it on %s, want Linux, where shared memory is a file", runtime.GOOS)
	case c.Empty && !c.Explicit:
		return usagef("--empty: want --explicit with it, by which models are loaded later")
	case (f.cert == "") != (f.key == ""):
		return usagef("--tls-cert, --tls-key: got one of them, want both or none")
	}
	if f.tokenFile != "" {
		text, err := os.ReadFile(f.tokenFile)
		if err != nil {
			return err
		}
		if c.Token = strings.TrimSpace(string(text)); c.Token == "" {
			return fmt.Errorf("%s: got an empty file, want a token", f.tokenFile)
		}
	}
	return nil
}

func (f *serverFlags) serve(ctx context.Context, w io.Writer) (err error) {
	if err := f.check(); err != nil {
		return err
	}
	scheme, pair := "http", (*keyPair)(nil)
	if f.cert != "" {
		scheme, pair = "https", &keyPair{cert: f.cert, key: f.key}
		if _, err := pair.get(nil); err != nil {
			return err
		}
	}
	var work work
	done := work.begin("loading models")
	s, err := serve.New(ctx, f.config)
	done()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	var listeners []net.Listener
	var addresses []string
	for _, address := range []string{f.address, f.second} {
		if address == "" {
			continue
		}
		l, err := net.Listen("tcp", address)
		if err != nil {
			return errors.Join(err, closeAll(listeners))
		}
		addresses = append(addresses, fmt.Sprintf("%s://%s", scheme, l.Addr()))
		if pair != nil {
			l = tls.NewListener(l, &tls.Config{GetCertificate: pair.get, NextProtos: []string{"h2", "http/1.1"}})
		}
		listeners = append(listeners, l)
	}
	list, err := s.Models()
	if err != nil {
		return errors.Join(err, closeAll(listeners))
	}
	var ready []string
	for _, m := range list {
		if m.State == "READY" {
			ready = append(ready, m.Name+" "+m.Version)
		}
	}
	m := s.Memory()
	fmt.Fprintf(w, "%s at %s; %s promised of %s; interrupt to end\n", or(strings.Join(ready, ", "), "no models"), strings.Join(addresses, " and "), plan.FormatBytes(m.Promised), plan.FormatBytes(m.Budget))
	return s.Serve(ctx, listeners...)
}

func closeAll(listeners []net.Listener) (err error) {
	for _, l := range listeners {
		err = errors.Join(err, l.Close())
	}
	return err
}

func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// keyPair is a certificate in files, which are read again when they change.
type keyPair struct {
	cert, key string

	mu      sync.Mutex
	changed time.Time // of the file, when it was read
	pair    *tls.Certificate
}

// get returns the certificate. While new files cannot be read, the old one
// stays.
func (k *keyPair) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	info, err := os.Stat(k.cert)
	if err == nil && k.pair != nil && info.ModTime().Equal(k.changed) {
		return k.pair, nil
	}
	var fresh tls.Certificate
	if err == nil {
		fresh, err = tls.LoadX509KeyPair(k.cert, k.key)
	}
	if err != nil {
		if k.pair != nil {
			return k.pair, nil
		}
		return nil, err
	}
	k.pair, k.changed = &fresh, info.ModTime()
	return k.pair, nil
}
