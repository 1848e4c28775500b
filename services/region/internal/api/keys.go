package api

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/auth/authn"
	"github.com/lectern-dev/lectern/shared/auth/pgkeys"
	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/http/httpapi"
	"github.com/lectern-dev/lectern/shared/wire"
)

// defaultOverlap is how long a key works at most after its rotation if the request does not set overlap.
const defaultOverlap = 24 * time.Hour

// keys has the handlers of the requests by which administrators list, mint, rotate and revoke API keys.
type keys struct {
	admin *authn.Admin
	now   func() time.Time
}

// AddKeys adds the routes under /internal by which administrators manage API keys. If admin is nil, these routes answer
// Unavailable to administrators.
func AddKeys(rt *httpapi.Router, cfg Config, admins *auth.AdminKeys, admin *authn.Admin) {
	k := &keys{admin: admin, now: cfg.clock()}
	serve := func(action string, handler auth.AdminHandler) http.Handler {
		if admin == nil {
			handler = notConfigured
		}
		return admins.Protect(action, handler)
	}
	rt.Handle("/internal/projects/{projectId}/keys", map[string]http.Handler{
		http.MethodGet:  serve("keys.list", k.list),
		http.MethodPost: serve("keys.mint", k.mint),
	})
	rt.Handle("/internal/projects/{projectId}/keys/{keyId}/rotate", map[string]http.Handler{
		http.MethodPost: serve("keys.rotate", k.rotate),
	})
	rt.Handle("/internal/projects/{projectId}/keys/{keyId}", map[string]http.Handler{
		http.MethodDelete: serve("keys.revoke", k.revoke),
	})
}

// errNoKeyAdmin is the answer to administrators if AUTH_ADMIN_DATABASE_URL is not set.
var errNoKeyAdmin = apierr.New(apierr.Unavailable, "This service cannot administer keys: AUTH_ADMIN_DATABASE_URL is not set.")

func notConfigured(http.ResponseWriter, *http.Request, *auth.Act) error { return errNoKeyAdmin }

// list answers with the metadata of all keys of the project, including revoked and expired keys. The answer does not
// have the keys themselves.
func (k *keys) list(w http.ResponseWriter, r *http.Request, _ *auth.Act) error {
	project, err := pathProject(r)
	if err != nil {
		return err
	}
	found, err := k.admin.List(r.Context(), project)
	if err != nil {
		return err
	}
	records := make([]keyRecord, len(found))
	for i := range found {
		records[i] = k.recordOf(found[i])
	}
	return httpapi.WriteJSON(w, records)
}

// mint stores a key for the project, and answers with the metadata and the key itself. The key is new, unless the
// request brings one. If the request names an identity, mint stores the rights of the identity and answers without a
// key. The audit line names the key.
func (k *keys) mint(w http.ResponseWriter, r *http.Request, act *auth.Act) error {
	project, err := pathProject(r)
	if err != nil {
		return err
	}
	options, err := readMint(w, r, project)
	if err != nil {
		return err
	}
	key, minted, err := k.admin.Mint(r.Context(), options)
	if err != nil {
		if !options.Identity.IsZero() && errors.Is(err, pgkeys.ErrExists) {
			return httpapi.InvalidField("identity", options.Identity.String(), "an identity without rights in the project, or whose rights have ended")
		}
		return keyFault(err, "")
	}
	act.KeyID = minted.ID
	record := k.recordOf(minted)
	record.Key = key.Reveal()
	return httpapi.WriteJSON(w, record)
}

// rotate mints a key that replaces another key of the project, and answers with the new key. The old key expires after
// the overlap at the latest, which the request may set. The audit line names both keys.
func (k *keys) rotate(w http.ResponseWriter, r *http.Request, act *auth.Act) error {
	project, id, err := pathKey(r)
	if err != nil {
		return err
	}
	act.KeyID = id
	overlap, err := readOverlap(w, r)
	if err != nil {
		return err
	}
	key, minted, err := k.admin.Rotate(r.Context(), project, id, overlap)
	if err != nil {
		return keyFault(err, id)
	}
	act.NewKeyID = minted.ID
	record := k.recordOf(minted)
	record.Key = key.Reveal()
	return httpapi.WriteJSON(w, record)
}

