package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// codeOf is the code of HTTP for an error of gRPC, 0 where it is none of the
// server's.
func codeOf(err error) int {
	switch status.Code(err) {
	case codes.Unavailable:
		return http.StatusServiceUnavailable
	case codes.ResourceExhausted:
		return http.StatusRequestEntityTooLarge
	case codes.DeadlineExceeded:
		return http.StatusGatewayTimeout
	}
	return 0
}

// turn is what clients saw that sent their next request when the last one was
// answered.
type turn struct {
	nanos  []int64 // of each request, sorted
	lasted time.Duration
}

// quantile is the time that a part p of the requests did not exceed.
func (t *turn) quantile(p float64) int64 {
	return t.nanos[min(int(p*float64(len(t.nanos))), len(t.nanos)-1)]
}

// perSecond is how many requests were answered.
func (t *turn) perSecond() float64 { return float64(len(t.nanos)) / t.lasted.Seconds() }

// measure lets clients send requests for a time, one each at least.
func measure(make callers, clients int, size int, d time.Duration) (*turn, error) {
	var mu sync.Mutex
	var t turn
	var errs []error
	var wg sync.WaitGroup
	begin := time.Now()
	for range clients {
		wg.Go(func() {
			call := make()
			var nanos []int64
			var err error
			for err == nil && (len(nanos) == 0 || time.Since(begin) < d) {
				sent := time.Now()
				var got []byte
				got, _, err = call(context.Background())
				nanos = append(nanos, time.Since(sent).Nanoseconds())
				if err == nil && len(got) != size {
					err = fmt.Errorf("got an answer of %d bytes, want %d", len(got), size)
				}
			}
			mu.Lock()
			defer mu.Unlock()
			t.nanos = append(t.nanos, nanos...)
			errs = append(errs, err)
		})
	}
	wg.Wait()
	t.lasted = time.Since(begin)
	slices.Sort(t.nanos)
	return &t, errors.Join(errs...)
}

// perRequest is how many bytes of its Go heap the server takes for a request,
// n of which are sent. What the reading itself takes is read and left out.
func perRequest(s *server, make callers, n int) (float64, error) {
	call := make()
	var at [3]int64
	for i := range at {
		var err error
		if at[i], err = s.allocated(); err != nil {
			return 0, err
		}
		for range n {
			if i != 1 {
				continue
			}
			if _, _, err := call(context.Background()); err != nil {
				return 0, err
			}
		}
	}
	return max(0, float64(at[2]-at[1]-(at[1]-at[0]))/float64(n)), nil
}
