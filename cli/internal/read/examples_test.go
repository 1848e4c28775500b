package read_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/lectern-dev/lectern/cli/internal/clitest"
	region "github.com/lectern-dev/lectern/services/region/app"
	"github.com/lectern-dev/lectern/shared/service"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
	"github.com/lectern-dev/lectern/shared/testing/needs"
	"github.com/lectern-dev/lectern/shared/testing/pgtest"
	"github.com/lectern-dev/lectern/shared/testing/servicetest"
)

// program builds the Go program that a page marks as run by t, and starts it. The program ends with t.
func program(t *testing.T, page string, environ ...string) *servicetest.Log {
	t.Helper()
	source := regexp.MustCompile("(?s)<!-- run by " + t.Name() + " -->\n```go\n(.*?)```").FindStringSubmatch(pageOf(t, page))
	if source == nil {
		t.Fatalf("%s has no program that %s runs", page, t.Name())
	}
	file := clitest.File(t, "main.go", source[1])
	cmd := exec.Command(servicetest.BuildOf(t, "../..", file))
	cmd.Env = append(os.Environ(), environ...)
	return run(t, cmd)
}

// run starts a program and returns its output. It ends with t.
func run(t *testing.T, cmd *exec.Cmd) *servicetest.Log {
	t.Helper()
	var log servicetest.Log
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		select {
		case err := <-ended:
			t.Errorf("the program ended: %v: %s", err, log.String())
		default:
			_ = cmd.Process.Kill()
			t.Log(<-ended) // killed
		}
		if t.Failed() {
			t.Log(log.String())
		}
	})
	return &log
}

