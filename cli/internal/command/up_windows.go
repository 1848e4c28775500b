package command

import "errors"

type upCommand struct{}

// Run refuses: Postgres is run by means that Windows does not have.
func (upCommand) Run() error {
	return errors.New("lectern up runs on Linux and macOS; on Windows, run it in WSL")
}
