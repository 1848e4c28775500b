package httpapi

import (
	"context"
	"log/slog"
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
	// ClientAddress is the client's IP address, from a forwarded header only if a trusted proxy sent it.
	ClientAddress string

	// Park stops counting the request among those that MAX_IN_FLIGHT bounds, until resume is called. A handler calls
	// it while it waits for news and holds nothing else. Never nil.
	Park func() (resume func())

	// Logger logs with the request's id. Never nil.
	Logger *slog.Logger

	variables map[string]string // of the path, as they came, still escaped; nil if no route matched

	started bool // the answer's body has begun: an error can only end the connection
}

type infoKey struct{}

// WithInfo returns ctx carrying info.
func WithInfo(ctx context.Context, info *Info) context.Context {
	return context.WithValue(ctx, infoKey{}, info)
}

// InfoFrom returns the request's Info. Outside a server's chain it returns a new one each time, so that handlers need
// no special case.
func InfoFrom(ctx context.Context) *Info {
	if info, ok := ctx.Value(infoKey{}).(*Info); ok {
		return info
	}
	return &Info{
		Logger:  slog.Default(),
		BaseURL: func() string { return "" },
		Park:    func() (resume func()) { return func() {} },
	}
}