// revoke revokes a key and answers with its metadata. A client may repeat the request. The audit line names the key.
func (k *keys) revoke(w http.ResponseWriter, r *http.Request, act *auth.Act) error {
	project, id, err := pathKey(r)
	if err != nil {
		return err
	}
	act.KeyID = id
	revoked, err := k.admin.Revoke(r.Context(), project, id)
	if err != nil {
		return keyFault(err, id)
	}
	return httpapi.WriteJSON(w, k.recordOf(revoked))
}

func pathKey(r *http.Request) (project, id string, err error) {
	if project, err = httpapi.PathIdentifier(r, "projectId"); err != nil {
		return "", "", err
	}
	if id, err = httpapi.PathIdentifier(r, "keyId"); err != nil {
		return "", "", err
	}
	return project, id, httpapi.ParseQuery(r).Err()
}

// readMint reads the properties of a key to mint from the body, which may be absent. A field that is absent or null
// has its default.
func readMint(w http.ResponseWriter, r *http.Request, project string) (pgkeys.MintOptions, error) {
	const allowed = `{"name": "…", "scopes": ["…"], "expires_at": "…", "rate": …, "key": "…", "identity": {"issuer": "…", "subject": "…"}}, each of which may be left out`
	var fields struct {
		Name      jsontext.Value `json:"name"`
		Scopes    jsontext.Value `json:"scopes"`
		ExpiresAt jsontext.Value `json:"expires_at"`
		Rate      jsontext.Value `json:"rate"`
		Key       jsontext.Value `json:"key"`
		Identity  jsontext.Value `json:"identity"`
	}
	o := pgkeys.MintOptions{ProjectID: project}
	if err := httpapi.ReadOptional(w, r, &fields, allowed); err != nil {
		return o, err
	}
	if httpapi.Given(fields.Name) {
		name, ok := httpapi.JSONText(fields.Name)
		if !ok {
			return o, httpapi.InvalidField("name", fields.Name.String(), "a string")
		}
		o.Name = name
	}
	if httpapi.Given(fields.Scopes) {
		scopes, err := parseScopes(fields.Scopes)
		if err != nil {
			return o, err
		}
		o.Scopes = scopes
	}
	if httpapi.Given(fields.ExpiresAt) {
		at, ok := httpapi.JSONText(fields.ExpiresAt)
		micros, err := wire.ParseTime(at)
		if !ok || err != nil {
			return o, httpapi.InvalidField("expires_at", fields.ExpiresAt.String(), "a date and time such as 2030-01-31T09:30:00Z, or null for no expiry")
		}
		o.ExpiresAt = wire.Time(micros)
	}
	if httpapi.Given(fields.Rate) {
		rate, err := strconv.Atoi(fields.Rate.String())
		if err != nil {
			return o, httpapi.InvalidField("rate", fields.Rate.String(), "a whole number of requests a second, or null for the default")
		}
		o.Rate = rate
	}
	if httpapi.Given(fields.Key) {
		key, ok := httpapi.JSONText(fields.Key)
		if !ok || key == "" {
			return o, httpapi.InvalidField("key", "a value that is not shown", "a string of 1 to 512 printable ASCII characters")
		}
		o.Value = config.NewSecret(key)
	}
	if httpapi.Given(fields.Identity) {
		var i auth.Identity
		if err := json.Unmarshal(fields.Identity, &i, json.RejectUnknownMembers(true)); err != nil || i.Validate() != nil {
			return o, httpapi.InvalidField("identity", fields.Identity.String(), `{"issuer": "https://…", "subject": "…"} or {"issuer": "https://…", "group": "…"}`)
		}
		o.Identity = i
	}
	return o, nil
}

// parseScopes parses a JSON array of one or more names of scopes.
func parseScopes(v jsontext.Value) (auth.Scopes, error) {
	bad := httpapi.InvalidField("scopes", v.String(), "an array of one or more of "+strings.Join(auth.ScopeNames(), ", "))
	var names []string
	if json.Unmarshal(v, &names) != nil || len(names) == 0 {
		return 0, bad
	}
	var scopes auth.Scopes
	for _, name := range names {
		scope, ok := auth.ScopeNamed(name)
		if !ok {
			return 0, bad
		}
		scopes |= auth.Scopes(scope)
	}
	return scopes, nil
}

