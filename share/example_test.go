package share_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/share"
	"github.com/tenure-go/tenure/tensor"
)

// Both ends are in one process here, so that the example runs; they need not
// be.
func Example() {
	ctx := context.Background()
	here, there, err := share.Pair()
	if err != nil {
		log.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		consumer, err := share.NewOwner()
		if err != nil {
			log.Fatal(err)
		}
		defer consumer.Close()
		peer, err := consumer.Attach(ctx, there)
		if err != nil {
			log.Fatal(err)
		}
		got, err := peer.Receive(ctx)
		if err != nil {
			log.Fatal(err)
		}
		defer got.Tensor.Release()
		fmt.Println(got.Label, got.Tensor)
	}()

	owner, err := share.NewOwner()
	if err != nil {
		log.Fatal(err)
	}
	defer owner.Close()
	peer, err := owner.Attach(ctx, here)
	if err != nil {
		log.Fatal(err)
	}
	x, err := tensor.Make(owner, dtype.F32, shape.MustOf(2, 2))
	if err != nil {
		log.Fatal(err)
	}
	defer x.Release()
	w, err := tensor.Write[float32](x)
	if err != nil {
		log.Fatal(err)
	}
	copy(w.Data, []float32{1, 2, 3, 4})
	w.Release()
	if err := peer.Offer(ctx, x, share.Label("frame 1")); err != nil {
		log.Fatal(err)
	}
	<-done
	fmt.Println(owner.State().Bytes.Copied, "bytes copied")
	// Output:
	// frame 1 f32[2,2]
	// [[1. 2.]
	//  [3. 4.]]
	// 0 bytes copied
}

// A consumer that is done with each tensor before it receives the next makes no
// objects.
func ExamplePeer_ReceiveInto() {
	ctx := context.Background()
	here, there, err := share.Pair()
	if err != nil {
		log.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		consumer, err := share.NewOwner()
		if err != nil {
			log.Fatal(err)
		}
		defer consumer.Close()
		peer, err := consumer.Attach(ctx, there)
		if err != nil {
			log.Fatal(err)
		}
		var got share.Received
		for {
			if err := peer.ReceiveInto(ctx, &got); errors.Is(err, io.EOF) {
				return
			} else if err != nil {
				log.Fatal(err)
			}
			fmt.Println(got.Label, got.Tensor)
			got.Tensor.Release() // from here on the next call may make another of it
		}
	}()

	owner, err := share.NewOwner()
	if err != nil {
		log.Fatal(err)
	}
	defer owner.Close()
	peer, err := owner.Attach(ctx, here)
	if err != nil {
		log.Fatal(err)
	}
	for i := range 3 {
		x, err := tensor.Make(owner, dtype.F32, shape.MustOf(2))
		if err != nil {
			log.Fatal(err)
		}
		w, err := tensor.Write[float32](x)
		if err != nil {
			log.Fatal(err)
		}
		copy(w.Data, []float32{float32(i), 1})
		w.Release()
		if err := peer.Offer(ctx, x, share.Label("frame")); err != nil {
			log.Fatal(err)
		}
		x.Release()
	}
	peer.Close()
	<-done
	// Output:
	// frame f32[2] [0. 1.]
	// frame f32[2] [1. 1.]
	// frame f32[2] [2. 1.]
}
