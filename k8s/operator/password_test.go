package operator

import (
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/lectern-dev/lectern/k8s/api/v1alpha1"
	"github.com/lectern-dev/lectern/k8s/testing/kubetest"
	"github.com/lectern-dev/lectern/shared/auth/pgkeys"
	"github.com/lectern-dev/lectern/shared/testing/authtest"
	"github.com/lectern-dev/lectern/shared/testing/pgtest"
	"github.com/lectern-dev/lectern/shared/testing/redistest"
)

// The operator that runs rotates a key after the password of its role has changed, although its connections were closed.
func TestPasswordFile(t *testing.T) {
	t.Parallel()
	c := kubetest.Start(t)
	server := pgtest.Private(t, nil)
	db := server.Database(t, pgkeys.Schema())
	keys := authtest.On(t, db, redistest.Start(t).URL)
	admin, err := url.Parse(server.TCPURL(db.AdminURL))
	if err != nil {
		t.Fatal(err)
	}
	role := admin.User.Username()
	admin.User = url.User(role)
	file := filepath.Join(t.TempDir(), "password")
	write := func(password string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(password), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(role) // pgtest's passwords
	environ := keyEnviron(keys)
	environ["AUTH_ADMIN_DATABASE_URL"], environ["AUTH_ADMIN_DATABASE_PASSWORD_FILE"] = admin.String(), file
	start(t, c, environ, nil)
	k := newKey("reports")
	c.Create(t, k)
	c.AwaitReady(t, k, v1alpha1.ReasonIssued)
	first := keyIn(t, c, k)

	conn := pgtest.Connect(t, server.AdminURL())
	for _, sql := range []string{
		"ALTER ROLE " + role + " PASSWORD 'second'",
		"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '" + role + "'",
	} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	kubetest.Change(t, c, k, annotated(v1alpha1.AnnotationRotate, "1"))
	write("second")
	anotherKey(t, c, k, first)
}
