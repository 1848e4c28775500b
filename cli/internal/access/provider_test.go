package access_test

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/lectern-dev/lectern/cli/internal/clitest"
	"github.com/lectern-dev/lectern/cli/internal/shell"
)

// provider is an OpenID provider with the device flow, and an API that accepts its newest token. Each refresh token is
// good once. With grace, the last one that was replaced is good, too.
type provider struct {
	*httptest.Server
	t   *testing.T
	key *rsa.PrivateKey

	mu       sync.Mutex
	lifetime time.Duration // of the next tokens
	opaque   bool          // the access token is no JWT
	down     bool          // the token endpoint answers 503
	outages  int           // how often the device gets 503
	busy     int           // how often the API answers 503
	pending  int           // how often the device is told to wait
	refresh  int           // number of the valid refresh token; 0 for none
	newest   string        // token that the API accepts; "" for none
	sent     []string      // credentials that the API got
	grace    bool
	file     string              // the file of contexts, whose refresh token a command has to send; "": not compared
	at       func(moment string) // is called when a renewal reaches a moment; nil: not
}

// reach reports that a renewal has reached a moment.
func (p *provider) reach(moment string) {
	p.mu.Lock()
	at := p.at
	p.mu.Unlock()
	if at != nil {
		at(moment)
	}
}

func newProvider(t *testing.T) *provider {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	p := &provider{t: t, key: key, lifetime: time.Hour, pending: 1}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		p.reach("discovery")
		p.answer(w, http.StatusOK, map[string]any{
			"issuer": p.URL, "device_authorization_endpoint": p.URL + "/device", "token_endpoint": p.URL + "/token", "jwks_uri": p.URL + "/keys",
		})
	})
	mux.HandleFunc("POST /device", func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("client_id") != "cli" || r.FormValue("scope") != "openid offline_access" {
			t.Errorf("the device asked with %v", r.Form)
		}
		p.answer(w, http.StatusOK, map[string]any{
			"device_code": "dc", "user_code": "WDJB-MJHT", "verification_uri": "https://id.example.com/device", "expires_in": 600, "interval": 1,
		})
	})
	mux.HandleFunc("POST /token", p.token)
	mux.HandleFunc("GET /projects/pr_1/", func(w http.ResponseWriter, r *http.Request) {
		p.reach("API")
		p.mu.Lock()
		defer p.mu.Unlock()
		credential := r.Header.Get("X-Api-Key") + r.Header.Get("Authorization")
		p.sent = append(p.sent, credential)
		if p.busy--; p.busy >= 0 {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, `{"error":{"code":"unavailable","message":"No."}}`)
			return
		}
		if p.newest == "" || credential != "Bearer "+p.newest {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, `{"error":{"code":"unauthorized","message":"No."}}`)
			return
		}
		if !strings.HasSuffix(r.URL.Path, "/key") {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		_, _ = io.WriteString(w, `{"projectId":"pr_1","keyId":"key_1","scopes":["entries:read"]}`)
	})
	p.Server = httptest.NewServer(mux)
	t.Cleanup(p.Close)
	return p
}

func (p *provider) answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(body); err != nil {
		p.t.Error(err)
	}
}

func (p *provider) token(w http.ResponseWriter, r *http.Request) {
	status, body := p.tokens(r)
	p.reach("answer")
	p.answer(w, status, body)
}

func (p *provider) tokens(r *http.Request) (status int, body map[string]any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	refuse, sent := "", r.FormValue("refresh_token")
	if p.file != "" {
		if stored := clitest.Text(p.t, p.file); !strings.Contains(stored, `"`+sent+`"`) {
			p.t.Errorf("sent %q, stored %s", sent, stored)
		}
	}
	switch {
	case p.down:
		return http.StatusServiceUnavailable, nil
	case r.FormValue("device_code") == "dc" && p.outages > 0:
		p.outages--
		return http.StatusServiceUnavailable, nil
	case r.FormValue("client_id") != "cli":
		refuse = "invalid_client"
	case r.FormValue("device_code") == "dc" && p.pending > 0:
		p.pending--
		refuse = "authorization_pending"
	case r.FormValue("device_code") == "dc":
	case p.refresh > 0 && (sent == p.refreshToken() || p.grace && sent == "refresh-"+strconv.Itoa(p.refresh-1)):
	default:
		p.refresh = 0 // as providers do after a reuse
		refuse = "invalid_grant"
	}
	if refuse != "" {
		return http.StatusBadRequest, map[string]any{"error": refuse}
	}
	p.refresh++
	id := p.sign(map[string]any{"iss": p.URL, "sub": "alice", "aud": "cli", "exp": time.Now().Add(p.lifetime).Unix(), "jti": p.refresh})
	access := "opaque"
	if p.newest = id; !p.opaque {
		access = p.sign(map[string]any{"iss": p.URL, "sub": "alice", "aud": []string{"account", "lectern"}, "exp": time.Now().Add(p.lifetime).Unix(), "jti": p.refresh})
		p.newest = access
	}
	return http.StatusOK, map[string]any{"access_token": access, "id_token": id, "token_type": "Bearer", "expires_in": 1, "refresh_token": p.refreshToken()}
}

