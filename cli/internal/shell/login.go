package shell

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/lectern-dev/lectern/shared/renewal"
)

// StoredLogin is a login at an OpenID provider. Token is a JWT for the Audience, which the API accepts until ExpiresAt.
// RefreshToken gets the next Token; it is "" if the provider gave none. NextAt and Failures are those of [renewal.State].
type StoredLogin struct {
	Issuer       string    `json:"issuer"`
	ClientID     string    `json:"client_id"`
	Audience     string    `json:"audience"`
	Subject      string    `json:"subject"`
	Token        string    `json:"token"`
	ExpiresAt    time.Time `json:"expires_at"`
	RefreshToken string    `json:"refresh_token"`
	NextAt       time.Time `json:"next_at,omitzero"`
	Failures     int       `json:"failures,omitempty"`
}

// plan returns the next step of the renewal of l.
func (l *StoredLogin) plan(now time.Time) renewal.Step {
	s := renewal.State{Refresh: l.RefreshToken, ExpiresAt: l.ExpiresAt, NextAt: l.NextAt, Failures: l.Failures}
	return renewal.Plan(s, now, renewal.Spec{Awaited: true}, nil)
}

// SignIn sets the tokens of l by the device flow (RFC 8628). SignIn prints an address and a code to standard error, and
// waits until the user has entered the code. The caller sets Issuer, ClientID and Audience.
func (l *StoredLogin) SignIn(s *Session, scopes []string) error {
	err := l.obtain(s.Context, l.plan(s.Now()).Store, func(ctx context.Context, config *oauth2.Config) (*oauth2.Token, error) {
		config.Scopes = scopes
		device, err := config.DeviceAuth(ctx)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(s.Err, "Open %s in a browser, and enter the code %s.\n", device.VerificationURI, device.UserCode)
		for {
			token, err := config.DeviceAccessToken(ctx, device)
			refused, answered := errors.AsType[*oauth2.RetrieveError](err)
			if err == nil || ctx.Err() != nil || !s.Now().Before(device.Expiry) || answered && refused.Response.StatusCode < 500 {
				return token, err
			}
			// A lost connection or an outage does not end the user's sign-in. DeviceAccessToken waits before it asks.
		}
	})
	if err != nil {
		return fmt.Errorf("sign in at %s: %w", l.Issuer, err)
	}
	return nil
}

// obtain gets tokens from the provider by ask, as claim says, and sets the fields of l that are not the caller's. Token is
// the access token if that is a JWT for the Audience, or else the ID token. If neither is, obtain returns an error.
// Between the answer and its return, obtain does no I/O.
func (l *StoredLogin) obtain(ctx context.Context, claim renewal.State, ask func(context.Context, *oauth2.Config) (*oauth2.Token, error)) (err error) {
	var answer renewal.Answer
	defer func() {
		if refused, ok := errors.AsType[*oauth2.RetrieveError](err); err != nil {
			answer.Fault, answer.Refused = err.Error(), ok && refused.Response.StatusCode < 500
		}
		s := renewal.Plan(claim, claim.ClaimedAt, renewal.Spec{Awaited: true}, &answer).Store
		l.RefreshToken, l.ExpiresAt, l.NextAt, l.Failures = s.Refresh, s.ExpiresAt, s.NextAt, s.Failures
	}()
	ctx = oidc.ClientContext(ctx, &http.Client{Timeout: 30 * time.Second})
	provider, err := oidc.NewProvider(ctx, l.Issuer)
	if err != nil {
		return err
	}
	endpoint := provider.Endpoint()
	endpoint.AuthStyle = oauth2.AuthStyleInParams // a public client has no secret, so its id is a parameter
	tokens, err := ask(ctx, &oauth2.Config{ClientID: l.ClientID, Endpoint: endpoint})
	if err != nil {
		return err
	}
	answer.Refresh = tokens.RefreshToken
	// The API verifies the signature, and its clock decides. The command line only chooses from what its own request got
	// (OpenID Connect Core 1.0, section 3.1.3.7, point 6).
	verifier := provider.Verifier(&oidc.Config{ClientID: l.Audience, InsecureSkipSignatureCheck: true, SkipExpiryCheck: true})
	token := tokens.AccessToken
	chosen, err := verifier.Verify(ctx, token)
	if access := err; access != nil {
		token, _ = tokens.Extra("id_token").(string)
		if chosen, err = verifier.Verify(ctx, token); err != nil {
			return fmt.Errorf("no token for the audience %q (see --audience): access token: %w; ID token: %w", l.Audience, access, err)
		}
	}
	l.Token, l.Subject, answer.Life = token, chosen.Subject, chosen.Expiry.Sub(claim.ClaimedAt)
	return nil
}

// tokenOf returns a function that returns the token of the context with the given name, and renews the token by the steps
// of package [renewal]. The function holds the lock of the contexts meanwhile, because a provider may accept each refresh
// token once. The function is safe for concurrent use.
func (s *Session) tokenOf(name string, stored StoredLogin) func(context.Context) (string, error) {
	var mu sync.Mutex
	var lost string // the refresh token in the file, if the one that replaced it could not be stored
	return func(context.Context) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		if lost == "" && !stored.plan(s.Now()).Send {
			return stored.Token, nil
		}
		var unusable error // the answer of the provider
		err := s.lockContexts(func(all *Contexts, save func() error) error {
			login := all.Contexts[name].Login
			if login == nil {
				return fmt.Errorf("the context %s has no login any more; run lectern login", name)
			}
			keep := func(sent string) error { // a token that cannot be stored stays in memory, and is stored with the next call
				err := save()
				if stored, lost = *login, ""; err != nil {
					lost = sent
				}
				return err
			}
			if lost != "" && login.RefreshToken == lost {
				*login = stored
				if err := keep(lost); err != nil {
					return err
				}
			}
			stored, lost = *login, ""
			step := login.plan(s.Now())
			if !step.Send || step.Token == "" {
				return nil // another process renewed it, or nobody can
			}
			if err := save(); err != nil { // the lock is the claim, but the file must be one that can be written
				return err
			}
			// An answer may replace the refresh token, so an interrupt does not end the request.
			unusable = login.obtain(context.WithoutCancel(s.Context), step.Store, func(ctx context.Context, config *oauth2.Config) (*oauth2.Token, error) {
				return config.TokenSource(ctx, &oauth2.Token{RefreshToken: step.Token}).Token()
			})
			return keep(step.Token)
		})
		refused, ok := errors.AsType[*oauth2.RetrieveError](unusable)
		switch {
		case s.Now().Before(stored.ExpiresAt) && (err == nil || lost != ""):
			return stored.Token, nil
		case err != nil:
			return "", err
		case stored.RefreshToken == "", ok && refused.ErrorCode == "invalid_grant":
			return "", fmt.Errorf("the login of the context %s has expired; run lectern login --issuer %s --client-id %s", name, stored.Issuer, stored.ClientID)
		}
		return "", fmt.Errorf("renew the login of the context %s: %w", name, unusable)
	}
}
