package demo

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// decimal is an amount in hundredths, written with two decimal places. The amount is not negative.
type decimal struct{ hundredths int }

// MarshalJSON writes the amount as a number with two decimal places, without a conversion to floating point.
func (d decimal) MarshalJSON() ([]byte, error) {
	return fmt.Appendf(nil, "%d.%02d", d.hundredths/100, d.hundredths%100), nil
}

// MarshalJSON writes the pairs as a JSON object, in the order of the slice.
func (p pairs) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, pair := range p {
		if i > 0 {
			b = append(b, ',')
		}
		name, err := plain(pair.name)
		if err != nil {
			return nil, err
		}
		value, err := plain(pair.value)
		if err != nil {
			return nil, err
		}
		b = append(append(append(b, name...), ':'), value...)
	}
	return append(b, '}'), nil
}

// plain returns the JSON of v. In contrast to json.Marshal, plain does not escape the characters <, > and &.
func plain(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
