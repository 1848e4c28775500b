package try

import "errors"

// Up is lectern up: everything on this machine.
type Up struct{}

// Run refuses: Postgres is run by means that Windows does not have.
func (Up) Run() error {
	return errors.New("lectern up runs on Linux and macOS; on Windows, run it in WSL")
}
