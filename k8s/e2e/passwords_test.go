package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// testPasswords moves the passwords of entries, of the keys and of Redis out of the URLs and into files. Then it changes all
// passwords under load, and the Secret last. No request fails, and once Kubernetes has updated the files, pods open connections
// with the new passwords.
func (r *release) testPasswords(t *testing.T) {
	roles := []struct{ prefix, role, database string }{
		{"DATABASE", "entries_reader", "entries"}, {"INGEST_DATABASE", "entries_ingest", "entries"},
		{"REMOVE_DATABASE", "entries_remover", "entries"}, {"MIGRATE_DATABASE", "entries_owner", "entries"},
		{"AUTH_DATABASE", "auth_reader", "auth"}, {"AUTH_ADMIN_DATABASE", "auth_admin", "auth"}, {"AUTH_MIGRATE_DATABASE", "auth_owner", "auth"},
	}
	first, firstOfRedis := r.secret(t, "lectern-dev", "postgres"), r.secret(t, "lectern-dev", "redis")
	const second = "the-second-password-of-every-role"
	sql := func(text string) string {
		t.Helper()
		return strings.TrimSpace(r.kubectl(t, "exec", "deployment/lectern-dev-postgres", "--", "psql", "-U", "postgres", "-Atc", text))
	}
	// redis changes the passwords of Redis. redis-cli ends with 0 even if Redis refuses a command.
	redis := func(password string, rules ...string) {
		t.Helper()
		out := r.kubectl(t, append([]string{"exec", "deployment/lectern-dev-redis", "--",
			"redis-cli", "--no-auth-warning", "-a", password, "ACL", "SETUSER", "default"}, rules...)...)
		if strings.TrimSpace(out) != "OK" {
			t.Fatalf("Redis says %s", out)
		}
	}
	alter := func(password string) {
		t.Helper()
		for _, role := range roles {
			sql(fmt.Sprintf("ALTER ROLE %s PASSWORD '%s'", role.role, password))
		}
	}
	before := map[string]string{"REDIS_URL": "redis://lectern-dev-redis:6379/0", "REDIS_PASSWORD": firstOfRedis}
	after := map[string]string{"REDIS_PASSWORD": second}
	keys := map[string][]string{}
	for _, role := range roles {
		key := role.prefix + "_PASSWORD"
		before[role.prefix+"_URL"] = fmt.Sprintf("postgres://%s@lectern-dev-postgres:5432/%s?sslmode=disable", role.role, role.database)
		before[key], after[key] = first, second
		keys[role.database] = append(keys[role.database], key)
	}
	data := func(values map[string]string) string {
		text, err := json.Marshal(map[string]any{
			"apiVersion": "v1", "kind": "Secret", "metadata": map[string]string{"name": "passwords"}, "stringData": values,
		})
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	r.apply(t, data(before), "apply", "-f", "-")
	r.upgrade(t, "--set", "entries.database.existingSecret=passwords,auth.existingSecret=passwords,redis.existingSecret=passwords",
		"--set", fmt.Sprintf("redis.passwordKeys={REDIS_PASSWORD},entries.database.passwordKeys={%s},auth.passwordKeys={%s}",
			strings.Join(keys["entries"], ","), strings.Join(keys["auth"], ",")))
	r.awaitReplaced(t)

	l := startLoad(t, r, 8, 100*time.Millisecond, r.everyOperation())
	alter(second)
	began := sql("SELECT now()") // from now on, the old password opens no connection
	redis(firstOfRedis, ">"+second)
	r.kubectl(t, "patch", "secret", "passwords", "--type=merge", "-p", data(after))
	// More clients at once need more connections.
	calls := slices.DeleteFunc(r.everyOperation(), func(c call) bool { return c.operation != "listEntries" })
	surge := startLoad(t, r, 12, 20*time.Millisecond, calls)
	took := eventually(t, "connections with the new password", func() error {
		if n := sql("SELECT count(*) FROM pg_stat_activity WHERE usename = 'entries_reader' AND backend_start > '" + began + "'"); n == "0" {
			return fmt.Errorf("no connection is younger than %s", began)
		}
		return nil
	})
	t.Logf("a pod opened connections with the new password after %v", took.Round(time.Second))
	redis(second, "<"+firstOfRedis)
	surge.mustBeClean(t, 1_000)
	l.mustBeClean(t, 1_000)

	alter(first)
	redis(second, "resetpass", ">"+firstOfRedis)
	r.upgrade(t)
	r.kubectl(t, "delete", "secret", "passwords")
}
