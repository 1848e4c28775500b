// Package faulttest causes faults between programs and observes what their clients see. It has a proxy on the
// loopback that slows, silences and cuts connections. It also has limits on processes, and a steady load whose every
// answer is checked.
//
// Production code does not import it; the linter checks this.
package faulttest