// readOverlap reads from the body how long the rotated key keeps working. Without a body or a value, readOverlap
// returns defaultOverlap.
func readOverlap(w http.ResponseWriter, r *http.Request) (time.Duration, error) {
	var fields struct {
		Overlap jsontext.Value `json:"overlap"`
	}
	if err := httpapi.ReadOptional(w, r, &fields, `{"overlap": "24h"}, or no body`); err != nil {
		return 0, err
	}
	if !httpapi.Given(fields.Overlap) {
		return defaultOverlap, nil
	}
	duration, ok := httpapi.JSONText(fields.Overlap)
	overlap, err := time.ParseDuration(duration)
	if !ok || err != nil {
		return 0, httpapi.InvalidField("overlap", fields.Overlap.String(), "a duration of 0s or more, such as 24h or 90m")
	}
	return overlap, nil
}

// keyFault turns an error of the administration of keys into an error for the client. keyFault returns an unknown
// error unchanged.
func keyFault(err error, keyID string) error {
	if invalid, ok := errors.AsType[*pgkeys.Invalid](err); ok {
		return httpapi.InvalidField(invalid.Argument, strconv.Quote(invalid.Given), invalid.Allowed)
	}
	switch {
	case errors.Is(err, pgkeys.ErrNotFound):
		return apierr.NoKey(keyID)
	case errors.Is(err, pgkeys.ErrInactive):
		return apierr.New(apierr.KeyNotFound, "The key is revoked or has expired, and cannot be rotated. Mint a new one.").With("keyId", keyID)
	case errors.Is(err, pgkeys.ErrExists):
		return httpapi.InvalidField("key", "a value that is not shown", "a key that the project does not have yet")
	}
	return err
}

// keyRecord is the metadata of a key, as answers to administrators show it.
type keyRecord struct {
	ID         string         `json:"id"`
	ProjectID  string         `json:"project_id"`
	Name       string         `json:"name"`
	Scopes     []string       `json:"scopes"`
	Rate       *int           `json:"rate"`  // requests a second; null: the default
	State      string         `json:"state"` // active, expired or revoked
	CreatedAt  time.Time      `json:"created_at"`
	ExpiresAt  *time.Time     `json:"expires_at"`
	RevokedAt  *time.Time     `json:"revoked_at"`
	LastUsedAt *time.Time     `json:"last_used_at"`
	Foreign    bool           `json:"foreign"`
	Owner      *string        `json:"owner"`
	Identity   *auth.Identity `json:"identity"`     // null: a key has the rights
	Key        string         `json:"key,omitzero"` // only in the answer that mints the key
}

func (k *keys) recordOf(r auth.Record) keyRecord {
	state := "active"
	switch {
	case !r.RevokedAt.IsZero():
		state = "revoked"
	case !r.Active(k.now()):
		state = "expired"
	}
	return keyRecord{
		ID: r.ID, ProjectID: r.ProjectID, Name: r.Name, Scopes: r.Scopes.Names(), Rate: wire.OrNull(r.Rate), State: state,
		CreatedAt: r.CreatedAt, ExpiresAt: wire.OrNull(r.ExpiresAt), RevokedAt: wire.OrNull(r.RevokedAt), LastUsedAt: wire.OrNull(r.LastUsedAt),
		Foreign: r.Foreign, Owner: wire.OrNull(r.Owner.Name), Identity: wire.OrNull(r.Identity),
	}
}

// ownKey is the metadata of the key that a request has sent, as the answer to the holder of the key shows it.
type ownKey struct {
	ProjectID string     `json:"projectId"`
	KeyID     string     `json:"keyId"`
	Name      string     `json:"name"`
	Scopes    []string   `json:"scopes"`
	ExpiresAt *time.Time `json:"expires_at"`
	Rate      *int       `json:"rate"` // requests a second; null: the default
}

// getKey serves GET /projects/{projectId}/key: the metadata of the key that the request has sent.
func getKey(w http.ResponseWriter, r *http.Request, p auth.Principal) error {
	if err := httpapi.ParseQuery(r).Err(); err != nil {
		return err
	}
	body, err := json.Marshal(ownKey{
		ProjectID: p.ProjectID, KeyID: p.KeyID, Name: p.Name, Scopes: p.Scopes.Names(),
		ExpiresAt: wire.OrNull(p.ExpiresAt.UTC()), Rate: wire.OrNull(p.Rate),
	})
	if err != nil {
		return err
	}
	return httpapi.WriteBody(w, r, "application/json", body, "")
}
