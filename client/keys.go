package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

// Administrator manages API keys and removes data, over the internal ports of a deployment. Its key is an admin key, not
// a project's API key.
type Administrator struct {
	transport
}

// NewAdministrator returns an Administrator that sends requests to baseURL + "/internal/…".
func NewAdministrator(baseURL string, options ...Option) (*Administrator, error) {
	t, err := newTransport(baseURL, 10*time.Minute, options)
	if err != nil {
		return nil, err
	}
	return &Administrator{transport: t}, nil
}

// APIKey describes an API key. It does not contain the key itself.
type APIKey struct {
	ID        string   `json:"id"`
	ProjectID string   `json:"project_id"`
	Name      string   `json:"name"`
	Scopes    []string `json:"scopes"`
	// Rate is the key's limit in requests a second; nil is the default of the services.
	Rate *int `json:"rate"`
	// State is active, expired or revoked.
	State     string     `json:"state"`
	CreatedAt time.Time  `json:"created_at"`
	ExpiresAt *time.Time `json:"expires_at"`
	RevokedAt *time.Time `json:"revoked_at"`
	// LastUsedAt is exact to about a minute.
	LastUsedAt *time.Time `json:"last_used_at"`
	// Foreign reports that the key was imported from another system.
	Foreign bool `json:"foreign"`
	// Owner is the object for which a program manages the key, such as an APIKey in Kubernetes; nil for none.
	Owner *string `json:"owner"`
}

// MintedAPIKey is a new API key. Only the answer to its creation contains the key itself.
type MintedAPIKey struct {
	APIKey
	Key string `json:"key"`
}

// NewAPIKey holds the properties of a key to mint. The zero value is a key that may read the whole project and never
// expires.
type NewAPIKey struct {
	Name string `json:"name,omitempty"`
	// Scopes are the permissions of the key. None: reading the whole project.
	Scopes    []string   `json:"scopes,omitempty"`
	ExpiresAt *time.Time `json:"expires_at,omitempty"`
	// Rate limits the key, in requests a second; 0 is the default of the services.
	Rate int `json:"rate,omitempty"`
	// Key is a key to import from another system. Empty: the server makes a new one.
	Key string `json:"key,omitempty"`
}

// APIKeys lists the project's keys, including revoked and expired ones, the oldest first.
func (a *Administrator) APIKeys(ctx context.Context, projectID string) ([]APIKey, error) {
	var keys []APIKey
	err := a.call(ctx, &a.transport, http.MethodGet, path("internal", "projects", projectID, "keys"), nil, &keys)
	return keys, err
}

// MintAPIKey mints a key. It does not retry: the server may have minted the key before its answer was lost.
func (a *Administrator) MintAPIKey(ctx context.Context, projectID string, wanted NewAPIKey) (MintedAPIKey, error) {
	var minted MintedAPIKey
	err := a.call(ctx, a.onlyOnce(), http.MethodPost, path("internal", "projects", projectID, "keys"), wanted, &minted)
	return minted, err
}

// RotateAPIKey mints a key that replaces another one. The old key stays valid for the overlap. RotateAPIKey does not
// retry. For a key that is unknown, revoked or expired, it returns an [*Error] with the code [CodeKeyNotFound].
func (a *Administrator) RotateAPIKey(ctx context.Context, projectID, keyID string, overlap time.Duration) (MintedAPIKey, error) {
	var minted MintedAPIKey
	wanted := struct {
		Overlap string `json:"overlap"`
	}{overlap.String()}
	err := a.call(ctx, a.onlyOnce(), http.MethodPost, path("internal", "projects", projectID, "keys", keyID, "rotate"), wanted, &minted)
	return minted, err
}

// RevokeAPIKey revokes a key permanently. Repeating it does no harm. For an unknown key, it returns an [*Error] with the
// code [CodeKeyNotFound].
func (a *Administrator) RevokeAPIKey(ctx context.Context, projectID, keyID string) (APIKey, error) {
	var revoked APIKey
	err := a.call(ctx, &a.transport, http.MethodDelete, path("internal", "projects", projectID, "keys", keyID), nil, &revoked)
	return revoked, err
}

// onlyOnce returns a copy of the transport that does not retry.
func (a *Administrator) onlyOnce() *transport {
	t := a.transport
	t.retry.Attempts = 1
	return &t
}

// call sends a request with t, with body as JSON unless it is nil, and decodes the answer.
func (a *Administrator) call(ctx context.Context, t *transport, method, path string, body, answer any) error {
	var sent []byte
	if body != nil {
		var err error
		if sent, err = json.Marshal(body); err != nil {
			return err
		}
	}
	build := func(ctx context.Context) (*http.Request, error) {
		req, err := http.NewRequestWithContext(ctx, method, a.base+path, bytes.NewReader(sent))
		if err != nil {
			return nil, err
		}
		if body != nil {
			req.Header.Set("Content-Type", "application/json")
		}
		return req, nil
	}
	return t.do(ctx, build, func(r *http.Response) error {
		if err := json.NewDecoder(io.LimitReader(r.Body, longestBody)).Decode(answer); err != nil {
			return fmt.Errorf("the answer of %s: %w", path, err)
		}
		return nil
	})
}
