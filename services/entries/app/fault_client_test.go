package app

import (
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lectern-dev/lectern/shared/testing/eventually"
	"github.com/lectern-dev/lectern/shared/testing/faulttest"
	"github.com/lectern-dev/lectern/shared/testing/needs"
	"github.com/lectern-dev/lectern/shared/testing/servicetest"
)

func dialOnce(url string) (net.Conn, error) {
	return net.DialTimeout("tcp", strings.TrimPrefix(url, "http://"), time.Second)
}

// TestLongHostileClients checks that clients that hold connections without using them are disconnected in time, and
// that other clients are not affected.
func TestLongHostileClients(t *testing.T) {
	needs.Long(t)
	p, key := process(t, map[string]string{"IDLE_TIMEOUT": "2s", "WRITE_TIMEOUT": "1s", "READ_TIMEOUT": "1s"})
	get := "GET /projects/pr_1/entries HTTP/1.1\r\nHost: x\r\nX-Api-Key: " + key + "\r\n"
	for _, tt := range []struct {
		name  string
		conns int
		begin func(*faulttest.Raw)
		drip  string // sent every 50 ms
		reads bool   // the client reads slowly instead of sending
	}{
		{"slowloris", 200, func(c *faulttest.Raw) { c.Say(get) }, "X-A: b\r\n", false},
		{"slow request line", 200, func(c *faulttest.Raw) { c.Say("G") }, "E", false},
		{"idle from the start", 300, func(*faulttest.Raw) {}, "", false},
		{"idle after a request", 300, func(c *faulttest.Raw) {
			c.Say(get + "\r\n")
			if status, _, _, err := c.Answer("GET"); err != nil || status != 200 {
				t.Errorf("%d, %v", status, err)
			}
		}, "", false},
		// Half of the lists that a project may hold at once: the other clients read the same project.
		{"a byte a second", 4, func(c *faulttest.Raw) {
			_ = c.SetReadBuffer(4 << 10)
			c.Say(strings.Replace(get, "entries", "entries?limit=20000", 1) + "\r\n")
		}, "", true},
		{"a body that does not come", 50, func(c *faulttest.Raw) { c.Say(get + "Content-Length: 1000\r\n\r\nx") }, "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			load := faulttest.Start(t, p.URL, faulttest.LoadOptions{Key: key, Paths: underLoad, Clients: 2})
			aborted := strings.Count(p.Log(), `"aborted":true`)
			begin := time.Now()
			var ending sync.WaitGroup
			for range tt.conns {
				c := faulttest.Dial(t, p.URL)
				tt.begin(c)
				if !tt.reads {
					ending.Go(func() { awaitDisconnect(t, c, tt.drip) })
				}
			}
			if tt.reads { // these clients see the end only after they have read the data in their buffers
				eventually.True(t, "their answers are ended", func() bool {
					return strings.Count(p.Log(), `"aborted":true`) >= aborted+tt.conns
				})
			} else {
				ending.Wait()
			}
			load.Await(20)
			report := load.Stop()
			report.Check(t, tt.name)
			t.Logf("%d connections were ended within %v", tt.conns, time.Since(begin))
			if report.Broken > 0 || report.Refused > 0 {
				t.Errorf("others noticed: %v", report)
			}
		})
	}
	now, peak := p.Memory(t)
	t.Logf("memory %d MiB, at its peak %d MiB", now>>20, peak>>20)
	if peak > 128<<20 {
		t.Errorf("peak memory %d MiB", peak>>20)
	}
}

// awaitDisconnect sends drip every 50 ms until the service closes the connection, which it must do within 20 s.
func awaitDisconnect(t *testing.T, c *faulttest.Raw, drip string) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	gone := make(chan bool, 1)
	go func() {
		for {
			if _, _, _, err := c.Answer("GET"); err != nil {
				gone <- c.Ended()
				return
			}
		}
	}()
	for {
		select {
		case ended := <-gone:
			if !ended {
				t.Error("the connection is still there")
			}
			return
		case <-tick.C:
			if drip != "" {
				c.Say(drip)
			}
		}
	}
}

// TestMalformedBodies checks that no part of a malformed body is treated as a request. Ingest reads its body, the other
// operations do not.
func TestMalformedBodies(t *testing.T) {
	t.Parallel()
	s, project, key := shared(t)
	for _, tt := range []struct{ name, url, head string }{
		{"a list", s.URL, "GET /projects/" + project + "/entries HTTP/1.1\r\nHost: x\r\nX-Api-Key: " + key},
		{"a list without a key", s.URL, "GET /projects/" + project + "/entries HTTP/1.1\r\nHost: x"},
		{"ingest", s.InternalURL, "POST /internal/entries HTTP/1.1\r\nHost: x\r\nX-Api-Key: " + servicetest.IngestKey},
		{"ingest without a key", s.InternalURL, "POST /internal/entries HTTP/1.1\r\nHost: x"},
		{"ingest of another type", s.InternalURL, "POST /internal/entries HTTP/1.1\r\nHost: x\r\nContent-Type: image/png\r\nX-Api-Key: " + servicetest.IngestKey},
	} {
		t.Run(tt.name, func(t *testing.T) { faulttest.MalformedChunks(t, tt.url, tt.head) })
	}
}

