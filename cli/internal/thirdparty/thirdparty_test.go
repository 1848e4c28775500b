package thirdparty_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lectern-dev/lectern/cli/internal/thirdparty"
)

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func TestAnswersWithWhatItReceived(t *testing.T) {
	long := strings.Repeat("x", thirdparty.MaxBody+1)
	for _, tt := range []struct {
		name, body, want string
	}{
		{"no body", "", ""},
		{"text", "a <b> ☀", "a <b> ☀"},
		{"more than is shown", long, long[:thirdparty.MaxBody]},
		{"no text", "\xff\xfe", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodPost, "http://third.example/v1/charges?limit=3&x=%7B", strings.NewReader(tt.body))
			r.Header = http.Header{"Authorization": {"Bearer abc"}, "X-Two": {"1", "2"}}
			w := httptest.NewRecorder()
			thirdparty.New().ServeHTTP(w, r)
			var got thirdparty.Received
			if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
				t.Fatalf("%v: %.300s", err, w.Body)
			}
			want := thirdparty.Received{
				Method: "POST", Target: r.RequestURI, Host: "third.example",
				Headers: map[string]string{"Authorization": "Bearer abc", "X-Two": "1, 2"},
				SHA256:  map[string]string{"Authorization": digest("Bearer abc"), "X-Two": digest("1, 2")},
				Body:    tt.want, BodyBytes: int64(len(tt.body)), BodySHA256: digest(tt.body),
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			if got := w.Header().Get("Content-Type"); got != "application/json" {
				t.Errorf("Content-Type %q", got)
			}
		})
	}
}
