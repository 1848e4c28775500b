package shell

import (
	"fmt"

	"github.com/lectern-dev/lectern/client"
)

// ProjectAdministratorFlags are the flags of a command that calls the internal address for a project: the project, the
// address, and the admin key.
type ProjectAdministratorFlags struct {
	Project string `short:"p" env:"LECTERN_PROJECT_ID" required:"" help:"The project's id." placeholder:"ID"`
	AdministratorFlags
}

// AdministratorFlags are the flags of a command that calls the internal address: the address and the admin key.
type AdministratorFlags struct {
	InternalURL string `type:"url" env:"LECTERN_INTERNAL_URL" default:"http://127.0.0.1:9090" help:"The internal address. Default: ${default}." placeholder:"URL"`
	AdminAPIKey string `env:"LECTERN_ADMIN_API_KEY" help:"An admin key. Other users of this machine can see flags: prefer the variable." placeholder:"KEY"`
}

// Administrator returns a client of the internal address that sends the admin key. Without an admin key,
// Administrator returns a usage error.
func (f AdministratorFlags) Administrator(s *Session) (*client.Administrator, error) {
	if f.AdminAPIKey == "" {
		return nil, Usagef("no admin key: set LECTERN_ADMIN_API_KEY, or give --env-file")
	}
	retry := Interactive()
	retry.Notify = Notifier(s.Err)
	admin, err := client.NewAdministrator(f.InternalURL, client.WithAPIKey(f.AdminAPIKey), client.WithUserAgent("lectern-cli"), client.WithRetry(retry))
	if err != nil {
		return nil, usageError{fmt.Errorf("--internal-url: %w", err)}
	}
	return admin, nil
}

// AdviseAdministrator adds advice for the user to an error of a [client.Administrator], such as which variable to
// check. An error for which there is no advice is returned unchanged.
func AdviseAdministrator(err error) error {
	switch client.Code(err) {
	case "unauthorized":
		return advisedError{err, "check LECTERN_ADMIN_API_KEY: it is one of the service's ADMIN_API_KEYS, without its name"}
	case "key_not_found":
		return advisedError{err, "see lectern keys list"}
	case "route_not_found":
		return advisedError{err, "check LECTERN_INTERNAL_URL: it is the internal address, not that of the API"}
	}
	return err
}
