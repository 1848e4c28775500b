//go:build !linux

package httpserver

// departures is not there: net/http's own reads find out when clients leave.
type departures struct{}

func watchDepartures() (*departures, error) { return nil, nil }

func (*departures) stop() {}

func (*departures) add(*conn) {}

func (*departures) forget(uint64) {}

func (*departures) conns() []*conn { return nil }

// nothingLeft is asked for by who is told alone.
func (*conn) nothingLeft() bool { return false }
