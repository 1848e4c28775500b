package operate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/lectern-dev/lectern/shared/config"

	"github.com/lectern-dev/lectern/cli/internal/databases"
	"github.com/lectern-dev/lectern/cli/internal/shell"
	"github.com/lectern-dev/lectern/copies/durable"
)

// Databases is the command lectern databases. The command prints or executes SQL that creates databases and roles of an
// installation, and writes the Secrets of the chart to a file.
type Databases struct {
	Admin   string `name:"admin-url" env:"LECTERN_ADMIN_DATABASE_URL" required:"" help:"The Postgres server, by a role that may create roles and databases. Other users of this machine can see flags: prefer the variable." placeholder:"URL"`
	Secrets string `required:"" type:"path" help:"The file of the Secrets. An existing one may hold only these. It is read first, and its URLs stay." placeholder:"FILE"`
	Apply   bool   `help:"Execute the SQL instead of printing it."`
	Rotate  bool   `help:"Give the roles that exist new passwords. All other users of these roles lose access."`
	Server  string `help:"The server as pods reach it, with parameters: postgres://db.databases:5432?sslmode=require. Default: as in --admin-url." placeholder:"URL"`
	Prefix  string `help:"The beginning of the names of databases and roles, for a second installation on the server." placeholder:"staging_"`
	Release string `default:"lectern" help:"The release's full name, with which the names of its Secrets begin. Default: ${default}." placeholder:"NAME"`
}

// Help returns the text of lectern databases --help: the steps, and examples.
func (Databases) Help() string {
	return `The command makes five databases with 19 roles, one for each right, and a Secret of URLs for each database. The migrations grant the roles their rights.

It prints the missing SQL, or executes it with --apply. FILE has the only copy of generated passwords, until you apply it. Do not keep it: before the next run, get the Secrets from the cluster. A second run changes nothing.

After --rotate, apply FILE and restart the pods: they get no new connections until then. If it fails, give --rotate again.

Examples:

	export LECTERN_ADMIN_DATABASE_URL=postgres://postgres:…@db.example.com:5432/postgres?sslmode=require
	lectern databases --secrets secrets.yaml --apply
	kubectl -n lectern apply -f secrets.yaml && rm secrets.yaml

	(umask 077; kubectl -n lectern get secret lectern-entries-database lectern-embeddables-database lectern-experiments-database lectern-region-database lectern-auth -o yaml > secrets.yaml)
	lectern databases --secrets secrets.yaml`
}

// Run prints the SQL that makes the missing databases and roles, or executes the SQL with --apply. In both cases, Run
// writes the file of the Secrets before a new password applies.
func (d *Databases) Run(s *shell.Session) error {
	get := fmt.Sprintf("kubectl -n NAMESPACE get secret %s -o yaml", strings.Join(databases.SecretNames(d.Release), " "))
	known, err := readSecrets(d.Secrets, d.Release)
	if err != nil {
		return shell.Advise(err, "the file would be replaced, so give a new one, or what this prints: "+get)
	}
	conn, err := databases.Connect(s.Context, config.NewSecret(d.Admin))
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(s.Context))
	plan, err := databases.New(s.Context, conn, databases.Options{
		Release: d.Release, Server: config.NewSecret(cmp.Or(d.Server, d.Admin)), Prefix: d.Prefix, Known: known, Rotate: d.Rotate,
	})
	if errors.Is(err, databases.ErrUnknownPasswords) {
		return shell.Advise(err, fmt.Sprintf("if another installation uses these roles, give this one a --prefix, such as staging_; if they are of this one, check --release, and get its Secrets from the cluster: (umask 077; %s > %s)", get, d.Secrets))
	}
	if err != nil {
		return err
	}
	manifests, err := plan.Secrets.Manifests()
	if err != nil {
		return err
	}
	// The file is saved before the passwords apply, because no other place has the passwords.
	save := func() error { return durable.WriteFile(d.Secrets, manifests) }
	did := "Executed"
	if d.Apply {
		err = plan.Apply(s.Context, conn, save)
	} else if err = save(); err == nil {
		did = "Printed"
		for _, statement := range plan.SQL() {
			fmt.Fprintln(s.Out, statement+";")
		}
	}
	if err != nil && d.Rotate {
		return shell.Advise(err, "give --rotate again, because "+d.Secrets+" may not have the passwords that apply")
	}
	if err != nil {
		return err
	}
	if d.Rotate && !d.Apply {
		s.Note("Execute all statements: %s fits only these.", d.Secrets)
	}
	s.Note("%s %d statements. Next: kubectl -n NAMESPACE apply -f %s", did, len(plan.SQL()), d.Secrets)
	return nil
}

// readSecrets returns the Secrets in the file of an earlier run, or nil if there is no such file.
func readSecrets(path, release string) (databases.Secrets, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	known, err := databases.ReadSecrets(text, release)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return known, nil
}
