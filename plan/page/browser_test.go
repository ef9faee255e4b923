package page_test

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// browser is a page of a headless Chromium that tests drive through its
// debugging pipe, one at a time.
type browser struct {
	t        *testing.T
	to, from *os.File
	replies  *bufio.Reader
	cmd      *exec.Cmd
	profile  string // its folder
	session  string // of the test's page
	last     *int   // command
	loaded   bool
	faults   []string // exceptions, errors of the console, and requests beside that of the page
}

// common is the browser of all tests of the package, nil until the first of
// them needs it.
var common *browser

func TestMain(m *testing.M) {
	code := m.Run()
	if common != nil {
		common.close()
	}
	os.Exit(code)
}

// startBrowser returns a browser for a test, which is skipped where there is
// none.
func startBrowser(t *testing.T) *browser {
	t.Helper()
	if testing.Short() {
		t.Skip("headless Chromium: left out by -short")
	}
	if runtime.GOOS == "windows" {
		t.Skip("headless Chromium: its pipe cannot be inherited on Windows")
	}
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		t.Skip("headless Chromium: got none of chromium, chromium-browser, google-chrome and chrome in PATH; Debian has it as the package chromium")
	}
	if common == nil {
		var err error
		if common, err = launch(path); err != nil {
			t.Fatal(err)
		}
	}
	b := *common
	b.t = t
	b.attach()
	return &b
}

// launch starts a browser that shows nothing yet.
func launch(path string) (*browser, error) {
	profile, err := os.MkdirTemp("", "tenure-browser-")
	if err != nil {
		return nil, err
	}
	theirs, to, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	from, replies, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	// The page comes from this test, and containers often lack the system calls
	// that the sandbox needs.
	cmd := exec.Command(path, "--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
		"--no-first-run", "--hide-scrollbars", "--user-data-dir="+profile, "about:blank")
	cmd.ExtraFiles = []*os.File{theirs, replies}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	theirs.Close()
	replies.Close()
	return &browser{to: to, from: from, replies: bufio.NewReaderSize(from, 1<<16), last: new(int), cmd: cmd, profile: profile}, nil
}

// close ends the browser. It ends when its pipe does.
func (b *browser) close() {
	b.to.Close()
	_, _ = io.Copy(io.Discard, b.replies) // until it has ended
	b.from.Close()
	_ = b.cmd.Wait() // how it ended is no matter
	_ = os.RemoveAll(b.profile)
}

// attach makes a page of the test's own.
func (b *browser) attach() {
	b.t.Helper()
	var target struct{ TargetID string }
	b.call("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var session struct{ SessionID string }
	b.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &session)
	b.session = session.SessionID
	b.t.Cleanup(func() {
		b.session = ""
		b.call("Target.closeTarget", map[string]any{"targetId": target.TargetID}, nil)
	})
	for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
		b.call(domain+".enable", nil, nil)
	}
}

// message is one of the debugging protocol, in either direction.
type message struct {
	ID      int             `json:"id,omitempty"`
	Session string          `json:"sessionId,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  any             `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *fault          `json:"error,omitempty"`
}

type fault struct{ Message string }

// call sends a command and waits for its reply.
func (b *browser) call(method string, params, result any) {
	b.t.Helper()
	*b.last++
	text, err := json.Marshal(message{ID: *b.last, Session: b.session, Method: method, Params: params})
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := b.to.Write(append(text, 0)); err != nil {
		b.t.Fatalf("%s: %v", method, err)
	}
	for {
		m := b.receive()
		if m.ID != *b.last {
			continue
		}
		if m.Error != nil {
			b.t.Fatalf("%s: %s", method, m.Error.Message)
		}
		if result != nil {
			if err := json.Unmarshal(m.Result, result); err != nil {
				b.t.Fatalf("%s: %v in %s", method, err, m.Result)
			}
		}
		return
	}
}

