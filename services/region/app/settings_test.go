package app

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lectern-dev/lectern/shared/service"
)

// TestSettingsAreReportedAtOnce checks that a service names all settings that are missing for its command, and all that
// are wrong, before it opens anything.
func TestSettingsAreReportedAtOnce(t *testing.T) {
	for name, value := range map[string]string{
		"DATABASE_URL": "", "AUTH_DATABASE_URL": "", "MIGRATE_DATABASE_URL": "", "AUTH_ADMIN_DATABASE_URL": "postgres://u:secret@h:port/db",
		"ADMIN_API_KEYS": "secret", "REGION_CACHE_TTL": "2h", "DRAIN_DELAY": "-1s",
	} {
		t.Setenv(name, value)
	}
	url := "allowed: postgres://user:password@host:port/database?sslmode=…"
	wrong := []string{
		`DRAIN_DELAY is "-1s"; allowed: 0s or more`,
		"AUTH_ADMIN_DATABASE_URL cannot be read; " + url,
		`ADMIN_API_KEYS is wrong: entry 1 has no "="; allowed: name=key, comma-separated, the name of 1 to 64 letters, digits and . _ @ -, ` +
			"the key of 16 to 256 visible ASCII characters, each key once",
		`REGION_CACHE_TTL is "2h0m0s"; allowed: a duration from 10ms to 1h`,
	}
	for command, missing := range map[string][]string{
		"serve":   {"DATABASE_URL is not set, and is required; " + url, "AUTH_DATABASE_URL is not set, and is required; " + url},
		"migrate": {"MIGRATE_DATABASE_URL is not set, and is required; " + url},
	} {
		t.Run(command, func(t *testing.T) {
			var out strings.Builder
			code := service.Main("region", []string{command}, &out, service.NewCommand("serve", Run), service.NewCommand("migrate", Migrate))
			if code != 2 {
				t.Errorf("exit code %d", code)
			}
			want := "region: the configuration is not valid:\n  " + strings.Join(append(wrong[:len(wrong):len(wrong)], missing...), "\n  ") + "\n"
			if diff := cmp.Diff(want, out.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}