// pageOf returns the text of a page, whose path begins at the root of the repository.
func pageOf(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../..", page))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestExampleFollow runs the program of client/README.md that follows changes, through a rotation of its key and a restart
// of the service.
func TestExampleFollow(t *testing.T) {
	t.Parallel()
	b := servicetest.NewBacking(t, clitest.Bare)
	s := clitest.EntriesOn(t, b, nil)
	table := clitest.Warehouse(t)
	db := pgtest.Connect(t, table)
	schema := regexp.MustCompile("(?s)```sql\n(.*?)```").FindStringSubmatch(pageOf(t, "client/README.md"))
	if _, err := db.Exec(t.Context(), schema[1]); err != nil {
		t.Fatal(err)
	}
	m := newSecret(t, s)
	has := func(want string) {
		t.Helper()
		eventually.True(t, want, func() bool {
			var got string
			err := db.QueryRow(t.Context(), `SELECT coalesce(string_agg(entry_id || substring(data FROM '"text":"(.*)"'), ' ' ORDER BY entry_id), '') FROM answers`).Scan(&got)
			return err == nil && got == want
		})
	}
	send := func(id, text string, minute int) {
		t.Helper()
		s.MustIngest(t, "entries", servicetest.With(clitest.Entry(id, minute), "entry_data", `{"text":"`+text+`"}`))
	}
	send("en_1", "A", 1)
	program(t, "client/README.md", "DATABASE_URL="+table, "LECTERN_SECRET="+m.folder)
	has("en_1A")
	m.rotate()
	send("en_2", `\u0000`, 2) // which jsonb refuses
	has(`en_1A en_2\u0000`)
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	m.rotate()
	s = clitest.EntriesOn(t, b, s)
	send("en_1", "C", 3)
	has(`en_1C en_2\u0000`)
	if a := s.DoInternal(t, servicetest.Request{Method: http.MethodDelete, Path: "/internal/projects/pr_1/entries/en_2", Key: servicetest.AdminKey}); a.Status != 200 {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	has("en_1C")
}

// TestExampleRegion runs the program of client/README.md that looks up regions, through a restart of the region service
// with another key.
func TestExampleRegion(t *testing.T) {
	t.Parallel()
	b := servicetest.NewBacking(t, clitest.Bare)
	start := func(earlier *servicetest.Service, key string) *servicetest.Service {
		environ := clitest.Migrating(earlier)
		environ["INTERNAL_API_KEYS"] = key
		return servicetest.Start(t, b, region.Run, func(c *region.Config) *service.Config { return &c.Config }, environ)
	}
	const first, second = "first-internal-key", "second-internal-key"
	s := start(nil, first)
	s.MustIngest(t, "projects", servicetest.Object{"id": "pr_1", "title": "One", "region": "Asia/Kathmandu"})
	m := &secret{folder: t.TempDir(), t: t}
	m.write("key", first)
	address := needs.Address(t)
	program(t, "client/README.md", "LECTERN_REGION_URL="+s.URL, "LECTERN_INTERNAL_API_KEY_FILE="+filepath.Join(m.folder, "key"), "LISTEN="+address)
	get := func(project string) string {
		resp, err := http.Get("http://" + address + "/time/" + project)
		if err != nil {
			return err.Error()
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			return err.Error()
		}
		return string(body)
	}
	answers := func(project, want string) {
		t.Helper()
		eventually.True(t, project+": "+want, func() bool { return strings.HasPrefix(get(project), want) })
	}
	answers("pr_1", "Asia/Kathmandu project 20")
	answers("pr_2", "America/Los_Angeles default 20")
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	if got := get("pr_1"); !strings.HasPrefix(got, "Asia/Kathmandu") || !strings.Contains(got, "+05:45") {
		t.Errorf("a known project without the service: %s", got)
	}
	if got := get("pr_3"); got != "no region at the moment\n" {
		t.Errorf("an unknown project without the service: %s", got)
	}
	m.write("key", second)
	start(s, second)
	answers("pr_3", "America/Los_Angeles default")
	if got := get("pr_1"); !strings.HasPrefix(got, "Asia/Kathmandu") {
		t.Errorf("%s", got)
	}
}

// testReceiver checks what the receiver of docs/how-to/push.md prints, which listens at an address with a secret: each
// change once, although the sender sends them again.
func testReceiver(t *testing.T, start func(address, secret string) *servicetest.Log) {
	t.Helper()
	s, environ := clitest.Entries(t)
	fillPush(t, s, 0, 2)
	var want strings.Builder
	for _, line := range feedOf(t, environ) {
		c := clitest.Decode[struct {
			Seq    int64
			Change string
		}](t, line)
		fmt.Fprintln(&want, c.Seq, c.Change)
	}
	secret := strings.TrimSpace(clitest.Must(t, environ, "", "listen", "--print-secret"))
	address := freeAddress(t)
	log := start(address, secret)
	eventually.True(t, "the receiver listens", func() bool { status, _ := scrape(t, "http://"+address+"/"); return status != 0 })
	resp, err := http.Post("http://"+address+"/hook", "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	if resp.Body.Close(); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("without a signature: %d", resp.StatusCode)
	}
	to := "http://" + address + "/hook"
	environ["LECTERN_SYNC_SECRET"] = hookSecret + " " + secret // during a rotation
	for _, state := range []string{"1", "2"} {
		clitest.Must(t, environ, "", "sync", "--to", to, "--batch", "3", "--state", filepath.Join(t.TempDir(), state))
	}
	if got := log.String(); got != want.String() {
		t.Errorf("it prints %q, want %q", got, want.String())
	}
}

// TestExampleReceivers runs the Go receiver of docs/how-to/push.md.
func TestExampleReceivers(t *testing.T) {
	t.Parallel()
	testReceiver(t, func(address, secret string) *servicetest.Log {
		return program(t, "docs/how-to/push.md", "LISTEN="+address, "WEBHOOK_SECRET="+secret)
	})
}

// TestLongExampleReceivers runs the TypeScript receiver of docs/how-to/push.md with each library.
func TestLongExampleReceivers(t *testing.T) {
	needs.Long(t)
	t.Parallel()
	needs.Node(t)
	const folder = "testdata/receiver"
	source := regexp.MustCompile("(?s)```ts\n(.*?)```").FindStringSubmatch(pageOf(t, "docs/how-to/push.md"))[1]
	for _, library := range []string{"standardwebhooks", "svix"} {
		clitest.Write(t, filepath.Join(folder, library+".ts"), strings.Replace(source, "standardwebhooks", library, 1))
	}
	for _, args := range [][]string{
		{"../../../../../scripts/npm-ci", "."},
		{"npx", "tsc", "--strict", "--skipLibCheck", "--target", "ES2022", "--module", "NodeNext", "standardwebhooks.ts", "svix.ts"},
	} {
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Dir = folder
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v: %s", args, err, out)
		}
	}
	for _, library := range []string{"standardwebhooks", "svix"} {
		t.Run(library, func(t *testing.T) {
			testReceiver(t, func(address, secret string) *servicetest.Log {
				_, port, _ := net.SplitHostPort(address)
				cmd := exec.Command("node", library+".js")
				cmd.Dir = folder
				cmd.Env = append(os.Environ(), "PORT="+port, "WEBHOOK_SECRET="+secret)
				return run(t, cmd)
			})
		})
	}
}
