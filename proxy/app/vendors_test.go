package app_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strconv"
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

// credentialed reports whether a request has the value in the header of its vendor.
func credentialed(r *http.Request) bool {
	user, password, _ := r.BasicAuth()
	scheme, value, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return (scheme == "Bearer" || scheme == "token") && value == canary || r.Header.Get("X-Api-Key") == canary ||
		r.Header.Get("X-Goog-Api-Key") == canary || password == canary && strings.HasPrefix(user, "AC")
}

func (v *vendors) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	vendor, _, _ := strings.Cut(r.URL.Path[1:], "/")
	if r.Header.Get("X-Proxy-Api-Key") != "" {
		v.fault("%s %s has the key of the proxy", r.Method, r.URL)
	}
	if !credentialed(r) && vendor != "slack-upload" && !strings.HasPrefix(r.URL.Path, "/github/codeload/") {
		v.fault("%s %s has no credential: %v", r.Method, r.URL, r.Header)
	}
	w.Header().Set("Content-Type", "application/json")
	answer := func(status int, format string, args ...any) {
		w.WriteHeader(status)
		fmt.Fprintf(w, format, args...)
	}
	switch vendor {
	case "github":
		v.github(w, answer, r)
		return
	case "open", "google":
		answer(200, `{"path":%q}`, r.URL.EscapedPath())
		return
	case "slack", "slack-upload":
		v.slack(answer, r)
		return
	case "gemini", "gemini-upload":
		v.gemini(w, answer, r)
		return
	case "supabase":
		v.supabase(answer, r)
		return
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

// github answers with one of three pages of issues, takes a file, or redirects to an archive at another host.
func (v *vendors) github(w http.ResponseWriter, answer func(int, string, ...any), r *http.Request) {
	page, _ := strconv.Atoi(cmp.Or(r.URL.Query().Get("page"), "1"))
	switch {
	case strings.HasPrefix(r.URL.Path, "/github/codeload/"):
		answer(200, "[]")
	case strings.HasSuffix(r.URL.Path, "/assets"):
		answer(201, `{"id":4}`)
	case strings.HasSuffix(r.URL.Path, "/zipball/main"):
		w.Header().Set("Location", "https://codeload.github.com/codeload/zip")
		answer(302, "")
	case page < 3:
		w.Header().Set("Link", fmt.Sprintf(`<https://%s/github/repositories/1/issues?page=%d>; rel="next", <https://%[1]s/github/repositories/1/issues?page=3>; rel="last"`, r.Host, page+1))
		fallthrough
	default:
		answer(200, `[{"id":%d}]`, page)
	}
}

// slack takes a message, and a file in three steps.
func (v *vendors) slack(answer func(int, string, ...any), r *http.Request) {
	if strings.HasPrefix(r.URL.Path, "/slack-upload/") {
		if content, err := io.ReadAll(r.Body); err != nil || !strings.Contains(string(content), "{{ cred_main }} is no placeholder") {
			v.fault("%s: a file of %.50q, %v", r.URL, content, err)
		}
		answer(200, "OK")
		return
	}
	if err := r.ParseForm(); err != nil {
		v.fault("%s: %v", r.URL, err)
	}
	answer(200, `{"ok":true,"message":{"text":%q},"upload_url":"https://%s/slack-upload/1","file_id":"F1","files":[{"id":"F1"}]}`, r.PostForm.Get("text"), r.Host)
}

// gemini answers in parts of a stream, or begins an upload at an address that it names in a header of its own.
func (v *vendors) gemini(w http.ResponseWriter, answer func(int, string, ...any), r *http.Request) {
	const part = `{"candidates":[{"content":{"role":"model","parts":[{"text":%q}]}}]}`
	switch {
	case strings.HasSuffix(r.URL.Path, ":generateContent"):
		answer(200, part, "hello")
	case strings.HasSuffix(r.URL.Path, ":streamGenerateContent"):
		w.Header().Set("Content-Type", "text/event-stream")
		for i, word := range []string{"one", "two"} {
			if i > 0 {
				<-v.next
			}
			fmt.Fprintf(w, "data: "+part+"\r\n\r\n", word)
			_ = http.NewResponseController(w).Flush()
		}
	case strings.HasSuffix(r.URL.Path, "/continue"):
		v.next <- struct{}{}
		answer(200, `{"name":"continue"}`)
	case strings.HasPrefix(r.URL.Path, "/gemini-upload/"):
		if n, err := io.Copy(io.Discard, r.Body); err != nil || n == 0 {
			v.fault("an upload of %d bytes, %v, %v", n, err, r.Header)
		}
		w.Header().Set("X-Goog-Upload-Status", "final")
		answer(200, `{"file":{"name":"files/1"}}`)
	default:
		w.Header().Set("X-Goog-Upload-Url", "https://"+r.Host+"/gemini-upload/1")
		answer(200, `{}`)
	}
}

// supabase answers with rows and stores objects.
func (v *vendors) supabase(answer func(int, string, ...any), r *http.Request) {
	if r.Header.Get("Apikey") != canary {
		v.fault("%s has no key: %v", r.URL, r.Header)
	}
	content, err := io.ReadAll(r.Body)
	switch {
	case err != nil:
		v.fault("%s: %v", r.URL, err)
	case strings.HasPrefix(r.URL.Path, "/supabase/storage/"):
		answer(200, `{"Id":"1","Key":"files/a.bin","bytes":%d}`, len(content))
	case r.Method == http.MethodPost:
		answer(201, "[%s]", content)
	default:
		answer(200, `[{"id":1,"query":%q}]`, r.URL.RawQuery)
	}
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
	var warnings strings.Builder // of libraries that want a newer Node.js
	cmd.Stderr = &warnings
	out, err := cmd.Output()
	if err != nil || string(out) != "testOpenAI\ntestAnthropic\ntestStripe\ntestTwilio\ntestOctokit\ntestSlack\ntestGemini\ntestSupabase\ntestOthers\n" || len(v.faults) > 0 {
		t.Fatalf("%v after %s: %s\n%s\n%s", err, time.Since(began), out, &warnings, strings.Join(v.faults, "\n"))
	}
	eventually.True(t, "the proxy to cancel the requests of clients that timed out", func() bool { return v.slow.Load() == 0 })
}
