package stage_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lectern-dev/lectern/bench/internal/stage"
	"github.com/lectern-dev/lectern/shared/testing/pgtest"
)

// asChild names the variable that makes the test binary the process that is killed. Its value is the stage's folder.
const asChild = "LECTERN_TEST_STAGE"

func TestMain(m *testing.M) {
	if folder := os.Getenv(asChild); folder != "" {
		s := &stage.Stage{Folder: folder}
		_, err := s.StartCitus(context.Background(), os.Getenv("CITUS_KIT"), 1)
		fmt.Println("started:", err)
		select {} // until it is killed
	}
	os.Exit(m.Run())
}

// folder makes a folder for a stage. Only its owner can enter a folder of testing.T, and servers run as another user.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "lectern-bench-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// servers counts the processes that work below a folder.
func servers(t *testing.T, below string) (n int) {
	t.Helper()
	links, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range links {
		if at, err := os.Readlink(link); err == nil && strings.HasPrefix(at, below+"/") {
			n++
		}
	}
	return n
}

// A database has its tables on the given number of workers.
func TestCitus(t *testing.T) {
	s := &stage.Stage{Folder: folder(t)}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	c, err := s.StartCitus(ctx, pgtest.Kit(t), 2)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(c.Version, "Citus 1") {
		t.Errorf("it is %q", c.Version)
	}
	db, err := c.Database(ctx, "on_one", 1)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Run(ctx, `CREATE TABLE entries (project_id text PRIMARY KEY)`, `SET citus.shard_count = 4`,
		`SELECT create_distributed_table('entries', 'project_id')`)
	if err == nil {
		err = db.Load(ctx, "entries", []string{"project_id"}, 100, func(i int) []any { return []any{fmt.Sprint(i)} })
	}
	if err == nil {
		err = db.Checkpoint(ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
	if n, err := db.Number(ctx, `SELECT count(*) FROM entries`); err != nil || n != 100 {
		t.Errorf("%d rows of 100, %v", n, err)
	}
	const shards = `SELECT count(*) * 10 + count(DISTINCT groupid) FROM pg_dist_placement WHERE groupid > 0`
	if n, err := db.Number(ctx, shards); err != nil || n != 41 {
		t.Errorf("shards and their workers: %d, %v; want 4 on 1", n, err)
	}
	if coordinator, workers, err := c.CPU(); err != nil || min(coordinator, workers) < 10*time.Millisecond {
		t.Errorf("a cluster that did something used %v and %v, %v", coordinator, workers, err)
	}
	if servers(t, s.Folder) == 0 {
		t.Error("nothing runs in its folder")
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if n := servers(t, s.Folder); n > 0 {
		t.Errorf("%d processes of it are left", n)
	}
}

// TestCitusEndsWithItsProcess checks that a cluster ends even if the process that started it is killed.
func TestCitusEndsWithItsProcess(t *testing.T) {
	pgtest.Kit(t)
	dir := folder(t)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), asChild+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said, err := bufio.NewReader(out).ReadString('\n')
	if said != "started: <nil>\n" {
		t.Errorf("the output is %q, %v", said, err)
	}
	if servers(t, dir) == 0 {
		t.Error("nothing runs in its folder")
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait() // it was killed
	home := filepath.Join(dir, "citus")
	for deadline := time.Now().Add(time.Minute); ; {
		_, err := os.Stat(home)
		if os.IsNotExist(err) && servers(t, dir) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d processes are left; the data: %v", servers(t, dir), err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}
