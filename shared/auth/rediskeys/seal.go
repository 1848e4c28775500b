package rediskeys

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"time"

	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/config"
)

// What lies in Redis, integers big-endian, times in microseconds since 1970:
//
//	copy       'V' version(1) readAt(8) expiresAt(8, 0: never) scopes(4) rate(4) foreign(1) key id, MAC(32)
//	tombstone  'T' changedAt(8) MAC(32)
//
// A MAC is HMAC-SHA256 by one of the secrets over a label, the project with its length before it, the
// key's hash, and all that stands before the MAC.
const (
	kindCopy      = 'V'
	kindTombstone = 'T'
	version       = 1

	copyHead     = 1 + 1 + 8 + 8 + 4 + 4 + 1
	tombstoneLen = 1 + 8 + sha256.Size

	labelName  = "lectern key name 1"
	labelValue = "lectern key value 1"
)

// sealer makes and reads what lies in Redis.
type sealer struct {
	secrets [][]byte
}

func newSealer(secrets []config.Secret) sealer {
	var s sealer
	for _, secret := range secrets {
		s.secrets = append(s.secrets, []byte(secret.Reveal()))
	}
	if len(s.secrets) == 0 {
		panic("rediskeys: no secret to authenticate what lies in Redis")
	}
	return s
}

func mac(secret []byte, label, projectID string, h auth.Hash, payload []byte) []byte {
	m := hmac.New(sha256.New, secret)
	m.Write([]byte(label))
	var n [4]byte
	binary.BigEndian.PutUint32(n[:], uint32(len(projectID)))
	m.Write(n[:])
	m.Write([]byte(projectID))
	m.Write(h[:])
	m.Write(payload)
	return m.Sum(nil)
}

// names are the names of a key's copy, one by each secret, in their order. The braces make Redis
// Cluster place it by the pseudonym alone.
func (s sealer) names(projectID string, h auth.Hash) []string {
	names := make([]string, len(s.secrets))
	for i, secret := range s.secrets {
		names[i] = "lectern:key:{" + hex.EncodeToString(mac(secret, labelName, projectID, h, nil)) + "}"
	}
	return names
}

// seal makes the copy of a record.
func (s sealer) seal(r auth.Record, h auth.Hash) []byte {
	b := make([]byte, 0, copyHead+len(r.ID)+sha256.Size)
	b = append(b, kindCopy, version)
	b = binary.BigEndian.AppendUint64(b, uint64(r.ReadAt.UnixMicro()))
	var expires int64
	if !r.ExpiresAt.IsZero() {
		expires = r.ExpiresAt.UnixMicro()
	}
	b = binary.BigEndian.AppendUint64(b, uint64(expires))
	b = binary.BigEndian.AppendUint32(b, uint32(r.Scopes))
	b = binary.BigEndian.AppendUint32(b, uint32(r.Rate))
	if r.Foreign {
		b = append(b, 1)
	} else {
		b = append(b, 0)
	}
	b = append(b, r.ID...)
	return append(b, mac(s.secrets[0], labelValue, r.ProjectID, h, b)...)
}

// open reads a copy of the project's key with that hash. False: it is not one.
func (s sealer) open(value []byte, projectID string, h auth.Hash) (auth.Record, bool) {
	if len(value) < copyHead+sha256.Size || value[0] != kindCopy || value[1] != version {
		return auth.Record{}, false
	}
	payload, ok := s.authentic(value, projectID, h)
	if !ok {
		return auth.Record{}, false
	}
	r := auth.Record{
		ID:        string(payload[copyHead:]),
		ProjectID: projectID,
		ReadAt:    time.UnixMicro(int64(binary.BigEndian.Uint64(payload[2:]))),
		Scopes:    auth.Scopes(binary.BigEndian.Uint32(payload[18:])),
		Rate:      int(binary.BigEndian.Uint32(payload[22:])),
		Foreign:   payload[26] == 1,
	}
	if expires := int64(binary.BigEndian.Uint64(payload[10:])); expires != 0 {
		r.ExpiresAt = time.UnixMicro(expires).UTC()
	}
	return r, true
}

// tombstone makes what takes a copy's place when the key changes, by the secret of that number.
func (s sealer) tombstone(secret int, projectID string, h auth.Hash, at time.Time) []byte {
	b := make([]byte, 0, tombstoneLen)
	b = append(b, kindTombstone)
	b = binary.BigEndian.AppendUint64(b, uint64(at.UnixMicro()))
	return append(b, mac(s.secrets[secret], labelValue, projectID, h, b)...)
}

func isTombstone(value []byte) bool { return len(value) > 0 && value[0] == kindTombstone }

// openTombstone returns when the project's key with that hash changed. False: the tombstone is not
// one that we made.
func (s sealer) openTombstone(value []byte, projectID string, h auth.Hash) (time.Time, bool) {
	if len(value) != tombstoneLen {
		return time.Time{}, false
	}
	payload, ok := s.authentic(value, projectID, h)
	if !ok {
		return time.Time{}, false
	}
	return time.UnixMicro(int64(binary.BigEndian.Uint64(payload[1:]))), true
}

// authentic returns value without its MAC, when that is by one of the secrets.
func (s sealer) authentic(value []byte, projectID string, h auth.Hash) ([]byte, bool) {
	payload, sum := value[:len(value)-sha256.Size], value[len(value)-sha256.Size:]
	for _, secret := range s.secrets {
		if hmac.Equal(sum, mac(secret, labelValue, projectID, h, payload)) {
			return payload, true
		}
	}
	return nil, false
}
