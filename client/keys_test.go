package client

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"
)

func TestAdministratorAsks(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		asked = append(asked, r.Method+" "+r.RequestURI+" "+r.Header.Get("X-Api-Key")+" "+r.Header.Get("Content-Type")+" "+string(body))
		answer := `{"id":"key_1","rate":null,"created_at":"2026-01-01T00:00:00Z","expires_at":"2027-01-01T00:00:00.5Z","key":"rk_1"}`
		if r.Method == http.MethodGet {
			answer = "[" + answer + "]"
		}
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(server.Close)
	a, err := NewAdministrator(server.URL+"/", WithAPIKey("ak"))
	if err != nil {
		t.Fatal(err)
	}
	keys, err := a.APIKeys(t.Context(), "p/1")
	if err != nil || len(keys) != 1 || keys[0].ID != "key_1" || keys[0].Rate != nil || keys[0].ExpiresAt.Nanosecond() != 5e8 {
		t.Errorf("%+v, %v", keys, err)
	}
	end := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, wanted := range []NewAPIKey{{}, {Name: "n", Scopes: []string{"entries:read"}, ExpiresAt: &end, Rate: 7, Key: "k"}} {
		if minted, err := a.MintAPIKey(t.Context(), "p", wanted); err != nil || minted.Key != "rk_1" || minted.ID != "key_1" {
			t.Errorf("%+v, %v", minted, err)
		}
	}
	if rotated, err := a.RotateAPIKey(t.Context(), "p", "key/1", 90*time.Minute); err != nil || rotated.Key != "rk_1" {
		t.Errorf("%+v, %v", rotated, err)
	}
	if revoked, err := a.RevokeAPIKey(t.Context(), "p", "key_1"); err != nil || revoked.ID != "key_1" {
		t.Errorf("%+v, %v", revoked, err)
	}
	want := []string{
		"GET /internal/projects/p%2F1/keys ak  ",
		"POST /internal/projects/p/keys ak application/json {}",
		`POST /internal/projects/p/keys ak application/json {"name":"n","scopes":["entries:read"],"expires_at":"2030-01-02T03:04:05Z","rate":7,"key":"k"}`,
		`POST /internal/projects/p/keys/key%2F1/rotate ak application/json {"overlap":"1h30m0s"}`,
		"DELETE /internal/projects/p/keys/key_1 ak  ",
	}
	if !slices.Equal(asked, want) {
		t.Errorf("asked %q; want %q", asked, want)
	}
}
