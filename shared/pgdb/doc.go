// Package pgdb owns how a service reaches Postgres: a pool whose waits are all bounded, the meaning of
// its faults for clients, and migrations with the roles that may do no more than they need.
//
// It refuses to know any table. Faults are told apart by SQLSTATE and type, never by their text.
package pgdb
