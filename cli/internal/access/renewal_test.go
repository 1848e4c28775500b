package access_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lectern-dev/lectern/cli/internal/clitest"
	"github.com/lectern-dev/lectern/cli/internal/shell"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
)

// newLogin returns a machine whose login at p has expired, with the file of the login. p compares each refresh token with
// the file's.
func newLogin(t *testing.T, p *provider) (m clitest.Machine, file string) {
	t.Helper()
	m = clitest.Machine{Folder: filepath.Join(t.TempDir(), "lectern")}
	p.pending = 0
	r := m.Run(t, "", "", nil, "login", "--url", p.URL, "-p", "pr_1", "--name", "shop", "--issuer", p.URL, "--client-id", "cli", "--audience", "lectern")
	if r.Code != shell.ExitOK {
		t.Fatal(r)
	}
	file = filepath.Join(m.Folder, "contexts.json")
	expire(t, file)
	p.set(func(p *provider) { p.file = file })
	return m, file
}

// expire lets the token of a file of contexts expire.
func expire(t *testing.T, file string) {
	t.Helper()
	clitest.Write(t, file, strings.Replace(clitest.Text(t, file), `"expires_at": "20`, `"expires_at": "19`, 1))
}

// TestKilledRenewal kills the command at each step of a renewal. The next command sends the newest refresh token that a
// command could store. A new one is lost only between the answer and the write, and only if the provider has no grace period.
func TestKilledRenewal(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the test gives each process a folder of settings by XDG_CONFIG_HOME, which Linux alone reads")
	}
	t.Parallel()
	const ended = "the login of the context shop has expired"
	for name, tt := range map[string]struct {
		moment string
		grace  bool
		stored string // after the kill
		next   string // what the next command says; "": nothing, as it succeeds
	}{
		"before the request":              {"discovery", false, "refresh-1", ""},
		"before the answer":               {"answer", false, "refresh-1", ended},
		"before the answer, with a grace": {"answer", true, "refresh-1", ""},
		"after the write":                 {"API", false, "refresh-2", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProvider(t)
			m, file := newLogin(t, p)
			reached, proceed := make(chan struct{}), make(chan struct{})
			p.set(func(p *provider) {
				p.grace = tt.grace
				p.at = func(moment string) {
					if moment == tt.moment {
						close(reached)
						<-proceed
					}
				}
			})
			process := m.Start(t, "whoami")
			eventually.Receive(t, "the moment", reached)
			process.End(t, syscall.SIGKILL)
			p.set(func(p *provider) { p.at = nil })
			close(proceed)
			if got := clitest.Text(t, file); !strings.Contains(got, tt.stored) {
				t.Errorf("stored %s, want %s", got, tt.stored)
			}
			r := m.Run(t, "", "", nil, "whoami")
			if (r.Code == shell.ExitOK) != (tt.next == "") || !strings.Contains(r.Err, tt.next) {
				t.Errorf("%+v; want %q", r, tt.next)
			}
		})
	}
	t.Run("around the write", func(t *testing.T) {
		t.Parallel()
		p := newProvider(t)
		m, file := newLogin(t, p)
		lost := 0
		for range 8 {
			before := clitest.Text(t, file)
			reached := make(chan struct{})
			p.set(func(p *provider) {
				p.grace = true
				p.at = func(moment string) {
					if moment == "answer" {
						close(reached)
					}
				}
			})
			process := m.Start(t, "whoami")
			eventually.Receive(t, "the answer", reached)
			time.Sleep(rand.N(8 * time.Millisecond)) // a sleep, because a crash waits for no state
			_ = process.Kill()                       // it may have ended
			<-process.Ended
			p.set(func(p *provider) { p.at = nil })
			if clitest.Text(t, file) == before {
				lost++
			}
			if r := m.Run(t, "", "", nil, "whoami"); r.Code != shell.ExitOK {
				t.Fatalf("%+v, stored %s", r, clitest.Text(t, file))
			}
			expire(t, file)
		}
		t.Logf("%d of 8 answers were lost", lost)
	})
}

// TestRenewalThatCannotBeStored breaks the folder of settings while the provider answers. The command goes on with the new
// tokens, and stores them as soon as it can. A folder that is broken before the request costs no refresh token.
func TestRenewalThatCannotBeStored(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	m, file := newLogin(t, p)
	away := m.Folder + ".away"
	broken := func(isBroken bool) {
		t.Helper()
		_, err := os.Stat(away)
		switch {
		case isBroken && err != nil:
			err = os.Rename(m.Folder, away)
			clitest.Write(t, m.Folder, "a file in place of the folder")
		case !isBroken && err == nil:
			err = os.Remove(m.Folder)
			if err == nil {
				err = os.Rename(away, m.Folder)
			}
		default:
			return
		}
		if err != nil {
			t.Error(err)
		}
	}
	p.set(func(p *provider) {
		p.busy = 2
		p.at = func(moment string) {
			p.mu.Lock()
			defer p.mu.Unlock()
			switch moment {
			case "answer":
				broken(true)
			case "API":
				broken(p.busy > 1) // the command repeats the first two calls
			}
		}
	})
	r := m.Run(t, "", "", nil, "whoami")
	if got := clitest.Text(t, file); r.Code != shell.ExitOK || !strings.Contains(got, "refresh-2") {
		t.Errorf("%+v, stored %s", r, got)
	}

	expire(t, file)
	p.set(func(p *provider) {
		p.file = ""
		p.at = func(moment string) { t.Errorf("reached %s", moment) }
	})
	broken(true)
	defer broken(false)
	if r := m.Run(t, "", "", nil, "whoami"); r.Code == shell.ExitOK {
		t.Error(r)
	}
}
