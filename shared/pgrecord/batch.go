package pgrecord

// Waves parts records so that no id comes twice in a part, as a statement can write a row once only.
// Stored one after the other, the parts have the outcome of storing the records one after the other.
// Every id is in the first part.
func Waves[T any](records []T, id func(*T) string) [][]T {
	times := make(map[string]int, len(records))
	most := 0
	for i := range records {
		n := times[id(&records[i])]
		times[id(&records[i])] = n + 1
		most = max(most, n)
	}
	if most == 0 {
		return [][]T{records}
	}
	waves := make([][]T, most+1)
	clear(times)
	for i := range records {
		n := times[id(&records[i])]
		times[id(&records[i])] = n + 1
		waves[n] = append(waves[n], records[i])
	}
	return waves
}

// Column gives one field of each record: an array parameter.
func Column[T, C any](records []T, of func(*T) C) []C {
	column := make([]C, len(records))
	for i := range records {
		column[i] = of(&records[i])
	}
	return column
}
