package auth_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/config"
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
