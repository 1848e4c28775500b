package redisdb

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/lectern-dev/lectern/shared/config"
)

func TestParse(t *testing.T) {
	type meaning struct {
		kind     string
		addrs    []string
		master   string
		db       int
		user     string
		password string
		tls      bool
		limit    time.Duration
	}
	for _, tt := range []struct {
		name string
		in   string
		want meaning
	}{
		{"one node", "redis://u:p@h:1/2", meaning{kind: "node", addrs: []string{"h:1"}, db: 2, user: "u", password: "p", limit: 250 * time.Millisecond}},
		{"defaults", "redis://", meaning{kind: "node", addrs: []string{"localhost:6379"}, limit: 250 * time.Millisecond}},
		{"TLS", "rediss://h", meaning{kind: "node", addrs: []string{"h:6379"}, tls: true, limit: 250 * time.Millisecond}},
		{"socket", "unix://u:p@/run/redis.sock?db=3", meaning{kind: "node", addrs: []string{"/run/redis.sock"}, db: 3, user: "u", password: "p", limit: 250 * time.Millisecond}},
		{"own limits", "redis://h?read_timeout=2s", meaning{kind: "node", addrs: []string{"h:6379"}, limit: 2050 * time.Millisecond}},
		{"Sentinel by scheme", "redis+sentinel://s1:26379/1?master_name=m&addr=s2:26379&username=u&password=p", meaning{kind: "sentinel", addrs: []string{"s1:26379", "s2:26379"}, master: "m", db: 1, user: "u", password: "p", limit: 250 * time.Millisecond}},
		{"Sentinel by master_name", "rediss://s1:26379?master_name=m", meaning{kind: "sentinel", addrs: []string{"s1:26379"}, master: "m", tls: true, limit: 250 * time.Millisecond}},
		{"Cluster by scheme", "redis+cluster://u:p@c1:1", meaning{kind: "cluster", addrs: []string{"c1:1"}, user: "u", password: "p", limit: 250 * time.Millisecond}},
		{"Cluster with TLS", "rediss+cluster://c1:1", meaning{kind: "cluster", addrs: []string{"c1:1"}, tls: true, limit: 250 * time.Millisecond}},
		{"Cluster by addr", "redis://c1:1?addr=c2:2&addr=c3:3", meaning{kind: "cluster", addrs: []string{"c1:1", "c2:2", "c3:3"}, limit: 250 * time.Millisecond}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			target, err := parse(config.NewServerURL(tt.in))
			if err != nil {
				t.Fatal(err)
			}
			got := meaning{limit: target.commandTimeout()}
			switch {
			case target.node != nil:
				o := target.node
				got.kind, got.addrs, got.db, got.user, got.password, got.tls = "node", []string{o.Addr}, o.DB, o.Username, o.Password, o.TLSConfig != nil
				if o.MaintNotificationsConfig.Mode != maintnotifications.ModeDisabled || !o.DisableIdentity || !o.ContextTimeoutEnabled {
					t.Errorf("not tuned: %+v", o)
				}
			case target.sentinel != nil:
				o := target.sentinel
				got.kind, got.addrs, got.master, got.db, got.user, got.password, got.tls = "sentinel", o.SentinelAddrs, o.MasterName, o.DB, o.Username, o.Password, o.TLSConfig != nil
			case target.cluster != nil:
				o := target.cluster
				got.kind, got.addrs, got.user, got.password, got.tls = "cluster", o.Addrs, o.Username, o.Password, o.TLSConfig != nil
				if o.TLSConfig != nil && o.TLSConfig.MinVersion == 0 {
					t.Error("any TLS version will do")
				}
			}
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(meaning{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestParseFaults(t *testing.T) {
	const secret = "hunter2"
	for _, tt := range []struct{ name, in string }{
		{"no scheme", "localhost:6379"},
		{"other scheme", "http://u:hunter2@h"},
		{"other suffix", "redis+ring://u:hunter2@h"},
		{"not a URL", "redis://u:hunter2@h:port"},
		{"control character", "redis://u:hunter2\x00@h"},
		{"Sentinel without a master", "redis+sentinel://u:hunter2@h"},
		{"socket of a cluster", "unix+cluster:///run/redis.sock"},
		{"unknown option", "redis://u:hunter2@h?no_such=1"},
		{"bad database", "redis://u:hunter2@h/x"},
		{"bad duration", "redis://u:hunter2@h?read_timeout=long"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := Config{URL: config.NewServerURL(tt.in)}.Validate()
			if err == nil {
				t.Fatal("accepted")
			}
			if !strings.HasPrefix(err.Error(), "REDIS_URL ") || strings.Contains(err.Error(), secret) {
				t.Errorf("says %q", err)
			}
		})
	}
	if err := (Config{}).Validate(); err != nil {
		t.Errorf("no URL: %v", err)
	}
}

func TestRequireTLS(t *testing.T) {
	for url, ok := range map[string]bool{
		"redis://h": false, "redis+sentinel://h?master_name=m": false, "redis+cluster://h": false,
		"rediss://h": true, "rediss+sentinel://h?master_name=m": true, "rediss+cluster://h": true,
	} {
		err := Config{URL: config.NewServerURL(url), RequireTLS: true}.Validate()
		if (err == nil) != ok {
			t.Errorf("%s: %v", url, err)
		}
	}
}

func TestPasswordFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "password")
	for _, url := range []string{
		"redis://u@h", "redis+cluster://u@h", "redis+sentinel://sentinels:theirs@h?master_name=m&username=u",
	} {
		if err := os.WriteFile(file, []byte("first\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		var cfg Config
		if err := config.Load(&cfg, map[string]string{"REDIS_URL": url, "REDIS_PASSWORD_FILE": file}); err != nil {
			t.Fatal(err)
		}
		target, err := parse(cfg.URL)
		if err != nil {
			t.Fatal(err)
		}
		var credentials func(context.Context) (string, string, error)
		switch {
		case target.node != nil:
			credentials = target.node.CredentialsProviderContext
		case target.sentinel != nil:
			credentials = target.sentinel.CredentialsProviderContext
			if o := target.sentinel; o.SentinelUsername != "sentinels" || o.SentinelPassword != "theirs" {
				t.Errorf("%s: the Sentinels' user is %q", url, o.SentinelUsername)
			}
		default:
			credentials = target.cluster.CredentialsProviderContext
		}
		for _, password := range []string{"first", "second"} {
			if err := os.WriteFile(file, []byte(password), 0o600); err != nil {
				t.Fatal(err)
			}
			if user, got, err := credentials(t.Context()); user != "u" || got != password || err != nil {
				t.Errorf("%s: logs in as %q with %q, %v", url, user, got, err)
			}
		}
	}
}
