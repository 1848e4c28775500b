package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/lectern-dev/lectern/shared/config"

	"github.com/lectern-dev/lectern/cli/internal/databases"
	"github.com/lectern-dev/lectern/cli/internal/durable"
)

// rolesCommand creates the databases and roles of an installation, and the Secrets of the chart.
type rolesCommand struct {
	Admin   string `name:"admin-url" env:"LECTERN_ADMIN_DATABASE_URL" required:"" help:"The Postgres server, by a role that may create roles and databases. Other users of this machine can see flags: prefer the variable." placeholder:"URL"`
	Secrets string `required:"" type:"path" help:"The file of the Secrets. An existing one is read first, and its URLs stay." placeholder:"FILE"`
	Apply   bool   `help:"Execute the SQL instead of printing it."`
	Rotate  bool   `help:"Give the roles that exist new passwords."`
	Server  string `help:"The server as pods reach it, with parameters: postgres://db.databases:5432?sslmode=require. Default: as in --admin-url." placeholder:"URL"`
	Release string `default:"lectern" help:"The release's full name, with which the names of its Secrets begin. Default: ${default}." placeholder:"NAME"`
}

// Help describes the steps, with examples.
func (rolesCommand) Help() string {
	return `The command makes five databases with 19 roles, one for each right, and a Secret of URLs for each database. The migrations grant the roles their rights.

It prints the missing SQL, or executes it with --apply. FILE has the only copy of generated passwords, until you apply it. Do not keep it: before the next run, get the Secrets from the cluster. A second run changes nothing. After --rotate, apply FILE and restart the pods: they get no new connections until then.

Examples:

	export LECTERN_ADMIN_DATABASE_URL=postgres://postgres:…@db.example.com:5432/postgres?sslmode=require
	lectern databases --secrets secrets.yaml --apply
	kubectl -n lectern apply -f secrets.yaml && rm secrets.yaml

	kubectl -n lectern get secrets -o yaml > secrets.yaml
	lectern databases --secrets secrets.yaml`
}

// Run prints or makes what is missing.
func (d *rolesCommand) Run(s *Session, c *commands) error {
	known, err := readSecrets(d.Secrets)
	if err != nil {
		return err
	}
	conn, err := databases.Connect(s.Context, config.NewSecret(d.Admin))
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(s.Context))
	plan, err := databases.New(s.Context, conn, databases.Options{
		Release: d.Release, Server: config.NewSecret(cmp.Or(d.Server, d.Admin)), Known: known, Rotate: d.Rotate,
	})
	if _, ok := errors.AsType[*databases.UnknownPasswordsError](err); ok {
		return advisedError{err, fmt.Sprintf("get them from the cluster: kubectl -n NAMESPACE get secrets -o yaml > %s; or give --rotate", d.Secrets)}
	}
	if err != nil {
		return err
	}
	manifests, err := plan.Secrets.Manifests()
	if err != nil {
		return err
	}
	// First the file, because no other place has the passwords.
	if err := durable.WriteFile(d.Secrets, manifests, 0o600); err != nil {
		return err
	}
	if !d.Apply {
		for _, statement := range plan.Statements {
			fmt.Fprintln(s.Out, statement+";")
		}
	} else if err := plan.Apply(s.Context, conn); err != nil {
		return err
	}
	verb := map[bool]string{true: "Executed", false: "Printed"}[d.Apply]
	c.note(s, "%s %d statements. Next: kubectl -n NAMESPACE apply -f %s", verb, len(plan.Statements), d.Secrets)
	return nil
}

// readSecrets reads the file of an earlier run, if there is one.
func readSecrets(path string) (databases.Secrets, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	known, err := databases.ReadSecrets(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return known, nil
}
