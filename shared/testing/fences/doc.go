// Package fences holds no code: its test holds the whole workspace to who may import whom, as no one
// module's compiler can.
package fences
