package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lectern-dev/lectern/shared/testing/eventually"
	"github.com/lectern-dev/lectern/shared/testing/needs"
)

// vendors is a target in place of the APIs of vendors. Each has paths of its own, and all share the records
// "again" (fails once), "slow" (answers nothing), "none", and "continue" (continues a stream).
type vendors struct {
	mu     sync.Mutex
	failed map[string]bool // by path, what failed once
	next   chan struct{}   // one value continues one stream
	slow   atomic.Int64    // requests for "slow" in flight
	faults []string
}

func (v *vendors) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	user, password, _ := r.BasicAuth()
	if r.Header.Get("Authorization") != "Bearer "+canary && r.Header.Get("X-Api-Key") != canary && (password != canary || !strings.HasPrefix(user, "AC")) {
		v.fault("%s %s has no credential: %v", r.Method, r.URL, r.Header)
	}
	w.Header().Set("Content-Type", "application/json")
	answer := func(status int, format string, args ...any) {
		w.WriteHeader(status)
		fmt.Fprintf(w, format, args...)
	}
	path := strings.TrimSuffix(r.URL.Path, ".json")
	_, id, _ := strings.Cut(path[1:], "/")
	id = id[strings.LastIndexByte(id, '/')+1:]
	switch {
	case strings.HasSuffix(r.URL.EscapedPath(), "/models/again%2Fa%20b"):
		id = "again/a b"
		fallthrough
	case id == "again":
		v.mu.Lock()
		again := v.failed[r.URL.Path]
		v.failed[r.URL.Path] = true
		v.mu.Unlock()
		if !again {
			w.Header().Set("Retry-After-Ms", "1")
			w.Header().Set("Stripe-Should-Retry", "true")
			answer(http.StatusTooManyRequests, `{"error":{"message":"again","type":"rate_limit_error"}}`)
			return
		}
		answer(200, `{"id":%q,"body":"again"}`, id)
	case id == "slow":
		v.slow.Add(1)
		<-r.Context().Done()
		v.slow.Add(-1)
	case id == "none":
		answer(404, `{"error":{"message":"none","type":"invalid_request_error"}}`)
	case id == "continue":
		v.next <- struct{}{}
		answer(200, `{"id":"continue"}`)
	case id == "files":
		v.upload(answer, r)
	case strings.HasSuffix(path, "/pdf"):
		w.Header().Set("Content-Type", "application/pdf")
		answer(200, "%%PDF")
	case r.Method == http.MethodPost && r.Header.Get("Content-Type") == "application/json":
		v.chat(w, answer, r)
	case r.Method == http.MethodPost:
		if err := r.ParseForm(); err != nil {
			v.fault("%s: %v", path, err)
		}
		answer(200, `{"id":"1","name":%q,"body":%q}`, r.PostForm.Get("name"), r.PostForm.Get("Body"))
	case r.URL.Query().Get("Page") == "": // of Twilio's messages
		answer(200, `{"messages":[{"body":"one"}],"next_page_uri":"%s.json?Page=1"}`, path)
	default:
		answer(200, `{"messages":[{"body":"two"}]}`)
	}
}

func (v *vendors) fault(format string, args ...any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.faults = append(v.faults, fmt.Sprintf(format, args...))
}

// upload answers with the length of the file.
func (v *vendors) upload(answer func(int, string, ...any), r *http.Request) {
	file, _, err := r.FormFile("file")
	if err != nil {
		v.fault("%s: %v", r.URL, err)
		return
	}
	defer file.Close()
	content, err := io.ReadAll(file)
	if err != nil || !strings.HasPrefix(string(content), "{{ cred_main }} is no placeholder") {
		v.fault("%s: a file of %.50q, %v", r.URL, content, err)
	}
	answer(200, `{"id":"1","bytes":%d}`, len(content))
}

// chat answers with the last message, or streams two words in the forms of both vendors.
func (v *vendors) chat(w http.ResponseWriter, answer func(int, string, ...any), r *http.Request) {
	var in struct {
		Stream   bool
		Messages []struct{ Content string }
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil || len(in.Messages) != 1 {
		v.fault("%s: %v", r.URL, err)
		return
	}
	if !in.Stream {
		said := in.Messages[0].Content
		answer(200, `{"choices":[{"message":{"content":%q}}],"content":[{"type":"text","text":%q}]}`, said, said)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for i, word := range []string{"one", "two"} {
		if i > 0 {
			<-v.next // the client has got the event before
		}
		fmt.Fprintf(w, "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":%q,\"content\":%q},\"choices\":[{\"delta\":{\"content\":%q}}]}\n\n", word, word, word)
		_ = http.NewResponseController(w).Flush()
	}
	if strings.HasPrefix(r.URL.Path, "/openai/") {
		fmt.Fprint(w, "data: [DONE]\n\n")
	}
}

// TestLongVendors calls the proxy with unmodified client libraries: answers, streams, uploads, retries and time-outs.
func TestLongVendors(t *testing.T) {
	needs.Long(t)
	needs.Node(t)
	v := &vendors{failed: map[string]bool{}, next: make(chan struct{})}
	w := run(t, setup{open: true, handler: v})
	ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
	defer cancel()
	if out, err := exec.CommandContext(ctx, "../../scripts/npm-ci", "testdata/vendors").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	cmd := exec.CommandContext(ctx, "node", "call.js")
	cmd.Dir = "testdata/vendors"
	cmd.Env = append(os.Environ(), "PROXY="+w.base, "TARGET=api.lectern.test:"+w.target.port, "ORIGIN="+origin)
	began := time.Now()
	out, err := cmd.CombinedOutput()
	if err != nil || string(out) != "testOpenAI\ntestAnthropic\ntestStripe\ntestTwilio\n" || len(v.faults) > 0 {
		t.Fatalf("%v after %s: %s\n%s", err, time.Since(began), out, strings.Join(v.faults, "\n"))
	}
	eventually.True(t, "the proxy to cancel the requests of clients that timed out", func() bool { return v.slow.Load() == 0 })
}
