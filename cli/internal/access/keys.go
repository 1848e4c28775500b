package access

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"github.com/lectern-dev/lectern/cli/internal/shell"
	"github.com/lectern-dev/lectern/client"
	"github.com/lectern-dev/lectern/shared/auth"
)

// Keys is the command group lectern keys, which mints, grants, lists, rotates and revokes the API keys of a project.
type Keys struct {
	Mint   keysMint   `cmd:"" help:"Make a key and print it. It is shown only this once."`
	Grant  keysGrant  `cmd:"" help:"Accept the tokens of a person, a program or a group, in place of a key."`
	List   keysList   `cmd:"" help:"List a project's keys and grants."`
	Rotate keysRotate `cmd:"" help:"Replace a key. The old one stays valid for a while."`
	Revoke keysRevoke `cmd:"" help:"Revoke a key: within a second, or within AUTH_CACHE_TTL if Redis is away."`
}

// noticed is the sentence that is printed after a key is rotated or revoked: how soon the services apply the change.
const noticed = "The services notice within a second, or within AUTH_CACHE_TTL (5s by default) if Redis is away."

// printKey prints a new key or grant. Without --output, standard output gets the key alone, or the id of a grant, so that
// a shell can read it. Standard error gets the details. With --output, standard output gets the whole record.
func printKey(s *shell.Session, out shell.OutputFlags, minted client.MintedAPIKey) error {
	if out.Output != "" {
		return out.PrintValue(s, minted)
	}
	expiry := "no expiry"
	if minted.ExpiresAt != nil {
		expiry = "expires " + minted.ExpiresAt.Format(time.RFC3339)
	}
	if minted.Identity != nil {
		s.Note("Grant %s of project %s for %s, scopes %s, %s:", minted.ID, minted.ProjectID, identityOf(minted.APIKey), strings.Join(minted.Scopes, " "), expiry)
		_, err := fmt.Fprintln(s.Out, minted.ID)
		return err
	}
	s.Note("Key %s of project %s, scopes %s, %s. It is shown this once:", minted.ID, minted.ProjectID, strings.Join(minted.Scopes, " "), expiry)
	_, err := fmt.Fprintln(s.Out, minted.Key)
	return err
}

// keyFlags are the flags of a new key or grant.
type keyFlags struct {
	shell.ProjectAdministratorFlags
	Name      string        `help:"Its name for people." placeholder:"TEXT"`
	Scope     []string      `help:"Its permissions: entries:read, embeddables:read, experiments:read (all three by default), proxy:use." placeholder:"SCOPE,…"`
	ExpiresIn time.Duration `help:"End it after this time, such as 30d. Default: never." placeholder:"DURATION"`
	ExpiresAt shell.Moment  `help:"End it at this time." placeholder:"TIME"`
	Rate      int           `help:"Requests a second. Default: that of the services." placeholder:"N"`
	shell.OutputFlags
}

// mint makes the key or the grant that wanted and the flags describe, and prints it.
func (k *keyFlags) mint(s *shell.Session, wanted client.NewAPIKey) error {
	scopes, err := auth.ParseScopes(k.Scope...)
	if err != nil {
		return shell.Usage(fmt.Errorf("--scope: %w", err))
	}
	wanted.Name, wanted.Scopes, wanted.Rate = k.Name, scopes.Names(), k.Rate
	switch {
	case k.ExpiresIn > 0 && !k.ExpiresAt.IsZero():
		return shell.Usagef("--expires-in and --expires-at were both given; allowed: one of them")
	case k.ExpiresIn > 0:
		wanted.ExpiresAt = new(s.Now().Add(k.ExpiresIn))
	case !k.ExpiresAt.IsZero():
		wanted.ExpiresAt = &k.ExpiresAt.Time
	}
	admin, err := k.Administrator(s)
	if err != nil {
		return err
	}
	minted, err := admin.MintAPIKey(s.Context, k.Project, wanted)
	if err != nil {
		return shell.AdviseAdministrator(err)
	}
	return printKey(s, k.OutputFlags, minted)
}

type keysMint struct {
	keyFlags `set:"output_default=the key alone"`
	Import   bool `help:"Import an existing key from standard input. The services accept it with FOREIGN_KEYS=true."`
}

// Help returns the text of lectern keys mint --help, with examples.
func (keysMint) Help() string {
	return `The key alone goes to standard output, messages to standard error.

Examples:

	LECTERN_API_KEY=$(lectern keys mint --project pr_1 --name reports)
	lectern keys mint --project pr_1 --scope entries:read --expires-in 30d --rate 50`
}

// Run makes a key for the project and prints the key. With --import, Run imports the key from standard input instead.
func (k *keysMint) Run(s *shell.Session) error {
	var wanted client.NewAPIKey
	if k.Import {
		text, err := io.ReadAll(io.LimitReader(s.In, 4096))
		if err != nil {
			return err
		}
		if wanted.Key = strings.TrimSpace(string(text)); wanted.Key == "" {
			return shell.Usagef("--import: standard input holds no key")
		}
	}
	return k.mint(s, wanted)
}

type keysGrant struct {
	Issuer   string `type:"url" required:"" help:"The issuer of the tokens, one of the services' TOKEN_ISSUERS." placeholder:"URL"`
	Subject  string `help:"The subject of the tokens: a person or a program." placeholder:"TEXT"`
	Group    string `help:"A group of the tokens, in place of a subject." placeholder:"TEXT"`
	keyFlags `set:"output_default=the id alone"`
}

