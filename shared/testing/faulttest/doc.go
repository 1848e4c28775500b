// Package faulttest breaks what stands between programs, and watches what their clients see of it: a
// proxy on the loopback that slows, silences and cuts connections; limits on processes; and a steady load
// whose every answer is checked.
//
// Production code does not import it; the linter sees to that.
package faulttest
