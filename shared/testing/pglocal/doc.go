// Package pglocal owns a private Postgres server made from the machine's own binaries: for running
// everything on one machine, and for tests. The server belongs to this process and to one folder; it
// dies with its parent, also when that is killed, and opens again on the data that it left.
//
// It is reached through a Unix socket in a folder that only the server's user may enter, without a
// password; over TCP, when asked for, only on loopback and with a password (SCRAM) that is kept in
// the folder. Other users of the machine can therefore not read the data.
//
// It is no way to run Postgres in production: it tunes nothing, backs up nothing, upgrades nothing.
package pglocal
