package auth

import (
	"cmp"
	"slices"
	"time"
)

// principal returns the rights that the records of one project give to b at now, and the ids of the records that give
// them. The record of a key or of a subject decides alone. Of two records of a subject, the active one decides, or else the
// one with the uid. The rights of groups add up: all scopes, and the highest rate unless a record has the default. Such
// rights expire with the first of the records. The error is an [apierr.Refusal] if b has
// no rights.
func (b *bearer) principal(projectID string, records []Record, now time.Time) (Principal, []string, error) {
	records = slices.DeleteFunc(slices.Clone(records), func(r Record) bool { return r.ProjectID != projectID })
	slices.SortStableFunc(records, func(a, b Record) int { return cmp.Compare(b.Identity.UID, a.Identity.UID) })
	own := func(r Record) bool { return r.Identity.Group == "" }
	i := slices.IndexFunc(records, func(r Record) bool { return own(r) && r.Active(now) })
	if i < 0 {
		i = slices.IndexFunc(records, own)
	}
	if i >= 0 {
		r := records[i]
		if !r.RevokedAt.IsZero() {
			return Principal{}, nil, ErrRevoked
		}
		return Principal{
			KeyID: r.ID, ProjectID: projectID, Name: r.Name, Scopes: r.Scopes, Rate: r.Rate, ExpiresAt: r.ExpiresAt,
		}, []string{r.ID}, nil
	}
	records = slices.DeleteFunc(records, func(r Record) bool { return !r.Active(now) })
	if len(records) == 0 {
		return Principal{}, nil, ErrUnknown
	}
	slices.SortFunc(records, func(a, b Record) int { return cmp.Compare(a.ID, b.ID) })
	p := Principal{KeyID: records[0].ID, ProjectID: projectID, Name: records[0].Name, Rate: records[0].Rate, counted: b.hash.String()}
	var ids []string
	for _, r := range records {
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
