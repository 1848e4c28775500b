package preflight

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lectern-dev/lectern/shared/config"
)

// requiredKeys are the keys that the chart's Secrets must have, by the name of the Secret after that of the release. A
// test checks that pods of the chart read these keys.
var requiredKeys = map[string][]string{
	"entries-database":     {"DATABASE_URL", "MIGRATE_DATABASE_URL"},
	"embeddables-database": {"DATABASE_URL", "MIGRATE_DATABASE_URL"},
	"experiments-database": {"DATABASE_URL", "MIGRATE_DATABASE_URL"},
	"region-database":      {"DATABASE_URL", "MIGRATE_DATABASE_URL"},
	"auth":                 {"AUTH_DATABASE_URL", "AUTH_ADMIN_DATABASE_URL"},
	"redis":                {"REDIS_URL"},
	"keys":                 {"EDGE_KEYS", "INGEST_API_KEYS"},
}

// checkSecretsFile checks that the file has the Secrets of the databases, with the keys that pods need.
func (in *inputs) checkSecretsFile(context.Context) (findings []finding) {
	for _, ending := range slices.Sorted(maps.Keys(requiredKeys)) {
		if name := in.Release + "-" + ending; in.Secrets != nil && ending != "redis" && ending != "keys" {
			findings = append(findings, finding{name, missingKeys(ending, slices.Collect(maps.Keys(in.Secrets[name])))})
		}
	}
	return findings
}

// missingKeys returns an error if the keys of a Secret lack a required key.
func missingKeys(ending string, keys []string) error {
	missing := slices.DeleteFunc(slices.Clone(requiredKeys[ending]), func(key string) bool { return slices.Contains(keys, key) })
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("the Secret is missing, or has no %s: make it as docs/how-to/install.md says", strings.Join(missing, ", "))
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

// readPostgres reads the URLs of databases in the environment and in the Secrets.
func (in *inputs) readPostgres() {
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
	in.postgresFaults = load(&urls, in.Environ)
	in.statementTimeout = urls.StatementTimeout
	fromEnviron := map[string][]config.ServerURL{
		"DATABASE_URL": {urls.Reader}, "READ_DATABASE_URL": urls.Standbys, "INGEST_DATABASE_URL": {urls.Ingest},
		"REMOVE_DATABASE_URL": {urls.Remover}, "MIGRATE_DATABASE_URL": {urls.Owner}, "AUTH_DATABASE_URL": {urls.Keys},
		"AUTH_ADMIN_DATABASE_URL": {urls.KeysAdmin}, "AUTH_MIGRATE_DATABASE_URL": {urls.KeysOwner},
	}
	for _, variable := range slices.Sorted(maps.Keys(fromEnviron)) {
		for _, u := range fromEnviron[variable] {
			password, err := "", error(nil)
			if u.HasPasswordFile() {
				password, err = u.Password()
			}
			if !u.IsZero() && err == nil { // load has reported err
				in.addDatabase(variable, variable, u.Reveal(), password)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(in.Secrets)) {
		keys := in.Secrets[name]
		for _, variable := range slices.Sorted(maps.Keys(keys)) {
			all := []string{keys[variable]}
			if variable == "READ_DATABASE_URL" {
				all = strings.Split(keys[variable], ",")
			}
			password := keys[strings.TrimSuffix(variable, "_URL")+"_PASSWORD"]
			for _, u := range all {
				if _, known := fromEnviron[variable]; known && u != "" {
					in.addDatabase(name+"/"+variable, variable, u, password)
				}
			}
		}
	}
}

// addDatabase adds the database at text, or a fault of the URL. A password that is not empty replaces the URL's.
func (in *inputs) addDatabase(subject, variable, text, password string) {
	cfg, err := pgx.ParseConfig(text)
	if err != nil { // err may have the password
		err = errors.New("the URL cannot be read: give postgres://user:password@host:port/database?sslmode=…")
		in.postgresFaults = append(in.postgresFaults, finding{subject, err})
		return
	}
	if password != "" {
		cfg.Password = password
	}
	cfg.RuntimeParams["application_name"] = "lectern check"
	cfg.RuntimeParams["timezone"] = "UTC" // as the services set it
	in.databases = append(in.databases, &database{subject: subject, variable: variable, config: cfg})
}

// checkPostgresURLs reports the faults that readPostgres found.
func (in *inputs) checkPostgresURLs(context.Context) []finding {
	findings := in.postgresFaults
	for _, d := range in.databases {
		findings = append(findings, finding{d.subject, nil})
	}
	return findings
}

// checkNames looks up the hosts of all URLs. An address is its own result, and a socket needs no look-up.
func (in *inputs) checkNames(ctx context.Context) []finding {
	var subjects, hosts []string
	add := func(subject, host string) {
		if host != "" && !strings.HasPrefix(host, "/") && !slices.Contains(hosts, host) {
			subjects, hosts = append(subjects, subject), append(hosts, host)
		}
	}
	for _, d := range in.databases {
		add(d.subject, d.config.Host)
		for _, f := range d.config.Fallbacks {
			add(d.subject, f.Host)
		}
	}
	if u, err := url.Parse(in.redisConfig.URL.Reveal()); err == nil {
		add("REDIS_URL", u.Hostname())
		for _, address := range u.Query()["addr"] {
			host, _, _ := net.SplitHostPort(address) // redis-url reports a malformed address
			add("REDIS_URL", host)
		}
	}
	return atOnce(subjects, func(i int) error {
		if _, err := net.DefaultResolver.LookupHost(ctx, hosts[i]); err != nil {
			return fmt.Errorf("the look-up of %s failed (%s): correct the URL, or the DNS", hosts[i], why(err))
		}
		return nil
	})
}
