package try

import "errors"

// Up is the command lectern up on Windows, where the command only returns an error.
type Up struct{}

// Run returns an error, because lectern up runs Postgres by means that Windows does not have.
func (Up) Run() error {
	return errors.New("lectern up runs on Linux and macOS; on Windows, run it in WSL")
}
