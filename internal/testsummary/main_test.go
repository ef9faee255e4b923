package main

import (
	"strings"
	"testing"
)

func TestSummary(t *testing.T) {
	var out strings.Builder
	s := newSummary()
	err := s.read(strings.NewReader(`{"Action":"run","Package":"m/a","Test":"TestGood"}
{"Action":"output","Package":"m/a","Test":"TestGood","Output":"what it says\n"}
{"Action":"pass","Package":"m/a","Test":"TestGood"}
{"Action":"output","Package":"m/a","Test":"TestNot","Output":"    a_test.go:7: skipped: no spin: apt-get install spin\n"}
{"Action":"output","Package":"m/a","Test":"TestNot","Output":"--- SKIP: TestNot (0.00s)\n"}
{"Action":"skip","Package":"m/a","Test":"TestNot"}
{"Action":"skip","Package":"m/a","Test":"TestSilent"}
{"Action":"output","Package":"m/a","Output":"PASS\n"}
{"Action":"output","Package":"m/a","Output":"ok  \tm/a\t0.1s\n"}
{"Action":"pass","Package":"m/a"}
{"Action":"output","Package":"m/b","Test":"TestBad","Output":"    b_test.go:9: got 1, want 2\n"}
{"Action":"fail","Package":"m/b","Test":"TestBad"}
{"Action":"output","Package":"m/b","Test":"TestNot","Output":"    b_test.go:3: no spin: apt-get install spin\n"}
{"Action":"skip","Package":"m/b","Test":"TestNot"}
{"Action":"output","Package":"m/b","Output":"FAIL\tm/b\t0.2s\n"}
{"Action":"fail","Package":"m/b"}
{"Action":"skip","Package":"m/c"}
go: some trouble
`), &out)
	if err != nil {
		t.Fatal(err)
	}
	s.print(&out)
	want := `ok  	m/a	0.1s
    b_test.go:9: got 1, want 2
FAIL	m/b	0.2s
go: some trouble

1 tests passed, 1 failed, 3 were skipped
    2 skipped: no spin: apt-get install spin (a.TestNot, b.TestNot)
    1 skipped: no reason given (a.TestSilent)
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}
