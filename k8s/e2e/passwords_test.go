package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// passwords are those of Postgres and Redis in a Secret of their own, which pods read as files.
type passwords struct {
	*release
	roles   []passwordRole
	current string // what the servers take
}

// passwordRole is a role of Postgres, with the settings of its URL.
type passwordRole struct{ prefix, role, database string }

// passwordsInFiles makes the Secret. The values that it returns move the passwords of entries, of the keys and of Redis out
// of the URLs and into files.
func (r *release) passwordsInFiles(t *testing.T) (p *passwords, values []string) {
	t.Helper()
	p = &passwords{release: r, current: r.secret(t, "lectern-dev", "postgres"), roles: []passwordRole{
		{"DATABASE", "entries_reader", "entries"}, {"INGEST_DATABASE", "entries_ingest", "entries"},
		{"REMOVE_DATABASE", "entries_remover", "entries"}, {"MIGRATE_DATABASE", "entries_owner", "entries"},
		{"AUTH_DATABASE", "auth_reader", "auth"}, {"AUTH_ADMIN_DATABASE", "auth_admin", "auth"}, {"AUTH_MIGRATE_DATABASE", "auth_owner", "auth"},
	}}
	p.redis(t, r.secret(t, "lectern-dev", "redis"), ">"+p.current)
	r.apply(t, p.secretOf(t, p.current), "apply", "-f", "-")
	keys := map[string][]string{}
	for _, role := range p.roles {
		keys[role.database] = append(keys[role.database], role.prefix+"_PASSWORD")
	}
	return p, []string{
		"--set", "entries.database.existingSecret=passwords,auth.existingSecret=passwords,redis.existingSecret=passwords",
		"--set", fmt.Sprintf("redis.passwordKeys={REDIS_PASSWORD},entries.database.passwordKeys={%s},auth.passwordKeys={%s}",
			strings.Join(keys["entries"], ","), strings.Join(keys["auth"], ",")),
	}
}

// secretOf returns the Secret with one password for all.
func (p *passwords) secretOf(t *testing.T, password string) string {
	t.Helper()
	data := map[string]string{"REDIS_URL": "redis://lectern-dev-redis:6379/0", "REDIS_PASSWORD": password}
	for _, role := range p.roles {
		data[role.prefix+"_URL"] = fmt.Sprintf("postgres://%s@lectern-dev-postgres:5432/%s?sslmode=disable", role.role, role.database)
		data[role.prefix+"_PASSWORD"] = password
	}
	text, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]string{"name": "passwords"}, "stringData": data,
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func (p *passwords) sql(t *testing.T, text string) string {
	t.Helper()
	return strings.TrimSpace(p.kubectl(t, "exec", "deployment/lectern-dev-postgres", "--", "psql", "-U", "postgres", "-Atc", text))
}

// redis changes the passwords of Redis. redis-cli ends with 0 even if Redis refuses a command.
func (p *passwords) redis(t *testing.T, password string, rules ...string) {
	t.Helper()
	out := p.kubectl(t, append([]string{"exec", "deployment/lectern-dev-redis", "--",
		"redis-cli", "--no-auth-warning", "-a", password, "ACL", "SETUSER", "default"}, rules...)...)
	if strings.TrimSpace(out) != "OK" {
		t.Fatalf("Redis says %s", out)
	}
}

// change changes all passwords, and the Secret last. Then more clients read entries, for which pods need more connections. Once
// Kubernetes has updated the files, pods open connections with the new passwords. No request of the clients fails.
func (p *passwords) change(t *testing.T, next string) {
	t.Helper()
	var alter strings.Builder
	for _, role := range p.roles {
		fmt.Fprintf(&alter, "ALTER ROLE %s PASSWORD '%s';", role.role, next)
	}
	p.sql(t, alter.String())
	began := p.sql(t, "SELECT now()") // from now on, the old password opens no connection
	p.redis(t, p.current, ">"+next)
	calls := slices.DeleteFunc(p.everyOperation(), func(c call) bool { return c.operation != "listEntries" })
	surge := startLoad(t, p.release, 12, 20*time.Millisecond, calls)
	awaitGood(t, surge, 200)
	p.apply(t, p.secretOf(t, next), "apply", "-f", "-")
	p.updateFiles(t, "app.kubernetes.io/instance=lectern")
	took := eventually(t, "connections with the new password", func() error {
		if n := p.sql(t, "SELECT count(*) FROM pg_stat_activity WHERE usename = 'entries_reader' AND backend_start > '"+began+"'"); n == "0" {
			return fmt.Errorf("no connection is younger than %s", began)
		}
		return nil
	})
	t.Logf("a pod opened connections with the new password after %v", took.Round(time.Second))
	p.redis(t, next, "<"+p.current)
	p.current = next
	surge.mustBeClean(t, 1_000)
}

// updateFiles has Kubernetes update the files of changed Secrets in pods now. Without a change of a pod, the kubelet takes up to two
// minutes.
func (r *release) updateFiles(t *testing.T, selector string) {
	t.Helper()
	// kubectl lists the pods first, and a pod of a restart may go before its turn.
	eventually(t, "a change of each pod", func() error {
		_, err := r.tryKubectl(t.Context(), "", "annotate", "pods", "-l", selector, "--overwrite", fmt.Sprintf("lectern.dev/e2e-looked-at=%d", time.Now().UnixNano()))
		return err
	})
}
