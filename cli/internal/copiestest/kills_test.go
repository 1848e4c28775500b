// Package copiestest kills the program and the servers while a copy is made, over the real services. The promises of
// copies themselves are tested in the module copies.
package copiestest

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/parquet-go/parquet-go"

	"github.com/lectern-dev/lectern/cli/internal/clitest"
	"github.com/lectern-dev/lectern/cli/internal/shell"
	"github.com/lectern-dev/lectern/client"
	entries "github.com/lectern-dev/lectern/services/entries/app"
	"github.com/lectern-dev/lectern/shared/auth/pgkeys"
	"github.com/lectern-dev/lectern/shared/postgres/migrate"
	"github.com/lectern-dev/lectern/shared/postgres/pglocal"
	"github.com/lectern-dev/lectern/shared/service"
	"github.com/lectern-dev/lectern/shared/testing/authtest"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
	"github.com/lectern-dev/lectern/shared/testing/needs"
	"github.com/lectern-dev/lectern/shared/testing/pgtest"
	"github.com/lectern-dev/lectern/shared/testing/redistest"
	"github.com/lectern-dev/lectern/shared/testing/servicetest"
)

func TestMain(m *testing.M) { clitest.Main(m) }

const project = "pr_1"

// empty is a schema without tables.
var empty = migrate.Schema{Name: "empty", Migrations: fstest.MapFS{"0001_nothing.sql": {Data: []byte("-- +goose Up\nSELECT 1;\n")}}}

// source is an entries service with a project.
type source struct {
	*servicetest.Service
	key    string
	client *client.Client
}

// newSource starts the service, which brings its schema with it.
func newSource(t *testing.T) *source {
	t.Helper()
	redis := redistest.Start(t)
	b := &servicetest.Backing{DB: pgtest.Database(t, empty), Redis: redis, Keys: authtest.New(t, redis.URL)}
	s := servicetest.Start(t, b, entries.Run, func(c *entries.Config) *service.Config { return &c.Config },
		map[string]string{"MIGRATE_ON_START": "true", "DATABASE_URL": b.DB.OwnerURL, "INGEST_DATABASE_URL": b.DB.OwnerURL, "LOG_LEVEL": "error"})
	key, _ := s.Keys.Minted(pgkeys.MintOptions{ProjectID: project})
	c, err := client.New(s.URL, client.WithAPIKey(key))
	if err != nil {
		t.Fatal(err)
	}
	return &source{s, key, c}
}

// put stores an entry with a text in the contact and an answer, and an event.
func (s *source) put(t *testing.T, id, text string) {
	t.Helper()
	s.MustIngest(t, "entries", map[string]any{
		"entry_id": id, "group_id": "gr_1", "project_id": project, "embeddable_id": "emb_1", "contact_id": text,
		"created_at": "2022-01-01T00:00:00Z", "updated_at": "2022-01-01T00:00:00Z", "entry_data": fmt.Sprintf(`{"text":%q}`, text),
	})
	s.MustIngest(t, "events", map[string]any{
		"entry_id": id, "contact_id": text, "project_id": project, "group_id": "gr_1", "embeddable_id": "emb_1", "timestamp": "2022-01-01T00:00:00Z",
		"page_id": "pg_1", "page_key": text, "page_index": 0, "total_pages": 1, "event_type": "flowpage.viewed", "view_type": "flowpage", "url": "https://example.com/" + text,
	})
}

