package operate

import (
	"cmp"
	"fmt"
	"net/url"

	"github.com/lectern-dev/lectern/cli/internal/preflight"
	"github.com/lectern-dev/lectern/cli/internal/shell"
)

// preFlags are the inputs of lectern check --pre and --cluster, besides the variables of the services.
type preFlags struct {
	Secrets   string `type:"path" help:"With --pre: the file of lectern databases, or what kubectl get prints of its Secrets." placeholder:"FILE"`
	To        string `help:"With --pre: the bucket of a copy, as for lectern sync. The check writes an object there, and removes it." placeholder:"s3://BUCKET/PREFIX"`
	Namespace string `help:"With --pre: check by kubectl the rights and the Secrets in this namespace. With --cluster: the release's namespace. Default: that of kubectl's context." placeholder:"NAME"`
	Release   string `default:"lectern" help:"With --pre: the release's full name, with which the names of its Secrets begin. Default: ${default}." placeholder:"NAME"`
}

func (f preFlags) given() bool { return f.Secrets != "" || f.To != "" || f.Namespace != "" }

// runPre runs the checks of package preflight and prints their results. runPre returns an error if a check failed.
func (c *Check) runPre(s *shell.Session) error {
	o := preflight.Options{Environ: s.Environ, Release: c.Release, Namespace: c.Namespace, Cluster: c.Cluster, Timeout: c.Timeout}
	if o.Environ == nil {
		o.Environ = map[string]string{}
	}
	if c.Secrets != "" {
		known, err := readSecrets(c.Secrets, c.Release)
		if err != nil {
			return err
		}
		if o.Secrets = known; known == nil {
			return shell.Usagef("--secrets: there is no file %s", c.Secrets)
		}
	}
	if c.To != "" {
		u, err := url.Parse(c.To)
		if err != nil || u.Scheme != "s3" || u.Host == "" || u.User != nil {
			return shell.Usagef("--to was given with another form; allowed: s3://BUCKET/PREFIX")
		}
		o.Bucket = u
	}
	results, failed := preflight.Run(s.Context, o), 0
	if err := s.Context.Err(); err != nil {
		return err
	}
	rows := [][]string{{"CHECK", "OUTCOME", "PAGE", "SUBJECT", "MESSAGE"}}
	for _, r := range results {
		if r.Outcome == preflight.Failed {
			failed++
		}
		rows = append(rows, []string{r.Check, r.Outcome, r.Page, cmp.Or(r.Subject, "-"), cmp.Or(r.Message, "-")})
	}
	var err error
	if c.Format(s) == "table" {
		err = shell.Tabulate(s.Out, rows, 0, 0) // a message is not cut, because its end says how to mend the fault
	} else {
		err = c.PrintValue(s, results)
	}
	if err == nil && failed > 0 {
		err = fmt.Errorf("checks that failed: %d", failed)
	}
	return err
}
