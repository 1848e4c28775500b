package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/auth/keyring"
	"github.com/lectern-dev/lectern/shared/auth/pgkeys"
	"github.com/lectern-dev/lectern/shared/config"
)

type keysCommands struct {
	Mint   keysMint   `cmd:"" help:"Make a key and print it: the only time that it is shown."`
	List   keysList   `cmd:"" help:"List a project's keys."`
	Rotate keysRotate `cmd:"" help:"Make a key in the place of another, which works on for a while."`
	Revoke keysRevoke `cmd:"" help:"End a key for good: everywhere within a second with --redis-url, else within AUTH_CACHE_TTL."`
}

// keyStoreFlags say where the keys are.
type keyStoreFlags struct {
	Project     string `short:"p" env:"LECTERN_PROJECT_ID" required:"" help:"The project's id." placeholder:"ID"`
	DatabaseURL string `env:"AUTH_ADMIN_DATABASE_URL" required:"" help:"The keys' database, by the role that mints and revokes." placeholder:"URL"`
	RedisURL    string `env:"REDIS_URL" help:"The Redis of the services, through which they learn of a change within a second. Without it they notice within AUTH_CACHE_TTL." placeholder:"URL"`
}

// open returns the keys' administration. The caller closes it.
func (f keyStoreFlags) open(s *Session) (*keyring.Admin, error) {
	environ := map[string]string{
		"AUTH_ADMIN_DATABASE_URL": f.DatabaseURL,
		"REDIS_URL":               f.RedisURL,
	}
	var cfg auth.Config
	if err := config.Load(&cfg, environ); err != nil {
		return nil, usageError{err}
	}
	return keyring.OpenAdmin(s.Context, cfg, keyring.Options{
		Log: slog.New(slog.NewTextHandler(s.Err, &slog.HandlerOptions{Level: slog.LevelWarn})),
		Now: s.Now,
	})
}

// noticed says how soon the services learn of a change that could be announced.
func (f keyStoreFlags) noticed() string {
	if f.RedisURL == "" {
		return "within AUTH_CACHE_TTL (5s by default), as --redis-url is not given"
	}
	return "within a second"
}

// use opens the administration for do.
func (f keyStoreFlags) use(s *Session, do func(*keyring.Admin) error) (err error) {
	admin, err := f.open(s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, admin.Close()) }()
	if err = do(admin); errors.Is(err, pgkeys.ErrNotFound) {
		return fmt.Errorf("%w; see lectern keys list", err)
	}
	return err
}

// keyOutput is a key as --json shows it.
type keyOutput struct {
	ID         string     `json:"id"`
	Key        string     `json:"key,omitempty"`
	ProjectID  string     `json:"project_id"`
	Name       string     `json:"name"`
	Scopes     []string   `json:"scopes"`
	Rate       int        `json:"rate,omitempty"`
	State      string     `json:"state"`
	CreatedAt  time.Time  `json:"created_at"`
	ExpiresAt  *time.Time `json:"expires_at"`
	RevokedAt  *time.Time `json:"revoked_at"`
	LastUsedAt *time.Time `json:"last_used_at"`
	Foreign    bool       `json:"foreign,omitempty"`
	Owner      string     `json:"owner,omitempty"`
}

func outputOf(r auth.Record, key config.Secret, now time.Time) keyOutput {
	orNil := func(t time.Time) *time.Time {
		if t.IsZero() {
			return nil
		}
		return &t
	}
	state := "active"
	switch {
	case !r.RevokedAt.IsZero():
		state = "revoked"
	case !r.Active(now):
		state = "expired"
	}
	return keyOutput{
		ID: r.ID, Key: key.Reveal(), ProjectID: r.ProjectID, Name: r.Name, Scopes: r.Scopes.Names(), Rate: r.Rate, State: state,
		CreatedAt: r.CreatedAt, ExpiresAt: orNil(r.ExpiresAt), RevokedAt: orNil(r.RevokedAt), LastUsedAt: orNil(r.LastUsedAt),
		Foreign: r.Foreign, Owner: r.Owner.Name,
	}
}