// remove removes entries with their events as the service does.
func (s *source) remove(t *testing.T, reason string, ids ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.DB.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		var last int64
		err := tx.QueryRow(ctx, `UPDATE project_changes SET last_seq = greatest(last_seq + 1, (extract(epoch FROM now()) * 1000000)::bigint) + $2
			WHERE project_id = $1 RETURNING last_seq`, project, len(ids)).Scan(&last)
		if err != nil {
			return err
		}
		for _, table := range []string{"entries", "events"} {
			if _, err := tx.Exec(ctx, `DELETE FROM `+table+` WHERE project_id = $1 AND entry_id = ANY($2)`, project, ids); err != nil {
				return err
			}
		}
		_, err = tx.Exec(ctx, `INSERT INTO removals (project_id, entry_id, seq, removed_at, reason)
			SELECT $1, u.id, $3 - $4::bigint + u.n, now(), $5 FROM unnest($2::text[]) WITH ORDINALITY AS u (id, n)
			ON CONFLICT (project_id, entry_id) DO UPDATE SET seq = excluded.seq, removed_at = excluded.removed_at, reason = excluded.reason`,
			project, ids, last, len(ids), reason)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// gateway is a server that speaks S3, over a folder.
type gateway struct {
	t      *testing.T
	binary string
	port   string
	folder string
	// versions is where earlier versions are, and meta what the server knows of objects.
	versions, meta string
	cmd            *exec.Cmd
}

func newGateway(t *testing.T) *gateway {
	t.Helper()
	needs.Long(t)
	folder := versitygw(t)
	g := &gateway{t: t, binary: filepath.Join(folder, "versitygw"), port: strconv.Itoa(needs.Port(t)), folder: t.TempDir(), versions: t.TempDir(), meta: t.TempDir()}
	if err := os.Mkdir(filepath.Join(g.folder, "lake"), 0o755); err != nil { // the bucket
		t.Fatal(err)
	}
	g.start()
	t.Cleanup(g.kill)
	return g
}

func (g *gateway) start() {
	g.t.Helper()
	g.cmd = exec.Command(g.binary, "--access", "key-1", "--secret", "secret-1", "--port", "127.0.0.1:"+g.port, "--region", "us-east-1", "posix", "--sidecar", g.meta, "--versioning-dir", g.versions, g.folder)
	if err := g.cmd.Start(); err != nil {
		g.t.Fatal(err)
	}
	eventually.Succeeds(g.t, "versitygw listens", func() error {
		conn, err := net.Dial("tcp", "127.0.0.1:"+g.port)
		if err == nil {
			_ = conn.Close()
		}
		return err
	})
}

func (g *gateway) kill() {
	_ = g.cmd.Process.Kill()
	_ = g.cmd.Wait() // killed
}

func (g *gateway) environ() map[string]string {
	return map[string]string{
		"AWS_ENDPOINT_URL": "http://127.0.0.1:" + g.port, "AWS_ACCESS_KEY_ID": "key-1", "AWS_SECRET_ACCESS_KEY": "secret-1", "AWS_REGION": "us-east-1",
	}
}

// versitygw returns a folder that outlives the test, with the server.
func versitygw(t *testing.T) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(cache, "lectern-tests", "versitygw-1.8.0")
	cmd := exec.Command("go", "install", "github.com/versity/versitygw/cmd/versitygw@v1.8.0") // which replaces the program at once, or does nothing
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "GOBIN="+folder, "GOWORK=off")
	if _, err := os.Stat(filepath.Join(folder, "versitygw")); err == nil {
		return folder
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("versitygw: %v: %s", err, out)
	}
	return folder
}

// admin is a client of the server for what copies do not do.
func (g *gateway) admin() *minio.Client {
	g.t.Helper()
	c, err := minio.New("127.0.0.1:"+g.port, &minio.Options{Creds: credentials.NewStaticV4("key-1", "secret-1", ""), Region: "us-east-1"})
	if err != nil {
		g.t.Fatal(err)
	}
	return c
}

// program is lectern sync to a copy.
type program struct {
	*source
	to      string
	environ map[string]string
}

// run runs the program with flags, as a process of its own. meanwhile, if set, is called once the process runs, and then
// the process is killed. run returns the exit code, which is -1 after a kill, and what the program said.
func (p program) run(t *testing.T, meanwhile func(ended <-chan error), flags ...string) (code int, said string) {
	t.Helper()
	environ := map[string]string{"LECTERN_URL": p.URL, "LECTERN_API_KEY": p.key, "LECTERN_PROJECT_ID": project, "LECTERN_SYNC_TO": p.to}
	maps.Copy(environ, p.environ)
	return runCommand(t, environ, meanwhile, append([]string{"sync", "--retries", "1", "--page-size", "20"}, flags...)...)
}

// runCommand runs the command as [program.run] does.
func runCommand(t *testing.T, environ map[string]string, meanwhile func(ended <-chan error), args ...string) (code int, said string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), clitest.AsCommand+"=1")
	for name, value := range environ {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	if meanwhile != nil {
		meanwhile(ended)
		_ = cmd.Process.Kill() // or the process has ended
	}
	if err := <-ended; cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String()
}

// must runs the program to its end.
func (p program) must(t *testing.T, flags ...string) {
	t.Helper()
	if code, said := p.run(t, nil, flags...); code != shell.ExitOK {
		t.Fatalf("exit code %d: %s", code, said)
	}
}

// names returns the names of all files in folders.
func names(folders ...string) (list []string) {
	for _, folder := range folders {
		_ = filepath.WalkDir(folder, func(path string, _ fs.DirEntry, _ error) error {
			list = append(list, path)
			return nil
		})
	}
	return list
}

// holds returns how many files in folders hold a text, in their bytes or in their rows.
func holds(t *testing.T, text string, folders ...string) (n int) {
	t.Helper()
	for _, path := range names(folders...) {
		data, err := os.ReadFile(path)
		if err != nil {
			continue // a folder
		}
		if magic := []byte("PAR1"); bytes.HasPrefix(data, magic) && bytes.HasSuffix(data, magic) { // and not half written
			rows, err := parquet.Read[any](bytes.NewReader(data), int64(len(data)))
			if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			data = fmt.Append(data, rows)
		}
		if bytes.Contains(data, []byte(text)) {
			n++
		}
	}
	return n
}