// refreshToken returns the newest refresh token.
func (p *provider) refreshToken() string { return "refresh-" + strconv.Itoa(p.refresh) }

func (p *provider) sign(claims map[string]any) string {
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: p.key, KeyID: "1"}}, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	payload, err := json.Marshal(claims)
	if err != nil {
		p.t.Fatal(err)
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		p.t.Fatal(err)
	}
	token, err := signed.CompactSerialize()
	if err != nil {
		p.t.Fatal(err)
	}
	return token
}

// set changes p between two commands.
func (p *provider) set(change func(*provider)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(p)
}

// TestLoginAtAProvider takes a login through its life: the device flow, renewals by several commands at once, the end, and
// lectern logout.
func TestLoginAtAProvider(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	p.outages = 2
	m := clitest.Machine{Folder: filepath.Join(t.TempDir(), "lectern")}
	login := []string{"login", "--url", p.URL, "-p", "pr_1", "--name", "shop", "--issuer", p.URL, "--client-id", "cli", "--audience", "lectern"}
	says := func(r clitest.Result, code int, want string) {
		t.Helper()
		if r.Code != code || !strings.Contains(r.Out+r.Err, want) || strings.Contains(r.Err, "trying again") {
			t.Errorf("%+v; want %d and %q", r, code, want)
		}
	}
	file := func() string {
		content, err := os.ReadFile(filepath.Join(m.Folder, "contexts.json"))
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	says(m.Run(t, "", "", nil, login[:7:7]...), shell.ExitUsage, "no key was given")
	says(m.Run(t, "", "", nil, login[:9:9]...), shell.ExitUsage, "--issuer and --client-id belong together")

	r := m.Run(t, "", "", nil, login...)
	says(r, shell.ExitOK, "Open https://id.example.com/device in a browser, and enter the code WDJB-MJHT.")
	says(r, shell.ExitOK, "Grant key_1 of project pr_1 may entries:read. The login is stored as the context shop")
	if info, err := os.Stat(filepath.Join(m.Folder, "contexts.json")); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if strings.Contains(r.Out+r.Err, "refresh-") || !strings.Contains(file(), "refresh-1") {
		t.Errorf("%+v, stored %s", r, file())
	}
	says(m.Run(t, "", "", nil, "whoami"), shell.ExitOK, `"keyId":"key_1"`)
	says(m.Run(t, "", "", nil, "check"), shell.ExitFailure, "operations that did not answer") // the others are not served
	says(m.Run(t, "", "", nil, "singer"), shell.ExitFailure, "404")
	p.set(func(p *provider) {
		if p.refresh != 1 {
			t.Errorf("a fresh token was renewed: %d", p.refresh)
		}
		for _, credential := range p.sent {
			if credential != "" && credential != "Bearer "+p.newest { // check also calls operations without one
				t.Errorf("sent %q", credential)
			}
		}
	})

	// Another credential wins over the login, and the login goes to no other URL.
	other, sent := newKeyAPI(t, "pr_1", "rk_1")
	tokenFile := clitest.File(t, "token", "ey.of.pod\n")
	p.set(func(p *provider) { p.sent = nil })
	says(m.Run(t, "", "", nil, "whoami", "--token-file", tokenFile), shell.ExitFailure, "check the key or the token")
	says(m.Run(t, "", "", map[string]string{"LECTERN_TOKEN_FILE": tokenFile}, "whoami"), shell.ExitFailure, "check the key or the token")
	says(m.Run(t, "", "", map[string]string{"LECTERN_API_KEY": "rk_1"}, "whoami", "--token-file", tokenFile), shell.ExitFailure, "check the key or the token")
	says(m.Run(t, "", "", map[string]string{"LECTERN_API_KEY": "rk_1"}, "whoami"), shell.ExitFailure, "check the key or the token")
	p.set(func(p *provider) {
		if got := strings.Join(p.sent, ", "); got != "Bearer ey.of.pod, Bearer ey.of.pod, Bearer ey.of.pod, rk_1" {
			t.Errorf("sent %s", got)
		}
	})
	says(m.Run(t, "", "", nil, "whoami", "--url", other, "-p", "pr_1"), shell.ExitUsage, "no API key: run lectern login")
	if len(*sent) > 0 {
		t.Errorf("sent %q to another URL", *sent)
	}
	says(m.Run(t, "", "", nil, "listen", "--print-secret"), shell.ExitUsage, "only an API key can derive one")

	// The token expires. Several commands renew it at once, though each refresh token is good once.
	stored := strings.Replace(file(), `"expires_at": "20`, `"expires_at": "19`, 1)
	clitest.Write(t, filepath.Join(m.Folder, "contexts.json"), stored)
	var commands sync.WaitGroup
	for range 4 {
		commands.Go(func() { says(m.Run(t, "", "", nil, "whoami"), shell.ExitOK, `"keyId":"key_1"`) })
	}
	commands.Wait()
	if !strings.Contains(file(), "refresh-2") {
		t.Errorf("stored %s", file())
	}

	// The provider replaces the refresh token, and its answer has no token for the audience. The next command needs the new
	// refresh token. The provider's signing keys are of no use to a command.
	clitest.Write(t, filepath.Join(m.Folder, "contexts.json"), strings.Replace(file(), `"expires_at": "20`, `"expires_at": "19`, 1))
	p.set(func(p *provider) { p.opaque = true })
	says(m.Run(t, "", "", nil, "whoami"), shell.ExitFailure, "lectern: renew the login of the context shop: no token for the audience")
	if got := file(); !strings.Contains(got, "refresh-3") || strings.Contains(got, `"expires_at": "20`) {
		t.Errorf("stored %s", got)
	}
	p.set(func(p *provider) { p.opaque = false })
	says(m.Run(t, "", "", nil, "whoami"), shell.ExitOK, `"keyId":"key_1"`)

	// The provider is down, then refuses the refresh token.
	clitest.Write(t, filepath.Join(m.Folder, "contexts.json"), strings.Replace(file(), `"expires_at": "20`, `"expires_at": "19`, 1))
	p.set(func(p *provider) { p.down = true })
	says(m.Run(t, "", "", nil, "whoami"), shell.ExitFailure, "lectern: renew the login of the context shop: ")
	p.set(func(p *provider) { p.down, p.refresh = false, 0 })
	r = m.Run(t, "", "", nil, "whoami")
	says(r, shell.ExitFailure, "lectern: the login of the context shop has expired; run lectern login --issuer "+p.URL+" --client-id cli\n")
	if strings.Count(r.Err, "\n") != 1 {
		t.Errorf("%q is not one line", r.Err)
	}

	says(m.Run(t, "", "", nil, "logout", "shp"), shell.ExitUsage, `NAME was given as "shp"; allowed: shop`)
	says(m.Run(t, "", "", nil, "logout"), shell.ExitOK, "The context shop has no key and no login any more.")
	if got := file(); strings.Contains(got, "refresh") || strings.Contains(got, "token") || !strings.Contains(got, "pr_1") {
		t.Errorf("stored %s", got)
	}
	says(m.Run(t, "", "", nil, "whoami"), shell.ExitUsage, "no API key: run lectern login")
}

// TestTokenOfTheAudience checks which token of the provider's answer the command sends: the JWT that has the audience.
func TestTokenOfTheAudience(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		opaque   bool
		audience string
		accepted bool // by the API, which accepts the access token, or the ID token if the access token is opaque
		says     string
	}{
		{"access token", false, "lectern", true, "may entries:read"},
		{"ID token, as the access token is opaque", true, "cli", true, "may entries:read"},
		{"ID token, as the access token has another audience", false, "cli", false, "lectern keys grant --project pr_1 --issuer "},
		{"none", true, "lectern", false, `no token for the audience "lectern" (see --audience)`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := newProvider(t)
			p.opaque, p.pending = tt.opaque, 0
			m := clitest.Machine{Folder: filepath.Join(t.TempDir(), "lectern")}
			r := m.Run(t, "", "", nil, "login", "--url", p.URL, "-p", "pr_1", "--issuer", p.URL, "--client-id", "cli", "--audience", tt.audience)
			if (r.Code == shell.ExitOK) != tt.accepted || !strings.Contains(r.Err, tt.says) {
				t.Errorf("%+v, want %q", r, tt.says)
			}
			if _, err := os.Stat(m.Folder); (err == nil) != tt.accepted {
				t.Errorf("the folder of settings: %v", err)
			}
		})
	}
}
