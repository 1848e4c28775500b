package httpapi

import (
	"context"
	"log/slog"
	"net/http"
	"time"
)

// Info holds facts about a request for the access line, the trace and the errors, and functions of the server that a
// handler calls. Only the goroutine that serves the request writes to the Info.
type Info struct {
	RequestID string // from the client, or random; sent as X-Request-Id
	Route     string // the path's template; "" if none matches
	ProjectID string // from the path or the key
	KeyID     string // the accepted key's public id
	// KeyExpires is the time from which the accepted key or token is refused; zero: never.
	KeyExpires time.Time
	Err        error // the error that was answered or cut the answer off; nil: none

	// Recorded gives the access line the level debug, for requests about which the log has enough without it.
	Recorded bool

	// BaseURL returns the URL with which links begin: PUBLIC_URL, or for public requests the scheme and host that the
	// client used. Without both, the result is "". Never nil.
	BaseURL func() string
	// RequestURL returns the scheme and host that the client used, or PUBLIC_URL if PUBLIC_URL has the same host.
	// RequestURL returns "" if the client named no host that is valid in a URL. Never nil.
	RequestURL func() string
	// ClientAddress is the client's IP address if the edge or a trusted proxy forwarded it, and otherwise the address
	// of the peer.
	ClientAddress string
	// ClientKnown reports that ClientAddress is the address of one client, whose share this process bounds. False: the
	// address may be that of a proxy for all clients, or the edge bounds the share.
	ClientKnown bool

	// Admit counts the request for a project, after a key has shown that the request belongs to the project. The error
	// is the answer if the project has as many requests in flight as it may. Never nil.
	Admit func(projectID string) error
	// Leave takes the request out of the requests in flight while it waits for news and holds nothing. After enter, the
	// request counts again. The error of enter is the answer if there is no room. Never nil.
	Leave func() (enter func() error)
	// Hold counts bytes of an answer that the process holds for the client, until the request ends. The error is the
	// answer if too many are held. Never nil.
	Hold func(bytes int64) error

	// Refusing is called before an error is written. Refusing may set headers, or answer by itself and return true.
	// Nil: not called.
	Refusing func(w http.ResponseWriter, r *http.Request) (answered bool)

	// Logger logs with the request's id. Never nil.
	Logger *slog.Logger

	variables map[string]string // of the path, as they came, still escaped; nil if no route matched

	started bool // the answer's body has begun: an error can only end the connection
}

type infoKey struct{}

// WithInfo returns ctx carrying info. In the fields of info that are never nil, WithInfo replaces nil by a function
// without an effect, or by the default logger.
func WithInfo(ctx context.Context, info *Info) context.Context {
	return context.WithValue(ctx, infoKey{}, complete(info))
}

// InfoFrom returns the request's Info. Outside a server's chain, InfoFrom returns a new Info each time, so that
// handlers need no special case.
func InfoFrom(ctx context.Context) *Info {
	if info, ok := ctx.Value(infoKey{}).(*Info); ok {
		return info
	}
	return complete(&Info{})
}

// complete returns info. In the fields of info that are never nil, complete replaces nil by a function without an
// effect, or by the default logger.
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
