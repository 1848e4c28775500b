package copiestest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/lectern-dev/lectern/client"
	"github.com/lectern-dev/lectern/copies"
	"github.com/lectern-dev/lectern/copies/columns"
	"github.com/lectern-dev/lectern/copies/files"
	"github.com/lectern-dev/lectern/shared/auth/pgkeys"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
	"github.com/lectern-dev/lectern/shared/testing/needs"
)

// cached returns a folder that outlives the test, made by a command if it is missing.
func cached(t *testing.T, name string, make func(folder string) *exec.Cmd) string {
	t.Helper()
	needs.Long(t)
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(cache, "lectern-tests", name)
	if _, err := os.Stat(folder); err == nil {
		return folder
	}
	if err := os.MkdirAll(filepath.Dir(folder), 0o755); err != nil {
		t.Fatal(err)
	}
	unfinished, err := os.MkdirTemp(filepath.Dir(folder), name+".*")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := make(unfinished).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", name, err, out)
	}
	if err := os.Rename(unfinished, folder); err != nil && !errors.Is(err, os.ErrExist) {
		t.Fatal(err)
	}
	return folder
}

// duckDB runs statements and returns the rows of the last one, by a program that is not ours.
func duckDB(t *testing.T, statements ...string) (rows []row) {
	t.Helper()
	folder := cached(t, "duckdb-1.5.6", func(folder string) *exec.Cmd {
		cmd := exec.Command("npm", "install", "--prefix", folder, "--no-audit", "--no-fund", "@duckdb/node-api@1.5.6-r.1")
		return cmd
	})
	const script = `
const { DuckDBInstance } = require('@duckdb/node-api');
(async () => {
  const connection = await (await DuckDBInstance.create(':memory:')).connect();
  let rows = [];
  for (const sql of JSON.parse(require('fs').readFileSync(0, 'utf8')))
    rows = (await connection.runAndReadAll(sql)).getRowObjectsJson();
  process.stdout.write(JSON.stringify(rows));
})().catch(e => { console.error(e.message); process.exit(1); });`
	in, err := json.Marshal(statements)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "node", "-e", script)
	cmd.Dir = folder
	cmd.Stdin = bytes.NewReader(in)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("duckdb: %v: %s", err, stderr.String())
	}
	if err := json.Unmarshal(out, &rows); err != nil {
		t.Fatal(err)
	}
	return rows
}

// statements returns those of the block in docs/how-to/sync.md that sets a variable, for the copy at a place.
func statements(t *testing.T, variable, place string) []string {
	t.Helper()
	doc, err := os.ReadFile("../../../docs/how-to/sync.md")
	if err != nil {
		t.Fatal(err)
	}
	_, sql, found := strings.Cut(string(doc), "```sql\nSET VARIABLE "+variable)
	if !found {
		t.Fatalf("docs/how-to/sync.md has no block for %s", variable)
	}
	sql, _, _ = strings.Cut("SET VARIABLE "+variable+sql, "```")
	sql = strings.Replace(sql, "/data/shop/", place+"/", 1)
	return strings.Split(strings.TrimSuffix(strings.TrimSpace(sql), ";"), ";\n")
}

