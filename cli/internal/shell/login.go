package shell

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

// StoredLogin is a login at an OpenID provider. Token is a JWT for the Audience, which the API accepts until ExpiresAt.
// RefreshToken gets the next Token; it is "" if the provider gave none.
type StoredLogin struct {
	Issuer       string    `json:"issuer"`
	ClientID     string    `json:"client_id"`
	Audience     string    `json:"audience"`
	Subject      string    `json:"subject"`
	Token        string    `json:"token"`
	ExpiresAt    time.Time `json:"expires_at"`
	RefreshToken string    `json:"refresh_token"`
}

// SignIn sets the tokens of l by the device flow (RFC 8628). SignIn prints an address and a code to standard error, and
// waits until the user has entered the code. The caller sets Issuer, ClientID and Audience.
func (l *StoredLogin) SignIn(s *Session, scopes []string) error {
	err := l.obtain(s.Context, func(ctx context.Context, config *oauth2.Config) (*oauth2.Token, error) {
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

// obtain stores the tokens that ask gets from the provider. Token is the access token if that is a JWT for the
// Audience, or else the ID token. If neither is, obtain returns an error. RefreshToken is that of the provider's answer
// even then, because the provider may accept no other any more.
func (l *StoredLogin) obtain(ctx context.Context, ask func(context.Context, *oauth2.Config) (*oauth2.Token, error)) error {
	ctx = oidc.ClientContext(ctx, &http.Client{Timeout: 30 * time.Second})
	provider, err := oidc.NewProvider(ctx, l.Issuer)
	if err != nil {
		return err
	}
	endpoint := provider.Endpoint()
	endpoint.AuthStyle = oauth2.AuthStyleInParams // a public client has no secret, so its id is a parameter
	answer, err := ask(ctx, &oauth2.Config{ClientID: l.ClientID, Endpoint: endpoint})
	if err != nil {
		return err
	}
	verifier := provider.Verifier(&oidc.Config{ClientID: l.Audience, SkipExpiryCheck: true}) // the API's clock decides
	l.Token, l.RefreshToken = answer.AccessToken, answer.RefreshToken
	verified, err := verifier.Verify(ctx, l.Token)
	if access := err; access != nil {
		l.Token, _ = answer.Extra("id_token").(string)
		if verified, err = verifier.Verify(ctx, l.Token); err != nil {
			return fmt.Errorf("no token for the audience %q (see --audience): access token: %w; ID token: %w", l.Audience, access, err)
		}
	}
	l.Subject, l.ExpiresAt = verified.Subject, verified.Expiry
	return nil
}

// tokenOf returns a function that returns the token of the context with the given name. The function renews the token a
// minute before its end. It holds the lock of the contexts meanwhile, because a provider may accept each refresh token
// once. The function is safe for concurrent use.
func (s *Session) tokenOf(name string, stored StoredLogin) func(context.Context) (string, error) {
	var mu sync.Mutex
	fresh := func() bool { return s.Now().Add(time.Minute).Before(stored.ExpiresAt) }
	return func(context.Context) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		if fresh() {
			return stored.Token, nil
		}
		var unusable error // the answer of the provider
		err := s.UpdateContexts(func(all *Contexts) error {
			c := all.Contexts[name]
			if c.Login == nil {
				return fmt.Errorf("the context %s has no login any more; run lectern login", name)
			}
			if stored = *c.Login; fresh() {
				return nil // another process renewed it
			}
			// An answer may replace the refresh token, so an interrupt does not end the request.
			err := stored.obtain(context.WithoutCancel(s.Context), func(ctx context.Context, config *oauth2.Config) (*oauth2.Token, error) {
				return config.TokenSource(ctx, &oauth2.Token{RefreshToken: stored.RefreshToken}).Token()
			})
			switch refused, ok := errors.AsType[*oauth2.RetrieveError](err); {
			case c.Login.RefreshToken == "", ok && refused.ErrorCode == "invalid_grant":
				return fmt.Errorf("the login of the context %s has expired; run lectern login --issuer %s --client-id %s", name, stored.Issuer, stored.ClientID)
			case err != nil:
				unusable = fmt.Errorf("renew the login of the context %s: %w", name, err)
				c.Login.RefreshToken = stored.RefreshToken
			default:
				*c.Login = stored
			}
			return nil
		})
		return stored.Token, cmp.Or(err, unusable)
	}
}
