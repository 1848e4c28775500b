// Package faulttest causes faults between programs and checks the answers to their clients. It has a loopback proxy
// that delays, silences and resets connections. It also has limits for processes, and a load that checks every answer.
//
// Production code does not import it; the linter checks this.
package faulttest
