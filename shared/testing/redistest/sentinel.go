package redistest

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lectern-dev/lectern/shared/config"
)

// masterName is the name of the master in the Sentinels' configuration.
const masterName = "lectern"

// Sentinel is a master with a replica and three Sentinels, for one test.
type Sentinel struct {
	// Servers are the two Redis servers. The first one starts as the master. Faults that the test causes change the
	// roles.
	Servers []*Server

	// Sentinels monitor the servers. If the master is silent for three seconds, two of them make the replica the master.
	Sentinels []*Server

	// URL names the Sentinels.
	URL config.ServerURL

	t testing.TB
}

// StartSentinel starts all five servers and stops them when t ends. It waits until the Sentinels know each other and
// the replica.
func StartSentinel(t testing.TB) *Sentinel {
	t.Helper()
	s := &Sentinel{t: t}
	master := Start(t, "--repl-diskless-sync-delay", "0")
	replica := Start(t, "--repl-diskless-sync-delay", "0", "--replicaof", "127.0.0.1 "+fmt.Sprint(master.port))
	s.Servers = []*Server{master, replica}
	query := []string{"master_name=" + masterName}
	for range 3 {
		watcher := start(t, func(w *Server) ([]string, error) { return sentinelArguments(w, master) })
		if len(s.Sentinels) > 0 {
			query = append(query, "addr="+watcher.Addr())
		}
		s.Sentinels = append(s.Sentinels, watcher)
	}
	s.URL = config.NewServerURL("redis+sentinel://" + s.Sentinels[0].Addr() + "?" + strings.Join(query, "&"))
	for _, w := range s.Sentinels {
		s.until("a Sentinel knows the others and the replica", func(ctx context.Context) bool {
			client := connect(w)
			defer client.Close()
			info := client.Info(ctx, "sentinel").Val()
			return strings.Contains(info, "status=ok") && strings.Contains(info, "slaves=1,sentinels=3")
		})
	}
	return s
}

// sentinelArguments writes the file in which a Sentinel keeps its state.
func sentinelArguments(w, master *Server) ([]string, error) {
	file := filepath.Join(w.dir, "sentinel.conf")
	text := fmt.Sprintf(`port %d
bind 127.0.0.1
dir %s
daemonize no
sentinel monitor %[3]s 127.0.0.1 %[4]d 2
sentinel down-after-milliseconds %[3]s 3000
sentinel failover-timeout %[3]s 5000
sentinel parallel-syncs %[3]s 1
`, w.port, w.dir, masterName, master.port)
	return []string{file, "--sentinel"}, os.WriteFile(file, []byte(text), 0o600)
}

// Master returns the server that the answering Sentinels name as the master. It returns nil if they do not agree or
// if that server does not run.
func (s *Sentinel) Master() *Server {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	addr := ""
	for _, w := range s.Sentinels {
		if !w.Running() {
			continue
		}
		client := connect(w)
		named, err := client.Do(ctx, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", masterName).StringSlice()
		_ = client.Close()
		if err != nil {
			continue
		}
		if len(named) != 2 || addr != "" && addr != net.JoinHostPort(named[0], named[1]) {
			return nil
		}
		addr = net.JoinHostPort(named[0], named[1])
	}
	for _, r := range s.Servers {
		if r.Addr() == addr && r.Running() {
			return r
		}
	}
	return nil
}

// AwaitMaster returns the master, once it differs from before and accepts writes.
func (s *Sentinel) AwaitMaster(before *Server) *Server {
	s.t.Helper()
	var found *Server
	s.until("another master serves", func(ctx context.Context) bool {
		if found = s.Master(); found == nil || found == before {
			return false
		}
		client := connect(found)
		defer client.Close()
		return client.Set(ctx, "redistest", "", time.Second).Err() == nil
	})
	return found
}

func (s *Sentinel) until(what string, ok func(context.Context) bool) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*bound)
	defer cancel()
	for !ok(ctx) {
		select {
		case <-ctx.Done():
			s.t.Fatalf("redistest: not within %v: %s", 2*bound, what)
		case <-time.After(5 * time.Millisecond):
		}
	}
}
