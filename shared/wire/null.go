package wire

// OrNull returns a pointer to value, or nil for a zero value: JSON and SQL have null there.
func OrNull[T comparable](value T) *T {
	var zero T
	if value == zero {
		return nil
	}
	return &value
}
