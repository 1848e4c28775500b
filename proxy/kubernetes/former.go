package kubernetes

import (
	"bytes"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/lectern-dev/lectern/k8s/manifests"
	"github.com/lectern-dev/lectern/proxy/policy"
	"github.com/lectern-dev/lectern/proxy/secret"
)

// formers holds the values that the proxy has to hide, although it may not send them any more.
type formers struct {
	of map[types.UID][]policy.Former // the former values of a Credential
	at map[string][]policy.Former    // the values of Credentials that an endpoint may not use any more, by namespace/name
}

// formersIn returns the former values in the data of the Secret with the Credentials' values.
func formersIn(data map[string][]byte) formers {
	f := formers{map[types.UID][]policy.Former{}, map[string][]policy.Former{}}
	var taken []manifests.Former
	for _, one := range manifests.FormerOf(data) {
		if one.Endpoint != "" {
			taken = append(taken, one)
			continue
		}
		f.of[one.Credential] = append(f.of[one.Credential], former(one.Value, one.Until))
	}
	present := map[types.UID][][]byte{}
	for name, value := range data {
		uid, _, _ := strings.Cut(name, "_") // see [manifests.ValueName]
		present[types.UID(uid)] = append(present[types.UID(uid)], value)
	}
	for _, one := range taken {
		all := append(f.at[one.Endpoint], f.of[one.Credential]...)
		for _, value := range present[one.Credential] {
			all = append(all, former(value, one.Until))
		}
		f.at[one.Endpoint] = all
	}
	return f
}

func former(value []byte, until time.Time) policy.Former {
	return policy.Former{Value: secret.New(bytes.TrimRight(value, "\r\n")), Until: until} // as package manifest does
}
