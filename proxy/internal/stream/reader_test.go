package stream_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"

	"golang.org/x/text/transform"

	"github.com/lectern-dev/lectern/proxy/internal/scrub"
	"github.com/lectern-dev/lectern/proxy/internal/stream"
	"github.com/lectern-dev/lectern/proxy/secret"
)

// TestHoldsWhatATransformerMustSee puts a secret of the greatest length, in its longest encoding, after more text than
// a buffer can contain.
func TestHoldsWhatATransformerMustSee(t *testing.T) {
	letters := make([]byte, secret.MaxBytes)
	for i := range letters {
		letters[i] = byte('a' + rand.IntN(26))
	}
	var escaped strings.Builder
	for _, c := range letters {
		fmt.Fprintf(&escaped, `\u%04x`, c)
	}
	before, after := strings.Repeat("before ", 10_000), strings.Repeat(" after", 10_000)
	m := scrub.NewMatcher(letters)
	for name, source := range map[string]io.Reader{
		"whole":     strings.NewReader(before + escaped.String() + after),
		"in halves": iotest.HalfReader(strings.NewReader(before + escaped.String() + after)),
		"with EOF":  iotest.DataErrReader(strings.NewReader(before + escaped.String() + after)),
	} {
		r := stream.NewReader(source, scrub.NewStream(m))
		got, err := io.ReadAll(r)
		if err != nil || string(got) != before+"[redacted]"+after {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

// stuck never makes progress.
type stuck struct{ transform.NopResetter }

func (stuck) Transform(_, _ []byte, _ bool) (int, int, error) { return 0, 0, transform.ErrShortSrc }

func TestReaderEndsWhatDoesNotGetOn(t *testing.T) {
	r := stream.NewReader(strings.NewReader("abc"), stuck{})
	if _, err := io.ReadAll(r); err == nil {
		t.Error("no error")
	}
	endless := stream.NewReader(iotest.HalfReader(endlessZeros{}), stuck{})
	if _, err := io.ReadAll(endless); err == nil {
		t.Error("no error")
	}
}

type endlessZeros struct{}

func (endlessZeros) Read(p []byte) (int, error) { return len(p), nil }
