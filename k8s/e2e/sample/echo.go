package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"time"
)

// echo serves on port 8080 until ctx ends. The answer has the SHA-256 of the header Authorization, because the proxy
// would remove the value itself from an answer.
func echo(ctx context.Context) error {
	server := &http.Server{
		Addr:              ":8080",
		ReadHeaderTimeout: 5 * time.Second,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			digest := sha256.Sum256([]byte(r.Header.Get("Authorization")))
			w.Header().Set("Content-Type", "application/json")
			// An error means that the client has disconnected.
			_ = json.NewEncoder(w).Encode(map[string]string{
				"method": r.Method, "path": r.URL.Path, "authorization_sha256": hex.EncodeToString(digest[:]),
			})
		}),
	}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
