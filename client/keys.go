package client

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

// Administrator manages API keys and removes data, over the internal address of a deployment. The key of an
// Administrator is an admin key, not the API key of a project. An Administrator is safe for concurrent use.
type Administrator struct {
	transport
}

// NewAdministrator returns an Administrator that sends requests to baseURL + "/internal/…". baseURL must have the form
// that [New] requires.
func NewAdministrator(baseURL string, options ...Option) (*Administrator, error) {
	t, err := newTransport(baseURL, 10*time.Minute, options)
	if err != nil {
		return nil, err
	}
	return &Administrator{transport: t}, nil
}

// Identity is a person, a program or a group, for which an issuer signs tokens. It has either a Subject or a Group.
type Identity struct {
	Issuer  string `json:"issuer"`
	Subject string `json:"subject,omitempty"`
	Group   string `json:"group,omitempty"`
	// UID is the uid of a Subject that is a ServiceAccount of Kubernetes. Empty: the Subject whatever its uid is.
	UID string `json:"uid,omitempty"`
}

// APIKey describes an API key, or the grant of an [Identity]: its project, scopes, limit and state. APIKey does not
// contain the secret text of the key.
type APIKey struct {
	ID        string   `json:"id"`
	ProjectID string   `json:"project_id"`
	Name      string   `json:"name"`
	Scopes    []string `json:"scopes"`
	// Rate is the key's limit in requests a second; nil means the default limit of the services.
	Rate *int `json:"rate"`
	// State is active, expired or revoked. The server accepts only active keys.
	State     string     `json:"state"`
	CreatedAt time.Time  `json:"created_at"`
	ExpiresAt *time.Time `json:"expires_at"`
	RevokedAt *time.Time `json:"revoked_at"`
	// LastUsedAt is when the key was last used, exact to about a minute; nil if it was never used.
	LastUsedAt *time.Time `json:"last_used_at"`
	// Foreign reports that the key was imported from another system.
	Foreign bool `json:"foreign"`
	// Owner is the object for which a program manages the key, such as an APIKey in Kubernetes; nil for none.
	Owner *string `json:"owner"`
	// Identity is whose tokens the server accepts in place of a key; nil for a key.
	Identity *Identity `json:"identity,omitempty"`
}

// MintedAPIKey is a new API key with its secret text in Key. The server returns the text only once, in the answer that
// creates the key. The Key of a grant is empty.
type MintedAPIKey struct {
	APIKey
	Key string `json:"key,omitempty"`
}

// NewAPIKey holds the properties of a key for [Administrator.MintAPIKey]. The zero value is a key that may read the
// whole project and never expires.
type NewAPIKey struct {
	Name string `json:"name,omitempty"`
	// Scopes are the permissions of the key. With no scopes, the key may read the whole project.
	Scopes    []string   `json:"scopes,omitempty"`
	ExpiresAt *time.Time `json:"expires_at,omitempty"`
	// Rate is the key's limit in requests a second; 0 means the default limit of the services.
	Rate int `json:"rate,omitempty"`
	// Key is the text of a key to import from another system. If Key is empty, the server makes a new key.
	Key string `json:"key,omitempty"`
	// Identity makes a grant: the server makes no key, and accepts the tokens of the identity.
	Identity *Identity `json:"identity,omitempty"`
}

// APIKeys returns the project's keys and grants without their secret texts, the oldest first. Revoked and expired ones
// are included.
func (a *Administrator) APIKeys(ctx context.Context, projectID string) ([]APIKey, error) {
	return call[[]APIKey](ctx, &a.transport, http.MethodGet, path("internal", "projects", projectID, "keys"), nil)
}

// MintAPIKey creates a key of projectID, or a grant if wanted has an Identity. MintAPIKey does not retry after a lost
// answer, because the server may have created the key.
func (a *Administrator) MintAPIKey(ctx context.Context, projectID string, wanted NewAPIKey) (MintedAPIKey, error) {
	return call[MintedAPIKey](ctx, a.onlyOnce(), http.MethodPost, path("internal", "projects", projectID, "keys"), wanted)
}

// RotateAPIKey creates a key that replaces the key keyID. The old key stays valid for the duration overlap, or until
// its own expiry if that is sooner. RotateAPIKey does not retry after a lost answer. For a key that is unknown, revoked
// or expired, the error has the code [CodeKeyNotFound].
func (a *Administrator) RotateAPIKey(ctx context.Context, projectID, keyID string, overlap time.Duration) (MintedAPIKey, error) {
	wanted := struct {
		Overlap string `json:"overlap"`
	}{overlap.String()}
	return call[MintedAPIKey](ctx, a.onlyOnce(), http.MethodPost, path("internal", "projects", projectID, "keys", keyID, "rotate"), wanted)
}

// RevokeAPIKey revokes a key permanently and returns its new state. Revoking a revoked key does no harm. For an unknown
// key, the error has the code [CodeKeyNotFound], which [Code] returns.
func (a *Administrator) RevokeAPIKey(ctx context.Context, projectID, keyID string) (APIKey, error) {
	return call[APIKey](ctx, &a.transport, http.MethodDelete, path("internal", "projects", projectID, "keys", keyID), nil)
}

// onlyOnce returns a copy of the transport that makes one attempt, for requests that the server must not execute twice.
func (a *Administrator) onlyOnce() *transport {
	t := a.transport
	t.retry.Attempts = 1
	return &t
}

// call sends a request to the internal address with t, and decodes the JSON answer. If body is not nil, call sends body as
// JSON.
func call[T any](ctx context.Context, t *transport, method, path string, body any) (answer T, err error) {
	r := request{method: method, path: path}
	if body != nil {
		r.contentType = "application/json"
		if r.body, err = json.Marshal(body); err != nil {
			return answer, err
		}
	}
	err = t.do(ctx, r, func(r *http.Response) error {
		if err := json.NewDecoder(io.LimitReader(r.Body, longestBody)).Decode(&answer); err != nil {
			return fmt.Errorf("the answer of %s: %w", path, err)
		}
		return nil
	})
	return answer, err
}
