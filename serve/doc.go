// Package serve answers requests for inference over HTTP and gRPC, by the Open
// Inference Protocol, version 2, with the extensions of Triton that its clients
// use, and requests for text as OpenAI's clients ask for it. It is not
// finished, and its API is not promised: see ARCHITECTURE.md.
//
//	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
//	defer stop()
//	err := serve.ListenAndServe(ctx, "localhost:8000", serve.Config{
//		Paths:  []string{"models"}, // a folder of models
//		Memory: 2 << 30,            // for weights, arenas, and what waits and runs
//	})
//
// [ListenAndServe] is [New], [Server.Serve] and [Server.Close]. A [Server] is
// an http.Handler, too; calls of gRPC reach it over HTTP/2. docs/serve.md
// describes requests, configurations of models, and metrics; command tenure
// serve is this package with flags.
//
// # Memory
//
// The plan of a run states its bytes before the run, and a [Config] has a
// budget for the sum of what all plans state. When the shapes of a request are
// known, and before its tensors are read, the bytes of its tensors are reserved
// from the budget, and those by which its run would make the model's arena
// larger. A request that does not fit waits, for Config.Patience at most
// (ErrBusy, 503); one that is larger than the budget is refused at once (413).
// Weights are part of the sum. So what is in use is never more than
// [Server.Memory] states, but for the process's own memory: the Go heap of
// connections and plans. Values whose sizes depend on data are added when they
// are known.
//
// Binary tensors are read from the connection into the bytes that the run
// reads, and written to it from those that the run wrote. Where requests run
// together, their rows are copied into the tensors of the batch, once; their
// outputs are views of its results.
//
// The package owns all tensors and models that it makes; [Server.Close] frees
// them.
//
// With Config.Evict, models that no request uses are unloaded when others need
// their memory, and loaded again when a request for them comes.
//
// # Text
//
// A decoder with tokenizer.json beside it generates text: all its sequences
// share runs, and join and leave between them. The memory of all states is
// promised when the model is loaded, and that of a sequence, as long as it may
// become, before it joins. docs/serve.md says which models and files that
// takes.
//
// # Loading
//
// [Server.Load] reads a model's files anew. The old versions answer until the
// new ones are loaded and have made a first run; requests that have begun are
// answered by the version that they began with. At most two generations of a
// model are in memory at a time.
//
// # Errors
//
// Errors match the values of this package and those of package tenure. Answers
// to clients have the text of the error as {"error": "..."}, or as the message
// of the status of gRPC.
//
// # Concurrency
//
// All methods may be called from any goroutine.
package serve