// checkByDuckDB compares what the documented views show with the source.
func checkByDuckDB(t *testing.T, s *source, place string) {
	t.Helper()
	want := s.records(t)
	for _, kind := range []struct {
		name, key string
		want      map[string]row
	}{{"entries", "entry_id", want.entries}, {"events", "event_key", want.events}} {
		sql := fmt.Sprintf(`SELECT to_json(t)::VARCHAR AS line FROM (
			SELECT * REPLACE (%s) FROM %s) AS t`, map[string]string{
			"entries": "epoch_us(created_at) AS created_at, epoch_us(updated_at) AS updated_at",
			"events":  `epoch_us("timestamp") AS "timestamp"`,
		}[kind.name], kind.name)
		got := map[string]row{}
		for _, r := range duckDB(t, append(statements(t, "copy", place), sql)...) {
			var one row
			if err := json.Unmarshal([]byte(r["line"].(string)), &one); err != nil {
				t.Fatal(err)
			}
			for name := range one { // TestFilesHaveColumns has those of entry_data
				if kind.name == "entries" && !slices.Contains(entryFields, name) {
					delete(one, name)
				}
			}
			got[one[kind.key].(string)] = one
		}
		for _, r := range kind.want {
			for _, name := range []string{"created_at", "updated_at", "timestamp"} {
				if text, ok := r[name].(string); ok {
					at, err := time.Parse(time.RFC3339Nano, text)
					if err != nil {
						t.Fatal(err)
					}
					r[name] = float64(at.UnixMicro())
				}
			}
		}
		if diff := cmp.Diff(kind.want, got); diff != "" {
			t.Errorf("%s, -source +DuckDB: %s", kind.name, diff)
		}
	}
}

var entryFields = []string{"entry_id", "group_id", "project_id", "embeddable_id", "contact_id", "created_at", "updated_at", "entry_data", "seq"}

