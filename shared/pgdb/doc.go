// Package pgdb owns how a service reaches one Postgres database as one role: a connection pool whose waits are
// all bounded, and the meaning of the database's faults for clients.
//
// A statement takes three steps, all in [Pool.Query]: wait for a connection, run the statement within its
// time-out, return the connection. The pool is pgx's own, and so is the way a statement is cancelled: when its
// context ends, pgx closes the connection and asks the server to cancel what still runs there.
//
// It refuses to know any table, standbys (package pgreplica), migrations (package pgmigrate) and Citus (package
// pgcitus, which attaches a [Gate] to the pool). It tells faults apart by SQLSTATE and type, never by their text.
package pgdb