// TestOddRequests checks that improper requests are refused and proper ones are answered. Nothing after them on the
// connection is treated as another request.
func TestOddRequests(t *testing.T) {
	t.Parallel()
	s, project, key := shared(t)
	fill(t, s, project, 20)
	line := "GET /projects/" + project + "/entries?limit=1 HTTP/1.1\r\n"
	auth := "X-Api-Key: " + key + "\r\n"
	good := line + "Host: x\r\n" + auth
	last := good + "Connection: close\r\n"
	// A smuggled request would be answered 404 route_not_found.
	const smuggled = "GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"
	for _, tt := range []struct {
		name, say string
		want      []int // statuses of the answers, in order; the connection may end after them
	}{
		{"plain", last + "\r\n", []int{200}},
		{"ten in a row", strings.Repeat(good+"\r\n", 9) + last + "\r\n", []int{200, 200, 200, 200, 200, 200, 200, 200, 200, 200}},
		{"pipelined with another", good + "\r\n" + smuggled + last + "\r\n", []int{200, 404, 200}},
		{"a body on GET", good + "Content-Length: 5\r\n\r\nhello" + last + "\r\n", []int{200}},
		{"a chunked body on GET", good + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n" + smuggled, []int{200}},
		{"a request as body", good + fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(smuggled), smuggled) + last + "\r\n", []int{200}},
		{"huge headers", good + "X-Huge: " + strings.Repeat("x", 1<<20) + "\r\n\r\n", []int{431}},
		{"many headers", good + strings.Repeat("X-A: b\r\n", 20_000) + "\r\n", []int{431}},
		{"10,000 parameters", "GET /projects/" + project + "/entries?" + strings.Repeat("a=&", 10_000) + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + auth + "\r\n", []int{400}},
		{"10,000 long parameters", "GET /projects/" + project + "/entries?" + strings.Repeat("parameter=value&", 10_000) + " HTTP/1.1\r\nHost: x\r\n" + auth + "\r\n", []int{431}},
		{"a long path", "GET /projects/" + strings.Repeat("p", 20_000) + "/entries HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + auth + "\r\n", []int{401}},

		// net/http accepts these, as RFC 9112 allows (sections 2.2, 5.2 and 6.1).
		{"Content-Length and Transfer-Encoding", good + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + smuggled, []int{200}},
		{"a folded header", last + "X-Folded: a\r\n b\r\n\r\n", []int{200}},
		{"a folded coding", good + "Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n" + smuggled, []int{200}},
		{"a bare line feed", line + "Host: x\nConnection: close\r\n" + auth + "\r\n", []int{200}},

		{"no Host", line + auth + "\r\n", []int{400}},
		{"two Hosts", good + "Host: y\r\n\r\n", []int{400}},
		{"an impossible Host", line + "Host: a b\r\n" + auth + "\r\n", []int{400}},
		{"two lengths", good + "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello" + smuggled, []int{400}},
		{"a list of lengths", good + "Content-Length: 5, 6\r\n\r\nhello" + smuggled, []int{400}},
		{"a negative length", good + "Content-Length: -1\r\n\r\n" + smuggled, []int{400}},
		{"a length with a sign", good + "Content-Length: +5\r\n\r\nhello" + smuggled, []int{400}},
		{"a hexadecimal length", good + "Content-Length: 0x5\r\n\r\nhello" + smuggled, []int{400}},
		{"another coding", good + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n" + smuggled, []int{501}},
		{"a coding misspelt", good + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + smuggled, []int{501}},
		{"two codings", good + "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n" + smuggled, []int{501}},
		{"space before the colon", good + "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n" + smuggled, []int{400}},
		{"a bad chunk", good + "Transfer-Encoding: chunked\r\n\r\nzz\r\n" + smuggled, []int{200}},
		{"NUL in a header", good + "X-A: a\x00b\r\n\r\n", []int{400}},
		{"a header without a name", good + ": b\r\n\r\n", []int{400}},
		{"a bare carriage return", good + "X-A: a\rX-B: b\r\n\r\n", []int{400}},
		{"another version", strings.Replace(good, "HTTP/1.1", "HTTP/3.0", 1) + "\r\n", []int{505}},
		{"no version", "GET /projects/" + project + "/entries\r\n\r\n", []int{400}},
		{"no HTTP", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", nil},
		{"a space in the path", strings.Replace(good, "entries?", "entr ies?", 1) + "\r\n", []int{400}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := faulttest.Dial(t, s.URL)
			said := make(chan struct{})
			go func() { defer close(said); c.Say(tt.say) }()
			var got []int
			for {
				status, header, body, err := c.Answer("GET")
				if err != nil {
					break
				}
				got = append(got, status)
				if status >= 500 && status != 501 && status != 505 {
					t.Errorf("%d %s", status, body)
				}
				if strings.Contains(header.Get("Content-Type"), "html") {
					t.Errorf("%d in HTML", status)
				}
			}
			<-said
			if fmt.Sprint(got) != fmt.Sprint(tt.want) {
				t.Errorf("answers %v, want %v", got, tt.want)
			}
		})
	}
	if a := s.Get(t, key, "/projects/"+project+"/entries"); a.Status != 200 {
		t.Errorf("afterwards: %d", a.Status)
	}
	checkHealth(t, s, "afterwards")
}
