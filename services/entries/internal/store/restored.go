package store

import "context"

// restoredAtOnce is how many projects one call of [Remover.Restored] passes.
const restoredAtOnce = 1000

// projectsAfter selects the next projects after the id $1, sorted by id. No other statement is about all projects.
const projectsAfter = `
SELECT project_id
FROM project_changes
WHERE project_id > $1
ORDER BY project_id
LIMIT $2`

// Restored records that projects have lost all numbers after the number to, and after their last number. Restored passes
// up to 1,000 projects after the id after, and returns how many these were. next is the id of the last one, or empty if
// there are no more. Restored can be repeated.
func (m *Remover) Restored(ctx context.Context, to int64, after string) (projects int, next string, err error) {
	ids, err := m.ids(ctx, projectsAfter, after, restoredAtOnce)
	for _, id := range ids {
		if err == nil {
			err = m.numbers.lose(ctx, id, to)
		}
		if err != nil {
			return projects, "", err
		}
		projects++
	}
	if len(ids) == restoredAtOnce {
		next = ids[len(ids)-1]
	}
	return projects, next, err
}
