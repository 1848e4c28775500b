package auth

import (
	"cmp"
	"slices"
	"time"
)

// principal returns the rights that the records give to b in one project at now, and the ids of the records that give the
// rights. Records that are revoked or have expired give none. The record of a key decides alone, and the records of a
// subject, without and with its uid, decide before those of groups. The rights of several records add up: all scopes,
// and the highest rate unless a record has the default. Such rights expire with the first of the records. The error is an
// [apierr.Refusal] if b has no rights.
func (b *bearer) principal(projectID string, records []Record, now time.Time) (Principal, []string, error) {
	var own, groups []Record
	why := ErrUnknown
	for _, r := range records {
		switch ofGroup := r.Identity.Group != ""; {
		case r.ProjectID != projectID:
		case r.Active(now) && ofGroup:
			groups = append(groups, r)
		case r.Active(now):
			own = append(own, r)
		case !ofGroup && r.RevokedAt.IsZero():
			why = ErrExpired
		case !ofGroup:
			why = ErrRevoked
		}
	}
	var p Principal
	if len(own) == 0 {
		own, p.counted = groups, b.hash.String()
	}
	if len(own) == 0 {
		return Principal{}, nil, why
	}
	slices.SortFunc(own, func(a, b Record) int { return cmp.Compare(a.ID, b.ID) })
	p.KeyID, p.ProjectID, p.Name, p.Rate = own[0].ID, projectID, own[0].Name, own[0].Rate
	var ids []string
	for _, r := range own {
		ids = append(ids, r.ID)
		p.Scopes |= r.Scopes
		if p.Rate = max(p.Rate, r.Rate); r.Rate == 0 {
			p.Rate = 0
		}
		if !r.ExpiresAt.IsZero() && (p.ExpiresAt.IsZero() || r.ExpiresAt.Before(p.ExpiresAt)) {
			p.ExpiresAt = r.ExpiresAt
		}
	}
	return p, ids, nil
}
