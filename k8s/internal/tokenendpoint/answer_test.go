package tokenendpoint

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// TestOddAnswers checks what becomes of answers that token endpoints give, by a standard or not.
func TestOddAnswers(t *testing.T) {
	const assumed, hour = true, time.Hour
	const says = "the token endpoint answered with "
	const unreadable = "the answer of the token endpoint cannot be read"
	for _, tt := range []struct {
		name   string
		status int // 0: 200
		body   string
		life   time.Duration // of the token "a"; 0: there is none
		warns  bool
		fault  string
		passes bool // the fault is one that an early retry may end
		grants string
	}{
		{name: "by the standard", body: `{"access_token":"a","token_type":"Bearer","expires_in":3600}`, life: hour},
		{name: "a new refresh token", body: `{"access_token":"a","expires_in":60,"refresh_token":"r"}`, life: time.Minute, grants: "r"},
		{name: "no life", body: `{"access_token":"a"}`, life: hour},
		{name: "a life of null", body: `{"access_token":"a","expires_in":null}`, life: hour},
		{name: "a life of 1", body: `{"access_token":"a","expires_in":1}`, life: time.Second},
		{name: "a fraction", body: `{"access_token":"a","expires_in":3599.5}`, life: 3599500 * time.Millisecond},
		{name: "an exponent", body: `{"access_token":"a","expires_in":3.6e3}`, life: hour},
		{name: "a text", body: `{"access_token":"a","expires_in":"900"}`, life: 900 * time.Second},
		{name: "a text with a fraction", body: `{"access_token":"a","expires_in":"3600.0"}`, life: hour},
		{name: "an empty text", body: `{"access_token":"a","expires_in":""}`, life: hour, warns: assumed},
		{name: "a text with a unit", body: `{"access_token":"a","expires_in":"60s"}`, life: hour, warns: assumed},
		{name: "a date", body: `{"access_token":"a","expires_in":"2026-11-29T12:00:00Z"}`, life: hour, warns: assumed},
		{name: "zero", body: `{"access_token":"a","expires_in":0}`, life: hour, warns: assumed},
		{name: "minus one", body: `{"access_token":"a","expires_in":-1}`, life: hour, warns: assumed},
		{name: "a text of minus one", body: `{"access_token":"a","expires_in":"-1"}`, life: hour, warns: assumed},
		{name: "not a number", body: `{"access_token":"a","expires_in":"NaN"}`, life: hour, warns: assumed},
		{name: "true", body: `{"access_token":"a","expires_in":true}`, life: hour, warns: assumed},
		{name: "an array", body: `{"access_token":"a","expires_in":[3600]}`, life: hour, warns: assumed},
		{name: "a number without end", body: `{"access_token":"a","expires_in":"Infinity"}`, life: maxLife * time.Second},
		{name: "beyond a number", body: `{"access_token":"a","expires_in":1e400}`, life: hour, warns: assumed},
		{name: "a life of centuries", body: `{"access_token":"a","expires_in":9223372036854775807}`, life: maxLife * time.Second},
		{name: "members in another letter case", body: `{"Access_Token":"a"}`, fault: unreadable, passes: true},
		{name: "a byte order mark", body: "\ufeff" + `{"access_token":"a"}`, life: hour},
		{name: "white space around", body: "\r\n\t" + `{"access_token":"a"}` + "\n\n", life: hour},
		{name: "unknown members", body: `{"access_token":"a","ext_expires_in":0,"scope":["x"],"user":{"id":1}}`, life: hour},
		{name: "no token type", body: `{"access_token":"a","expires_in":60}`, life: time.Minute},
		{name: "another token type", body: `{"access_token":"a","token_type":"mac"}`, life: hour},
		{name: "a form", body: "access_token=a&expires_in=60&token_type=bearer&refresh_token=r", life: time.Minute, grants: "r"},
		{name: "a form without a life", body: "access_token=a&scope=&token_type=bearer", life: hour},
		{name: "status 201", status: 201, body: `{"access_token":"a"}`, life: hour},

		{name: "nothing", body: "", fault: unreadable, passes: true},
		{name: "status 204", status: 204, body: "", fault: unreadable, passes: true},
		{name: "a page", body: "<html>canary</html>", fault: unreadable, passes: true},
		{name: "an array of tokens", body: `[{"access_token":"a"}]`, fault: unreadable, passes: true},
		{name: "a token in another object", body: `{"data":{"access_token":"a"}}`, fault: unreadable, passes: true},
		{name: "a token that is no text", body: `{"access_token":17}`, fault: unreadable, passes: true},
		{name: "an empty token with a new refresh token", body: `{"access_token":"","refresh_token":"r"}`, fault: unreadable, passes: true, grants: "r"},
		{name: "half an object", body: `{"access_token":"a","expires_in"`, fault: unreadable, passes: true},
		{name: "two objects", body: `{"access_token":"a"}{"access_token":"b"}`, fault: unreadable, passes: true},
		{name: "a token that is too long, with a new refresh token", body: `{"access_token":"` + strings.Repeat("a", 16<<10+1) + `","refresh_token":"r"}`, fault: says + "a token of 16385 bytes", passes: true, grants: "r"},

		{name: "an error with status 200", body: `{"error":"invalid_grant"}`, fault: says + "status 200 and the error invalid_grant"},
		{name: "an error in a form", body: "error=bad_verification_code&error_description=canary", fault: says + "status 200"},
		{name: "invalid_client", status: 401, body: `{"error":"invalid_client","error_description":"canary"}`, fault: says + "status 401 and the error invalid_client"},
		{name: "temporarily_unavailable", status: 400, body: `{"error":"temporarily_unavailable"}`, fault: says + "status 400 and the error temporarily_unavailable", passes: true},
		{name: "server_error", status: 400, body: `{"error":"server_error"}`, fault: says + "status 400 and the error server_error", passes: true},
		{name: "an error that is an object", status: 400, body: `{"error":{"code":"canary"}}`, fault: says + "status 400"},
		{name: "an error of its own", status: 400, body: `{"error":"canary"}`, fault: says + "status 400"},
		{name: "forbidden, by a page", status: 403, body: "<html>canary</html>", fault: says + "status 403"},
		{name: "too many requests", status: 429, body: "canary", fault: says + "status 429", passes: true},
		{name: "an outage", status: 502, body: "<html>canary</html>", fault: says + "status 502", passes: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.status == 0 {
				tt.status = 200
			}
			token, err := read(tt.status, []byte(tt.body))
			fault, _ := errors.AsType[*Fault](err)
			switch {
			case tt.fault == "" && (err != nil || token.Access != "a" || token.Life != tt.life || (token.Warning != "") != tt.warns):
				t.Errorf("%+v, %v", token, err)
			case tt.fault != "" && (fault == nil || strings.Split(fault.text, ";")[0] != tt.fault || fault.Refused == tt.passes || token.Access != ""):
				t.Errorf("%+v, %+v", token, fault)
			}
			if token.Refresh != tt.grants {
				t.Errorf("the refresh token is %q", token.Refresh)
			}
			if err != nil && strings.Contains(err.Error(), "canary") {
				t.Error(err)
			}
		})
	}
}
