package local

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/lectern-dev/lectern/copies/durable"
)

// state is the content of state.json, which a run leaves for the next run in addition to the data: secrets and
// completed steps.
type state struct {
	path string

	IngestKey   string `json:"ingest_key"`
	InternalKey string `json:"internal_key"`
	AdminKey    string `json:"admin_key"`
	// APIKey is the demo project's key, or "" before the first run has made a key. The key is valid while the
	// database contains it.
	APIKey string `json:"api_key,omitempty"`
	// APIKeyScopes lists the scopes of APIKey, separated by spaces.
	APIKeyScopes string `json:"api_key_scopes,omitempty"`
	// DemoLoaded reports whether all of the demo project's entries and events were acknowledged.
	DemoLoaded bool `json:"demo_loaded,omitempty"`
}

// openState reads the state of the previous run, or creates a state with new secrets. openState saves the state.
func openState(folder string) (*state, error) {
	s := &state{path: filepath.Join(folder, "state.json")}
	b, err := os.ReadFile(s.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	default:
		if err := json.Unmarshal(b, s); err != nil {
			return nil, fmt.Errorf("%s is damaged (%w): remove it", s.path, err)
		}
	}
	for prefix, key := range map[string]*string{"gk_": &s.IngestKey, "ik_": &s.InternalKey, "ak_": &s.AdminKey} {
		*key = cmp.Or(*key, prefix+rand.Text()+rand.Text())
	}
	return s, s.save()
}

func (s *state) save() error { return durable.WriteJSON(s.path, s) }
