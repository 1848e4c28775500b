package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lectern-dev/lectern/shared/config"
)

type servers struct {
	Database config.ServerURL   `env:"DATABASE_URL"`
	Standbys []config.ServerURL `env:"READ_DATABASE_URL"`
	Redis    config.ServerURL   `env:"REDIS_URL"`
}

func TestPasswordFileFaults(t *testing.T) {
	folder := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	full, empty := file("full", canary), file("empty", "\n")
	const both = "DATABASE_URL has a password, and DATABASE_PASSWORD_FILE is set; allowed: one of them"
	for _, tc := range []struct {
		name string
		in   map[string]string
		want string // "": it is valid
	}{
		{"no such file", map[string]string{"DATABASE_URL": "postgres://u@h/db", "DATABASE_PASSWORD_FILE": folder + "/none"},
			"DATABASE_PASSWORD_FILE names a file that cannot be read: open " + folder + "/none"},
		{"empty file", map[string]string{"DATABASE_URL": "postgres://u@h/db", "DATABASE_PASSWORD_FILE": empty},
			"DATABASE_PASSWORD_FILE names a file that is empty: " + empty},
		{"both", map[string]string{"DATABASE_URL": "postgres://u:" + canary + "@h/db", "DATABASE_PASSWORD_FILE": full}, both},
		{"several hosts", map[string]string{"DATABASE_URL": "postgres://u:" + canary + "@a:1,b:2/db", "DATABASE_PASSWORD_FILE": full}, both},
		{"as an option", map[string]string{"DATABASE_URL": "postgres:///db?user=u&password=" + canary, "DATABASE_PASSWORD_FILE": full}, both},
		{"in key=value pairs", map[string]string{"DATABASE_URL": "host=h password=" + canary, "DATABASE_PASSWORD_FILE": full}, both},
		{"one of a list", map[string]string{"READ_DATABASE_URL": "postgres://u@a/db,postgres://u:" + canary + "@b/db", "READ_DATABASE_PASSWORD_FILE": full},
			"READ_DATABASE_URL has a password, and READ_DATABASE_PASSWORD_FILE is set; allowed: one of them"},
		{"of Redis", map[string]string{"REDIS_URL": "redis://:" + canary + "@h", "REDIS_PASSWORD_FILE": full},
			"REDIS_URL has a password, and REDIS_PASSWORD_FILE is set; allowed: one of them"},
		{"of Redis, behind Sentinels", map[string]string{"REDIS_URL": "redis+sentinel://h?master_name=m&password=" + canary, "REDIS_PASSWORD_FILE": full},
			"REDIS_URL has a password, and REDIS_PASSWORD_FILE is set; allowed: one of them"},
		{"of Sentinels", map[string]string{"REDIS_URL": "redis://:sentinels@h?master_name=m&username=u", "REDIS_PASSWORD_FILE": full}, ""},
		{"a user alone", map[string]string{"REDIS_URL": "redis://u:@h/0", "REDIS_PASSWORD_FILE": full}, ""},
		{"no user", map[string]string{"DATABASE_URL": "host=h user=u", "DATABASE_PASSWORD_FILE": full}, ""},
		{"of no URL", map[string]string{"REDIS_PASSWORD_FILE": folder + "/none"}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var s servers
			err := config.Load(&s, tc.in)
			if tc.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), canary) {
				t.Errorf("Load: %v, want %q", err, tc.want)
			}
		})
	}
}
