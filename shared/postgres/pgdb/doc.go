// Package pgdb owns the access of a service to one Postgres database with one role. The package has a connection pool
// with bounded waits, and decides how clients see the database's faults.
//
// A statement takes three steps, all in [Pool.Query]: wait for a connection, run the statement within its time-out,
// return the connection. The pool is pgx's own, and so is the cancelling of statements. When a statement's context
// ends, pgx closes the connection and asks the server to cancel the statement.
//
// The package knows no table, no standbys (package standbys) and no migrations (package migrate). All that package pgdb
// knows of Citus comes from package citus through [Pool.SetDistributed]. The package decides by SQLSTATE and type which
// faults are transient.
package pgdb
