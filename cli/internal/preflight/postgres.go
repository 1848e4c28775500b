package preflight

import (
	"context"
	_ "embed" // postgres.sql
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lectern-dev/lectern/shared/config"
)

//go:embed postgres.sql
var statement string

// database is a database by the URL of one role.
type database struct {
	subject  string // where the URL is: DATABASE_URL, or SECRET/DATABASE_URL
	variable string // the setting of the URL, which says what the role is for
	url      config.ServerURL
	password string // replaces that of url; "": none
}

// checkPostgres connects with each URL as services do, and asks whether the database fits the role.
func checkPostgres(ctx context.Context, o Options) []finding {
	all, limit, faults := read("", o.Environ)
	for _, name := range slices.Sorted(maps.Keys(o.Secrets)) {
		more, _, wrong := read(name+"/", o.Secrets[name])
		all, faults = append(all, more...), append(faults, wrong...)
	}
	var subjects []string
	for _, d := range all {
		subjects = append(subjects, d.subject)
	}
	return append(faults, atOnce(subjects, func(i int) error { return all[i].check(ctx, limit) })...)
}

// read returns the databases, STATEMENT_TIMEOUT and the faults of environ, the environment or a Secret. In a Secret, a
// key of its own may have the password. prefix is that of the subjects.
func read(prefix string, environ map[string]string) (all []database, limit time.Duration, faults []finding) {
	var urls struct {
		Reader           config.ServerURL   `env:"DATABASE_URL"`
		Standbys         []config.ServerURL `env:"READ_DATABASE_URL"`
		Ingest           config.ServerURL   `env:"INGEST_DATABASE_URL"`
		Remover          config.ServerURL   `env:"REMOVE_DATABASE_URL"`
		Owner            config.ServerURL   `env:"MIGRATE_DATABASE_URL"`
		Keys             config.ServerURL   `env:"AUTH_DATABASE_URL"`
		KeysAdmin        config.ServerURL   `env:"AUTH_ADMIN_DATABASE_URL"`
		KeysOwner        config.ServerURL   `env:"AUTH_MIGRATE_DATABASE_URL"`
		StatementTimeout time.Duration      `env:"STATEMENT_TIMEOUT" envDefault:"30s"`
	}
	for _, f := range load(&urls, environ) {
		faults = append(faults, finding{prefix + f.subject, f.err})
	}
	byVariable := map[string][]config.ServerURL{
		"DATABASE_URL": {urls.Reader}, "READ_DATABASE_URL": urls.Standbys, "INGEST_DATABASE_URL": {urls.Ingest},
		"REMOVE_DATABASE_URL": {urls.Remover}, "MIGRATE_DATABASE_URL": {urls.Owner}, "AUTH_DATABASE_URL": {urls.Keys},
		"AUTH_ADMIN_DATABASE_URL": {urls.KeysAdmin}, "AUTH_MIGRATE_DATABASE_URL": {urls.KeysOwner},
	}
	for _, variable := range slices.Sorted(maps.Keys(byVariable)) {
		for _, u := range byVariable[variable] {
			password, err := "", error(nil)
			if u.HasPasswordFile() {
				password, err = u.Password()
			} else if prefix != "" {
				password = environ[strings.TrimSuffix(variable, "_URL")+"_PASSWORD"]
			}
			if !u.IsZero() && err == nil { // load has reported err
				all = append(all, database{prefix + variable, variable, u, password})
			}
		}
	}
	return all, urls.StatementTimeout, faults
}

// check connects to d with the parameters of the services, and runs the statement. migrate needs no limit of a
// statement, which a pooler may refuse.
func (d database) check(ctx context.Context, limit time.Duration) error {
	cfg, err := pgx.ParseConfig(d.url.Reveal())
	if err != nil { // err may have the password
		return errors.New("the URL cannot be read: give postgres://user:password@host:port/database?sslmode=…")
	}
	if d.password != "" {
		cfg.Password = d.password
	}
	cfg.RuntimeParams["application_name"] = "lectern check"
	cfg.RuntimeParams["timezone"] = "UTC"
	if limit > 0 && !strings.HasSuffix(d.variable, "MIGRATE_DATABASE_URL") {
		cfg.RuntimeParams["statement_timeout"] = fmt.Sprint(limit.Milliseconds())
		cfg.RuntimeParams["jit"] = "off"
	}
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return fmt.Errorf("no log-in: %s; correct the URL, the role, or the network", why(err))
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var fault *string
	if err := conn.QueryRow(ctx, statement, d.variable).Scan(&fault); err != nil {
		return fmt.Errorf("the server does not answer: %s; run the check again", why(err))
	}
	if fault != nil {
		return errors.New(*fault)
	}
	return nil
}
