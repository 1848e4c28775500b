// Package preflight checks what an installation of Lectern needs: Postgres, Redis, a bucket for copies, and the Secrets
// and rights in a cluster of Kubernetes. The package also says what keeps an installation in a cluster from being ready.
// The checks change nothing. Only the check of the bucket writes an object, and removes the object again. The page
// docs/reference/checks.md has a section for each check.
package preflight

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/redis/go-redis/v9"

	"github.com/lectern-dev/lectern/cli/internal/databases"
	"github.com/lectern-dev/lectern/copies/files"
	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/http/httpserver"
	"github.com/lectern-dev/lectern/shared/redis/redisdb"
)

// Options select what [Run] checks. [Run] does not do a check without its input.
type Options struct {
	Environ   map[string]string // the variables of the services, and those of AWS for the bucket; not nil
	Secrets   databases.Secrets // the URLs of databases, as lectern databases writes them; nil for none
	Release   string            // the full name of the release, with which the names of its Secrets begin
	Bucket    *url.URL          // s3://BUCKET/PREFIX of a copy; nil for none
	Namespace string            // of the installation in a cluster that kubectl reaches; "" for none, or with Cluster that of the context
	Cluster   bool              // check what runs in the cluster, and nothing else
	Timeout   time.Duration     // of one check, for all of its subjects together
}

// The outcomes of a check.
const (
	OK         = "ok"
	Failed     = "failed"
	NotChecked = "not checked"
)

// Result is the outcome of a check: one for all subjects if nothing is wrong, and otherwise one for each wrong subject.
type Result struct {
	Check   string `json:"check"`
	Outcome string `json:"outcome"`
	Subject string `json:"subject"` // such as DATABASE_URL
	Message string `json:"message"` // what is wrong and how to mend it, or why the check was not done
	Page    string `json:"page"`    // the section of the documentation
}

// checks are all checks, in their order. run returns a finding for each subject. Without any subject, the check is not
// done, and needs says what is missing.
var checks = []struct {
	name    string
	cluster bool // as in Options
	needs   string
	run     func(context.Context, Options) []finding
}{
	{"postgres", false, "set DATABASE_URL and the like, or give --secrets FILE", checkPostgres},
	{"redis", false, "set REDIS_URL", checkRedis},
	{"bucket", false, "give the URL of a copy: --to s3://BUCKET/PREFIX", checkBucket},
	{"kubernetes-rights", false, "give the namespace of the installation: --namespace NAME", checkClusterRights},
	{"kubernetes-secrets", false, "give the namespace of the installation: --namespace NAME", checkClusterSecrets},
	{"pods", true, "the namespace has no pod of the chart: give --namespace NAME", checkPods},
	{"objects", true, "there is no Project, APIKey, Credential or ProxyEndpoint", checkObjects},
}

// finding is the result of a check for one subject. err is nil if nothing is wrong.
type finding struct {
	subject string
	err     error
}

// Run runs all checks that o selects one after another. A check that fails does not end the run.
func Run(ctx context.Context, o Options) (all []Result) {
	for _, c := range checks {
		if c.cluster != o.Cluster {
			continue
		}
		bounded, cancel := context.WithTimeout(ctx, o.Timeout)
		findings := c.run(bounded, o)
		cancel()
		page := "docs/reference/checks.md#" + c.name
		var wrong []Result
		for _, f := range findings {
			if f.err != nil {
				wrong = append(wrong, Result{c.name, Failed, f.subject, strings.Join(strings.Fields(f.err.Error()), " "), page})
			}
		}
		switch {
		case len(findings) == 0:
			all = append(all, Result{c.name, NotChecked, "", c.needs, page})
		case len(wrong) == 0:
			all = append(all, Result{c.name, OK, "", "", page})
		}
		all = append(all, wrong...)
	}
	return all
}

// atOnce calls do for all subjects at the same time, because a server that is away answers only after the time-out.
func atOnce(subjects []string, do func(i int) error) []finding {
	findings := make([]finding, len(subjects))
	var all sync.WaitGroup
	for i, subject := range subjects {
		all.Go(func() { findings[i] = finding{subject, do(i)} })
	}
	all.Wait()
	return findings
}

// checkRedis connects to Redis with the time limits of the services, and runs a script that reads a key of Lectern,
// which does not exist.
func checkRedis(ctx context.Context, o Options) []finding {
	var cfg redisdb.Config
	if faults := load(&cfg, o.Environ); len(faults) > 0 || !cfg.Enabled() {
		return faults
	}
	client, err := redisdb.Open(cfg, redisdb.Options{})
	if err != nil {
		return []finding{{"REDIS_URL", err}}
	}
	defer client.Close()
	if err = client.Reach(ctx); err != nil {
		err = fmt.Errorf("no log-in: %s; correct the URL, the user, or the network", why(err))
	} else {
		err = redisdb.Commands(client).Eval(ctx, "return redis.call('GET', KEYS[1])", []string{"lectern:check"}).Err()
		if errors.Is(err, redis.Nil) {
			err = nil
		} else if err != nil {
			err = errors.New("the server refuses scripts: allow the user EVAL and EVALSHA, and all commands on the keys lectern:*")
		}
	}
	return []finding{{"REDIS_URL", err}}
}

// checkBucket checks that the store honours conditional writes and lists its objects, as copies need.
func checkBucket(ctx context.Context, o Options) []finding {
	if o.Bucket == nil {
		return nil
	}
	err := files.Probe(ctx, o.Bucket.Host, o.Bucket.Path, o.Environ)
	if errors.Is(err, context.DeadlineExceeded) {
		err = errors.New("the store does not answer in time: correct AWS_ENDPOINT_URL, or the network")
	}
	return []finding{{"--to", err}}
}

// load loads the settings dst, and returns their faults.
func load(dst any, environ map[string]string) (findings []finding) {
	if faults, ok := errors.AsType[*config.Faults](config.Load(dst, environ)); ok {
		for _, err := range faults.All {
			if fault, ok := errors.AsType[*config.Fault](err); ok {
				findings = append(findings, finding{fault.Variable, fault})
			}
		}
	}
	return findings
}

// why returns the reason of a failed connection or statement, without the user and the password.
func why(err error) string {
	if cause := httpserver.CauseOf(err); cause != "" {
		return cause
	}
	if connect, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		err = connect.Unwrap() // the text of connect has the user
	}
	return err.Error()
}
