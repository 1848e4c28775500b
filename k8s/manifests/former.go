package manifests

import (
	"encoding/json"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// FormerKey is the key of the Secret for the proxy that holds a list of [Former], as JSON. No name of [ValueName] equals
// it.
const FormerKey = "former"

// Former is a value that the proxy has to hide, although it may not send the value any more. With Value, this is a former
// value of the Credential, at each endpoint that may use the Credential. With Endpoint, these are all values of the
// Credential, at an endpoint that may not use the Credential any more.
type Former struct {
	Namespace  string    `json:"namespace"` // in whose share of the Secret this is
	Credential types.UID `json:"credential"`
	Value      []byte    `json:"value,omitempty"`
	Endpoint   string    `json:"endpoint,omitempty"` // namespace/name
	Until      time.Time `json:"until"`
}

// FormerOf returns the list in the data of the Secret for the proxy. A list that cannot be read counts as empty.
func FormerOf(data map[string][]byte) (list []Former) {
	if json.Unmarshal(data[FormerKey], &list) != nil {
		return nil
	}
	return list
}
