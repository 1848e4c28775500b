package local

import (
	"context"

	"github.com/lectern-dev/lectern/cli/internal/demo"
	"github.com/lectern-dev/lectern/client"
	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/auth/keyring"
	"github.com/lectern-dev/lectern/shared/auth/pgkeys"
	"github.com/lectern-dev/lectern/shared/config"
)

// demoScopes returns what the demo's key is for: everything.
func demoScopes() auth.Scopes { return auth.DefaultScopes | auth.ScopesOf(auth.ProxyUse) }

// demoKey returns a key of the demo project: the one of the run before, if it is still accepted and may do
// what this version's may.
func (r *run) demoKey(ctx context.Context, url string, environ map[string]string) (string, error) {
	scopes := demoScopes()
	if key := r.state.APIKey; key != "" && r.state.APIKeyScopes == scopes.String() {
		reader, err := client.New(url, client.WithAPIKey(key))
		if err != nil {
			return "", err
		}
		_, err = reader.EntriesPage(ctx, demo.ProjectID, client.EntryQuery{Paging: client.Paging{Limit: 1}})
		if err == nil {
			return key, nil
		}
		if client.Code(err) != "unauthorized" {
			return "", err
		}
	}
	var cfg auth.Config
	if err := config.Load(&cfg, environ); err != nil {
		return "", err
	}
	admin, err := keyring.OpenAdmin(ctx, cfg, keyring.Options{Now: r.Now})
	if err != nil {
		return "", err
	}
	defer admin.Close()
	key, _, err := admin.Mint(ctx, pgkeys.MintOptions{ProjectID: demo.ProjectID, Name: "demo", Scopes: scopes})
	if err != nil {
		return "", err
	}
	r.state.APIKey, r.state.APIKeyScopes = key.Reveal(), scopes.String()
	return key.Reveal(), r.state.save()
}
