// Package preflight checks what an installation of Lectern needs: its Secrets, Postgres, Redis, a bucket for copies, and
// rights in a cluster of Kubernetes. The checks change nothing. Only the check of the bucket writes an object, and removes
// the object again. The page docs/reference/checks.md has a section for each check.
package preflight

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/lectern-dev/lectern/cli/internal/databases"
	"github.com/lectern-dev/lectern/shared/http/httpserver"
	"github.com/lectern-dev/lectern/shared/redis/redisdb"
)

// Options select what [Run] checks. [Run] does not do a check without its input.
type Options struct {
	Environ   map[string]string // the variables of the services, and those of AWS for the bucket; not nil
	Secrets   databases.Secrets // the URLs of databases, as lectern databases writes them; nil for none
	Release   string            // the full name of the release, with which the names of its Secrets begin
	Bucket    *url.URL          // s3://BUCKET/PREFIX of a copy; nil for none
	Namespace string            // of the installation in a cluster that kubectl reaches; "" for none
	Timeout   time.Duration     // of one check, for all of its subjects together
	Now       func() time.Time
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

// check is a row of the table of checks. run returns a finding for each subject. Without any subject, the check is not
// done, and needs says what is missing.
type check struct {
	name  string
	needs string
	run   func(*inputs, context.Context) []finding
}

// finding is the result of a check for one subject: nil, a fault, or a [skipped].
type finding struct {
	subject string
	err     error
}

// skipped says why a check could not be done.
type skipped string

func (s skipped) Error() string { return string(s) }

const (
	noURL       = "set DATABASE_URL and the like, or give --secrets FILE"
	noDatabase  = "no database was reached"
	noRedis     = "no Redis was reached"
	noNamespace = "give the namespace of the installation: --namespace NAME"
	noCluster   = "no cluster was reached"
)

// checks are all checks, in their order. A check may use what an earlier check opened.
var checks = []check{
	{"secrets-file", "give the Secrets of lectern databases: --secrets FILE", (*inputs).checkSecretsFile},
	{"postgres-url", noURL, (*inputs).checkPostgresURLs},
	{"redis-url", "set REDIS_URL", (*inputs).checkRedisURL},
	{"dns", "set the URLs of Postgres or Redis, or give --secrets FILE", (*inputs).checkNames},
	{"postgres-login", "no URL of Postgres is set, or each has a fault", (*inputs).checkLogin},
	{"postgres-version", noDatabase, onEach(checkVersion)},
	{"postgres-encoding", noDatabase, onEach(checkEncoding)},
	{"postgres-rights", noDatabase, onEach(checkRights)},
	{"postgres-pooler", noDatabase, onEach(checkPooler)},
	{"postgres-clock", noDatabase, onEach(checkClock)},
	{"redis-login", "REDIS_URL is not set, or has a fault", (*inputs).checkRedisLogin},
	{"redis-version", noRedis, onRedis(checkRedisVersion)},
	{"redis-memory", noRedis, onRedis(checkRedisMemory)},
	{"redis-scripts", noRedis, onRedis(checkRedisScripts)},
	{"bucket", "give the URL of a copy: --to s3://BUCKET/PREFIX", (*inputs).checkBucket},
	{"kubernetes-api", noNamespace, (*inputs).checkAPIServer},
	{"kubernetes-rights", noCluster, (*inputs).checkClusterRights},
	{"kubernetes-secrets", noCluster, (*inputs).checkClusterSecrets},
}

// Run runs all checks one after another. A check that fails does not end the run.
func Run(ctx context.Context, o Options) []Result {
	in := &inputs{Options: o}
	in.readPostgres()
	in.redisFaults = load(&in.redisConfig, o.Environ)
	defer in.close()
	var all []Result
	for _, c := range checks {
		bounded, cancel := context.WithTimeout(ctx, o.Timeout)
		all = append(all, c.results(c.run(in, bounded))...)
		cancel()
	}
	return all
}

// results returns the results of the check for its findings.
func (c check) results(findings []finding) (wrong []Result) {
	row := Result{Check: c.name, Outcome: OK, Page: "docs/reference/checks.md#" + c.name}
	for _, f := range findings {
		if f.err != nil {
			r := row
			r.Outcome, r.Subject, r.Message = Failed, f.subject, f.err.Error()
			if _, ok := errors.AsType[skipped](f.err); ok {
				r.Outcome = NotChecked
			}
			wrong = append(wrong, r)
		}
	}
	if len(findings) == 0 {
		row.Outcome, row.Message = NotChecked, c.needs
	}
	if len(wrong) == 0 {
		return []Result{row}
	}
	return wrong
}

// inputs are the options, and what is read from them and opened for the checks.
type inputs struct {
	Options
	databases        []*database
	postgresFaults   []finding
	statementTimeout time.Duration
	redisConfig      redisdb.Config
	redisFaults      []finding
	redis            *redisdb.Client   // nil unless Redis was reached
	redisInfo        map[string]string // the answer to INFO; nil if Redis refused INFO
	clusterAnswers   bool
}

func (in *inputs) close() {
	for _, d := range in.databases {
		if d.conn != nil {
			_ = d.conn.Close(context.Background()) // nothing was written
		}
	}
	if in.redis != nil {
		_ = in.redis.Close()
	}
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

// why returns the reason of a failed connection or statement, without the user and the password.
func why(err error) string {
	if cause := httpserver.CauseOf(err); cause != "" {
		return cause
	}
	if connect, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		err = connect.Unwrap() // the text of connect has the user
	}
	return strings.Join(strings.Fields(err.Error()), " ")
}
