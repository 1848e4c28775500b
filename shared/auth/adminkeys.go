package auth

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/http/httpapi"
	"github.com/lectern-dev/lectern/shared/trustedkeys"
	"github.com/lectern-dev/lectern/shared/wire"
)

// AdminKeys are the keys of ADMIN_API_KEYS, each with the name of the administrator that holds it. An administrator may
// have several keys, so that the operator can replace a key without a gap.
type AdminKeys struct {
	names []string
	keys  *trustedkeys.Set
}

// ParseAdminKeys parses entries of the form "name=key". A name has 1 to 64 letters, digits and any of "._@-"; a key has
// 16 to 256 visible ASCII characters and no comma. No key may appear twice. The error is a [*config.Fault] that shows
// no key.
func ParseAdminKeys(entries []config.Secret) (*AdminKeys, error) {
	var (
		names []string
		keys  []config.Secret
		seen  = map[string]bool{}
	)
	for i, entry := range entries {
		name, key, ok := strings.Cut(entry.Reveal(), "=")
		problem := ""
		switch {
		case !ok:
			problem = "has no \"=\""
		case !validAdminName(name):
			problem = "has a name that is not allowed" // the message does not show it: it may be a part of a key
		case !trustedkeys.Valid(key):
			problem = fmt.Sprintf("has a key of %d bytes that is not allowed", len(key))
		case seen[key]:
			problem = "has a key that stands before it already"
		}
		if problem != "" {
			return nil, &config.Fault{Variable: "ADMIN_API_KEYS", Problem: fmt.Sprintf("is wrong: entry %d %s; allowed: name=key, comma-separated,"+
				" the name of 1 to 64 letters, digits and . _ @ -, the key of 16 to 256 visible ASCII characters, each key once", i+1, problem)}
		}
		seen[key] = true
		names, keys = append(names, name), append(keys, config.NewSecret(key))
	}
	return &AdminKeys{names, trustedkeys.New(keys)}, nil
}

func validAdminName(name string) bool {
	for _, c := range []byte(name) {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && !strings.ContainsRune("._@-", rune(c)) {
			return false
		}
	}
	return name != "" && len(name) <= 64
}

// Act holds the facts about an administrator's act that only the handler knows. [AdminKeys.Protect] logs these facts in
// the audit log. An Act holds no personal data. KeyID and NewKeyID are public ids of API keys, or empty.
type Act struct {
	// KeyID is the key that the act minted, replaced or revoked.
	KeyID string
	// NewKeyID is the key that replaces the key of KeyID.
	NewKeyID string
	// Removed counts what the act removed, up to a failure: a struct of numbers with JSON names. Nil: the act removes
	// nothing.
	Removed any
}

// AdminHandler serves a request of an administrator, or returns an error as [httpapi.HandlerFunc] does. The handler
// sets the fields of act for the audit log.
type AdminHandler func(w http.ResponseWriter, r *http.Request, act *Act) error

// Protect passes a request to next if it has exactly one [KeyHeader], with a key of ADMIN_API_KEYS. Any other request
// gets Unauthorized before its body is read. While a client's network has sent too many refused keys, its requests with
// a key get RateLimited, even if the key is right. After next, Protect logs the act in one line of the audit log.
//
// The line has actor, action, project and outcome, and those fields of the [Act] that the handler has set. The outcome
// is "done" or the code of the error, "internal" after a panic. LOG_LEVEL does not hide the line.
func (k *AdminKeys) Protect(action string, next AdminHandler) httpapi.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		found, err := findKey(r, k.keys)
		if err != nil {
			return err
		}
		act := &Act{}
		err = errPanicked
		defer func() { audit(r.Context(), k.names[found], action, act, err) }()
		err = next(w, r, act)
		return err
	}
}

// errPanicked is the outcome of an act whose handler panics. The act may have been done in part.
var errPanicked = errors.New("the handler panicked")

// audit logs one act of an administrator in the audit log. err is the handler's error; nil: the act is done.
func audit(ctx context.Context, actor, action string, act *Act, err error) {
	outcome := "done"
	if err != nil {
		outcome = string(apierr.From(err).Code())
	}
	info := httpapi.InfoFrom(ctx)
	project := info.ProjectID[:min(len(info.ProjectID), wire.MaxIdentifierBytes)] // the project of a refused request may be longer
	// The record goes directly to the handler: a Logger would drop it if LOG_LEVEL is warn or error.
	line := slog.NewRecord(time.Now(), slog.LevelInfo, "audit", 0)
	line.AddAttrs(slog.String("actor", actor), slog.String("action", action), slog.String("project", project), slog.String("outcome", outcome))
	if act.KeyID != "" {
		line.AddAttrs(slog.String("key_id", act.KeyID))
	}
	if act.NewKeyID != "" {
		line.AddAttrs(slog.String("new_key_id", act.NewKeyID))
	}
	if act.Removed != nil {
		line.AddAttrs(slog.Any("removed", act.Removed))
	}
	_ = info.Logger.Handler().Handle(ctx, line) // a log cannot report its own failure
}
