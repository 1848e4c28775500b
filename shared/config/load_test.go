package config_test

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lectern-dev/lectern/shared/config"
)

type pool struct {
	URL     config.Secret `env:"DATABASE_URL,required"`
	Size    int           `env:"POOL_SIZE" envDefault:"8"`
	Acquire time.Duration `env:"POOL_ACQUIRE" envDefault:"2s"`
}

func (p pool) Validate() error {
	var faults []error
	if p.URL.IsZero() {
		faults = append(faults, config.Invalid("DATABASE_URL", p.URL, "postgres://…"))
	}
	if p.Size < 1 {
		faults = append(faults, config.Invalid("POOL_SIZE", p.Size, "1 or more"))
	}
	if p.Acquire <= 0 {
		faults = append(faults, config.Invalid("POOL_ACQUIRE", p.Acquire, "more than 0s"))
	}
	return errors.Join(faults...)
}

type settings struct {
	Pool    pool
	Keys    []config.Secret `env:"KEYS"`
	Trusted []netip.Prefix  `env:"TRUSTED"`
	Debug   bool            `env:"DEBUG"`
	Rate    float64         `env:"RATE" envDefault:"1.5"`
	Ready   func()          `env:"-"`
}

func (s *settings) Validate() error {
	if s.Debug && s.Rate > 100 {
		return errors.New("DEBUG and a RATE over 100 do not go together")
	}
	return nil
}

// program has settings that only its command serve needs.
type program struct {
	Settings settings
	Token    config.Secret `env:"TOKEN,required"`
	Home     string        `env:"HOME_URL"`
}

func (p *program) Require(command string) error {
	if command == "serve" && p.Home == "" {
		return config.Invalid("HOME_URL", "", "an https URL")
	}
	return nil
}

func TestLoad(t *testing.T) {
	for _, tc := range []struct {
		name string
		in   map[string]string
		want settings
	}{
		{
			name: "defaults",
			in:   map[string]string{"DATABASE_URL": "postgres://a"},
			want: settings{Pool: pool{URL: config.NewSecret("postgres://a"), Size: 8, Acquire: 2 * time.Second}, Rate: 1.5},
		},
		{
			name: "all set",
			in: map[string]string{
				"DATABASE_URL": "postgres://a?x=1,2", "POOL_SIZE": "3", "POOL_ACQUIRE": "150ms",
				"KEYS": " one, two ,,three", "TRUSTED": "10.0.0.0/8, ::1/128", "DEBUG": "true", "RATE": "2",
			},
			want: settings{
				Pool:    pool{URL: config.NewSecret("postgres://a?x=1,2"), Size: 3, Acquire: 150 * time.Millisecond},
				Keys:    []config.Secret{config.NewSecret("one"), config.NewSecret("two"), config.NewSecret("three")},
				Trusted: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("::1/128")},
				Debug:   true, Rate: 2,
			},
		},
		{
			name: "set to nothing is not set",
			in:   map[string]string{"DATABASE_URL": "u", "POOL_SIZE": "", "KEYS": " , ", "DEBUG": ""},
			want: settings{Pool: pool{URL: config.NewSecret("u"), Size: 8, Acquire: 2 * time.Second}, Rate: 1.5},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var got settings
			if err := config.Load(&got, tc.in); err != nil {
				t.Fatal(err)
			}
			sameText := cmp.Comparer(func(a, b config.Secret) bool { return a.Reveal() == b.Reveal() })
			samePrefix := cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })
			sameFunc := cmp.Comparer(func(a, b func()) bool { return a == nil && b == nil })
			if diff := cmp.Diff(tc.want, got, sameText, samePrefix, sameFunc); diff != "" {
				t.Errorf("Load (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLoadReportsEveryFaultAtOnce(t *testing.T) {
	var p program
	err := config.LoadFor("serve", &p, map[string]string{
		"POOL_SIZE": "many", "POOL_ACQUIRE": "-1s", "DEBUG": "perhaps", "TRUSTED": "10.0.0.0/8,here", "RATE": "x",
	})
	if err == nil {
		t.Fatal("Load took a configuration that is wrong")
	}
	faults, ok := errors.AsType[*config.Faults](err)
	if !ok {
		t.Fatalf("Load returned %T", err)
	}
	var got []string
	for _, f := range faults.All {
		got = append(got, f.Error())
	}
	want := []string{
		"DATABASE_URL is not set, and is required; allowed: postgres://…",
		`POOL_SIZE is "many"; allowed: an integer`,
		`TRUSTED is "10.0.0.0/8,here"; allowed: a comma-separated list, each a CIDR, such as 10.0.0.0/8`,
		`DEBUG is "perhaps"; allowed: true or false`,
		`RATE is "x"; allowed: a number`,
		"TOKEN is not set, and is required",
		`POOL_ACQUIRE is "-1s"; allowed: more than 0s`,
		"HOME_URL is not set, and is required; allowed: an https URL",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
	if !strings.Contains(err.Error(), "\n  RATE is") {
		t.Errorf("Error() = %s, want one fault a line", err)
	}
}

func TestLoadReadsSecretsFromFiles(t *testing.T) {
	folder := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	type own struct {
		One  config.Secret   `env:"ONE"`
		Many []config.Secret `env:"MANY"`
		Text string          `env:"TEXT"`
	}
	for _, tc := range []struct {
		name    string
		in      map[string]string
		want    []string // One, then Many
		wantErr string
	}{
		{name: "one newline is dropped", in: map[string]string{"ONE_FILE": write("a", " pa ss\n\n")}, want: []string{" pa ss\n"}},
		{name: "no newline", in: map[string]string{"ONE_FILE": write("b", "pass")}, want: []string{"pass"}},
		{name: "Windows' newline", in: map[string]string{"ONE_FILE": write("c", "pass\r\n")}, want: []string{"pass"}},
		{name: "a list", in: map[string]string{"MANY_FILE": write("d", "x, y\n")}, want: []string{"", "x", "y"}},
		{name: "both", in: map[string]string{"ONE": canary, "ONE_FILE": write("e", canary)}, wantErr: "ONE and ONE_FILE are both set"},
		{name: "no such file", in: map[string]string{"ONE_FILE": filepath.Join(folder, "none")}, wantErr: "ONE_FILE names a file that cannot be read"},
		{name: "only secrets", in: map[string]string{"TEXT_FILE": filepath.Join(folder, "none")}, want: []string{""}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var o own
			err := config.Load(&o, tc.in)
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) || strings.Contains(err.Error(), canary) {
					t.Fatalf("Load: %v, want %q in it, and no secret", err, tc.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got := []string{o.One.Reveal()}
			for _, s := range o.Many {
				got = append(got, s.Reveal())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("secrets (-want +got):\n%s", diff)
			}
		})
	}
}
