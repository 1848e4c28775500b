package auth

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"

	"github.com/lectern-dev/lectern/shared/wire"
)

// maxIdentity is the longest issuer, subject and group of an [Identity], in bytes.
const maxIdentity = 512

// Identity is an issuer of tokens, and a subject or a group of that issuer, as a token proves them. A store keeps
// the rights of an Identity in a [Record], as it keeps the rights of a key.
type Identity struct {
	Issuer  string `json:"issuer"`            // the issuer's URL, exactly as tokens have it (RFC 7519, iss)
	Subject string `json:"subject,omitempty"` // RFC 7519, sub; empty for a group
	Group   string `json:"group,omitempty"`   // one value of the issuer's groups claim; empty for a subject
	// UID is the uid of a subject that is a ServiceAccount of Kubernetes. A new account of the same name has another uid.
	// Empty: the subject whatever its uid is.
	UID string `json:"uid,omitempty"`
}

// IsZero reports whether i names nobody, as the Identity of a key's record.
func (i Identity) IsZero() bool { return i == Identity{} }

// Validate reports which values an Identity may have, unless i has such values. The error has no value of i.
func (i Identity) Validate() error {
	u, err := url.Parse(i.Issuer)
	named := i.Subject + i.Group
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || (i.Subject == "") == (i.Group == "") ||
		len(i.Issuer) > maxIdentity || len(named) > maxIdentity || !wire.Printable(i.Issuer) || !wire.Printable(named) ||
		len(i.UID) > maxIdentity || !wire.Printable(i.UID) || i.UID != "" && i.Subject == "" {
		return errors.New("the URL of an issuer, with either a subject (and perhaps its uid) or a group, each of up to 512 bytes of printable text")
	}
	return nil
}

// String returns the identity in one line, such as `subject "ana" of https://login.example.com`, without its uid.
func (i Identity) String() string {
	if i.Group != "" {
		return "group " + strconv.Quote(i.Group) + " of " + i.Issuer
	}
	return "subject " + strconv.Quote(i.Subject) + " of " + i.Issuer
}

// Hash returns the hash by which a store finds the record of the identity. The hash differs from that of every key, as
// no key contains a zero byte. The stored hashes of version 0.1.0 are those of an identity without a uid.
func (i Identity) Hash() Hash {
	text := "identity\x00" + i.Issuer + "\x00" + i.Subject + "\x00" + i.Group
	if i.UID != "" {
		text += "\x00" + i.UID
	}
	return sha256.Sum256([]byte(text))
}

// Identities is the value of INTERNAL_IDENTITIES: a list in JSON.
type Identities []Identity

// UnmarshalText reads the JSON list of INTERNAL_IDENTITIES, whose elements have an issuer and a subject. The error names
// the first fault and what is allowed.
func (list *Identities) UnmarshalText(text []byte) error {
	*list = nil
	if len(bytes.TrimSpace(text)) == 0 {
		return nil
	}
	const allowed = `a JSON list such as [{"issuer":"https://login.example.com","subject":"ana"}]`
	var parsed []Identity
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&parsed); err != nil {
		return fmt.Errorf("%w; allowed: %s", err, allowed)
	}
	for _, i := range parsed {
		if err := i.Validate(); err != nil || i.Group != "" || i.UID != "" {
			return fmt.Errorf("%s was given; allowed: %s", i, allowed)
		}
	}
	*list = parsed
	return nil
}
