package read

import (
	"bytes"
	"os"

	"github.com/lectern-dev/lectern/cli/internal/shell"
	"github.com/lectern-dev/lectern/copies"
)

// maskFlags are the flags that hide values from a copy: fields to leave out, and fields to replace by a hash.
type maskFlags struct {
	Without        []string `sep:"none" help:"Leave out a column of all tables, or entry_data.KEY, a key of entry_data. The copy never gets the values. Repeat the flag for more." placeholder:"NAME"`
	Hash           []string `sep:"none" help:"Replace the values of a column of text, or of entry_data.KEY, by HMAC-SHA-256 in hex of their JSON. Repeat the flag for more." placeholder:"NAME"`
	HashSecretFile string   `type:"path" env:"LECTERN_HASH_SECRET_FILE" help:"A file with the secret of --hash, of at least 16 bytes. Default: the variable LECTERN_HASH_SECRET." placeholder:"FILE"`
}

// mask returns the mask that the flags describe. The secret of the hashes is the content of --hash-secret-file, or
// LECTERN_HASH_SECRET in environ.
func (f *maskFlags) mask(environ map[string]string) (*copies.Mask, error) {
	secret := []byte(environ["LECTERN_HASH_SECRET"])
	if f.HashSecretFile != "" {
		var err error
		if secret, err = os.ReadFile(f.HashSecretFile); err != nil {
			return nil, shell.Usagef("--hash-secret-file: %w", err)
		}
	}
	m, err := copies.NewMask(f.Without, f.Hash, bytes.TrimSpace(secret))
	if err != nil {
		return nil, shell.Usage(err)
	}
	return m, nil
}