// TestLongKilled checks that a copy is exact, although the program and the server of the bucket are killed while the
// source writes. Once the copy has passed an erasure, nothing of the person is in it, with or without versions of a bucket.
func TestLongKilled(t *testing.T) {
	const rounds = 5
	g := newGateway(t)
	for _, kind := range []string{"postgres", "folder", "bucket", "versions"} {
		t.Run(kind, func(t *testing.T) {
			s := newSource(t)
			p, folders := program{s, "s3://" + kind + "/copies/shop", g.environ()}, []string{g.folder, g.versions}
			stored := func(text string) int { return holds(t, text, folders...) }
			switch kind {
			case "folder":
				folders = []string{t.TempDir()}
				p.to = "file://" + folders[0]
			case "postgres":
				p.to, folders = pgtest.Database(t, empty).OwnerURL, nil
				bin, err := pglocal.Binaries()
				if err != nil {
					t.Fatal(err)
				}
				stored = func(text string) int {
					out, err := exec.CommandContext(t.Context(), filepath.Join(bin, "pg_dump"), "--dbname", p.to).Output()
					if err != nil {
						t.Fatal(err)
					}
					return bytes.Count(out, []byte(text))
				}
			default:
				if err := g.admin().MakeBucket(t.Context(), kind, minio.MakeBucketOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			if kind == "versions" {
				if err := g.admin().EnableVersioning(t.Context(), kind); err != nil {
					t.Fatal(err)
				}
			}
			// kill ends a run after a number of changes of the files. A run into Postgres ends after a random time, as its
			// steps are not seen from outside. No result depends on the time.
			kill := func(changes int) func(ended <-chan error) {
				return func(ended <-chan error) {
					s.put(t, fmt.Sprintf("en_%d", rand.IntN(30)), "y") // while the run reads
					if kind == "postgres" {
						time.Sleep(time.Duration(rand.IntN(300)) * time.Millisecond)
						return
					}
					for was, n := names(folders...), 0; n < changes && len(ended) == 0; {
						if now := names(folders...); !slices.Equal(was, now) {
							was, n = now, n+1
						}
					}
					if kind == "bucket" && changes%3 == 0 {
						g.kill()
						g.start()
					}
				}
			}
			killed := 0
			for n := range rounds {
				id, canary := fmt.Sprintf("person-%d", n), fmt.Sprintf("canary-%s-%d", kind, n)
				for i := range 5 {
					s.put(t, fmt.Sprintf("en_%d", 3*n+i), "x") // some anew, some again
				}
				s.put(t, id, canary)
				p.must(t)
				if stored(canary) < 2 {
					t.Fatal("the copy lacks the person, or its event")
				}
				s.remove(t, "erased", id)
				s.remove(t, "purged", fmt.Sprintf("en_%d", 3*n))
				for range 3 { // also a run after a killed one
					code, _ := p.run(t, kill(1+rand.IntN(12)))
					if code < 0 {
						killed++
					}
				}
				p.must(t)
				if found := stored(canary); found > 0 {
					t.Errorf("%d files or rows still hold the person", found)
				}
				p.must(t, "--verify")
			}
			if t.Logf("%d of %d runs were killed", killed, 3*rounds); killed == 0 {
				t.Error("no run was killed")
			}
		})
	}
}

// TestLongBucketRefusals checks what the program says of a bucket that cannot have a copy.
func TestLongBucketRefusals(t *testing.T) {
	g := newGateway(t)
	s := newSource(t)
	s.put(t, "en_1", "x")
	const locked = "locked" // which keeps what is removed
	if err := g.admin().MakeBucket(t.Context(), locked, minio.MakeBucketOptions{ObjectLocking: true}); err != nil {
		t.Fatal(err)
	}
	mode, days, unit := minio.Compliance, uint(1), minio.Days
	if err := g.admin().SetBucketObjectLockConfig(t.Context(), locked, &mode, &days, &unit); err != nil {
		t.Fatal(err)
	}
	wrong := maps.Clone(g.environ())
	wrong["AWS_SECRET_ACCESS_KEY"] = "secret-2"
	for _, tt := range []struct {
		to      string
		environ map[string]string
		says    string
	}{
		{"s3://nowhere/copies", g.environ(), "there is no such bucket"},
		{"s3://lake/copies", wrong, "the credentials are refused"},
		{"s3://locked/copies", g.environ(), "s3:DeleteObjectVersion), without an object lock"},
	} {
		code, said := program{s, tt.to, tt.environ}.run(t, nil)
		if code != shell.ExitFailure || !strings.Contains(said, tt.says) || strings.Contains(said, "secret-") {
			t.Errorf("%s: exit code %d: %s; want %q", tt.to, code, said, tt.says)
		}
	}
}
