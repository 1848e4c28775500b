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

// echo serves on port 8080 until ctx ends. It answers with the digest of the header Authorization, as a value that
// came back as it is would be taken out of the answer.
func echo(ctx context.Context) error {
	server := &http.Server{
		Addr:              ":8080",
		ReadHeaderTimeout: 5 * time.Second,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			digest := sha256.Sum256([]byte(r.Header.Get("Authorization")))
			w.Header().Set("Content-Type", "application/json")
			// The client that is gone has no use for the error.
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