// Help returns the text of lectern keys grant --help, with examples.
func (keysGrant) Help() string {
	return `The id of the grant alone goes to standard output, messages to standard error. lectern keys revoke ends a grant.

Examples:

	lectern keys grant --project pr_1 --issuer https://id.example.com --subject alice --name alice
	lectern keys grant --project pr_1 --issuer https://id.example.com --group analysts --scope entries:read --expires-in 30d`
}

// Run makes a grant for the subject or the group, and prints its id. Both or neither of the two are a usage error.
func (k *keysGrant) Run(s *shell.Session) error {
	if (k.Subject == "") == (k.Group == "") {
		return shell.Usagef("a grant needs either --subject or --group")
	}
	return k.mint(s, client.NewAPIKey{Identity: &client.Identity{Issuer: k.Issuer, Subject: k.Subject, Group: k.Group}})
}

// identityOf returns whose tokens a grant accepts, for people, or "" for a key.
func identityOf(key client.APIKey) string {
	if key.Identity == nil {
		return ""
	}
	return cmp.Or(key.Identity.Subject, "group "+key.Identity.Group) + " of " + key.Identity.Issuer
}

type keysList struct {
	shell.ProjectAdministratorFlags
	shell.OutputFlags
}

// Help returns the text of lectern keys list --help: which keys the list has, and examples.
func (keysList) Help() string {
	return `The list has revoked and expired keys too, the oldest first. The last use is exact to about a minute. A program
manages a key with an owner, as the operator does for an APIKey of Kubernetes. It replaces the key if you revoke it.

Examples:

	lectern keys list --project pr_1
	lectern keys list --project pr_1 | jq -r 'select(.state == "active").id'`
}

// Run prints the keys and grants of the project, including revoked and expired keys.
func (k *keysList) Run(s *shell.Session) error {
	admin, err := k.Administrator(s)
	if err != nil {
		return err
	}
	keys, err := admin.APIKeys(s.Context, k.Project)
	if err != nil {
		return shell.AdviseAdministrator(err)
	}
	if k.Format(s) != "table" {
		return k.PrintValue(s, keys)
	}
	rows := [][]string{{"ID", "STATE", "NAME", "SCOPES", "RATE", "CREATED", "EXPIRES", "LAST USED", "IDENTITY", "OWNER"}}
	for _, key := range keys {
		rate, owner := "default", ""
		if key.Rate != nil {
			rate = strconv.Itoa(*key.Rate) + "/s"
		}
		if key.Owner != nil {
			owner = *key.Owner
		}
		rows = append(rows, []string{
			key.ID, key.State, orDash(key.Name), orDash(strings.Join(key.Scopes, ",")), rate,
			when(&key.CreatedAt), when(key.ExpiresAt), when(key.LastUsedAt), orDash(identityOf(key)), orDash(owner),
		})
	}
	return shell.Tabulate(s.Out, rows, 0, s.Width)
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

func when(t *time.Time) string {
	if t == nil {
		return "-"
	}
	return t.Format("2006-01-02 15:04:05Z")
}

type keysRotate struct {
	shell.ProjectAdministratorFlags
	Overlap time.Duration `default:"1d" min:"0" help:"How long the old key stays valid; 0 ends it at once. Default: ${default}." placeholder:"DURATION"`
	ID      string        `arg:"" help:"The id of the key to replace, as keys list shows it."`

	shell.OutputFlags `set:"output_default=the key alone"`
}

// Help returns the text of lectern keys rotate --help, with examples.
func (keysRotate) Help() string {
	return `The new key has the name, the scopes and the rate of the old one. It alone goes to standard output.

Examples:

	LECTERN_API_KEY=$(lectern keys rotate KEY_ID --project pr_1)
	lectern keys rotate KEY_ID --project pr_1 --overlap 1h`
}

// Run makes a new key in place of an old key, and prints the new key. The old key expires after --overlap at the
// latest.
func (k *keysRotate) Run(s *shell.Session) error {
	admin, err := k.Administrator(s)
	if err != nil {
		return err
	}
	minted, err := admin.RotateAPIKey(s.Context, k.Project, k.ID, k.Overlap)
	if err != nil {
		return shell.AdviseAdministrator(err)
	}
	s.Note("Key %s ends in %v. %s", k.ID, model.Duration(k.Overlap), noticed)
	return printKey(s, k.OutputFlags, minted)
}

type keysRevoke struct {
	shell.ProjectAdministratorFlags
	ID string `arg:"" help:"The id of the key to end, as keys list shows it."`
}

// Help returns the text of lectern keys revoke --help, which is an example.
func (keysRevoke) Help() string {
	return `Example:

	lectern keys revoke KEY_ID --project pr_1`
}

// Run revokes the key, and prints to standard error since when the key is revoked.
func (k *keysRevoke) Run(s *shell.Session) error {
	admin, err := k.Administrator(s)
	if err != nil {
		return err
	}
	revoked, err := admin.RevokeAPIKey(s.Context, k.Project, k.ID)
	if err != nil {
		return shell.AdviseAdministrator(err)
	}
	s.Note("Key %s is revoked since %s. %s", revoked.ID, when(revoked.RevokedAt), noticed)
	return nil
}
