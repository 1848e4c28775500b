package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// Administrator administers API keys and removes data, on a deployment's internal ports. Its key is an admin key, not an
// API key of a project.
type Administrator struct {
	transport
}

// NewAdministrator returns an Administrator of the deployment whose internal ports are below baseURL.
func NewAdministrator(baseURL string, options ...Option) (*Administrator, error) {
	t, err := newTransport(baseURL, options)
	if err != nil {
		return nil, err
	}
	return &Administrator{transport: t}, nil
}

// APIKey is what is known of an API key: never the key itself.
type APIKey struct {
	ID        string   `json:"id"`
	ProjectID string   `json:"project_id"`
	Name      string   `json:"name"`
	Scopes    []string `json:"scopes"`
	// Rate is the key's requests a second; nil is the default of the services.
	Rate *int `json:"rate"`
	// State is active, expired or revoked.
	State     string     `json:"state"`
	CreatedAt time.Time  `json:"created_at"`
	ExpiresAt *time.Time `json:"expires_at"`
	RevokedAt *time.Time `json:"revoked_at"`
	// LastUsedAt is exact to about a minute.
	LastUsedAt *time.Time `json:"last_used_at"`
	// Foreign reports that the key was brought along from elsewhere.
	Foreign bool `json:"foreign"`
	// Owner is the object that a program looks after the key for, such as an APIKey of Kubernetes; nil for none.
	Owner *string `json:"owner"`
}

// MintedAPIKey is a new API key: the only time that the key itself is shown.
type MintedAPIKey struct {
	APIKey
	Key string `json:"key"`
}

// NewAPIKey says what key is wanted. The zero value is a key that may read all of the project and never expires.
type NewAPIKey struct {
	Name string `json:"name,omitempty"`
	// Scopes are what the key may be used for. None: reading all of the project.
	Scopes    []string   `json:"scopes,omitempty"`
	ExpiresAt *time.Time `json:"expires_at,omitempty"`
	// Rate is in requests a second; 0 is the default of the services.
	Rate int `json:"rate,omitempty"`
	// Key is a key brought along from elsewhere. Empty: a new one is made.
	Key string `json:"key,omitempty"`
}

// APIKeys lists the project's keys, revoked and expired ones too, oldest first.
func (a *Administrator) APIKeys(ctx context.Context, projectID string) ([]APIKey, error) {
	var keys []APIKey
	err := a.call(ctx, &a.transport, http.MethodGet, path("internal", "projects", projectID, "keys"), nil, &keys)
	return keys, err
}

// MintAPIKey mints a key. It is not repeated if its answer does not come: the key may have been minted.
func (a *Administrator) MintAPIKey(ctx context.Context, projectID string, wanted NewAPIKey) (MintedAPIKey, error) {
	var minted MintedAPIKey
	err := a.call(ctx, a.onlyOnce(), http.MethodPost, path("internal", "projects", projectID, "keys"), wanted, &minted)
	return minted, err
}

// RotateAPIKey mints a key in the place of another one, which keeps working for the overlap. It is not repeated if its
// answer does not come. A key that is unknown, revoked or expired is an [*Error] with the code "key_not_found".
func (a *Administrator) RotateAPIKey(ctx context.Context, projectID, keyID string, overlap time.Duration) (MintedAPIKey, error) {
	var minted MintedAPIKey
	wanted := struct {
		Overlap string `json:"overlap"`
	}{overlap.String()}
	err := a.call(ctx, a.onlyOnce(), http.MethodPost, path("internal", "projects", projectID, "keys", keyID, "rotate"), wanted, &minted)
	return minted, err
}

// RevokeAPIKey ends a key for good. It may be repeated. A key that is unknown is an [*Error] with the code
// "key_not_found".
func (a *Administrator) RevokeAPIKey(ctx context.Context, projectID, keyID string) (APIKey, error) {
	var revoked APIKey
	err := a.call(ctx, &a.transport, http.MethodDelete, path("internal", "projects", projectID, "keys", keyID), nil, &revoked)
	return revoked, err
}

// onlyOnce returns the transport without repetition.
func (a *Administrator) onlyOnce() *transport {
	t := a.transport
	t.retry.Attempts = 1
	return &t
}

// call sends one request by t and decodes its answer. The body is JSON; nil is none.
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
		if err := json.NewDecoder(r.Body).Decode(answer); err != nil {
			return fmt.Errorf("the answer of %s: %w", path, err)
		}
		return nil
	})
}
