package client

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// TestRotatedKey checks when a request is repeated after a 401: once, and only with a key that has changed.
func TestRotatedKey(t *testing.T) {
	for _, tt := range []struct {
		name string
		keys []string // that the function returns, the last one again and again
		sent []string
		ok   bool
	}{
		{"rotated in between", []string{"old", "new"}, []string{"old", "new"}, true},
		{"the same key", []string{"old"}, []string{"old"}, false},
		{"repeated once", []string{"old", "older", "new"}, []string{"old", "older"}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var sent []string
			asked := 0
			c, waits := serve(t, func(w http.ResponseWriter, r *http.Request) {
				sent = append(sent, r.Header.Get("X-Api-Key"))
				if r.Header.Get("X-Api-Key") != "new" {
					w.WriteHeader(http.StatusUnauthorized)
					_, _ = io.WriteString(w, `{"error":{"code":"unauthorized","message":"No."}}`)
					return
				}
				_, _ = io.WriteString(w, "{}")
			}, WithAPIKeyFunc(func(context.Context) (string, error) {
				asked++
				return tt.keys[min(asked, len(tt.keys))-1], nil
			}))
			_, err := c.Entry(t.Context(), "p", "e")
			if (err == nil) != tt.ok || err != nil && Code(err) != CodeUnauthorized {
				t.Errorf("got %v", err)
			}
			if strings.Join(sent, " ") != strings.Join(tt.sent, " ") || len(*waits) != 0 {
				t.Errorf("sent %q with waits %v, want %q", sent, *waits, tt.sent)
			}
		})
	}
}

// TestKeyFile checks that a file that is missing or empty for a moment ends no request. White space around the key does
// not matter.
func TestKeyFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "api-key")
	attempts := 0
	write := []string{"", "\n", " rk_1\n"} // after each failure
	c, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("X-Api-Key"); got != "rk_1" {
			t.Errorf("sent %q", got)
		}
		_, _ = io.WriteString(w, "{}")
	}, WithAPIKeyFile(file), WithRetry(Retry{Notify: func(error, time.Duration) {
		if err := os.WriteFile(file, []byte(write[attempts]), 0o600); err != nil {
			t.Error(err)
		}
		attempts++
	}}))
	if _, err := c.Entry(t.Context(), "p", "e"); err != nil || attempts != 3 {
		t.Errorf("%v after %d failures", err, attempts)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	c.retry = Retry{Attempts: 1}
	if _, err := c.Entry(t.Context(), "p", "e"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without a file: %v", err)
	}
}

// TestCredentials checks which header carries the value of each option, and that the request after a change of a file
// carries the new value.
func TestCredentials(t *testing.T) {
	file := filepath.Join(t.TempDir(), "credential")
	value := func(context.Context) (string, error) { return readValue(file) }
	for _, tt := range []struct {
		name    string
		options []Option
		want    func(value string) http.Header
		refused string
	}{
		{"no option", nil, func(string) http.Header { return http.Header{} }, ""},
		{"key file", []Option{WithAPIKeyFile(file)}, func(v string) http.Header { return http.Header{"X-Api-Key": {v}} }, ""},
		{"token file", []Option{WithTokenFile(file)}, func(v string) http.Header { return http.Header{"Authorization": {"Bearer " + v}} }, ""},
		{"token function", []Option{WithTokenFunc(value)}, func(v string) http.Header { return http.Header{"Authorization": {"Bearer " + v}} }, ""},
		{"both", []Option{WithTokenFile(file), WithAPIKey("rk_1")}, nil, "(WithAPIKey, WithAPIKeyFile, WithAPIKeyFunc) and one for the token (WithTokenFile, WithTokenFunc) were both given"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var sent http.Header
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				sent = http.Header{}
				for _, name := range []string{"Authorization", "X-Api-Key"} {
					if values := r.Header.Values(name); values != nil {
						sent[name] = values
					}
				}
				switch r.URL.String() {
				case "/me/projects":
					w.Header().Set("X-Next-Cursor", "second")
					_, _ = io.WriteString(w, `[{"projectId":"pr_1","title":"Shop","scopes":["entries:read"]}]`)
				case "/me/projects?cursor=second":
					_, _ = io.WriteString(w, `[{"projectId":"pr_2","title":null,"scopes":[]}]`)
				default:
					t.Errorf("asked for %s", r.URL)
				}
			}))
			defer server.Close()
			c, err := New(server.URL, tt.options...)
			if tt.refused != "" {
				if err == nil || !strings.Contains(err.Error(), tt.refused) {
					t.Errorf("got %v, want %q", err, tt.refused)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, value := range []string{"first", "second"} {
				if err := os.WriteFile(file, []byte(value+"\n"), 0o600); err != nil {
					t.Fatal(err)
				}
				projects, err := c.Projects(t.Context())
				if want := []ProjectAccess{{"pr_1", "Shop", []string{"entries:read"}}, {"pr_2", "", []string{}}}; err != nil || !reflect.DeepEqual(projects, want) {
					t.Errorf("%+v, %v", projects, err)
				}
				if want := tt.want(value); !reflect.DeepEqual(sent, want) {
					t.Errorf("sent %v, want %v", sent, want)
				}
			}
		})
	}
}

// TestBadKeyIsNotShown checks that a key that cannot be sent is an error at once, which does not contain it.
func TestBadKeyIsNotShown(t *testing.T) {
	c, _ := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("a request was sent") }, WithAPIKey("rk_\nsecret"))
	if _, err := c.Entry(t.Context(), "p", "e"); err == nil || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "attempts") {
		t.Errorf("got %v, want an error at once", err)
	}
}

// TestFromSecret checks the client of a mounted Secret, and the errors of one that lacks a value.
func TestFromSecret(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"url", "project-id", "api-key"} {
		if _, _, err := FromSecret(dir); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), name) {
			t.Errorf("without %s: %v", name, err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte("https://of-"+name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, project, err := FromSecret(dir)
	if err != nil || project != "https://of-project-id" || c.base != "https://of-url" {
		t.Errorf("%+v, %q, %v", c, project, err)
	}
	if key, err := c.credential.read(t.Context()); err != nil || key != "https://of-api-key" {
		t.Errorf("%q, %v", key, err)
	}
}