func printJSON(out io.Writer, v any) error {
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// printKey prints a new key, alone on standard output so that a shell can take it.
func printKey(s *Session, c *commands, asJSON bool, key config.Secret, r auth.Record) error {
	if asJSON {
		return printJSON(s.Out, outputOf(r, key, s.Now()))
	}
	c.note(s, "Key %s of project %s, scopes %s, %s. It is shown this once:", r.ID, r.ProjectID, r.Scopes, expiry(r.ExpiresAt))
	_, err := fmt.Fprintln(s.Out, key.Reveal())
	return err
}

func expiry(t time.Time) string {
	if t.IsZero() {
		return "no expiry"
	}
	return "expires " + t.Format(time.RFC3339)
}

type keysMint struct {
	keyStoreFlags
	Name      string        `help:"What its owner calls it." placeholder:"TEXT"`
	Scope     []string      `help:"What it may be used for: entries:read, embeddables:read, experiments:read (all three by default), proxy:use." placeholder:"SCOPE,…"`
	ExpiresIn time.Duration `help:"End it after this time, such as 720h. Default: never." placeholder:"DURATION"`
	ExpiresAt moment        `help:"End it at this time." placeholder:"TIME"`
	Rate      int           `help:"Requests a second. Default: that of the services." placeholder:"N"`
	Import    bool          `help:"Import an existing key from standard input. The services accept it with FOREIGN_KEYS=true."`
	JSON      bool          `help:"Print the key and all about it as JSON."`
}

// Help shows examples.
func (keysMint) Help() string {
	return `The key alone goes to standard output; what else is said goes to standard error.

Examples:

	LECTERN_API_KEY=$(lectern keys mint --project pr_1 --name reports)
	lectern keys mint --project pr_1 --scope entries:read --expires-in 720h --rate 50`
}

// Run mints.
func (k *keysMint) Run(s *Session, c *commands) error {
	scopes, err := auth.ParseScopes(k.Scope...)
	if err != nil {
		return usageError{fmt.Errorf("--scope: %w", err)}
	}
	o := pgkeys.MintOptions{ProjectID: k.Project, Name: k.Name, Scopes: scopes, ExpiresAt: k.ExpiresAt.Time, Rate: k.Rate}
	switch {
	case k.ExpiresIn < 0:
		return usagef("--expires-in %v: want a time to come", k.ExpiresIn)
	case k.ExpiresIn > 0 && !o.ExpiresAt.IsZero():
		return usagef("--expires-in and --expires-at are both given: want one")
	case k.ExpiresIn > 0:
		o.ExpiresAt = s.Now().Add(k.ExpiresIn)
	}
	if k.Import {
		text, err := io.ReadAll(io.LimitReader(s.In, 4096))
		if err != nil {
			return err
		}
		if o.Value = config.NewSecret(strings.TrimSpace(string(text))); o.Value.IsZero() {
			return usagef("--import: standard input holds no key")
		}
	}
	return k.use(s, func(admin *keyring.Admin) error {
		key, record, err := admin.Mint(s.Context, o)
		if err != nil {
			return err
		}
		return printKey(s, c, k.JSON, key, record)
	})
}

type keysList struct {
	keyStoreFlags
	JSON bool `help:"Print JSON."`
}

// Help shows examples.
func (keysList) Help() string {
	return `Revoked and expired keys too, oldest first. The last use is exact to about a minute. A key with an owner is
looked after by a program, such as an APIKey of Kubernetes by its operator, which puts another in its place
when it is revoked.

Examples:

	lectern keys list --project pr_1
	lectern keys list --project pr_1 --json | jq -r '.[] | select(.state == "active").id'`
}

// Run lists.
func (k *keysList) Run(s *Session) error {
	return k.use(s, func(admin *keyring.Admin) error {
		records, err := admin.List(s.Context, k.Project)
		if err != nil {
			return err
		}
		now := s.Now()
		if k.JSON {
			keys := make([]keyOutput, len(records))
			for i, r := range records {
				keys[i] = outputOf(r, config.Secret{}, now)
			}
			return printJSON(s.Out, keys)
		}
		table := tabwriter.NewWriter(s.Out, 0, 0, 3, ' ', 0)
		fmt.Fprintln(table, "ID\tSTATE\tNAME\tSCOPES\tRATE\tCREATED\tEXPIRES\tLAST USED\tOWNER")
		for _, r := range records {
			rate := "default"
			if r.Rate > 0 {
				rate = strconv.Itoa(r.Rate) + "/s"
			}
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.ID, outputOf(r, config.Secret{}, now).State, orDash(r.Name),
				orDash(strings.Join(r.Scopes.Names(), ",")), rate, when(r.CreatedAt), when(r.ExpiresAt), when(r.LastUsedAt),
				orDash(r.Owner.Name))
		}
		return table.Flush()
	})
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

func when(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Format("2006-01-02 15:04:05Z")
}

type keysRotate struct {
	keyStoreFlags
	Overlap time.Duration `default:"24h" help:"How long the old key works on; 0s ends it at once. Default: ${default}." placeholder:"DURATION"`
	JSON    bool          `help:"Print the key and all about it as JSON."`
	ID      string        `arg:"" help:"The id of the key to replace, as keys list shows it."`
}

// Help shows examples.
func (keysRotate) Help() string {
	return `The new key has the name, the scopes and the rate of the old one. It alone goes to standard output.

Examples:

	LECTERN_API_KEY=$(lectern keys rotate KEY_ID --project pr_1)
	lectern keys rotate KEY_ID --project pr_1 --overlap 1h`
}

// Run rotates.
func (k *keysRotate) Run(s *Session, c *commands) error {
	if k.Overlap < 0 {
		return usagef("--overlap %v: want 0s or more", k.Overlap)
	}
	return k.use(s, func(admin *keyring.Admin) error {
		key, record, err := admin.Rotate(s.Context, k.Project, k.ID, k.Overlap)
		if err != nil {
			return err
		}
		c.note(s, "Key %s ends in %v. The services notice %s.", k.ID, k.Overlap, k.noticed())
		return printKey(s, c, k.JSON, key, record)
	})
}

type keysRevoke struct {
	keyStoreFlags
	ID string `arg:"" help:"The id of the key to end, as keys list shows it."`
}

// Help shows examples.
func (keysRevoke) Help() string {
	return `Example:

	lectern keys revoke KEY_ID --project pr_1`
}

// Run revokes.
func (k *keysRevoke) Run(s *Session, c *commands) error {
	return k.use(s, func(admin *keyring.Admin) error {
		record, err := admin.Revoke(s.Context, k.Project, k.ID)
		if err != nil {
			return err
		}
		c.note(s, "Key %s is revoked since %s. The services notice %s.", record.ID, record.RevokedAt.Format(time.RFC3339), k.noticed())
		return nil
	})
}
