package httpapi

import (
	"context"
	"log/slog"
	"net/http"
)

// Info holds what the layers around a request learn about it, for its access line, its trace and its errors. One
// goroutine at a time writes it: the one that serves the request.
type Info struct {
	RequestID string // unique; sent as X-Request-Id
	Route     string // the path's template, or ""
	ProjectID string // from the path or the key
	KeyID     string // the accepted key's public id
	Err       error  // nil if the request succeeded

	// Recorded reports that the access line is for debugging only, because another line of the log has its content.
	Recorded bool

	// BaseURL returns the scheme and host under which the client reaches the API, without a path. Links begin with
	// it. Never nil.
	BaseURL func() string
	// RequestURL returns the scheme and host that the client used, or PUBLIC_URL if PUBLIC_URL has the same host. The scheme is
	// https if PUBLIC_URL begins with https. RequestURL returns "" if the client named no host that is valid in a URL. Never
	// nil.
	RequestURL func() string
	// ClientAddress is the client's IP address, from a forwarded header only if a trusted proxy sent it.
	ClientAddress string
	// ClientKnown reports that ClientAddress is one client's. Otherwise it may be that of a proxy for all clients.
	ClientKnown bool

	// Admit makes the request one of a project's, once a key has shown that it is. The error is the answer if the project
	// has as many requests in flight as it may. Never nil.
	Admit func(projectID string) error
	// Leave takes the request out of those in flight while it waits for news and holds nothing. It counts again after
	// enter, whose error is the answer if there is no room. Never nil.
	Leave func() (enter func() error)
	// Hold counts bytes of an answer that the process holds until the client has taken them, to the end of the request.
	// The error is the answer if too many are held. Never nil.
	Hold func(bytes int64) error

	// Refusing is called before an error is written. It may set headers, or answer by itself and return true. Nil: not
	// called.
	Refusing func(w http.ResponseWriter, r *http.Request) (answered bool)

	// Logger logs with the request's id. Never nil.
	Logger *slog.Logger

	variables map[string]string // of the path, as they came, still escaped; nil if no route matched

	started bool // the answer's body has begun: an error can only end the connection
}

type infoKey struct{}

// WithInfo returns ctx carrying info. It completes the functions of info that are nil by ones without an effect.
func WithInfo(ctx context.Context, info *Info) context.Context {
	return context.WithValue(ctx, infoKey{}, complete(info))
}

// InfoFrom returns the request's Info. Outside a server's chain it returns a new one each time, so that handlers need
// no special case.
func InfoFrom(ctx context.Context) *Info {
	if info, ok := ctx.Value(infoKey{}).(*Info); ok {
		return info
	}
	return complete(&Info{})
}

// complete sets the functions that are nil to ones without an effect.
func complete(info *Info) *Info {
	if info.Logger == nil {
		info.Logger = slog.Default()
	}
	if info.BaseURL == nil {
		info.BaseURL = func() string { return "" }
	}
	if info.RequestURL == nil {
		info.RequestURL = func() string { return "" }
	}
	if info.Admit == nil {
		info.Admit = func(string) error { return nil }
	}
	if info.Leave == nil {
		info.Leave = func() func() error { return func() error { return nil } }
	}
	if info.Hold == nil {
		info.Hold = func(int64) error { return nil }
	}
	return info
}