// receive reads a message and records the events of the page in it.
func (b *browser) receive() message {
	b.t.Helper()
	text, err := b.replies.ReadBytes(0)
	if err != nil {
		b.t.Fatalf("browser: %v", err)
	}
	var m message
	if err := json.Unmarshal(text[:len(text)-1], &m); err != nil {
		b.t.Fatalf("browser: %v in %s", err, text)
	}
	switch m.Method {
	case "Page.loadEventFired":
		b.loaded = true
	case "Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded":
		b.faults = append(b.faults, string(text[:len(text)-1]))
	case "Network.requestWillBeSent":
		request, _ := m.Params.(map[string]any)["request"].(map[string]any)
		if url, _ := request["url"].(string); !strings.HasSuffix(url, "/page.html") {
			b.faults = append(b.faults, "request: "+url)
		}
	}
	return m
}

// open shows a page of a size, in light or dark.
func (b *browser) open(page []byte, width, height int, scheme string) {
	b.t.Helper()
	file := filepath.Join(b.t.TempDir(), "page.html")
	if err := os.WriteFile(file, page, 0o600); err != nil {
		b.t.Fatal(err)
	}
	b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false}, nil)
	b.call("Emulation.setEmulatedMedia", map[string]any{"features": []any{map[string]any{"name": "prefers-color-scheme", "value": scheme}}}, nil)
	b.loaded = false
	b.call("Page.navigate", map[string]any{"url": "file://" + filepath.ToSlash(file)}, nil)
	for !b.loaded {
		b.receive()
	}
	b.settle()
}

// settle waits until the page has drawn everything that it has requested.
func (b *browser) settle() {
	b.t.Helper()
	b.eval(`new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))`, nil)
}

// eval evaluates an expression in the page; its value is read into result.
func (b *browser) eval(expression string, result any) {
	b.t.Helper()
	var reply struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails json.RawMessage
	}
	b.call("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true, "awaitPromise": true}, &reply)
	if reply.ExceptionDetails != nil {
		b.t.Fatalf("%s: %s", expression, reply.ExceptionDetails)
	}
	if result == nil {
		return
	}
	if err := json.Unmarshal(reply.Result.Value, result); err != nil {
		b.t.Fatalf("%s: %v in %s", expression, err, reply.Result.Value)
	}
}

// click presses and releases the mouse at a point of the page, which is
// scrolled there first.
func (b *browser) click(x, y float64) {
	b.t.Helper()
	for _, what := range []string{"mouseMoved", "mousePressed", "mouseReleased"} {
		b.mouse(what, x, y)
	}
	b.settle()
}

func (b *browser) mouse(what string, x, y float64) {
	b.t.Helper()
	event := map[string]any{"type": what, "x": x, "y": y}
	if what != "mouseMoved" {
		event["button"], event["clickCount"] = "left", 1
	}
	b.call("Input.dispatchMouseEvent", event, nil)
}

// center scrolls to an element and returns its middle.
func (b *browser) center(selector string) (x, y float64) {
	b.t.Helper()
	var at []float64
	b.eval(fmt.Sprintf(`(() => { const e = document.querySelector(%q); e.scrollIntoView({block: "center"}); const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2] })()`, selector), &at)
	return at[0], at[1]
}

// press types a key.
func (b *browser) press(key, text string) {
	b.t.Helper()
	b.call("Input.dispatchKeyEvent", map[string]any{"type": "keyDown", "key": key, "text": text}, nil)
	b.call("Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": key}, nil)
	b.settle()
}

// picture returns a screenshot of the whole page or of the part in view.
func (b *browser) picture(whole bool) []byte {
	b.t.Helper()
	var reply struct{ Data string }
	b.call("Page.captureScreenshot", map[string]any{"format": "png", "captureBeyondViewport": whole}, &reply)
	png, err := base64.StdEncoding.DecodeString(reply.Data)
	if err != nil {
		b.t.Fatal(err)
	}
	return png
}
