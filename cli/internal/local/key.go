package local

import (
	"context"

	"github.com/lectern-dev/lectern/cli/internal/demo"
	"github.com/lectern-dev/lectern/client"
	"github.com/lectern-dev/lectern/shared/auth"
)

// demoScopes returns the scopes of the demo project's key, which are all scopes.
func demoScopes() auth.Scopes { return auth.DefaultScopes | auth.ScopesOf(auth.ProxyUse) }

// demoKey returns a key of the demo project. The key of the last run is kept if the API accepts it and it has the
// scopes of this version. If not, demoKey mints a key and saves the key in the state.
func (r *run) demoKey(ctx context.Context, d Demo) (string, error) {
	scopes := demoScopes()
	if key := r.state.APIKey; key != "" && r.state.APIKeyScopes == scopes.String() {
		reader, err := client.New(d.URL, client.WithAPIKey(key))
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
	admin, err := client.NewAdministrator(d.InternalURL, client.WithAPIKey(d.AdminAPIKey))
	if err != nil {
		return "", err
	}
	minted, err := admin.MintAPIKey(ctx, demo.ProjectID, client.NewAPIKey{Name: "demo", Scopes: scopes.Names()})
	if err != nil {
		return "", err
	}
	r.state.APIKey, r.state.APIKeyScopes = minted.Key, scopes.String()
	return minted.Key, r.state.save()
}