func TestLongDuckDBReadsTheCopyByTheDocumentedViews(t *testing.T) {
	duckDB(t, "SELECT 1")
	l := newLake(t)
	l.mustSync(t)
	checkByDuckDB(t, l.source, l.path) // a copy of nothing has columns too
	l.fill(t, 0, 60)
	l.MustIngest(t, "entries", entry("odd", 1, `{"a":"\u0000\ud800","b":1e200000}`))
	l.mustSync(t)
	l.MustIngest(t, "entries", entry("en_1", 900, `{"again":true}`))
	l.remove(t, "erased", "en_2", "never came")
	l.remove(t, "purged", "en_4")
	l.MustIngest(t, "entries", entry("en_4", 901, `{"back":1}`))
	l.MustIngest(t, "events", event("en_4", 8))
	l.mustSync(t)
	checkByDuckDB(t, l.source, l.path)
	got := duckDB(t, append(append(statements(t, "copy", l.path), statements(t, "survey_files", "")...), `SELECT entry_id, n, price, again, back, typeof(n) AS type FROM survey
		WHERE entry_id IN ('en_1', 'en_3', 'en_4') ORDER BY entry_id`)...)
	want := []row{
		{"entry_id": "en_1", "n": nil, "price": nil, "again": true, "back": nil, "type": "DOUBLE"},
		{"entry_id": "en_3", "n": 3.0, "price": 1.5, "again": nil, "back": nil, "type": "DOUBLE"},
		{"entry_id": "en_4", "n": nil, "price": nil, "again": nil, "back": 1.0, "type": "DOUBLE"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +DuckDB: %s", diff)
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
	folder := cached(t, "versitygw-1.8.0", func(folder string) *exec.Cmd {
		cmd := exec.Command("go", "install", "github.com/versity/versitygw/cmd/versitygw@v1.8.0")
		cmd.Dir = t.TempDir()
		cmd.Env = append(os.Environ(), "GOBIN="+folder, "GOWORK=off")
		return cmd
	})
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(free.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_ = free.Close()
	g := &gateway{t: t, binary: filepath.Join(folder, "versitygw"), port: port, folder: t.TempDir(), versions: t.TempDir(), meta: t.TempDir()}
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

func (g *gateway) open(name string, environ map[string]string, from copies.Source) smallFiles {
	g.t.Helper()
	d, err := files.Bucket(name, "copies/shop", environ, files.Options{Source: from, Columns: columns.Choice{All: true}})
	if err != nil {
		g.t.Fatal(err)
	}
	return smallFiles{d}
}

// A copy in a bucket is exact although the process is cut and the server of the bucket killed, while sources write
// and remove.
func TestLongBucketKilled(t *testing.T) {
	g := newGateway(t)
	l := &lake{newSource(t), filepath.Join(g.folder, "lake", "copies", "shop")}
	l.fill(t, 0, 100)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for i := range 8 {
			l.fill(t, 50+10*i, 20)
			l.remove(t, "purged", fmt.Sprintf("en_%d", 60+10*i), fmt.Sprintf("en_%d", i))
		}
	}()
	sync := func(ctx context.Context) error {
		_, err := copies.Run(ctx, copies.Options{
			Client: l.client, Source: l.is(), Destination: g.open("lake", g.environ(), l.is()), PageSize: 7, Attempts: 5,
		})
		return err
	}
	cut, n := 0, 0
	for writing := true; writing || n < 5; n++ {
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Duration(30+rand.IntN(300))*time.Millisecond, errors.New("killed"))
		done := make(chan error, 1)
		go func() { done <- sync(ctx) }()
		time.Sleep(time.Duration(rand.IntN(150)) * time.Millisecond)
		g.kill()
		g.start()
		if err := <-done; err != nil {
			cut++
		}
		cancel()
		select {
		case <-stopped:
			writing = false
		default:
		}
	}
	t.Logf("%d runs, %d were cut", n, cut)
	if err := sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.check(t) // the server keeps objects as files
	if len(l.manifest(t).entries()) < 2 {
		t.Error("want several files")
	}
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

// copyOnce copies a project into a folder or a bucket.
func copyOnce(url, key, to string) error {
	c, err := client.New(url, client.WithAPIKey(key))
	if err != nil {
		return err
	}
	o := files.Options{Source: copies.Source{URL: url, ProjectID: project}, Columns: columns.Choice{All: true}}
	d := files.Folder(to, o)
	if !filepath.IsAbs(to) {
		environ := map[string]string{}
		for _, variable := range os.Environ() {
			name, value, _ := strings.Cut(variable, "=")
			environ[name] = value
		}
		if d, err = files.Bucket(to, "copies/shop", environ, o); err != nil {
			return err
		}
	}
	_, err = copies.Run(context.Background(), copies.Options{Client: c, Source: o.Source, Destination: smallFiles{d}, PageSize: 7, Attempts: 1})
	return err
}

// process runs copyOnce in a process of its own. It kills the process when the list of files has changed so often, unless
// that is 0, and reports whether it did.
func (l *lake) process(t *testing.T, to string, environ map[string]string, changes int) (killed bool) {
	t.Helper()
	key, _ := l.Keys.Minted(pgkeys.MintOptions{ProjectID: project})
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "COPY_FROM="+l.URL, "COPY_KEY="+key, "COPY_TO="+to)
	for name, value := range environ {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	names := func() (list []string) {
		_ = filepath.WalkDir(l.path, func(path string, _ fs.DirEntry, _ error) error {
			list = append(list, path)
			return nil
		})
		return list
	}
	for was, n := names(), 0; changes > 0 && n < changes && len(ended) == 0; {
		if now := names(); !slices.Equal(was, now) {
			was, n = now, n+1
		}
	}
	if changes > 0 {
		_ = cmd.Process.Kill() // or it has ended
	}
	err := <-ended
	if killed = cmd.ProcessState.ExitCode() < 0; err != nil && !killed {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	return killed
}

// Once the copy has passed an erasure, nothing of the person is in the folder or the bucket, with or without versions.
// Earlier runs were killed after a change of a file.
func TestLongErasureKilledAtEachStep(t *testing.T) {
	g := newGateway(t)
	for _, kind := range []string{"folder", "bucket", "versions"} {
		l, to, stores := &lake{newSource(t), filepath.Join(g.folder, kind, "copies", "shop")}, kind, []string{g.folder, g.versions}
		if kind == "folder" {
			to = filepath.Join(t.TempDir(), "copy")
			l.path, stores = to, []string{to}
		} else if err := g.admin().MakeBucket(t.Context(), kind, minio.MakeBucketOptions{}); err != nil {
			t.Fatal(err)
		}
		if kind == "versions" {
			if err := g.admin().EnableVersioning(t.Context(), kind); err != nil {
				t.Fatal(err)
			}
		}
		sync := func(changes int) bool { return l.process(t, to, g.environ(), changes) }
		stored := func(text string) int { return with(objects(t, "*", stores...), text) }
		runs, killed := 0, 0
		for n := range 10 {
			id, canary := fmt.Sprintf("person-%d", n), fmt.Sprintf("canary-%s-%d", kind, n)
			l.fill(t, 5*n, 5)
			l.person(t, id, canary)
			sync(0)
			l.fill(t, 1000+5*n, 5) // the next file is joined with the person's
			sync(0)
			if found := stored(canary); found < 2 {
				t.Fatalf("%d objects hold the person before; want one of entries and one of events", found)
			}
			before := l.manifest(t).Seq
			l.remove(t, "erased", id)
			for range 3 { // also a run after a killed one
				runs++
				if sync(1 + rand.IntN(12)) {
					killed++
				}
				if found := stored(canary); l.manifest(t).Seq > before && found > 0 {
					t.Errorf("%s: %d objects hold the person after a killed run that passed the erasure", kind, found)
				}
			}
			sync(0)
			if found := stored(canary); found > 0 {
				t.Errorf("%s: %d objects still hold the person", kind, found)
			}
			l.check(t)
		}
		t.Logf("%s: %d of %d runs were killed", kind, killed, runs)
	}
}

func TestLongBucketRefusals(t *testing.T) {
	g := newGateway(t)
	s := newSource(t)
	s.fill(t, 0, 3)
	run := func(d copies.Destination) error {
		_, err := copies.Run(t.Context(), copies.Options{Client: s.client, Source: s.is(), Destination: d, PageSize: 7, Attempts: 1})
		return err
	}
	if err := run(g.open("lake", g.environ(), s.is())); err != nil {
		t.Fatal(err)
	}
	wrong := g.environ()
	wrong["AWS_SECRET_ACCESS_KEY"] = "secret-2"
	for _, tt := range []struct {
		name string
		to   copies.Destination
		says string
	}{
		{"no bucket", g.open("nowhere", g.environ(), s.is()), "there is no such bucket"},
		{"wrong secret", g.open("lake", wrong, s.is()), "the credentials are refused"},
		{"another project", g.open("lake", g.environ(), copies.Source{URL: s.URL, ProjectID: "pr_2"}), `a copy of project "pr_1"`},
	} {
		if err := run(tt.to); err == nil || !strings.Contains(err.Error(), tt.says) || strings.Contains(err.Error(), "secret-") {
			t.Errorf("%s: %v; want %q", tt.name, err, tt.says)
		}
	}

	// A bucket that keeps what is removed cannot have a copy that forgets.
	const locked = "locked"
	if err := g.admin().MakeBucket(t.Context(), locked, minio.MakeBucketOptions{ObjectLocking: true}); err != nil {
		t.Fatal(err)
	}
	mode, days, unit := minio.Compliance, uint(1), minio.Days
	if err := g.admin().SetBucketObjectLockConfig(t.Context(), locked, &mode, &days, &unit); err != nil {
		t.Fatal(err)
	}
	if err := run(g.open(locked, g.environ(), s.is())); err == nil || !strings.Contains(err.Error(), "s3:DeleteObjectVersion), without an object lock") {
		t.Errorf("%v; want what a copy needs", err)
	}

	// The process that opened the copy last has it. The one before cannot commit any more.
	first, second := g.open("lake", g.environ(), s.is()), g.open("lake", g.environ(), s.is())
	at, err := first.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := second.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	at.Cursor += "x"
	if err := first.Apply(t.Context(), &copies.Batch{Position: at}); err == nil || !strings.Contains(err.Error(), "another sync writes to bucket") {
		t.Errorf("the first: %v", err)
	}
}
