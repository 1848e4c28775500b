package wire

// OrNull returns a pointer to value, or nil for a zero value. JSON and SQL then have null instead of the zero value.
func OrNull[T comparable](value T) *T {
	var zero T
	if value == zero {
		return nil
	}
	return &value
}
