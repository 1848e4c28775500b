package auth_test

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/httpapi"
)

func TestSharedKeys(t *testing.T) {
	for _, tt := range []struct {
		name   string
		keys   []config.Secret
		header []string
		want   bool
	}{
		{"the only one", []config.Secret{config.NewSecret("one")}, []string{"one"}, true},
		{"the first", []config.Secret{config.NewSecret("one"), config.NewSecret("two")}, []string{"one"}, true},
		{"the last", []config.Secret{config.NewSecret("one"), config.NewSecret("two")}, []string{"two"}, true},
		{"the same twice", []config.Secret{config.NewSecret("one"), config.NewSecret("one")}, []string{"one"}, true},
		{"wrong", []config.Secret{config.NewSecret("one")}, []string{"two"}, false},
		{"a prefix", []config.Secret{config.NewSecret("one")}, []string{"on"}, false},
		{"missing", []config.Secret{config.NewSecret("one")}, nil, false},
		{"sent twice", []config.Secret{config.NewSecret("one")}, []string{"one", "one"}, false},
		{"none configured", nil, []string{"one"}, false},
		{"an empty one configured", []config.Secret{config.NewSecret("")}, []string{""}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			reached := false
			h := auth.NewSharedKeys(tt.keys).Protect(func(http.ResponseWriter, *http.Request) error {
				reached = true
				return nil
			})
			sent := &unread{}
			r := httptest.NewRequest(http.MethodPost, "/api/projects/region", sent)
			for _, v := range tt.header {
				r.Header.Add("x-api-key", v)
			}
			info := &httpapi.Info{Logger: slog.New(slog.DiscardHandler), ProjectID: "p"}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r.WithContext(httpapi.WithInfo(r.Context(), info)))
			if reached != tt.want {
				t.Fatalf("let through: %v, want %v", reached, tt.want)
			}
			if sent.read {
				t.Error("the body was read")
			}
			if !tt.want {
				if w.Code != 401 {
					t.Errorf("status %d", w.Code)
				}
				if diff := cmp.Diff(unauthorized(nil), body(t, w.Result())); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

// unread is a body that records whether it was read.
type unread struct{ read bool }

func (u *unread) Read([]byte) (int, error) {
	u.read = true
	return 0, io.EOF
}
