package auth_test

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/http/httpapi"
)

func TestParseAdminKeys(t *testing.T) {
	const canary = "canary-of-one-key"
	for _, tt := range []struct {
		name, in string
		want     string // in the error; empty: none
	}{
		{"none", "", ""},
		{"one", "alice=" + canary, ""},
		{"two of one name", "alice=" + canary + ",alice=" + canary + "2", ""},
		{"a key with =", "alice=" + canary + "==", ""},
		{"all that a name may have", "a.B_9@x-y=" + canary, ""},
		{"no name", canary, `entry 1 has no "="`},
		{"an empty name", "=" + canary, "entry 1 has a name that is not allowed"},
		{"a name with a space", "al ice=" + canary, "entry 1 has a name that is not allowed"},
		{"a long name", strings.Repeat("a", 65) + "=" + canary, "entry 1 has a name that is not allowed"},
		{"an empty key", "alice=", "entry 1 has a key of 0 bytes"},
		{"a short key", "alice=" + canary[:15], "entry 1 has a key of 15 bytes"},
		{"a key with a space", "alice=" + canary + " x", "entry 1 has a key of 19 bytes"},
		{"a long key", "alice=" + canary + strings.Repeat("x", 512), "entry 1 has a key of 529 bytes"},
		{"a key of two", "alice=" + canary + ",bob=" + canary, "entry 2 has a key that stands before it"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var entries []config.Secret
			for entry := range strings.SplitSeq(tt.in, ",") {
				if entry != "" {
					entries = append(entries, config.NewSecret(entry))
				}
			}
			_, err := auth.ParseAdminKeys(entries)
			if tt.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			fault, ok := errors.AsType[*config.Fault](err)
			if !ok || fault.Variable != "ADMIN_API_KEYS" || !strings.Contains(fault.Problem, tt.want) || !strings.Contains(fault.Problem, "allowed: name=key") {
				t.Errorf("%v; want %q and what is allowed", err, tt.want)
			}
			if strings.Contains(err.Error(), canary[:15]) {
				t.Errorf("the error shows the key: %v", err)
			}
		})
	}
}

// TestPanicOfAnAct checks that the audit log has an act whose handler panics.
func TestPanicOfAnAct(t *testing.T) {
	const key = "an-admin-key-0123456789"
	keys, err := auth.ParseAdminKeys([]config.Secret{config.NewSecret("ada=" + key)})
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	ctx := httpapi.WithInfo(t.Context(), &httpapi.Info{ProjectID: "pr_1", Logger: slog.New(slog.NewJSONHandler(&log, nil))})
	r := httptest.NewRequestWithContext(ctx, http.MethodDelete, "/", nil)
	r.Header.Set(auth.KeyHeader, key)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic does not reach the server")
			}
		}()
		_ = keys.Protect("erase", func(_ http.ResponseWriter, _ *http.Request, act *auth.Act) error {
			act.KeyID = "key_1"
			panic("in the middle")
		})(httptest.NewRecorder(), r)
	}()
	for _, want := range []string{`"msg":"audit"`, `"actor":"ada"`, `"action":"erase"`, `"project":"pr_1"`, `"outcome":"internal"`, `"key_id":"key_1"`} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %s: %s", want, &log)
		}
	}
}
