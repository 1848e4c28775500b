package app_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lectern-dev/lectern/shared/routes"
	"github.com/lectern-dev/lectern/shared/testing/faulttest"
)

func TestNothingIsAddedForTheProxy(t *testing.T) {
	type seen struct {
		Method, URI, Host string
		Header            http.Header
	}
	var got seen
	r := start(t, nil, func(_ routes.Service, w http.ResponseWriter, r *http.Request) {
		for _, ours := range []string{"X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "Lectern-Edge-Key"} {
			r.Header.Del(ours) // the proxy uses these itself and does not forward them
		}
		got = seen{r.Method, r.RequestURI, r.Host, r.Header}
		w.Header().Set("X-Request-Id", "of-the-proxy")
	}, routes.Proxy)
	for _, tt := range []struct {
		name, in string
		want     seen
	}{
		{
			"few headers", "DELETE /proxy?url=https%3A%2F%2Fx.example%2F%7B%7B+cred_a+}}&&b;%zz HTTP/1.1\r\nHost: Api.Example.com:81\r\n\r\n",
			seen{"DELETE", "/proxy?url=https%3A%2F%2Fx.example%2F%7B%7B+cred_a+}}&&b;%zz", "Api.Example.com:81", http.Header{}},
		},
		{
			"a target in the path", "GET /proxy/for/p/prod/to/https/x.example/a%2Fb/{{cred_a}}/\"?%zz HTTP/1.1\r\nHost: h\r\n\r\n",
			seen{"GET", "/proxy/for/p/prod/to/https/x.example/a%2Fb/{{cred_a}}/\"?%zz", "h", http.Header{}},
		},
		{
			"a preflight", "OPTIONS /proxy?url=a HTTP/1.1\r\nHost: h\r\nOrigin: https://a.example\r\nAccess-Control-Request-Method: GET\r\n\r\n",
			seen{"OPTIONS", "/proxy?url=a", "h", http.Header{"Origin": {"https://a.example"}, "Access-Control-Request-Method": {"GET"}}},
		},
		{
			"an id of the caller's", "GET /proxy?url=a HTTP/1.1\r\nHost: h\r\nX-Request-Id: a\r\nX-Request-Id: b c\r\nCookie: a=b\r\nAccept-Encoding: br\r\n\r\n",
			seen{"GET", "/proxy?url=a", "h", http.Header{"X-Request-Id": {"a", "b c"}, "Cookie": {"a=b"}, "Accept-Encoding": {"br"}}},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			conn := faulttest.Dial(t, r.url)
			conn.Say(tt.in)
			status, header, _, err := conn.Answer(http.MethodGet)
			if ids := header["X-Request-Id"]; status != 200 || len(ids) != 1 || ids[0] != "of-the-proxy" {
				t.Errorf("got %d %v, %v", status, header, err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestProxyStreamsBothWaysAtOnce exchanges lines in turns within one request. An edge that buffers a line would block
// the exchange.
func TestProxyStreamsBothWaysAtOnce(t *testing.T) {
	r := start(t, nil, func(_ routes.Service, w http.ResponseWriter, r *http.Request) {
		if err := http.NewResponseController(w).EnableFullDuplex(); err != nil {
			t.Error(err)
		}
		for body := bufio.NewReader(r.Body); ; {
			line, err := body.ReadString('\n')
			if err != nil {
				return
			}
			_, _ = io.WriteString(w, "heard "+line)
			w.(http.Flusher).Flush()
		}
	}, routes.Proxy)
	upload, speak := io.Pipe()
	defer speak.Close()
	req, err := http.NewRequest(http.MethodPost, r.url+"/proxy?url=a", upload)
	if err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.WriteString(speak, "0\n") }() // the answer begins after the proxy has read this line
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answers := bufio.NewReader(resp.Body)
	for n := range 5 {
		if line, err := answers.ReadString('\n'); err != nil || line != fmt.Sprintf("heard %d\n", n) {
			t.Fatalf("turn %d: %q, %v", n, line, err)
		}
		if _, err := fmt.Fprintf(speak, "%d\n", n+1); err != nil {
			t.Fatal(err)
		}
	}
	if err := speak.Close(); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(answers); err != nil || string(rest) != "heard 5\n" {
		t.Errorf("at the end %q, %v", rest, err)
	}
}
