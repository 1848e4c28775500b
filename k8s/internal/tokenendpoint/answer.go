package tokenendpoint

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/lectern-dev/lectern/proxy/policy"
)

// maxLife bounds the life of a token, so that its end is a time.
const maxLife = math.MaxInt32 // seconds

// codes are the error codes of RFC 6749, section 5.2, and of section 4.1.2.1 those that pass. Another code may be any text.
var codes = []string{"invalid_request", "invalid_client", "invalid_grant", "unauthorized_client", "unsupported_grant_type", "invalid_scope", "temporarily_unavailable", "server_error"}

// read returns the token of an answer (RFC 6749, section 5.1), or a [Fault]. The token has a Refresh even with a Fault.
// The content decides what the answer is, because many endpoints send JSON as another type: a JSON object, or a form.
func read(status int, body []byte) (Token, error) {
	body = bytes.TrimSpace(bytes.TrimPrefix(body, []byte("\ufeff")))
	var fields map[string]any
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	if err := decoder.Decode(&fields); err != nil || decoder.More() {
		fields = map[string]any{}
		form, _ := url.ParseQuery(string(body)) // some endpoints answer with a form
		for name := range form {
			fields[name] = form.Get(name)
		}
	}
	text := func(name string) string {
		value, _ := fields[name].(string)
		return value
	}
	token, code := Token{Access: text("access_token"), Refresh: text("refresh_token")}, text("error")
	switch {
	case status < 200 || status > 299 || code != "":
		return Token{Refresh: token.Refresh}, refusal(status, code)
	case token.Access == "":
		return Token{Refresh: token.Refresh}, &Fault{text: fmt.Sprintf("the answer of the token endpoint cannot be read; allowed: JSON with access_token, up to %d bytes", maxAnswer)}
	case len(token.Access) > policy.MaxValue:
		return Token{Refresh: token.Refresh}, &Fault{text: fmt.Sprintf("the token endpoint answered with a token of %d bytes; allowed: up to %d", len(token.Access), policy.MaxValue)}
	}
	token.Life = defaultLife
	if life := fields["expires_in"]; life != nil {
		seconds, err := strconv.ParseFloat(fmt.Sprint(life), 64)
		if err == nil && seconds > 0 {
			token.Life = time.Duration(min(seconds, maxLife) * float64(time.Second))
		} else {
			token.Warning = "the expires_in of the token endpoint's answer is no life, so the operator assumes an hour"
		}
	}
	return token, nil
}

// refusal returns the Fault for a status and an error code. Of the code, it takes over one in [codes] alone.
func refusal(status int, code string) *Fault {
	passes := status >= 500 || status == http.StatusTooManyRequests || status == http.StatusRequestTimeout || code == "temporarily_unavailable" || code == "server_error"
	f := &Fault{Refused: !passes, text: fmt.Sprintf("the token endpoint answered with status %d", status)}
	switch {
	case slices.Contains(codes, code):
		f.Code = code
		f.text += " and the error " + code
	case status >= 300 && status < 400:
		f.text += ", a redirect, which the operator does not follow"
	}
	return f
}
