package wire

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestParseTime(t *testing.T) {
	at := func(s string) int64 {
		v, err := time.Parse(time.RFC3339Nano, s)
		if err != nil {
			t.Fatal(err)
		}
		return v.UnixMicro()
	}
	tests := []struct {
		name, in string
		want     string // RFC 3339; empty: in is invalid
	}{
		{"UTC", "2022-01-01T00:00:00Z", "2022-01-01T00:00:00Z"},
		{"lower case", "2022-01-01t00:00:00z", "2022-01-01T00:00:00Z"},
		{"offset east", "2022-01-01T02:00:00+02:00", "2022-01-01T00:00:00Z"},
		{"offset west", "2021-12-31T18:30:00-05:30", "2022-01-01T00:00:00Z"},
		{"unescaped plus", "2022-01-01T02:00:00 02:00", "2022-01-01T00:00:00Z"},
		{"no offset", "2022-01-01T00:00:00", "2022-01-01T00:00:00Z"},
		{"bare date", "2022-01-01", "2022-01-01T00:00:00Z"},
		{"fraction", "2022-01-01T00:00:00.25Z", "2022-01-01T00:00:00.25Z"},
		{"digits past the sixth are cut", "2022-01-01T00:00:00.123456999Z", "2022-01-01T00:00:00.123456Z"},
		{"leap day", "2024-02-29", "2024-02-29T00:00:00Z"},
		{"first year", "0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"},
		{"last year", "9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999999Z"},
		{"empty", "", ""},
		{"no leap day", "2023-02-29", ""},
		{"no leap century", "1900-02-29", ""},
		{"month 13", "2022-13-01", ""},
		{"day 0", "2022-01-00", ""},
		{"day 31 of April", "2022-04-31", ""},
		{"hour 24", "2022-01-01T24:00:00Z", ""},
		{"leap second", "2022-01-01T23:59:60Z", ""},
		{"year 0", "0000-01-01T00:00:00Z", ""},
		{"year 0 by offset", "0001-01-01T00:00:00+00:01", ""},
		{"year 10000 by offset", "9999-12-31T23:59:59-00:01", ""},
		{"five digits", "12022-01-01T00:00:00Z", ""},
		{"negative", "-2022-01-01T00:00:00Z", ""},
		{"words", "yesterday", ""},
		{"space for T", "2022-01-01 00:00:00Z", ""},
		{"fraction without digits", "2022-01-01T00:00:00.Z", ""},
		{"offset without colon", "2022-01-01T00:00:00+0200", ""},
		{"offset of 24 hours", "2022-01-01T00:00:00+24:00", ""},
		{"something behind", "2022-01-01T00:00:00Zx", ""},
		{"no seconds", "2022-01-01T00:00Z", "2022-01-01T00:00:00Z"},
		{"no seconds, with an offset", "2022-01-01T02:00+02:00", "2022-01-01T00:00:00Z"},
		{"no seconds, with an unescaped plus", "2022-01-01T02:00 02:00", "2022-01-01T00:00:00Z"},
		{"neither seconds nor an offset", "2022-01-01T00:00", "2022-01-01T00:00:00Z"},
		{"minutes missing", "2022-01-01T00Z", ""},
		{"a colon and no seconds", "2022-01-01T00:00:Z", ""},
		{"a fraction of a minute", "2022-01-01T00:00.5Z", ""},
		{"one digit of seconds", "2022-01-01T00:00:0Z", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ParseTime(tt.in)
			if tt.want == "" {
				if err == nil {
					t.Fatalf("ParseTime(%q) = %d, want a fault", tt.in, got)
				}
				return
			}
			if err != nil || got != at(tt.want) {
				t.Errorf("ParseTime(%q) = %d, %v; want %d", tt.in, got, err, at(tt.want))
			}
			if b, err := ParseTime([]byte(tt.in)); err != nil || b != got {
				t.Errorf("as bytes: %d, %v", b, err)
			}
		})
	}
}

// TestTimeRoundTrip checks that AppendTime writes the same text as the standard library, and that ParseTime reads the
// same time from it.
func TestTimeRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		micros := rapid.Int64Range(MinTime, MaxTime).Draw(t, "micros")
		got := string(AppendTime(nil, micros))
		if want := `"` + time.UnixMicro(micros).UTC().Format(time.RFC3339Nano) + `"`; got != want {
			t.Fatalf("AppendTime(%d) = %s, want %s", micros, got, want)
		}
		if back, err := ParseTime(strings.Trim(got, `"`)); err != nil || back != micros {
			t.Fatalf("ParseTime(%s) = %d, %v; want %d", got, back, err, micros)
		}
	})
}

func FuzzParseTime(f *testing.F) {
	for _, s := range []string{"2022-01-01T00:00:00Z", "2022-01-01", "2022-01-01T00:00:00.5 02:00", "9999-12-31T23:59:59-00:01", "0001-01-01", "2022-02-30"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := ParseTime(s)
		if err != nil {
			return
		}
		if got < MinTime || got > MaxTime {
			t.Fatalf("ParseTime(%q) = %d is out of range", s, got)
		}
		if want, err := time.Parse(time.RFC3339Nano, strings.Replace(s, " ", "+", 1)); err == nil {
			// The standard library truncates nanoseconds only in the conversion to microseconds.
			if want.Truncate(time.Microsecond).UnixMicro() != got {
				t.Fatalf("ParseTime(%q) = %d, want %d", s, got, want.UnixMicro())
			}
		}
	})
}
