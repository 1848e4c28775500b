package tokenendpoint

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/lectern-dev/lectern/proxy/egress"
	"github.com/lectern-dev/lectern/proxy/resource"
	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/egressproxy"
	"github.com/lectern-dev/lectern/shared/testing/proxytest"
)

// TestEgressProxy checks that a token endpoint is reached through EGRESS_PROXY, unless its address is not public.
func TestEgressProxy(t *testing.T) {
	network := proxytest.Start(t)
	endpoint := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"access_token":"a"}`))
	}))
	t.Cleanup(endpoint.Close)
	c := &Client{Guard: egress.NewGuard(nil, nil, nil), Proxy: egressproxy.Config{URL: config.NewServerURL(network.URL)}}
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: endpoint.Certificate().Raw}))
	fetch := func(address string) error {
		_, err := c.Fetch(t.Context(), Request{OAuth2: resource.OAuth2{TokenURL: address, CABundle: ca}, ClientSecret: "x"})
		return err
	}
	for _, private := range []string{"127.0.0.1", "１２７.０.０.１", "a.ｌocalhost", "[::1]", "0x7f.1"} {
		if err := fetch(strings.Replace(endpoint.URL, "127.0.0.1", private, 1)); err == nil || !strings.Contains(err.Error(), "an address that is not a public one") {
			t.Errorf("%s: %v", private, err)
		}
	}
	public := strings.Replace(endpoint.URL, "127.0.0.1", "example.com", 1)
	if err := fetch(public); err != nil {
		t.Error(err)
	}
	if want := strings.Replace(public, "https://", "CONNECT ", 1); network.Asked() != want {
		t.Errorf("%s, want %s", network.Asked(), want)
	}
	network.Require("lectern", "secret")
	if err := fetch(public); err == nil || err.Error() != "EGRESS_PROXY answered with status 407" {
		t.Errorf("without a password: %v", err)
	}
}
